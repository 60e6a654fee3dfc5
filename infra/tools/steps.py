"""A Terraform command as a step of ours: recorded, interrupted once, never left alone.

``specrack-terraform`` runs each command that cdktf asks for through ``run``. The launcher reads
the records: what runs, since when, and how it ended. cdktf itself takes a Terraform that was
killed for one that did well.

::

    .specrack/cache/runs/<id>/
        <time>-<action>-<pid>.json    a Terraform command
        stop                          no more of them are started
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from infra.errors import SpecrackError
from infra.files import read_json, write_json
from infra.process import die_with_parent, is_alive, start_time
from infra.tools import mirror

#: The folder of records of one run of the launcher; set by it.
FOLDER = "SPECRACK_RUN"
STOP = "stop"
#: How many earlier runs are kept.
KEPT = 20
#: What a shell says of a program that a Ctrl-C ended.
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Step:
    """One Terraform command. ``began``, ``ended``: seconds since the epoch. ``status``: its exit
    status, 128 + n when signal n ended it, None while it runs or when nobody saw its end.
    ``pid``: the process that waits for it; ``born``: when that process was started."""

    stack: str
    action: str
    pid: int
    born: float
    terraform_pid: int
    began: float
    ended: float | None = None
    status: int | None = None
    interrupted: bool = False

    @property
    def running(self) -> bool:
        """Is it still there? By process, for a record may be all that was left."""
        return self.ended is None and is_alive(self.pid, self.born)


def runs_folder(root: Path) -> Path:
    return root / ".specrack" / "cache" / "runs"


def new_run(root: Path, run_id: str) -> Path:
    """The folder for the records of a new run; old ones go. Raises InputError."""
    base = runs_folder(root)
    folder = base / run_id
    write_json(folder / "run.json", {"pid": os.getpid(), "began": time.time()})
    earlier = sorted(
        (one for one in base.iterdir() if one != folder), key=lambda one: one.stat().st_mtime
    )
    for old in earlier[:-KEPT]:
        if not any(step.running for step in read(old)):
            shutil.rmtree(old, ignore_errors=True)
    return folder


def read(folder: Path) -> list[Step]:
    """The steps recorded in ``folder``, the first first."""
    found = []
    for path in sorted(folder.glob("*-*-*.json")):
        data: Any = read_json(path)
        with contextlib.suppress(TypeError):
            found.append(Step(**data))
    return found


def still_running(root: Path, stack: str) -> list[Step]:
    """Steps of ``stack`` that earlier runs left behind and that still work."""
    base = runs_folder(root)
    if not base.is_dir():
        return []
    steps = [step for folder in base.iterdir() for step in read(folder)]
    return [step for step in steps if step.stack == stack and step.running]


def last(steps: Sequence[Step], stack: str, actions: Sequence[str]) -> Step | None:
    """The last of ``actions`` on ``stack``, or None when there was none."""
    return next(
        (one for one in reversed(steps) if one.stack == stack and one.action in actions), None
    )


def interrupt(step: Step) -> None:
    """Ask a step to end in order. Terraform hears it once, however often this is called."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(step.pid, signal.SIGTERM)


def action_of(arguments: Sequence[str]) -> str:
    """``apply``, ``init``, ``state-push``: letters and dashes, fit for a file's name."""
    words = [word for word in arguments if not word.startswith("-")]
    kept = "-".join(words[: 2 if words[:1] in (["state"], ["providers"]) else 1]) or "none"
    return "".join(c if c.isalnum() or c == "-" else "-" for c in kept)


def run(become: Callable[[], int], arguments: Sequence[str], folder: Path) -> int:
    """Run Terraform (``become`` turns a process into it) with a record in ``folder``.

    Returns its exit status. Signals: the terminal's interrupt reaches Terraform by itself; our
    SIGTERM (the launcher's, or the kernel's when cdktf dies) is passed on as an interrupt, once:
    a second one makes Terraform leave without writing its state.
    """
    if (folder / STOP).exists():
        print("specrack: not started, because the run is being stopped", file=sys.stderr)
        return INTERRUPTED
    action = action_of(arguments)
    if os.getsid(0) != os.getpid() and os.getpgrp() != os.getpid():
        # Out of reach of the terminal: the launcher alone passes its interrupt on.
        os.setpgid(0, 0)
    with _one_init(action):
        return _supervise(become, action, folder)


def _supervise(become: Callable[[], int], action: str, folder: Path) -> int:
    told = False
    child = 0

    def from_terminal(_signal: int, _frame: object) -> None:
        nonlocal told
        told = True

    def from_above(_signal: int, _frame: object) -> None:
        nonlocal told
        if not told and child:
            told = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGINT)

    caught = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, caught)
    signal.signal(signal.SIGINT, from_terminal)
    signal.signal(signal.SIGTERM, from_above)
    # The hang-up of cdktf's terminal would end both on the spot.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    die_with_parent(signal.SIGTERM)
    child = os.fork()
    if child == 0:
        _be_terraform(become, caught)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, caught)
    step = Step(
        stack=Path.cwd().name,
        action=action,
        pid=os.getpid(),
        born=start_time(os.getpid()) or 0.0,
        terraform_pid=child,
        began=time.time(),
    )
    path = folder / f"{time.time_ns()}-{action}-{os.getpid()}.json"
    _write(path, step)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = status if status >= 0 else 128 - status
    _write(path, replace(step, ended=time.time(), status=status, interrupted=told))
    return status


def _be_terraform(become: Callable[[], int], caught: set[signal.Signals]) -> None:
    """In the child: become Terraform, which is interrupted when the process above is killed."""
    status = 127
    try:
        die_with_parent(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, caught)
        status = become()
    except SpecrackError as error:
        print(f"specrack: {error}", file=sys.stderr)
        status = error.exit_status
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # A library's own threads must not hold up the exit.
        os._exit(status)


def _write(path: Path, step: Step) -> None:
    # A full disk must not end the one who waits. A step without an end counts as one that failed.
    with contextlib.suppress(SpecrackError, OSError):
        write_json(path, asdict(step))


@contextlib.contextmanager
def _one_init(action: str) -> Iterator[None]:
    """Two ``init`` at a time could both fill a shared cache of providers, and one of them start
    a provider that the other is writing."""
    if action != "init" or not mirror.installed():
        yield
        return
    folder = Path(os.environ[mirror.PLUGIN_CACHE])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
