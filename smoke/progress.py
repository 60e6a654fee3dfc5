"""How a run tells what it is doing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called often; must return at once and never raise."""

    def __call__(
        self, phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None
    ) -> None:
        """``phase``: its name. ``total`` may grow while a run extends itself."""
        ...


def silent(phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None) -> None:
    """Say nothing."""
