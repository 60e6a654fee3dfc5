"""Verdicts: what passes, what fails, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.spec.model import Sla
from smoke import verdict
from smoke.lateness import quantile_of_sum
from smoke.verdict import Clause, Evidence, Verdict
from tests.unit.smoke.samples import failed, late, on_time, sample

STRICTNESS: dict[Verdict, int] = {"pass": 0, "inconclusive": 1, "fail": 2}


def evidence(values_ms: list[float], *, scheduled: int | None = None) -> Evidence:
    samples = [
        failed(n) if math.isinf(ms) else sample(n, ttft_ms=ms, e2e_ms=ms + 50)
        for n, ms in enumerate(values_ms)
    ]
    return Evidence(samples, len(samples) if scheduled is None else scheduled, on_time())


def ttft(
    values_ms: list[float], limit_ms: float, *, error_ms: float = 0.0, not_sent: int = 0
) -> Clause:
    return verdict.latency_clause(
        "ttft_p95_ms",
        values_ms,
        limit_ms=limit_ms,
        error_ms=error_ms,
        evidence=evidence(values_ms, scheduled=len(values_ms) + not_sent),
    )


def test_a_clause_passes_when_the_upper_bound_is_within_the_limit() -> None:
    clause = ttft([10.0] * 100, 10.0)
    assert (clause.verdict, clause.measured, clause.upper, clause.n) == ("pass", 10.0, 10.0, 100)
    assert "within 10 ms" in clause.reason


def test_58_requests_can_not_pass_and_59_can() -> None:
    clause = ttft([10.0] * 58, 20.0)
    assert clause.verdict == "inconclusive"
    assert "59" in clause.reason
    assert ttft([10.0] * 59, 20.0).verdict == "pass"


def test_a_limit_between_the_bounds_is_inconclusive_and_asks_for_more() -> None:
    values = [float(n) for n in range(100)]
    clause = ttft(values, 95.0)
    assert clause.verdict == "inconclusive"
    assert clause.more_helps
    assert clause.lower is not None
    assert clause.upper is not None
    assert clause.lower <= 95.0 < clause.upper


def test_an_absurdly_tight_limit_fails_even_with_a_late_client() -> None:
    """0.01 ms: the client's error is far above 2% of it, and could not explain the breach."""
    clause = ttft([10.0] * 100, 0.01, error_ms=4.0)
    assert clause.verdict == "fail"
    assert "even less the client's own 4 ms" in clause.reason


def test_a_late_client_may_not_pass_a_clause() -> None:
    clause = ttft([10.0] * 100, 100.0, error_ms=2.1)
    assert clause.verdict == "inconclusive"
    assert clause.reason.startswith("client: ")
    assert ttft([10.0] * 100, 100.0, error_ms=1.9).verdict == "pass"


def test_a_late_client_may_not_fail_a_clause_that_its_lateness_broke() -> None:
    assert ttft([102.0] * 100, 100.0, error_ms=3.0).verdict == "inconclusive"
    assert ttft([104.0] * 100, 100.0, error_ms=3.0).verdict == "fail"


def test_load_that_fell_short_may_not_pass() -> None:
    clause = ttft([10.0] * 98, 100.0, not_sent=2)
    assert clause.verdict == "inconclusive"
    assert "98 of 100" in clause.reason
    assert ttft([10.0] * 199, 100.0, not_sent=1).verdict == "pass"


def test_unsent_requests_are_given_the_benefit_before_a_clause_fails() -> None:
    assert ttft([200.0] * 20, 100.0, not_sent=0).verdict == "fail"
    assert ttft([200.0] * 20, 100.0, not_sent=400).verdict == "inconclusive"


def test_failed_requests_are_infinite_latencies() -> None:
    samples = [sample(n) for n in range(90)] + [failed(n) for n in range(90, 100)]
    clauses = verdict.load_clauses(
        Sla(ttft_p95_ms=1e9, tpot_p95_ms=1e9, e2e_p95_ms=1e9, error_rate_max=0.5),
        Evidence(samples, 100, on_time()),
    )
    by_name = {clause.name: clause for clause in clauses}
    assert by_name["error_rate_max"].verdict == "pass"
    for name in ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms"):
        assert by_name[name].measured == math.inf
        assert by_name[name].verdict == "fail"
        assert "10 of 100 requests failed" in by_name[name].reason


def test_only_the_clauses_of_the_sla_are_judged() -> None:
    found = verdict.load_clauses(Sla(tpot_p95_ms=30), evidence([1.0] * 10))
    assert [clause.name for clause in found] == ["tpot_p95_ms", "error_rate_max"]


def test_tpot_comes_from_token_counts_and_its_client_error_is_per_token() -> None:
    """90 ms for 10 tokens after the first: 10 ms each. 4 ms late reading is 0.44 ms a token."""
    samples = [sample(n, ttft_ms=10, e2e_ms=100, tokens=10) for n in range(100)]
    held = verdict.load_clauses(Sla(tpot_p95_ms=30), Evidence(samples, 100, late(read_ms=4)))[0]
    assert (held.verdict, held.measured) == ("pass", pytest.approx(10.0))
    short = [sample(n, ttft_ms=10, e2e_ms=20, tokens=2) for n in range(100)]
    refused = verdict.load_clauses(Sla(tpot_p95_ms=30), Evidence(short, 100, late(read_ms=4)))[0]
    assert refused.verdict == "inconclusive"


def test_tpot_of_one_token_outputs_is_undecidable_and_no_reason_to_go_on() -> None:
    samples = [sample(n, tokens=1) for n in range(100)]
    clause = verdict.load_clauses(Sla(tpot_p95_ms=30), Evidence(samples, 100, on_time()))[0]
    assert (clause.verdict, clause.more_helps) == ("inconclusive", False)


@pytest.mark.parametrize(
    ("errors", "n", "limit", "expected"),
    [
        (0, 149, 0.02, "pass"),
        (0, 148, 0.02, "inconclusive"),
        (1, 149, 0.02, "inconclusive"),
        (20, 149, 0.02, "fail"),
        (0, 5000, 0.0, "inconclusive"),
        (1, 10, 0.0, "fail"),
    ],
)
def test_error_rate_by_exact_bounds(errors: int, n: int, limit: float, expected: str) -> None:
    samples = [failed(i) if i < errors else sample(i) for i in range(n)]
    clause = verdict.error_clause(limit, Evidence(samples, n, on_time()))
    assert clause.verdict == expected
    assert f"{errors} of {n} failed" in clause.reason


def test_the_missing_number_of_requests_is_named() -> None:
    clause = verdict.error_clause(0.001, evidence([1.0] * 100))
    assert "2995" in clause.reason
    assert verdict.requests_needed(Sla(ttft_p95_ms=1, error_rate_max=0.001)) == 2995
    assert verdict.requests_needed(Sla(ttft_p95_ms=1, error_rate_max=0.5)) == 59


def test_a_run_is_decided_by_its_first_failed_clause() -> None:
    def clause(found: Verdict) -> Clause:
        return Clause("x", found, 1, "", 1, 1, 1, 1, "", found == "inconclusive")

    assert verdict.decided([clause("pass")])
    assert verdict.decided([clause("fail"), clause("inconclusive")])
    assert not verdict.decided([clause("pass"), clause("inconclusive")])


@given(st.lists(st.sampled_from(["pass", "fail", "inconclusive"]), max_size=6))
def test_the_overall_verdict_is_the_worst(found: list[Verdict]) -> None:
    clauses = [Clause("x", one, 1, "", 1, 1, 1, 1, "") for one in found]
    worst = max(found, key=STRICTNESS.__getitem__, default="inconclusive")
    assert verdict.overall(clauses) == worst
    assert verdict.EXIT_STATUS[worst] == {"pass": 0, "fail": 1, "inconclusive": 3}[worst]


latencies = st.lists(
    st.one_of(st.floats(0.1, 1000), st.just(math.inf)), min_size=1, max_size=200
)  # fmt: skip


@given(latencies, st.floats(0.01, 2000), st.floats(0.01, 2000), st.floats(0, 50),
       st.integers(0, 20))  # fmt: skip
def test_tightening_a_latency_limit_never_makes_a_verdict_milder(
    values: list[float], a: float, b: float, error_ms: float, not_sent: int
) -> None:
    loose = ttft(values, max(a, b), error_ms=error_ms, not_sent=not_sent)
    tight = ttft(values, min(a, b), error_ms=error_ms, not_sent=not_sent)
    assert STRICTNESS[tight.verdict] >= STRICTNESS[loose.verdict]


@given(latencies, st.floats(0.01, 2000), st.floats(0, 50), st.floats(0, 50))
def test_a_later_client_never_decides_more(
    values: list[float], limit: float, a: float, b: float
) -> None:
    punctual = ttft(values, limit, error_ms=min(a, b))
    tardy = ttft(values, limit, error_ms=max(a, b))
    if tardy.verdict != "inconclusive":
        assert punctual.verdict == tardy.verdict


@given(latencies, st.floats(0.01, 2000), st.integers(0, 199))
def test_a_request_that_fails_instead_never_makes_a_verdict_milder(
    values: list[float], limit: float, place: int
) -> None:
    worse = list(values)
    worse[place % len(values)] = math.inf
    before, after = ttft(values, limit), ttft(worse, limit)
    assert STRICTNESS[after.verdict] >= STRICTNESS[before.verdict]


@given(st.integers(1, 300), st.data())
def test_error_verdicts_are_monotone_in_limit_and_in_errors(n: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n - 1))
    a, b = data.draw(st.floats(0, 0.99)), data.draw(st.floats(0, 0.99))

    def judged(count: int, limit: float) -> int:
        samples = [failed(i) if i < count else sample(i) for i in range(n)]
        return STRICTNESS[verdict.error_clause(limit, Evidence(samples, n, on_time())).verdict]

    assert judged(errors, min(a, b)) >= judged(errors, max(a, b))
    assert judged(errors + 1, a) >= judged(errors, a)


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=30),
    st.lists(st.floats(0, 100), min_size=1, max_size=30),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_the_quantile_of_a_sum_is_that_of_all_pairs(
    a: list[float], b: list[float], q: float
) -> None:
    sums = sorted(x + y for x in a for y in b)
    exact = sums[max(0, math.ceil(q * len(sums) - 1e-9) - 1)]
    found = quantile_of_sum(sorted(a), sorted(b), q)
    assert found == pytest.approx(exact, abs=1e-3)
