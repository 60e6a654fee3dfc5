"""Time for the harness: one monotonic clock in nanoseconds, behind a protocol."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from smoke.timer import KernelTimer

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Clock(Protocol):
    """What the harness asks of time. Tests put a fake in its place."""

    def now_ns(self) -> int:
        """Nanoseconds from an arbitrary origin; never goes back."""
        ...

    async def sleep_until(self, moment_ns: int) -> None:
        """Return at ``moment_ns``, at once when it has passed."""
        ...


class MonotonicClock:
    """The machine's own monotonic clock.

    Event loops round their timers to whole milliseconds, so a kernel timer is waited for where
    there is one: some tens of microseconds late. Spinning through the last millisecond is as exact
    on an idle machine and worst of all on a busy one: the scheduler holds the time spun against us.
    """

    def now_ns(self) -> int:
        return time.perf_counter_ns()

    async def sleep_until(self, moment_ns: int) -> None:
        while (left_ns := moment_ns - time.perf_counter_ns()) > 0:
            try:
                timer = KernelTimer()
            except (OSError, AttributeError):
                await asyncio.sleep(left_ns / NS_PER_S)
            else:
                await _expiry(timer, left_ns)


async def _expiry(timer: KernelTimer, delay_ns: int) -> None:
    loop = asyncio.get_running_loop()
    expired = asyncio.Event()
    loop.add_reader(timer.fd, expired.set)
    try:
        timer.set(delay_ns)
        await expired.wait()
    finally:
        loop.remove_reader(timer.fd)
        timer.close()
