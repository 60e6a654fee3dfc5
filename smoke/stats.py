"""What a sample says, and how surely: bounds that assume nothing about the distribution.

All bounds are one-sided at ``confidence`` each (default 95%), and assume that the observations
are independent. Standard library only; pure.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its one-sided bounds; a bound is None where the sample is too small."""

    value: float
    lower: float | None
    upper: float | None
    n: int


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of ``ordered`` (ascending, not empty): its smallest member with at least a
    share q at or below it (definition 1 of Hyndman and Fan, 1996). Always an observed value."""
    return ordered[quantile_rank(len(ordered), q) - 1]


def quantile_rank(n: int, q: float) -> int:
    """The rank (from 1) of the q-quantile among n."""
    return max(1, min(n, math.ceil(n * q - 1e-9)))


@functools.lru_cache(maxsize=64)
def quantile_ranks(
    n: int, q: float, *, confidence: float = CONFIDENCE
) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the order statistics that bound the q-quantile from below and above.

    The number of observations at or below the quantile is binomial(n, q), whatever the
    distribution (David and Nagaraja, Order Statistics, 2003, section 7.1). The lower bound is the
    largest rank l with P(B >= l) >= confidence, the upper the smallest u with P(B < u) >=
    confidence. None where no rank will do.
    """
    lower: int | None = None
    upper: int | None = None
    below = 0.0  # P(B < rank)
    for rank in range(1, n + 1):
        below += binomial_pmf(rank - 1, n, q)
        if 1.0 - below >= confidence:
            lower = rank
        if below >= confidence:
            upper = rank
            break
    return lower, upper


def quantile_estimate(
    values: Sequence[float], q: float, *, confidence: float = CONFIDENCE
) -> Estimate:
    """The q-quantile of ``values`` with its bounds. Raises ValueError for an empty sample."""
    if not values:
        raise ValueError("a quantile of nothing")
    ordered = sorted(values)
    lower, upper = quantile_ranks(len(ordered), q, confidence=confidence)
    return Estimate(
        value=quantile(ordered, q),
        lower=None if lower is None else ordered[lower - 1],
        upper=None if upper is None else ordered[upper - 1],
        n=len(ordered),
    )


def min_n_for_quantile(q: float, *, confidence: float = CONFIDENCE) -> int:
    """The smallest sample in which an upper bound of the q-quantile exists: 59 for p95 at 95%.

    The largest of n lies above the quantile unless all n lie below it: 1 - q**n >= confidence.
    """
    return math.ceil(math.log(1 - confidence) / math.log(q) - 1e-9)


def proportion_estimate(events: int, n: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """A share with its exact bounds (Clopper and Pearson, 1934). Raises ValueError for n = 0."""
    if n < 1 or not 0 <= events <= n:
        raise ValueError(f"{events} of {n} is no proportion")
    tail = 1 - confidence
    # Lower: the share at which seeing as many or more has probability ``tail``; upper likewise.
    lower = 0.0 if events == 0 else _solve(lambda p: 1 - binomial_cdf(events - 1, n, p) - tail)
    upper = 1.0 if events == n else _solve(lambda p: tail - binomial_cdf(events, n, p))
    return Estimate(events / n, lower, upper, n)


def min_n_for_proportion(limit: float, *, confidence: float = CONFIDENCE) -> int | None:
    """How many observations without an event show that the share is at most ``limit``; None for a
    limit below 1e-9, which no sample of a size within reach can show."""
    if limit < 1e-9:
        return None
    if limit >= 1:
        return 1
    return math.ceil(math.log(1 - confidence) / math.log1p(-limit) - 1e-9)


def ratio_of_totals(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = 2000,
) -> Estimate:
    """sum(numerators) / sum(denominators) over pairs, with percentile-bootstrap bounds.

    Pairs are drawn with replacement, so what both members share (a long prompt) cancels (Efron
    and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13). Bounds are None for fewer than
    10 pairs. Raises ValueError for no pairs or a total that is not positive.
    """
    n = len(numerators)
    if n != len(denominators) or not n:
        raise ValueError("pairs are needed")
    if sum(denominators) <= 0:
        raise ValueError("the total to divide by is not above 0")
    value = sum(numerators) / sum(denominators)
    if n < 10:
        return Estimate(value, None, None, n)
    source = random.Random(seed)
    pairs = list(zip(numerators, denominators, strict=True))
    ratios: list[float] = []
    for _ in range(resamples):
        above = below = 0.0
        for numerator, denominator in source.choices(pairs, k=n):
            above += numerator
            below += denominator
        ratios.append(above / below if below > 0 else math.inf)
    ratios.sort()
    return Estimate(value, quantile(ratios, 1 - confidence), quantile(ratios, confidence), n)


def binomial_pmf(k: int, n: int, p: float) -> float:
    """P(B = k) for B ~ binomial(n, p)."""
    if p <= 0 or p >= 1:
        return float(k == (0 if p <= 0 else n))
    log_choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log_choose + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(B <= k) for B ~ binomial(n, p), summed over the shorter tail."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if k <= n // 2:
        return min(1.0, math.fsum(binomial_pmf(i, n, p) for i in range(k + 1)))
    return max(0.0, 1 - math.fsum(binomial_pmf(i, n, p) for i in range(k + 1, n + 1)))


def _solve(increasing: Callable[[float], float]) -> float:
    """The root of an increasing function on 0..1, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
