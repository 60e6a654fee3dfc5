"""``specrack status``, ``logs`` and ``report``: what is there, what it says, how it did."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from infra.errors import InputError
from infra.files import read_json
from infra.paths import StatePaths
from infra.spec.model import Deployment
from infra.supervisor.state import SupervisorState, read_state


def deployment_status(deployment: Deployment, paths: StatePaths) -> dict[str, Any]:
    """All that is known about one deployment, as JSON."""
    state = read_state(paths.run)
    configured = read_json(paths.configured)
    return {
        "name": deployment.name,
        "tier": deployment.tier,
        "site": deployment.site,
        "engine": deployment.serving.engine,
        "speculation": deployment.serving.speculation.method,
        "deployed": paths.terraform_state.exists() and _has_resources(paths.terraform_state),
        "configured_at": configured.get("at") if state and isinstance(configured, dict) else None,
        "condition": condition(state),
        "services": [] if state is None else [_service(state, one.role) for one in state.services],
        "last_smoke": read_json(paths.last_smoke),
        "state_folder": str(paths.base),
    }


def condition(state: SupervisorState | None) -> str:
    """One word for the servers of a deployment."""
    if state is None:
        return "not running"
    if not state.alive:
        return "stopped: its supervisor is gone"
    if state.failed:
        return "failed"
    return "healthy" if state.healthy else "not healthy"


def _service(state: SupervisorState, role: str) -> dict[str, Any]:
    service = next(one for one in state.services if one.role == role)
    value: dict[str, Any] = service.model_dump(mode="json", exclude={"started"})
    value["url"] = service.url
    if not state.alive:
        value |= {"condition": "stopped", "pid": None}
    return value


def _has_resources(path: Path) -> bool:
    state = read_json(path)
    return bool(isinstance(state, dict) and state.get("resources"))


def table(statuses: list[dict[str, Any]]) -> Table:
    """The status of all deployments, a row a server."""
    made = Table(show_edge=False, pad_edge=False)
    for title in ("deployment", "engine", "server", "condition", "address", "restarts", "smoke"):
        made.add_column(title, overflow="fold", no_wrap=title == "address")
    for status in statuses:
        smoke = status["last_smoke"]
        verdict = f"{smoke['verdict']}, {ago(smoke['at'])}" if smoke else "never"
        services = status["services"] or [None]
        for number, service in enumerate(services):
            first = number == 0
            made.add_row(
                status["name"] if first else "",
                f"{status['engine']}, {status['speculation']}" if first else "",
                service["role"] if service else "",
                service["condition"] if service else status["condition"],
                (service["url"] or "") if service else "",
                restarts(service) if service else "",
                verdict if first else "",
            )
    return made


def restarts(service: dict[str, Any]) -> str:
    """``2, last 10 s ago: killed by signal SIGKILL``."""
    if not service["restarts"]:
        return "0"
    last = service["last_restart"]
    return f"{service['restarts']}, last {ago(last['at'])}: {last['reason']}"


def ago(at: str) -> str:
    """How long ago an ISO time was, in words."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"


def log_path(paths: StatePaths, role: str) -> Path:
    """The log of a server. Raises InputError when there is none."""
    path = paths.run / role / "server.log"
    if not path.is_file():
        raise InputError(
            f"no log of the {role} server of {paths.stack_key}",
            do="it is written once the deployment was started",
        )
    return path


def tail(path: Path, lines: int) -> list[str]:
    """The last lines of a log."""
    with path.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - 400 * max(lines, 1)))
        text = stream.read().decode("utf-8", "replace")
    return text.splitlines()[-lines:] if lines > 0 else []


def follow(path: Path) -> Iterator[str]:
    """What is written to ``path`` from now on, through a rotation, until interrupted."""
    position = path.stat().st_size
    while True:
        size = path.stat().st_size if path.exists() else 0
        position = 0 if size < position else position
        if size > position:
            with path.open("rb") as stream:
                stream.seek(position)
                chunk = stream.read()
                position = stream.tell()
            yield chunk.decode("utf-8", "replace")
        time.sleep(0.2)
