"""How late the harness itself is: the part of a measured latency that is the client's fault.

Two errors are measured in the run. Sending: from the intended moment to the start of the request
(known for each request). Reading: from the moment that bytes are ready to the moment that we
stamp them, sampled by a probe.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smoke.clock import NS_PER_MS, NS_PER_S
from smoke.stats import quantile
from smoke.timer import KernelTimer

#: Mean time between two probes. Random, so that the probe cannot fall in step with the traffic.
_MEAN_GAP_S = 0.008
_MAX_SAMPLES = 200_000


class ReadLagProbe:
    """Samples how long ready bytes wait for us.

    A kernel timer becomes readable at random moments, as a socket does when bytes arrive, and the
    event loop stamps when it gets to it. So all that delays a read is seen: callbacks that run
    long, the interpreter's lock, an operating system that runs us late. Where there is no such
    timer (it is Linux's), the loop's own is used, whose rounding to a millisecond is counted as
    lateness, too.
    """

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns
        self._random = random.Random(0)
        self._due_ns = 0
        self._timer: KernelTimer | None = None
        self._handle: asyncio.TimerHandle | None = None
        self.samples_ns: list[int] = []

    async def __aenter__(self) -> ReadLagProbe:
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError, AttributeError):
            self._timer = KernelTimer()
            self._loop.add_reader(self._timer.fd, self._ready)
        self._arm()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._loop.remove_reader(self._timer.fd)
            self._timer.close()
        if self._handle is not None:
            self._handle.cancel()

    def _arm(self) -> None:
        gap_ns = max(1000, round(self._random.expovariate(1 / _MEAN_GAP_S) * NS_PER_S))
        self._due_ns = self._now_ns() + gap_ns
        if self._timer is not None:
            self._timer.set(gap_ns)
        else:
            self._handle = self._loop.call_later(gap_ns / NS_PER_S, self._ready)

    def _ready(self) -> None:
        now_ns = self._now_ns()
        if self._timer is not None:
            self._timer.read()
        if len(self.samples_ns) < _MAX_SAMPLES:
            self.samples_ns.append(max(0, now_ns - self._due_ns))
        self._arm()


@dataclass(frozen=True, slots=True)
class Lateness:
    """The harness's own error over a run, in milliseconds."""

    send_p50_ms: float
    send_p99_ms: float
    send_max_ms: float
    read_p50_ms: float
    read_p99_ms: float
    read_max_ms: float
    read_samples: int
    #: What may be the client's in a TTFT or E2E: the p99 of late sending plus late reading.
    total_p99_ms: float

    def token_error_ms(self, output_tokens: float) -> float:
        """What may be the client's in a TPOT: late reading, spread over the gaps between tokens."""
        return self.read_p99_ms / max(1.0, output_tokens - 1)


def lateness_of(send_lags_ms: Sequence[float], read_lags_ns: Sequence[int]) -> Lateness:
    """Sum up what was sampled; zeros where there is no sample."""
    send = sorted(send_lags_ms) or [0.0]
    read = sorted(lag / NS_PER_MS for lag in read_lags_ns) or [0.0]
    return Lateness(
        send_p50_ms=quantile(send, 0.5),
        send_p99_ms=quantile(send, 0.99),
        send_max_ms=send[-1],
        read_p50_ms=quantile(read, 0.5),
        read_p99_ms=quantile(read, 0.99),
        read_max_ms=read[-1],
        read_samples=len(read_lags_ns),
        total_p99_ms=quantile_of_sum(send, read, 0.99),
    )


def quantile_of_sum(a: Sequence[float], b: Sequence[float], q: float) -> float:
    """The q-quantile of x + y over all pairs of members of the ascending ``a`` and ``b``: the two
    lags are independent, and adding their p99 would count a delay twice. To 1e-6 of its range."""
    low, high = a[0] + b[0], a[-1] + b[-1]
    wanted = q * len(a) * len(b)
    for _ in range(20):
        middle = (low + high) / 2
        if sum(bisect.bisect_right(b, middle - value) for value in a) >= wanted:
            high = middle
        else:
            low = middle
    return high
