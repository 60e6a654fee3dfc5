"""Run cdktf-cli and stay until everything below it is done.

cdktf 0.21 dies of the first Ctrl-C and leaves its Terraform behind, in a terminal of its own that
no Ctrl-C reaches. Here the launcher passes an interrupt on, once, and waits for Terraform to
finish the call that is under way, write its state and free its lock: minutes, when AWS is slow.
The same happens to a step that is past its deadline.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infra.process import die_with_parent
from infra.tools import steps
from infra.tools.deadlines import VARIABLE, Deadlines
from infra.tools.steps import Step

#: Node stays when the terminal sends an interrupt: it must show what Terraform says about it.
STAY = ("--import", 'data:text/javascript,process.on("SIGINT",()=>{})')
TICK_S = 0.2
#: How long cdktf may go on after its last Terraform ended, once it was to stop.
AFTERWARDS_S = 20.0
#: How long a step that is past its deadline may take to end in order; then it is told to leave.
GRACE_S = 300.0
#: And how long it may take to leave before it is killed.
LEAVE_S = 30.0
REMIND_S = 30.0

Say = Callable[[str], None]


def say(line: str) -> None:
    """A line of ours, on stderr. A closed terminal is no reason to leave Terraform alone."""
    with contextlib.suppress(OSError):
        print(f"specrack: {line}", file=sys.stderr, flush=True)


@dataclass
class Ended:
    """How a run ended. ``interrupted``: by whom; ``expired``: what was past its deadline."""

    status: int
    interrupted: str = ""
    expired: str = ""
    steps: Sequence[Step] = ()


@dataclass
class Watch:
    """One run of cdktf-cli, with its folder of records."""

    command: Sequence[str]
    root: Path
    env: Mapping[str, str]
    folder: Path
    deadlines: Deadlines
    say: Say = say
    grace_s: float = GRACE_S
    _signals: list[int] = field(default_factory=list, init=False)
    _interrupted: str = field(default="", init=False)
    _expired: str = field(default="", init=False)
    _since: float = field(default=0.0, init=False)
    _left: bool = field(default=False, init=False)
    _asking: bool = field(default=False, init=False)
    _force: bool = field(default=False, init=False)
    _reminded: float = field(default=0.0, init=False)

    def run(self) -> Ended:
        """Start it, stay, and tell how it ended."""
        before = {
            number: signal.signal(number, lambda got, _frame: self._signals.append(got))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            process = subprocess.Popen(
                self.command,
                cwd=self.root,
                env=dict(self.env),
                # Kill us, and cdktf goes; Terraform below it then lets go of its state in order.
                preexec_fn=lambda: die_with_parent(signal.SIGKILL),
            )
            began = time.time()
            while process.poll() is None:
                self._tick(process, began)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(TICK_S)
            while self._running():
                self._tick(process, began)
                time.sleep(TICK_S)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        status = process.returncode
        return Ended(
            status=status if status >= 0 else 128 - status,
            interrupted=self._interrupted,
            expired=self._expired,
            steps=steps.read(self.folder),
        )

    # --- one look at everything -----------------------------------------------------------------

    def _running(self) -> list[Step]:
        return [step for step in steps.read(self.folder) if step.running]

    def _tick(self, process: subprocess.Popen[bytes], began: float) -> None:
        if not self._signals and not self._since and time.time() - began < 2 * TICK_S:
            return
        running = self._running()
        while self._signals:
            self._on_signal(self._signals.pop(0), process, running)
        now = time.time()
        if not self._since:
            self._check_deadlines(process, began, now, running)
            return
        if not running and process.poll() is None and now - self._since > AFTERWARDS_S:
            process.kill()
        if self._force or (self._expired and now - self._since > self.grace_s):
            self._make_leave(running, now)
        if running and now - self._reminded > REMIND_S:
            self._reminded = now
            self.say(f"still waiting for {_names(running)}, {_ago(now - self._since)} so far")

    def _check_deadlines(
        self, process: subprocess.Popen[bytes], began: float, now: float, running: Sequence[Step]
    ) -> None:
        for step in running:
            if now - step.began > self.deadlines.seconds(step.action):
                minutes = self.deadlines.seconds(step.action) / 60
                self._expired = (
                    f"terraform {step.action} of {step.stack} did not end within "
                    f"{minutes:g} min ({VARIABLE})"
                )
        seen = steps.read(self.folder)
        if not seen and now - began > self.deadlines.seconds("synth"):
            minutes = self.deadlines.seconds("synth") / 60
            self._expired = f"the synth did not end within {minutes:g} min ({VARIABLE})"
        if self._expired:
            self.say(f"{self._expired}; it is interrupted now")
            self._stop(process, running)

    def _stop(self, process: subprocess.Popen[bytes], running: Sequence[Step]) -> None:
        """No more Terraform; those that run are told to end in order."""
        self._since = self._reminded = time.time()
        with contextlib.suppress(OSError):
            (self.folder / steps.STOP).touch()
        for step in running:
            steps.interrupt(step)
        if not running and process.poll() is None:
            # Nothing is at stake: cdktf is in its own part, or in the synth.
            process.terminate()

    # --- signals --------------------------------------------------------------------------------

    def _on_signal(
        self, number: int, process: subprocess.Popen[bytes], running: Sequence[Step]
    ) -> None:
        name = signal.Signals(number).name
        if not self._since:
            self._interrupted = "Ctrl-C" if number == signal.SIGINT else name
            if running:
                self.say(
                    f"{self._interrupted}: waiting for {_names(running)} to finish the calls that "
                    "are under way and to write the state; this can take minutes"
                )
            self._stop(process, running)
            return
        if not self._interrupted:
            self._interrupted = "Ctrl-C" if number == signal.SIGINT else name
        if not running:
            if process.poll() is None:
                process.kill()
        elif number == signal.SIGINT and sys.stdin.isatty():
            self._ask(running)
        else:
            pids = " ".join(str(step.terraform_pid) for step in running)
            self.say(
                f"{name} again: still waiting for {_names(running)}; to lose its state, and leave "
                f"what is being made to the next deploy: kill -9 {pids}"
            )

    def _ask(self, running: Sequence[Step]) -> None:
        """Ask in a thread whether to leave at once; the watch goes on meanwhile."""
        if self._asking:
            return
        self._asking = True

        def ask() -> None:
            try:
                with open("/dev/tty", "r+") as terminal:  # noqa: PTH123 - a device
                    terminal.write(
                        f"\nspecrack: {_names(running)} is still at work. Leave at once? What AWS "
                        "is making then is in no state; the next deploy looks for it and takes it "
                        "over.\nType yes to leave, anything else to go on waiting: "
                    )
                    terminal.flush()
                    if terminal.readline().strip() == "yes":
                        self._force = True
            except OSError:
                pass
            finally:
                self._asking = False

        threading.Thread(target=ask, name="ask-to-leave", daemon=True).start()

    def _make_leave(self, running: Sequence[Step], now: float) -> None:
        """A second interrupt makes Terraform leave without its state; then the hard way."""
        if not self._left:
            self._left = True
            self._since = now
            for step in running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(step.terraform_pid, signal.SIGINT)
        elif now - self._since > LEAVE_S:
            for step in running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(step.terraform_pid, signal.SIGKILL)


def _names(running: Sequence[Step]) -> str:
    return ", ".join(f"terraform {step.action} of {step.stack}" for step in running)


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
