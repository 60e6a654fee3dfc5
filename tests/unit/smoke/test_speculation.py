"""What speculation brings: acceptance, speed-up, equality, advice."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.serving.acceptance import AcceptanceRecord
from infra.spec.model import SpeculationSla
from smoke import speculation
from smoke.speculation import Reading
from smoke.stats import Estimate
from tests.unit.smoke.samples import failed, sample


def record(drafts: int = 100, per_position: tuple[int, ...] = (80, 60, 40, 20)) -> AcceptanceRecord:
    return AcceptanceRecord(
        drafts, drafts * len(per_position), sum(per_position), per_position
    )  # fmt: skip


def compared(
    value: float, lower: float, upper: float, left_out: int = 0
) -> speculation.LoadCompared:
    return speculation.LoadCompared(Estimate(value, lower, upper, 64), 64, left_out)


def test_the_record_of_a_run_is_the_difference_of_two_readings() -> None:
    reading = speculation.reading_between(record(100), record(300, (240, 180, 120, 60)))
    assert reading == Reading(record(200, (160, 120, 80, 40)))


def test_counters_that_fell_are_a_restart() -> None:
    reading = speculation.reading_between(record(300, (240, 180, 120, 60)), record(100))
    assert reading == Reading(record(100), restarted=True)
    assert speculation.reading_between(record(), None).restarted
    assert any("restarted" in said for said in speculation.advice(reading, None))


def test_no_counters_mean_not_speculating_and_break_the_length_clause() -> None:
    for reading in (
        speculation.reading_between(None, None),
        speculation.reading_between(record(7), record(7)),
    ):
        clause = speculation.length_clause(2.0, reading)
        assert (clause.verdict, clause.measured) == ("fail", 1.0)
        assert "not speculating" in clause.reason


def test_metrics_that_cannot_be_read_leave_the_length_undecided() -> None:
    clause = speculation.length_clause(2.0, Reading(None, "no metrics at http://x (HTTP 404)"))
    assert (clause.verdict, clause.reason) == ("inconclusive", "no metrics at http://x (HTTP 404)")


@pytest.mark.parametrize(
    ("limit", "drafts", "expected"),
    [(3.0, 100, "pass"), (3.01, 100, "fail"), (3.0, 49, "inconclusive"), (3.0, 50, "pass")],
)
def test_mean_acceptance_length_is_one_plus_the_positions(
    limit: float, drafts: int, expected: str
) -> None:
    positions = tuple(round(drafts * share) for share in (0.8, 0.6, 0.4, 0.2))
    clause = speculation.length_clause(limit, Reading(record(drafts, positions)))
    assert clause.verdict == expected


def test_the_speedup_is_the_ratio_of_total_service_times() -> None:
    on = [sample(n, e2e_ms=100 + n) for n in range(40)]
    off = [sample(n, e2e_ms=2 * (100 + n)) for n in range(40)]
    found = speculation.compare_load(on, off, scheduled=40, seed=1)
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(2.0)
    assert found.speedup.lower == pytest.approx(2.0)
    assert (found.pairs, found.left_out) == (40, 0)


def test_pairs_with_a_failure_or_an_unsent_request_are_left_out_and_counted() -> None:
    on = [failed(n) if n == 3 else sample(n) for n in range(40) if n != 5]
    off = [failed(n) if n == 4 else sample(n) for n in range(40) if n != 6]
    found = speculation.compare_load(on, off, scheduled=40, seed=1)
    assert (found.pairs, found.left_out) == (36, 4)
    clause = speculation.speedup_clause(0.1, found)
    assert clause.verdict == "inconclusive"
    assert "4 of 40 pairs failed" in clause.reason


def test_no_pair_at_all_is_undecided_with_the_reason() -> None:
    found = speculation.compare_load([failed()], [sample()], scheduled=1, seed=1)
    clause = speculation.speedup_clause(1.0, found)
    assert clause.verdict == "inconclusive"
    assert "stalled: silent" in clause.reason


@pytest.mark.parametrize(
    ("limit", "expected"), [(1.0, "pass"), (1.1, "pass"), (1.2, "inconclusive"), (1.31, "fail")]
)
def test_the_speedup_clause_goes_by_its_interval(limit: float, expected: str) -> None:
    assert speculation.speedup_clause(limit, compared(1.2, 1.1, 1.3)).verdict == expected


def test_without_a_baseline_its_clauses_are_undecided() -> None:
    sla = SpeculationSla(speedup_min=1.0, mean_acceptance_length_min=2.0, output="identical")
    found = speculation.clauses(sla, reading=Reading(record()), load=None, outputs=None)
    assert [clause.verdict for clause in found] == ["inconclusive", "pass", "inconclusive"]
    assert "baseline" in found[0].reason


def test_different_outputs_fail_and_name_the_place() -> None:
    pairs = [
        (sample(0, text="same"), sample(0, text="same")),
        (sample(1, text="the quick brown"), sample(1, text="the quiet brown")),
    ]
    clause = speculation.output_clause(speculation.compare_outputs(pairs))
    assert clause.verdict == "fail"
    assert "prompt 1 at character 7" in clause.reason
    assert "'the quick brown'" in clause.reason
    assert "'the quiet brown'" in clause.reason


def test_a_failed_pair_leaves_equality_undecided() -> None:
    pairs = [(sample(0), sample(0)), (sample(1), failed(1))]
    clause = speculation.output_clause(speculation.compare_outputs(pairs))
    assert clause.verdict == "inconclusive"
    assert "baseline request 1: stalled" in clause.reason


def test_no_pair_is_no_proof_of_equality() -> None:
    assert speculation.output_clause(speculation.compare_outputs([])).verdict == "inconclusive"


@given(st.text(max_size=20), st.text(max_size=20))
def test_the_first_difference_is_where_the_common_start_ends(a: str, b: str) -> None:
    place = speculation.first_difference(a, b)
    assert a[:place] == b[:place]
    assert a == b or a[place : place + 1] != b[place : place + 1]


def test_a_slow_speculation_is_warned_of() -> None:
    (said,) = speculation.advice(Reading(record()), compared(0.6, 0.5, 0.7))
    assert "slower: 0.60x" in said


def test_a_low_acceptance_names_the_k_that_would_pay() -> None:
    """Positions kept 60%, 20%, 5%, 1% and 20% of a step each: only the first pays."""
    low = record(1000, (600, 200, 50, 10))
    # Length 1.86 at cost 0.2 a position, k = 4: a step takes 1.8, so the speed-up is 1.033.
    said = speculation.advice(Reading(low), compared(1.86 / 1.8, 1.0, 1.1))
    (text,) = [one for one in said if one.startswith("Acceptance rate")]
    assert "k = 1 would pay best (about 1.33x; now k = 4)" in text
    assert "60%, 20%, 5%, 1%" in text
    assert "20% of a step" in text


def test_a_hopeless_draft_is_advised_off() -> None:
    said = speculation.advice(Reading(record(1000, (50, 2, 0, 0))), compared(0.4, 0.3, 0.5))
    assert any("no k pays" in one for one in said)


def test_advice_says_when_it_cannot_know() -> None:
    uncounted = AcceptanceRecord(drafts=100, draft_tokens=400, accepted_tokens=100)
    (said,) = speculation.advice(Reading(uncounted), None)
    assert "does not count by position" in said
    (said,) = speculation.advice(Reading(record(1000, (400, 100, 0, 0))), None)
    assert "without a baseline" in said


def test_a_good_acceptance_earns_no_warning() -> None:
    assert speculation.advice(Reading(record()), compared(1.4, 1.3, 1.5)) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 2))
def test_the_advised_k_is_the_best_of_all(rates: list[float], cost: float) -> None:
    rates.sort(reverse=True)
    best, modelled = speculation.paying_draft_tokens(rates, cost_share=cost)
    every = [(1 + sum(rates[:k])) / (1 + k * cost) for k in range(len(rates) + 1)]
    assert modelled == pytest.approx(max(every))
    assert every[best] == pytest.approx(max(every))


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.integers(0, 1000))
def test_tightening_the_speedup_never_makes_its_verdict_milder(
    a: float, b: float, seed: int
) -> None:
    source = random.Random(seed)
    on = [sample(n, e2e_ms=source.uniform(50, 150)) for n in range(20)]
    off = [sample(n, e2e_ms=source.uniform(50, 250)) for n in range(20)]
    found = speculation.compare_load(on, off, scheduled=20, seed=1)
    order = ["pass", "inconclusive", "fail"]
    loose = speculation.speedup_clause(min(a, b), found)
    tight = speculation.speedup_clause(max(a, b), found)
    assert order.index(tight.verdict) >= order.index(loose.verdict)
