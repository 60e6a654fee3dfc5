"""When requests are sent: open-loop arrivals, decided before the run and never slowed by it.

Arrivals are infinite generators of offsets in nanoseconds from the start of the phase, pure in
their arguments: the same seed gives the same arrivals, so that the baseline can be given exactly
the load that the endpoint had, and a run can go on where it stopped.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Literal

from smoke.clock import NS_PER_S

Arrival = Literal["poisson", "constant"]


def poisson(rate_rps: float, *, seed: int) -> Iterator[int]:
    """Offsets (ns) of a Poisson process of ``rate_rps`` requests a second."""
    _check_rate(rate_rps)
    random_source = random.Random(seed)
    offset_s = 0.0
    while True:
        offset_s += random_source.expovariate(rate_rps)
        yield round(offset_s * NS_PER_S)


def constant(rate_rps: float) -> Iterator[int]:
    """Offsets (ns) of requests evenly spaced at ``rate_rps`` a second."""
    _check_rate(rate_rps)
    for number in itertools.count():
        yield round(number / rate_rps * NS_PER_S)


def arrivals(kind: Arrival, rate_rps: float, *, seed: int) -> Iterator[int]:
    """Offsets (ns) of the arrivals of ``kind``. Raises ValueError for a rate not above 0."""
    return poisson(rate_rps, seed=seed) if kind == "poisson" else constant(rate_rps)


def rate_of_sessions(sessions: int, *, think_s: float, service_time_s: float) -> float:
    """Requests a second that ``sessions`` users offer who think ``think_s`` between requests.

    Little's law for a closed system (Lazowska et al., Quantitative System Performance, 1984,
    ch. 3, "interactive response time law"): N = X (R + Z), so X = sessions / (service + think).
    It is the highest load that such sessions can offer: sessions whose replies get slower send
    less, while open-loop arrivals at this rate do not, so a server that falls behind is seen to.
    """
    _check_rate(float(sessions))
    cycle_s = think_s + service_time_s
    if not math.isfinite(cycle_s) or cycle_s <= 0:
        raise ValueError("think time plus service time must be above 0 s")
    return sessions / cycle_s


def mean_concurrency(sessions: int, *, think_s: float, service_time_s: float) -> int:
    """Requests in flight on average, rounded up: Little's law, L = X R; from 1 to ``sessions``."""
    rate_rps = rate_of_sessions(sessions, think_s=think_s, service_time_s=service_time_s)
    return max(1, min(sessions, math.ceil(rate_rps * service_time_s)))


def _check_rate(rate_rps: float) -> None:
    if not math.isfinite(rate_rps) or rate_rps <= 0:
        raise ValueError(f"a rate must be above 0 requests a second, not {rate_rps}")
