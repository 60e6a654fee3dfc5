"""What others do with a supervisor: bring it to a plan, stop it. Both may be done twice."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infra.errors import ConfigureError, InputError
from infra.files import locked, write_json
from infra.process import is_alive
from infra.serving.plan import LaunchPlan
from infra.supervisor.serve import LOCK_FILE, clean_up
from infra.supervisor.state import PLAN_FILE, SupervisorState, read_state

STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of ``apply``."""

    changed: bool
    state: SupervisorState


def digest_of(plan: LaunchPlan, python: str) -> str:
    return hashlib.sha256(f"{plan.digest()} {python}".encode()).hexdigest()


def apply(
    folder: Path,
    plan: LaunchPlan,
    *,
    python: str = sys.executable,
    progress: Callable[[str], None] = lambda _line: None,
) -> Applied:
    """Make the servers of ``plan`` run below ``folder`` and wait until they are healthy.

    Changes nothing when they already do. Raises InputError when a server says that its input is
    wrong (missing model, port taken), ConfigureError when it does not become healthy; then
    nothing is left running.
    """
    with locked(folder / "apply.lock", wait_s=60, what="starting or stopping servers"):
        digest = digest_of(plan, python)
        state = read_state(folder)
        if state and state.alive and state.plan_digest == digest and not state.failed:
            return Applied(False, _wait_healthy(folder, plan, progress))
        _stop(folder)
        write_json(
            folder / PLAN_FILE,
            {"plan": plan.model_dump(mode="json"), "python": python, "digest": digest},
        )
        process = _launch(folder)
        _wait_published(folder, process)
        return Applied(True, _wait_healthy(folder, plan, progress))


def stop(folder: Path) -> bool:
    """Stop the supervisor of ``folder`` and its servers. False when none was running."""
    if not folder.is_dir():
        return False
    with locked(folder / "apply.lock", wait_s=60, what="starting or stopping servers"):
        return _stop(folder)


def _launch(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "infra.supervisor", "serve", "--dir", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
        )


def _wait_published(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        state = read_state(folder)
        if state and state.pid == process.pid:
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise ConfigureError(
        f"the supervisor did not start (exit status {process.poll()})",
        do=f"read {folder / 'supervisor.log'}",
    )


def _wait_healthy(
    folder: Path, plan: LaunchPlan, progress: Callable[[str], None]
) -> SupervisorState:
    limit_s = max(service.ready_timeout_s for service in plan.services) + 15
    deadline = time.monotonic() + limit_s
    told: dict[str, str] = {}
    while True:
        state = read_state(folder)
        if state is None or not state.alive:
            raise ConfigureError(
                "the supervisor stopped while the servers were starting",
                do=f"read {folder / 'supervisor.log'}",
            )
        for service in state.services:
            if told.get(service.role) != service.condition:
                told[service.role] = service.condition
                progress(f"{service.role} server: {service.condition}")
        if state.healthy:
            return state
        if state.failed:
            _stop(folder)
            first = state.failed[0]
            raise InputError(f"{first.role} server: {first.reason}", do=f"its log: {first.log}")
        if time.monotonic() > deadline:
            _stop(folder)
            late = next(service for service in state.services if service.condition != "healthy")
            raise ConfigureError(
                f"{late.role} server: {late.reason or 'not healthy'} after {limit_s:.0f} s",
                do=f"its log: {late.log}",
            )
        time.sleep(0.05)


def _stop(folder: Path) -> bool:
    """Stop with the apply lock held."""
    state = read_state(folder)
    running = state is not None and state.alive
    if state is not None and running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while is_alive(state.pid, state.started) and time.monotonic() < deadline:
            time.sleep(0.05)
        if is_alive(state.pid, state.started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGKILL)
    _wait_lock_free(folder)
    clean_up(state)
    return running


def _wait_lock_free(folder: Path) -> None:
    """Wait until no supervisor holds the folder, published or not (one may be starting)."""
    path = folder / LOCK_FILE
    if not path.exists():
        return
    deadline = time.monotonic() + STOP_TIMEOUT_S
    with path.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                state = read_state(folder)
                if state and state.alive:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(state.pid, signal.SIGTERM)
                if time.monotonic() > deadline:
                    raise ConfigureError(
                        f"{folder}: a supervisor holds this folder and does not stop",
                        do="find it with: fuser " + str(path),
                    ) from None
                time.sleep(0.05)
