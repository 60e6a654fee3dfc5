"""Time for the harness: one monotonic clock in nanoseconds, behind a protocol."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

#: Event loops round their timers to whole milliseconds. Within this distance of the moment we
#: yield to the loop instead of sleeping, so that the moment is met to some tens of microseconds.
_SPIN_NS = 1_300_000


class Clock(Protocol):
    """What the harness asks of time. Tests put a fake in its place."""

    def now_ns(self) -> int:
        """Nanoseconds from an arbitrary origin; never goes back."""
        ...

    async def sleep_until(self, moment_ns: int) -> None:
        """Return at ``moment_ns``, at once when it has passed."""
        ...


class MonotonicClock:
    """The machine's own monotonic clock."""

    def __init__(self, *, spin: bool = True) -> None:
        """``spin``: yield to the event loop through the last millisecond, for arrivals that are on
        time; costs at most 1.3 ms of CPU an arrival, so leave it off at high rates."""
        self._spin_ns = _SPIN_NS if spin else 0

    def now_ns(self) -> int:
        return time.perf_counter_ns()

    async def sleep_until(self, moment_ns: int) -> None:
        while (left_ns := moment_ns - time.perf_counter_ns()) > 0:
            if left_ns > self._spin_ns:
                await asyncio.sleep((left_ns - self._spin_ns) / NS_PER_S)
            else:
                await asyncio.sleep(0)
