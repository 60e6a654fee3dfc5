"""Arrivals: pure, seeded, at the promised rate."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke import schedule
from smoke.clock import NS_PER_S


def test_the_same_seed_gives_the_same_arrivals_and_another_does_not() -> None:
    def first(seed: int) -> list[int]:
        return list(itertools.islice(schedule.poisson(20, seed=seed), 50))

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_poisson_gaps_have_the_mean_and_spread_of_an_exponential() -> None:
    offsets = list(itertools.islice(schedule.poisson(50, seed=7), 20_000))
    gaps_s = [(b - a) / NS_PER_S for a, b in itertools.pairwise(offsets)]
    assert statistics.fmean(gaps_s) == pytest.approx(1 / 50, rel=0.03)
    assert statistics.stdev(gaps_s) == pytest.approx(1 / 50, rel=0.05)


def test_constant_arrivals_are_evenly_spaced() -> None:
    assert list(itertools.islice(schedule.constant(4), 3)) == [0, NS_PER_S // 4, NS_PER_S // 2]


def test_sessions_offer_what_littles_law_says() -> None:
    assert schedule.rate_of_sessions(8, think_s=0.5, service_time_s=0.3) == pytest.approx(10)
    assert schedule.rate_of_sessions(8, think_s=0, service_time_s=2) == pytest.approx(4)


@given(st.integers(1, 500), st.floats(0, 60), st.floats(0.001, 60))
def test_mean_concurrency_stays_between_one_and_all_sessions(
    sessions: int, think_s: float, service_time_s: float
) -> None:
    found = schedule.mean_concurrency(sessions, think_s=think_s, service_time_s=service_time_s)
    assert 1 <= found <= sessions
    if think_s == 0:
        assert found == sessions


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        next(schedule.arrivals("poisson", rate, seed=1))
    with pytest.raises(ValueError, match="rate"):
        next(schedule.arrivals("constant", rate, seed=1))
