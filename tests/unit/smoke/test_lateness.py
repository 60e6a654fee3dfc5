"""The harness sees its own lateness."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import pytest
import uvloop

from smoke.clock import NS_PER_MS, MonotonicClock
from smoke.lateness import ReadLagProbe, lateness_of
from smoke.timer import KernelTimer


async def _probe(block_s: float) -> list[int]:
    async with ReadLagProbe() as probe:
        for _ in range(10):
            await asyncio.sleep(0.02)
            if block_s:
                time.sleep(block_s)
    return probe.samples_ns


@pytest.mark.parametrize("timer", [True, False])
@pytest.mark.parametrize("factory", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_loop_that_is_held_up_is_seen(
    factory: object, timer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held up for 30 of every 50 ms, more than half of all reads wait; the longest waits that
    the probe saw come near 30 ms. With and without the kernel's timer."""

    def absent(_: KernelTimer) -> None:
        raise OSError("no such call")

    if not timer:
        monkeypatch.setattr(KernelTimer, "__init__", absent)
    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        samples = runner.run(_probe(0.03))
    assert len(samples) > 5
    assert max(samples) > 15 * NS_PER_MS


def test_a_free_loop_is_much_less_late_than_one_that_is_held_up() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        free = runner.run(_probe(0.0))
        held = runner.run(_probe(0.1))
    assert statistics.fmean(free) < statistics.fmean(held)


def test_lateness_sums_up_what_was_sampled() -> None:
    late = lateness_of([1.0] * 98 + [5.0, 9.0], [NS_PER_MS] * 100)
    assert (late.send_p50_ms, late.send_p99_ms, late.send_max_ms) == (1.0, 5.0, 9.0)
    assert (late.read_p99_ms, late.read_samples) == (1.0, 100)
    assert late.total_p99_ms == pytest.approx(6.0, abs=1e-3)
    assert late.token_error_ms(11) == pytest.approx(0.1)
    assert lateness_of([], []).total_p99_ms == 0.0


@pytest.mark.parametrize("timer", [True, False])
def test_the_clock_never_wakes_early(timer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late by what the machine takes, early never: an early request would be a shorter latency."""

    def absent(_: KernelTimer) -> None:
        raise OSError("no such call")

    if not timer:
        monkeypatch.setattr(KernelTimer, "__init__", absent)

    async def wake() -> list[int]:
        clock = MonotonicClock()
        early = []
        for delay_ms in (-1.0, 0.0, 0.2, 1.0, 3.7):
            moment_ns = clock.now_ns() + round(delay_ms * NS_PER_MS)
            await clock.sleep_until(moment_ns)
            early.append(moment_ns - clock.now_ns())
        return early

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert all(early_ns <= 0 for early_ns in runner.run(wake()))


def test_a_sleep_that_is_cancelled_leaves_no_open_file() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(MonotonicClock().sleep_until(2**62))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(cancelled())
        before = open_files()
        for _ in range(5):
            runner.run(cancelled())
        assert open_files() == before
