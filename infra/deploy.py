"""The steps that a stack runs: configure, smoke, release. Each may run any number of times."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from infra.configure.run import Result, configure
from infra.errors import EXIT_FAILED, SpecrackError
from infra.files import locked, write_json
from infra.inventory import Inventory
from infra.paths import StatePaths
from infra.planning import plan_for
from infra.process import stop_when_orphaned
from infra.spec.loader import load_all
from infra.supervisor import control
from infra.supervisor.state import STATE_FILE, read_state
from infra.tools import outcome

Say = Callable[[str], None]

#: How long a step waits for the one of a killed deploy, which ends by itself when it notices.
STEP_WAIT_S = 120.0


class StoppedError(SpecrackError):
    """The deploy that started this step is gone."""

    code = "stopped"
    exit_status = 1


@contextlib.contextmanager
def step(base: Path, name: str) -> Iterator[None]:
    """Run a step: alone, ending when the deploy above it ends, its failure recorded."""

    def orphaned(_signal: int, _frame: object) -> None:
        raise StoppedError(f"{name}: stopped, because the deploy that started it is gone")

    signal.signal(signal.SIGTERM, orphaned)
    stop_when_orphaned()
    try:
        with locked(base / "step.lock", wait_s=STEP_WAIT_S, what="a configure or smoke step"):
            yield
    except SpecrackError as error:
        outcome.record(base, step=name, exit_status=error.exit_status, message=str(error))
        raise
    except Exception as error:
        message = f"FAILED in {name}: an internal fault ({error})"
        outcome.record(base, step=name, exit_status=EXIT_FAILED, message=message)
        raise


def run_configure(inventory: Inventory, *, root: Path, say: Say) -> Result:
    """Bring the hosts of ``inventory`` to the launch plan. Raises SpecrackError."""
    deployment = load_all(root, [inventory.deployment])[0]
    paths = StatePaths(root, inventory.stack_key)
    with step(paths.base, "configure"):
        plan = plan_for(deployment, root=root)
        result = configure(inventory, plan, paths=paths, say=say)
        if not result.ok:
            outcome.record(
                paths.base,
                step="configure",
                exit_status=result.exit_status,
                message="FAILED in configure: "
                + "; ".join(f"{f.host}: {f.stderr or f.message}" for f in result.failures),
            )
            return result
        state = read_state(paths.run)
        write_json(
            paths.configured,
            {
                "at": datetime.now(UTC).isoformat(),
                "trigger": inventory.trigger,
                "epoch": inventory.epoch,
                "engine": plan.engine,
                "engine_version": plan.engine_version,
                "services": {s.role: s.url for s in state.services} if state else {},
            },
        )
        outcome.record(paths.base, step="configure", exit_status=0, message="configured")
        return result


def release(stack_key: str, *, root: Path) -> bool:
    """Stop what runs on this machine for ``stack_key``. Logs and reports stay.

    Returns False when nothing was running; that is no error.
    """
    paths = StatePaths(root, stack_key)
    stopped = control.stop(paths.run)
    # What the last configure run left stays: the epoch in it makes the next deploy start the
    # servers again, even where Terraform still believes them to be there.
    (paths.run / STATE_FILE).unlink(missing_ok=True)
    return stopped
