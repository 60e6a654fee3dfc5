"""What speculation brings: acceptance, speed-up, equal outputs; their clauses and advice. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from infra.serving.acceptance import AcceptanceRecord
from infra.spec.model import SpeculationSla
from smoke import stats
from smoke.sample import Sample
from smoke.verdict import Clause, Verdict

#: Fewer drafts than this say little about a mean length.
MIN_DRAFTS = 50
#: Pairs that failed on either side may be this share.
MAX_PAIRS_LEFT_OUT = 0.01
#: An acceptance rate below this earns a warning (never a verdict: it falls with k by nature).
LOW_ACCEPTANCE_RATE = 0.5

_SNIPPET_CHARS = 40


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters over the run, or why there are none."""

    record: AcceptanceRecord | None
    problem: str = ""
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the outputs of one pair part. ``position`` counts characters from 0."""

    pair: int
    prompt: int
    position: int
    speculative: str
    baseline: str


@dataclass(frozen=True, slots=True)
class OutputsCompared:
    """Greedy outputs, one request at a time, speculation on against off."""

    pairs: int
    failed: int
    differences: tuple[Difference, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LoadCompared:
    """The same arrivals and prompts against both. Total service time off / on."""

    speedup: stats.Estimate | None
    pairs: int
    left_out: int
    problem: str = ""


def reading_between(
    before: AcceptanceRecord | None, after: AcceptanceRecord | None, *, problem: str = ""
) -> Reading:
    """What was counted between two readings; notices counters that fell or vanished."""
    if problem:
        return Reading(None, problem)
    if after is None:
        if before is None:
            return Reading(None)
        return Reading(None, "the speculation counters vanished during the run", restarted=True)
    fell = before is not None and (
        after.drafts < before.drafts
        or after.draft_tokens < before.draft_tokens
        or after.accepted_tokens < before.accepted_tokens
    )
    return Reading(after.since(before), restarted=fell)


def compare_outputs(pairs: Sequence[tuple[Sample, Sample]]) -> OutputsCompared:
    """Compare (speculative, baseline) outputs character by character."""
    differences: list[Difference] = []
    problems: list[str] = []
    for number, (on, off) in enumerate(pairs):
        if not on.ok or not off.ok:
            side, bad = ("speculative", on) if not on.ok else ("baseline", off)
            problems.append(f"{side} request {number}: {bad.outcome}: {bad.message}")
        elif on.text != off.text:
            position = first_difference(on.text, off.text)
            start = max(0, position - 10)
            window = slice(start, start + _SNIPPET_CHARS)
            differences.append(
                Difference(number, on.prompt, position, on.text[window], off.text[window])
            )
    return OutputsCompared(
        len(pairs), len(problems), tuple(differences), problems[0] if problems else ""
    )


def first_difference(a: str, b: str) -> int:
    """The first position at which ``a`` and ``b`` differ; the shorter length if one ends there."""
    for position, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return position
    return min(len(a), len(b))


def compare_load(
    on: Sequence[Sample], off: Sequence[Sample], *, scheduled: int, seed: int
) -> LoadCompared:
    """Pair by number and compare total service times. Of the ``scheduled`` pairs, those with a
    failed or unsent request are left out, and counted."""
    by_index = {sample.index: sample for sample in on}
    pairs = [(by_index[one.index], one) for one in off if one.index in by_index]
    good = [(a, b) for a, b in pairs if a.ok and b.ok]
    left_out = scheduled - len(good)
    if not good:
        first_bad = next((one for pair in pairs for one in pair if not one.ok), None)
        why = f": {first_bad.outcome}: {first_bad.message}" if first_bad else ""
        return LoadCompared(None, 0, left_out, f"no pair completed{why}")
    speedup = stats.ratio_of_totals(
        [b.service_ms for _, b in good], [a.service_ms for a, _ in good], seed=seed
    )
    return LoadCompared(speedup, len(good), left_out)


def clauses(
    sla: SpeculationSla,
    *,
    reading: Reading,
    load: LoadCompared | None,
    outputs: OutputsCompared | None,
) -> list[Clause]:
    """The clauses of ``sla.speculation``."""
    found: list[Clause] = []
    if sla.speedup_min is not None:
        found.append(speedup_clause(sla.speedup_min, load))
    if sla.mean_acceptance_length_min is not None:
        found.append(length_clause(sla.mean_acceptance_length_min, reading))
    if sla.output == "identical":
        found.append(output_clause(outputs))
    return found


def speedup_clause(limit: float, load: LoadCompared | None) -> Clause:
    """Total service time without speculation over with it, against its least value."""
    name = "speculation.speedup_min"
    if load is None:
        return _inconclusive(name, limit, "x", "no baseline was given to compare with")
    if load.speedup is None:
        return _inconclusive(name, limit, "x", load.problem)
    value = load.speedup

    def result(verdict: Verdict, reason: str) -> Clause:
        more = verdict == "inconclusive"
        return Clause(
            name, verdict, limit, "x", value.value, value.lower, value.upper, value.n, reason, more
        )

    if value.upper is not None and value.upper < limit:
        return result("fail", f"at most {value.upper:.3g}x: below {limit:g}x")
    if load.left_out > MAX_PAIRS_LEFT_OUT * (load.pairs + load.left_out):
        return result(
            "inconclusive", f"{load.left_out} of {load.pairs + load.left_out} pairs failed"
        )
    if value.lower is None or value.upper is None:
        return result("inconclusive", f"{value.n} pairs are too few for an interval")
    if value.lower >= limit:
        return result("pass", f"at least {value.lower:.3g}x: {limit:g}x holds")
    return result("inconclusive", f"between {value.lower:.3g}x and {value.upper:.3g}x")


def length_clause(limit: float, reading: Reading) -> Clause:
    """Tokens a step, from the engine's own counters (exact), against its least value."""
    name = "speculation.mean_acceptance_length_min"
    unit = "tokens"
    record = reading.record
    if record is None and reading.problem:
        return _inconclusive(name, limit, unit, reading.problem)
    length = record.mean_acceptance_length if record is not None else None
    if record is None or length is None:
        why = "metrics hold no speculation counters" if record is None else "no draft was verified"
        reason = f"{why}: the endpoint is not speculating"
        return Clause(name, "fail", limit, unit, 1.0, None, None, 0, reason)
    verdict: Verdict = "pass" if length >= limit else "fail"
    reason = f"{length:.3g} tokens a step, counted over {record.drafts:,} drafts"
    if record.drafts < MIN_DRAFTS:
        verdict = "inconclusive"
        reason = f"{record.drafts} drafts in the run; at least {MIN_DRAFTS} are needed"
    elif reading.restarted:
        reason += " since the engine's restart"
    return Clause(name, verdict, limit, unit, length, None, None, record.drafts, reason)


def output_clause(outputs: OutputsCompared | None) -> Clause:
    """Greedy outputs equal those without speculation, for every pair."""
    name = "speculation.output"
    if outputs is None:
        return _inconclusive(name, None, "", "no baseline was given to compare with")
    equal = outputs.pairs - outputs.failed - len(outputs.differences)
    verdict: Verdict = "pass"
    reason = f"all {outputs.pairs} outputs are equal"
    if outputs.differences:
        first = outputs.differences[0]
        verdict = "fail"
        reason = (
            f"{len(outputs.differences)} of {outputs.pairs} differ, first in prompt {first.prompt} "
            f"at character {first.position}: {first.speculative!r} with speculation, "
            f"{first.baseline!r} without"
        )
    elif outputs.failed or not outputs.pairs:
        verdict = "inconclusive"
        reason = f"{outputs.failed} of {outputs.pairs} pairs failed: {outputs.problem}"
    return Clause(name, verdict, None, "equal", float(equal), None, None, outputs.pairs, reason)


def advice(reading: Reading, load: LoadCompared | None) -> list[str]:
    """Warnings: what is no breach of the SLA and still wants to be known."""
    said: list[str] = []
    speedup = load.speedup if load is not None else None
    if speedup is not None and speedup.value < 1:
        said.append(
            f"Speculation makes this deployment slower: {speedup.value:.2f}x the speed without it "
            "at this load."
        )
    record = reading.record
    rate = record.acceptance_rate if record is not None else None
    if record is not None and rate is not None and rate < LOW_ACCEPTANCE_RATE:
        said.append(
            f"Acceptance rate {rate:.0%}: {_advise_k(record, speedup.value if speedup else None)}"
        )
    if reading.restarted:
        said.append("The engine was restarted during the run: its counters started again.")
    return said


def paying_draft_tokens(
    per_position_rate: Sequence[float], *, cost_share: float
) -> tuple[int, float]:
    """The k (0: none) with the highest modelled speed-up, and that speed-up.

    A step with k drafted tokens yields 1 + sum of the first k per-position rates and takes
    1 + k * cost_share steps of the target alone (Leviathan et al., 2023, section 3.3, with
    measured rates in place of a constant one). Rates fall with the position, so positions are
    worth keeping up to the one that adds less yield than cost.
    """
    yields = accumulate(per_position_rate, initial=1.0)
    modelled = [gain / (1 + k * cost_share) for k, gain in enumerate(yields)]
    best = max(range(len(modelled)), key=lambda k: modelled[k])
    return best, modelled[best]


def _advise_k(record: AcceptanceRecord, speedup: float | None) -> str:
    rates = record.per_position_rate
    length = record.mean_acceptance_length
    if not rates or length is None:
        return "this engine does not count by position, so which k would pay cannot be told."
    kept = ", ".join(f"{rate:.0%}" for rate in rates[:8])
    if speedup is None or speedup <= 0:
        return (
            f"positions are kept {kept} of the time; which k would pay cannot be told without a "
            "baseline to measure what drafting costs."
        )
    # A speculative step takes length / speedup steps without: what is above 1 is k tokens' cost.
    cost_share = max(0.0, (length / speedup - 1) / len(rates))
    best, modelled = paying_draft_tokens(rates, cost_share=cost_share)
    cost = f"positions are kept {kept} of the time and each costs {cost_share:.0%} of a step"
    if best == 0:
        return f"{cost}: no k pays here; turn speculation off or use a better or cheaper draft."
    return f"{cost}: k = {best} would pay best (about {modelled:.2f}x; now k = {len(rates)})."


def _inconclusive(name: str, limit: float | None, unit: str, reason: str) -> Clause:
    return Clause(name, "inconclusive", limit, unit, None, None, None, 0, reason)
