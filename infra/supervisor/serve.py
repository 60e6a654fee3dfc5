"""The supervisor process itself: ``python -m infra.supervisor serve --dir DIR``."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path
from types import FrameType

from infra.files import read_json
from infra.process import is_alive, kill_group, start_time
from infra.serving.plan import LaunchPlan
from infra.supervisor.state import (
    PLAN_FILE,
    SupervisorState,
    read_state,
    utc_now,
    write_state,
)
from infra.supervisor.unit import Unit

LOCK_FILE = "supervisor.lock"
TICK_S = 0.05


def serve(folder: Path) -> int:
    """Run the plan in ``folder`` until SIGTERM. Exit status 0, or 1 when another one runs."""
    with (folder / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another supervisor runs here", flush=True)
            return 1
        # Not inherited by the servers: a lock held by one of them would outlive us.
        os.set_inheritable(lock.fileno(), False)
        return _run(folder)


def _run(folder: Path) -> int:
    stored = read_json(folder / PLAN_FILE)
    plan = LaunchPlan.model_validate(stored["plan"])
    before = read_state(folder)
    clean_up(before)
    units = [
        Unit(
            service,
            folder,
            python=stored["python"],
            preferred_port=_former_port(before, service.role),
        )
        for service in plan.services
    ]
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    started = start_time(os.getpid())
    assert started is not None

    def publish() -> None:
        write_state(
            folder,
            SupervisorState(
                pid=os.getpid(),
                started=started,
                plan_digest=stored["digest"],
                at=utc_now(),
                services=[unit.state for unit in units],
            ),
        )

    publish()
    while not stopping:
        changed = False
        for unit in units:
            others = frozenset(
                other.state.port for other in units if other is not unit and other.state.port
            )
            changed |= unit.tick(others)
        if changed:
            publish()
        time.sleep(TICK_S)
    for unit in units:
        unit.stop()
    publish()
    return 0


def _former_port(before: SupervisorState | None, role: str) -> int | None:
    if before is None:
        return None
    return next((service.port for service in before.services if service.role == role), None)


def clean_up(before: SupervisorState | None) -> None:
    """Kill servers that a supervisor left behind which was itself killed."""
    for service in before.services if before else ():
        if service.pid and service.started and is_alive(service.pid, service.started):
            kill_group(service.pid)
