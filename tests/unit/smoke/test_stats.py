"""The statistics keep their promises, checked by simulation on known distributions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke import stats

P95 = 0.95


def test_upper_bound_of_p95_needs_59_observations() -> None:
    """The textbook figure: 1 - 0.95**59 is the first to exceed 95%."""
    assert stats.min_n_for_quantile(P95) == 59
    assert stats.quantile_ranks(58, P95)[1] is None
    assert stats.quantile_ranks(59, P95)[1] == 59


def test_error_rate_of_2_percent_needs_149_clean_requests() -> None:
    assert stats.min_n_for_proportion(0.02) == 149
    for n, holds in ((148, False), (149, True)):
        upper = stats.proportion_estimate(0, n).upper
        assert upper is not None
        assert (upper <= 0.02) is holds


def test_an_error_rate_of_zero_can_never_be_shown() -> None:
    assert stats.min_n_for_proportion(0.0) is None


@pytest.mark.parametrize(
    ("name", "draw", "true_p95"),
    [
        ("exponential", lambda r: r.expovariate(1.0), -math.log(0.05)),
        # Pareto with infinite variance: bounds from order statistics do not care.
        ("heavy tail", lambda r: r.paretovariate(1.2), 0.05 ** (-1 / 1.2)),
        (
            "bimodal",
            lambda r: r.uniform(0, 1) if r.random() < 0.9 else r.uniform(10, 11),
            10.5,
        ),
    ],
)
@pytest.mark.parametrize("n", [59, 150, 400])
def test_each_p95_bound_covers_the_truth_at_the_stated_rate(
    name: str, draw: Callable[[random.Random], float], true_p95: float, n: int
) -> None:
    """Over 1500 samples, a bound misses in at most 5% (3 standard errors allowed)."""
    source = random.Random(f"{name}{n}")
    rounds, too_low, too_high = 1500, 0, 0
    for _ in range(rounds):
        estimate = stats.quantile_estimate([draw(source) for _ in range(n)], P95)
        assert estimate.lower is not None
        assert estimate.upper is not None
        too_low += estimate.upper < true_p95
        too_high += estimate.lower > true_p95
    allowed = rounds * 0.05 + 3 * math.sqrt(rounds * 0.05 * 0.95)
    assert too_low <= allowed
    assert too_high <= allowed
    # Not so wide that they say nothing: some samples must miss.
    assert too_low + too_high > 0


@pytest.mark.parametrize(("share", "n"), [(0.001, 2000), (0.02, 300), (0.3, 50)])
def test_proportion_bounds_cover_the_truth(share: float, n: int) -> None:
    source = random.Random(n)
    rounds, misses_low, misses_high = 1500, 0, 0
    cache: dict[int, stats.Estimate] = {}
    for _ in range(rounds):
        events = sum(source.random() < share for _ in range(n)) if n < 500 else _poisson(
            source, share * n
        )  # fmt: skip
        if events not in cache:
            cache[events] = stats.proportion_estimate(events, n)
        estimate = cache[events]
        assert estimate.lower is not None
        assert estimate.upper is not None
        misses_low += estimate.lower > share
        misses_high += estimate.upper < share
    allowed = rounds * 0.05 + 3 * math.sqrt(rounds * 0.05 * 0.95)
    assert misses_low <= allowed
    assert misses_high <= allowed


def test_clopper_pearson_agrees_with_published_values() -> None:
    """10 of 100 at 97.5% one-sided (the usual 95% interval): 0.0490 to 0.1762."""
    estimate = stats.proportion_estimate(10, 100, confidence=0.975)
    assert estimate.lower == pytest.approx(0.04900, abs=5e-5)
    assert estimate.upper == pytest.approx(0.17622, abs=5e-5)


def test_bootstrap_interval_of_the_speedup_covers_the_truth() -> None:
    """Pairs share their length; the true ratio of totals is 1.5. At 60 pairs a percentile
    bootstrap is a little short of 95%, so 9% of misses a side are allowed."""
    source = random.Random(5)
    rounds, low, high = 200, 0, 0
    for number in range(rounds):
        on, off = [], []
        for _ in range(60):
            length = source.expovariate(1.0) + 0.2
            on.append(length * source.lognormvariate(0.0, 0.3))
            off.append(1.5 * length * source.lognormvariate(0.0, 0.3))
        estimate = stats.ratio_of_totals(off, on, seed=number, resamples=300)
        assert estimate.lower is not None
        assert estimate.upper is not None
        low += estimate.upper < 1.5
        high += estimate.lower > 1.5
    assert low <= 0.09 * rounds
    assert high <= 0.09 * rounds


def test_bootstrap_is_reproducible_and_refuses_what_it_cannot_use() -> None:
    on, off = [1.0, 2.0, 3.0] * 5, [2.0, 2.5, 7.0] * 5
    assert stats.ratio_of_totals(off, on, seed=3) == stats.ratio_of_totals(off, on, seed=3)
    assert stats.ratio_of_totals(off[:9], on[:9], seed=3).lower is None
    with pytest.raises(ValueError, match="pairs"):
        stats.ratio_of_totals([], [], seed=1)
    with pytest.raises(ValueError, match="total"):
        stats.ratio_of_totals([1.0], [0.0], seed=1)


def test_infinite_latencies_move_the_upper_bound_to_infinity() -> None:
    values = [*([1.0] * 95), *([math.inf] * 5)]
    estimate = stats.quantile_estimate(values, P95)
    assert estimate.value == 1.0
    assert estimate.upper == math.inf


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.sampled_from([0.5, 0.95, 0.99]))
def test_bounds_enclose_the_estimate(values: list[float], q: float) -> None:
    estimate = stats.quantile_estimate(values, q)
    assert estimate.value in values
    assert estimate.lower is None or estimate.lower <= estimate.value
    assert estimate.upper is None or estimate.upper >= estimate.value


@given(st.integers(1, 400), st.data())
def test_proportion_bounds_enclose_and_are_proportions(n: int, data: st.DataObject) -> None:
    events = data.draw(st.integers(0, n))
    estimate = stats.proportion_estimate(events, n)
    assert estimate.lower is not None
    assert estimate.upper is not None
    assert 0 <= estimate.lower <= estimate.value <= estimate.upper <= 1


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.01, 0.99))
def test_binomial_cdf_sums_the_mass_function(k: int, n: int, p: float) -> None:
    direct = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(min(k, n) + 1))
    assert stats.binomial_cdf(k, n, p) == pytest.approx(direct, abs=1e-9)


def _poisson(source: random.Random, mean: float) -> int:
    count, product = 0, source.random()
    while product > math.exp(-mean):
        count, product = count + 1, product * source.random()
    return count
