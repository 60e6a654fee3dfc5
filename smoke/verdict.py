"""From measurements to a verdict: one clause of the SLA at a time, then all together. Pure.

A clause passes when its limit holds even at the unfavourable bound, fails when it is broken even
at the favourable one, and is inconclusive in between. A clause that the client's own lateness
could have decided never passes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from infra.spec.model import Sla
from smoke import stats
from smoke.lateness import Lateness
from smoke.sample import Sample

Verdict = Literal["pass", "fail", "inconclusive"]

EXIT_STATUS: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3}

LATENCY_QUANTILE = 0.95
#: The client's own error may be this share of a limit.
MAX_CLIENT_ERROR_SHARE = 0.02
#: The share of scheduled requests that must really have been sent.
MIN_SENT_SHARE = 0.99


@dataclass(frozen=True, slots=True)
class Clause:
    """The verdict on one clause. Values in the clause's unit; infinite where requests failed."""

    name: str
    verdict: Verdict
    limit: float | None
    unit: str
    measured: float | None
    lower: float | None
    upper: float | None
    n: int
    reason: str
    #: Whether a longer run may decide it.
    more_helps: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """The main run: what came back, what was scheduled, how late the client was."""

    samples: Sequence[Sample]
    scheduled: int
    lateness: Lateness

    @property
    def not_sent(self) -> int:
        return max(0, self.scheduled - len(self.samples))

    @property
    def sent_share(self) -> float:
        return len(self.samples) / self.scheduled if self.scheduled else 1.0


def overall(clauses: Iterable[Clause]) -> Verdict:
    """Fail when any clause fails, else inconclusive when any is, else pass."""
    verdicts = {clause.verdict for clause in clauses}
    if "fail" in verdicts:
        return "fail"
    return "inconclusive" if "inconclusive" in verdicts or not verdicts else "pass"


def load_clauses(sla: Sla, evidence: Evidence) -> list[Clause]:
    """The clauses that the main run decides: latencies and the error rate."""
    samples, lateness = evidence.samples, evidence.lateness
    latency_error_ms = lateness.total_p99_ms
    tokens = [sample.output_tokens for sample in samples if sample.ok]
    token_error_ms = lateness.token_error_ms(statistics.median(tokens) if tokens else 1.0)
    tpots = [tpot for sample in samples if (tpot := sample.tpot_ms) is not None]
    wanted: list[tuple[str, float | None, list[float], float]] = [
        ("ttft_p95_ms", sla.ttft_p95_ms, [one.ttft_ms for one in samples], latency_error_ms),
        ("tpot_p95_ms", sla.tpot_p95_ms, tpots, token_error_ms),
        ("e2e_p95_ms", sla.e2e_p95_ms, [one.e2e_ms for one in samples], latency_error_ms),
    ]
    clauses = [
        latency_clause(name, values, limit_ms=limit_ms, error_ms=error_ms, evidence=evidence)
        for name, limit_ms, values, error_ms in wanted
        if limit_ms is not None
    ]
    return [*clauses, error_clause(sla.error_rate_max, evidence)]


def latency_clause(
    name: str, values: Sequence[float], *, limit_ms: float, error_ms: float, evidence: Evidence
) -> Clause:
    """A p95 latency against its limit.

    A failed request counts as infinite. A scheduled request that was not sent could have been
    anything: infinite for the upper bound, zero for the lower. The lower bound less the client's
    error must still break the limit for a fail.
    """
    if not values:
        # Requests without a value (a TPOT of one-token outputs) will not get one by waiting.
        more = not evidence.samples
        return _clause(name, "inconclusive", limit_ms, "ms", None, "nothing to measure", more=more)
    unknown = evidence.not_sent
    point = stats.quantile_estimate(values, LATENCY_QUANTILE)
    upper = stats.quantile_estimate([*values, *[math.inf] * unknown], LATENCY_QUANTILE).upper
    lower = stats.quantile_estimate([*values, *[0.0] * unknown], LATENCY_QUANTILE).lower
    estimate = stats.Estimate(point.value, lower, upper, point.n)

    def result(verdict: Verdict, reason: str) -> Clause:
        return _clause(name, verdict, limit_ms, "ms", estimate, reason)

    limit = f"{_number(limit_ms)} ms"
    if lower is not None and lower - error_ms > limit_ms:
        if math.isinf(lower):
            failed = sum(1 for value in values if math.isinf(value))
            return result("fail", f"{failed} of {len(values)} requests failed, so p95 has no end")
        less = f" even less the client's own {_number(error_ms)} ms" if error_ms > 0 else ""
        return result("fail", f"p95 is at least {_number(lower)} ms{less}: above {limit}")
    if (client := _client_reason(error_ms, limit_ms, evidence)) is not None:
        return result("inconclusive", client)
    if upper is None:
        need = stats.min_n_for_quantile(LATENCY_QUANTILE)
        return result("inconclusive", f"{len(values)} requests; a bound of p95 needs {need}")
    if upper <= limit_ms:
        return result("pass", f"p95 is at most {_number(upper)} ms: within {limit}")
    return result(
        "inconclusive",
        f"p95 lies between {_number(lower)} and {_number(upper)} ms: {limit} is not told apart",
    )


def error_clause(limit: float, evidence: Evidence) -> Clause:
    """The share of failed requests against its limit, by exact binomial bounds."""
    n = len(evidence.samples)
    errors = sum(1 for sample in evidence.samples if not sample.ok)
    if not n:
        return _clause("error_rate_max", "inconclusive", limit, "", None, "nothing sent", more=True)
    estimate = stats.proportion_estimate(errors, n)
    assert estimate.lower is not None
    assert estimate.upper is not None

    def result(verdict: Verdict, reason: str) -> Clause:
        return _clause("error_rate_max", verdict, limit, "", estimate, reason)

    counted = f"{errors} of {n} failed"
    if estimate.lower > limit:
        return result("fail", f"{counted}: at least {_share(estimate.lower)}")
    if evidence.sent_share < MIN_SENT_SHARE:
        return result("inconclusive", _not_sent_reason(evidence))
    if estimate.upper <= limit:
        return result("pass", f"{counted}: at most {_share(estimate.upper)}")
    need = stats.min_n_for_proportion(limit)
    if need is None:
        reason = f"{counted}; no sample can show a rate this small"
        return _clause("error_rate_max", "inconclusive", limit, "", estimate, reason, more=False)
    if n < need:
        return result("inconclusive", f"{counted}; to show {_share(limit)} takes {need} requests")
    return result(
        "inconclusive",
        f"{counted}: between {_share(estimate.lower)} and {_share(estimate.upper)}",
    )


def decided(clauses: Sequence[Clause]) -> bool:
    """Whether a longer run would change nothing: a clause failed, or none is open."""
    return any(one.verdict == "fail" for one in clauses) or not any(
        one.more_helps for one in clauses
    )


def requests_needed(sla: Sla) -> int:
    """The fewest requests that can pass every load clause: 59 for a p95, ln(0.05)/ln(1-limit) for
    an error rate."""
    by_errors = stats.min_n_for_proportion(sla.error_rate_max)
    return max(stats.min_n_for_quantile(LATENCY_QUANTILE), by_errors or 1)


def _client_reason(error_ms: float, limit_ms: float, evidence: Evidence) -> str | None:
    if evidence.sent_share < MIN_SENT_SHARE:
        return _not_sent_reason(evidence)
    if error_ms > MAX_CLIENT_ERROR_SHARE * limit_ms:
        return (
            f"client: the harness was late by {_number(error_ms)} ms (p99), more than "
            f"{MAX_CLIENT_ERROR_SHARE:.0%} of the limit; use a quieter machine"
        )
    return None


def _not_sent_reason(evidence: Evidence) -> str:
    return (
        f"client: {len(evidence.samples)} of {evidence.scheduled} scheduled requests were sent "
        "(too many in flight); the load was not the promised one"
    )


def _clause(
    name: str,
    verdict: Verdict,
    limit: float,
    unit: str,
    estimate: stats.Estimate | None,
    reason: str,
    *,
    more: bool | None = None,
) -> Clause:
    return Clause(
        name=name,
        verdict=verdict,
        limit=limit,
        unit=unit,
        measured=estimate.value if estimate else None,
        lower=estimate.lower if estimate else None,
        upper=estimate.upper if estimate else None,
        n=estimate.n if estimate else 0,
        reason=reason,
        more_helps=verdict == "inconclusive" if more is None else more,
    )


def _number(value: float | None) -> str:
    """Three significant digits, thousands whole."""
    if value is None:
        return "?"
    if math.isinf(value):
        return "infinity"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _share(value: float) -> str:
    return f"{value * 100:.3g}%"
