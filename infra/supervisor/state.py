"""What the supervisor tells the world: one JSON file, written whole at every change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from infra.files import read_json, write_atomic
from infra.process import is_alive
from infra.serving.plan import Role

STATE_FILE = "state.json"
PLAN_FILE = "plan.json"

Condition = Literal["starting", "healthy", "unhealthy", "waiting", "failed", "stopped"]


class Restart(BaseModel):
    """Why and when a service was started again."""

    model_config = ConfigDict(extra="forbid")

    at: datetime
    reason: str


class ServiceState(BaseModel):
    """One server as the supervisor sees it."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    condition: Condition
    pid: int | None = None
    started: float | None = None
    port: int | None = None
    healthy_since: datetime | None = None
    restarts: int = 0
    last_restart: Restart | None = None
    #: Why it is in this condition, one line; empty when all is well.
    reason: str = ""
    log: str = ""

    @property
    def url(self) -> str | None:
        return None if self.port is None else f"http://127.0.0.1:{self.port}"


class SupervisorState(BaseModel):
    """The supervisor and its services."""

    model_config = ConfigDict(extra="forbid")

    pid: int
    started: float
    plan_digest: str
    at: datetime
    services: list[ServiceState]

    def service(self, role: Role) -> ServiceState | None:
        return next((service for service in self.services if service.role == role), None)

    @property
    def alive(self) -> bool:
        """Is the supervisor process itself running?"""
        return is_alive(self.pid, self.started)

    @property
    def healthy(self) -> bool:
        """Do all services run and answer?"""
        return self.alive and all(service.condition == "healthy" for service in self.services)

    @property
    def failed(self) -> list[ServiceState]:
        return [service for service in self.services if service.condition == "failed"]


def utc_now() -> datetime:
    return datetime.now(UTC)


def read_state(folder: Path) -> SupervisorState | None:
    """The state below ``folder``, or None when nothing was ever started there."""
    data = read_json(folder / STATE_FILE)
    if data is None:
        return None
    try:
        return SupervisorState.model_validate(data)
    except ValidationError:
        return None


def write_state(folder: Path, state: SupervisorState) -> None:
    write_atomic(folder / STATE_FILE, state.model_dump_json(indent=2) + "\n")
