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
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smoke.clock import NS_PER_MS, NS_PER_S
from smoke.stats import quantile

#: Mean time between two probes. Random, so that the probe cannot fall in step with the traffic.
_MEAN_GAP_S = 0.008
_MAX_SAMPLES = 200_000


class ReadLagProbe:
    """Samples how long ready bytes wait for us.

    A thread wakes at random moments and makes a socket readable; the event loop stamps when it
    gets to it, as it does with replies. Counted from the moment the thread should have woken, so
    a loop that holds the interpreter is seen, as is an operating system that runs us late.
    """

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns
        self._stop = threading.Event()
        self._due_ns = 0
        self.samples_ns: list[int] = []

    async def __aenter__(self) -> ReadLagProbe:
        self._loop = asyncio.get_running_loop()
        self._read_end, self._write_end = socket.socketpair()
        self._read_end.setblocking(False)
        self._write_end.setblocking(False)
        self._loop.add_reader(self._read_end.fileno(), self._ready)
        self._thread = threading.Thread(target=self._tick, name="read-lag-probe", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._loop.remove_reader(self._read_end.fileno())
        self._read_end.close()
        self._write_end.close()

    def _ready(self) -> None:
        now_ns = self._now_ns()
        with contextlib.suppress(BlockingIOError):
            self._read_end.recv(64)
        if self._due_ns and len(self.samples_ns) < _MAX_SAMPLES:
            self.samples_ns.append(max(0, now_ns - self._due_ns))
        self._due_ns = 0

    def _tick(self) -> None:
        random_source = random.Random(0)
        while not self._stop.is_set():
            due_ns = self._now_ns() + round(random_source.expovariate(1 / _MEAN_GAP_S) * NS_PER_S)
            time.sleep(max(0.0, (due_ns - self._now_ns()) / NS_PER_S))
            if self._due_ns:  # the last one was not read yet: that wait is being measured
                continue
            self._due_ns = due_ns
            with contextlib.suppress(BlockingIOError):
                self._write_end.send(b".")


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
