"""The launch plan: what must run on a host, whoever starts it.

An engine adapter makes it from a deployment, purely; Ansible carries it out, as a supervised
process on the ``local`` tier and as a systemd unit on real hosts.

Three placeholders stand for what is known only on the host; they may occur in ``command``,
``env`` values and file contents: ``@PORT@`` (the service's TCP port), ``@DIR@`` (the service's own
directory, absolute) and ``@PYTHON@`` (the interpreter of the engine's environment).
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from infra.spec.model import EngineName

#: ``speculative`` serves users; ``baseline`` is the same engine with speculation off, for A/B.
Role = Literal["speculative", "baseline"]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlanFile(_Frozen):
    """A file to write below the service's directory before the start."""

    path: str
    content: str
    mode: str = "0600"


class Service(_Frozen):
    """One process: how to start it and how to know that it is well."""

    role: Role
    command: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)
    files: tuple[PlanFile, ...] = ()
    #: Fixed TCP port, or None: a free one is chosen and kept.
    port: int | None = None
    health_path: str = "/health"
    metrics_path: str = "/metrics"
    #: Give up when the service is not healthy this long after its start.
    ready_timeout_s: float = 60.0
    #: Between asking to stop (SIGTERM) and killing.
    stop_timeout_s: float = 10.0


class LaunchPlan(_Frozen):
    """Everything that runs on one host for one deployment."""

    deployment: str
    engine: EngineName
    engine_version: str
    #: The name under which the model is served (``model`` in requests).
    served_model: str
    #: pip requirements of the engine's own environment; empty: ours has it.
    requirements: tuple[str, ...] = ()
    #: Distributions to remove again after installing ``requirements``.
    remove_after_install: tuple[str, ...] = ()
    services: tuple[Service, ...]

    def digest(self) -> str:
        """SHA-256 over the whole plan, hex: changes exactly when the plan does."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
