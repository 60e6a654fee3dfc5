"""Where a deployment answers, once it is configured."""

from __future__ import annotations

import time
from dataclasses import dataclass

from infra.errors import EndpointError
from infra.paths import StatePaths
from infra.spec.model import Deployment
from infra.supervisor.state import SupervisorState, read_state


@dataclass(frozen=True, slots=True)
class Endpoint:
    """URLs of a deployment. ``baseline_url``: the same engine with speculation off, or None."""

    url: str
    baseline_url: str | None
    metrics_url: str
    baseline_metrics_url: str | None


def endpoint_of(deployment: Deployment, paths: StatePaths) -> Endpoint:
    """The endpoint of a local deployment. Raises EndpointError when it is not up, saying why."""
    state = read_state(paths.run)
    if state is None:
        raise EndpointError(
            f"{deployment.name} is not deployed", do=f"run: cdktf deploy {deployment.name}"
        )
    if not state.alive:
        raise EndpointError(
            f"{deployment.name}: its servers are not running",
            do=f"start them again: cdktf deploy {deployment.name}",
        )
    url = _healthy_url(deployment, state, "speculative")
    baseline_url = None
    if state.service("baseline") is not None:
        baseline_url = _healthy_url(deployment, state, "baseline")
    return Endpoint(
        url=url,
        baseline_url=baseline_url,
        metrics_url=f"{url}/metrics",
        baseline_metrics_url=f"{baseline_url}/metrics" if baseline_url else None,
    )


def wait_for_endpoint(
    deployment: Deployment, paths: StatePaths, *, limit_s: float = 60.0
) -> Endpoint:
    """``endpoint_of``, after giving servers that are just being restarted a chance."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        state = read_state(paths.run)
        if state is None or not state.alive or state.failed or state.healthy:
            break
        time.sleep(0.2)
    return endpoint_of(deployment, paths)


def _healthy_url(deployment: Deployment, state: SupervisorState, role: str) -> str:
    service = next((one for one in state.services if one.role == role), None)
    if service is None or service.url is None or service.condition in ("failed", "stopped"):
        reason = service.reason if service else "not in its launch plan"
        raise EndpointError(
            f"{deployment.name}: the {role} server is not up: {reason or 'stopped'}",
            do=f"see: specrack logs {deployment.name}",
        )
    return service.url
