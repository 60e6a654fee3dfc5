"""How a run tells what it is doing: the protocol, and its two forms for people."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as RichProgress

#: The phase that always comes last, after a failure too.
DONE = "done"

_TITLE = {
    "preflight": "Asking the endpoint",
    "warm-up": "Warming up",
    "load": "Measuring under load",
    "baseline": "Measuring the baseline",
    "outputs": "Comparing outputs",
}


class Progress(Protocol):
    """Called often and in the midst of a measurement; must return at once and never raise."""

    def __call__(
        self, phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None
    ) -> None:
        """``phase``: its name; ``DONE`` ends the series. ``total`` may grow while a run extends
        itself."""
        ...


def silent(phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None) -> None:
    """Say nothing."""


def for_terminal(*, quiet: bool = False) -> Progress:
    """A moving bar when stderr is a terminal, else one plain line a phase there."""
    if quiet:
        return silent
    console = Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines(console)


class Lines:
    """One line a phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""

    def __call__(
        self, phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None
    ) -> None:
        if phase not in (self._phase, DONE):
            self._console.print(f"{_TITLE.get(phase, phase)} ...", markup=False, highlight=False)
        self._phase = phase


class Bar:
    """A bar that moves, gone when the run is done."""

    def __init__(self, console: Console) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[live]}"),
            console=console,
            transient=True,
            # Drawing happens in this process and delays the measurement, so it is rare.
            refresh_per_second=2,
        )
        self._phase = ""
        self._task: TaskID | None = None

    def __call__(
        self, phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None
    ) -> None:
        if phase == DONE:
            self._bar.stop()
            return
        if phase != self._phase or self._task is None:
            self._phase = phase
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(_TITLE.get(phase, phase), total=total, live="")
            self._bar.start()
        live = f"TTFT p95 {live_ttft_p95_ms:.3g} ms" if live_ttft_p95_ms is not None else ""
        self._bar.update(self._task, completed=done, total=total, live=live)
