"""From what a run measured to its report. Pure, but for the facts about this machine."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from smoke import speculation, stats, verdict
from smoke.clock import NS_PER_S
from smoke.measured import Measured
from smoke.outcome import MEANING
from smoke.prompts import CHARS_PER_TOKEN
from smoke.report import model
from smoke.report.repeat import repeat_command
from smoke.report.text import plural, printable
from smoke.sample import Sample

_MAX_DIFFERENCES = 10
#: An output shorter than this share of what was promised is remarked on.
_SHORT_OUTPUT = 0.95


def build(found: Measured, *, event_loop: str = "asyncio") -> model.Report:
    """The report of ``found``."""
    clauses = found.clauses()
    decision = verdict.overall(clauses)
    return model.Report(
        schema=model.SCHEMA,
        name=printable(found.target.name, limit=100),
        verdict=decision,
        summary=_summary(decision, clauses),
        started_at=found.started_at,
        ended_at=found.ended_at or datetime.now(UTC),
        sla=found.sla,
        load=found.load,
        clauses=tuple(_clause(one) for one in clauses),
        warnings=tuple(printable(one, limit=1000) for one in _warnings(found)),
        notes=tuple(printable(one, limit=1000) for one in _notes(found)),
        results=_results(found),
        offered=_offered(found),
        acceptance=_acceptance(found),
        acceptance_problem=printable(_acceptance_problem(found)),
        speedup=_speedup(found),
        outputs=_outputs(found),
        lateness=_lateness(found),
        errors=tuple(_errors(found.main)),
        requests=tuple(_row(one, found.start_ns) for one in found.main),
        phases=tuple(
            model.Phase(name=name, seconds=round(seconds, 3)) for name, seconds in found.phases
        ),
        environment=_environment(found, event_loop),
    )


def value_of(figure: float | None) -> model.Value:
    """A figure as reports write it."""
    if figure is None or math.isnan(figure):
        return None
    return "infinity" if math.isinf(figure) else float(figure)


# ---- parts


def _summary(decision: verdict.Verdict, clauses: Sequence[verdict.Clause]) -> str:
    if decision == "pass":
        return f"All {len(clauses)} clauses hold at 95% confidence."
    bad = [one for one in clauses if one.verdict == decision]
    names = ", ".join(one.name for one in bad)
    what = "broken" if decision == "fail" else "undecided"
    return f"{len(bad)} of {plural(len(clauses), 'clause')} {what}: {names}."


def _clause(clause: verdict.Clause) -> model.ClauseResult:
    return model.ClauseResult(
        name=clause.name,
        verdict=clause.verdict,
        limit=clause.limit,
        unit=clause.unit,
        measured=value_of(clause.measured),
        lower=value_of(clause.lower),
        upper=value_of(clause.upper),
        n=clause.n,
        reason=printable(clause.reason),
    )


def _results(found: Measured) -> model.Results:
    samples = found.main
    good = [sample for sample in samples if sample.ok]
    sla = found.sla
    begin_ns = min((one.intended_ns for one in samples), default=0)
    end_ns = max((one.end_ns for one in samples), default=0)
    duration_s = max(1e-9, (end_ns - begin_ns) / NS_PER_S)
    met = sum(
        1
        for one in good
        if one.ttft_ms <= (sla.ttft_p95_ms or math.inf)
        and (one.tpot_ms or 0.0) <= (sla.tpot_p95_ms or math.inf)
        and one.e2e_ms <= (sla.e2e_p95_ms or math.inf)
    )
    sources = {one.count_source for one in good}
    prompt_tokens = [one.prompt_tokens for one in good if one.prompt_tokens is not None]
    gaps = [gap for one in good for gap in one.itl_ms]
    return model.Results(
        requests=len(samples),
        errors=len(samples) - len(good),
        duration_s=duration_s,
        requests_per_s=len(samples) / duration_s,
        output_tokens_per_s=sum(one.output_tokens for one in good) / duration_s,
        goodput_per_s=met / duration_s,
        ttft_ms=_distribution(one.ttft_ms for one in samples),
        tpot_ms=_distribution(one.tpot_ms for one in samples),
        itl_per_chunk_ms=_distribution(gaps),
        e2e_ms=_distribution(one.e2e_ms for one in samples),
        service_ms=_distribution(one.service_ms for one in samples),
        prompt_tokens_mean=statistics.fmean(prompt_tokens) if prompt_tokens else None,
        output_tokens_mean=statistics.fmean(one.output_tokens for one in good) if good else None,
        token_counts_from="mixed" if len(sources) > 1 else next(iter(sources), "none"),
    )


def _distribution(values: Iterable[float | None]) -> model.Distribution | None:
    known = [value for value in values if value is not None]
    finite = sorted(value for value in known if math.isfinite(value))
    if not finite:
        return None
    bounds = stats.quantile_estimate(known, verdict.LATENCY_QUANTILE)
    return model.Distribution(
        n=len(finite),
        mean=statistics.fmean(finite),
        p50=stats.quantile(finite, 0.5),
        p90=stats.quantile(finite, 0.9),
        p95=stats.quantile(finite, 0.95),
        p99=stats.quantile(finite, 0.99),
        max=finite[-1],
        p95_lower=value_of(bounds.lower),
        p95_upper=value_of(bounds.upper),
    )


def _offered(found: Measured) -> model.OfferedLoad:
    if found.prompts_are_users:
        prompts = "the user's own, as they are"
    else:
        prompts = (
            f"shipped text, cut or lengthened to about {found.load.prompt_tokens} tokens at "
            f"{CHARS_PER_TOKEN} characters a token (the model's tokenizer is not known here)"
        )
    return model.OfferedLoad(
        arrival=found.options.arrival,
        rate_rps=found.rate_rps,
        service_time_s=found.service_time_s,
        endpoint=found.options.kind,
        scheduled=found.scheduled,
        not_sent=found.evidence.not_sent,
        looks=found.looks,
        prompts=prompts,
    )


def _acceptance(found: Measured) -> model.Acceptance | None:
    record = found.reading.record
    if record is None:
        return None
    return model.Acceptance(
        drafts=record.drafts,
        draft_tokens=record.draft_tokens,
        accepted_tokens=record.accepted_tokens,
        accepted_per_position=record.accepted_per_position,
        acceptance_rate=record.acceptance_rate,
        mean_acceptance_length=record.mean_acceptance_length,
        per_position_rate=record.per_position_rate,
        restarted=found.reading.restarted,
    )


def _acceptance_problem(found: Measured) -> str:
    if found.reading.record is not None:
        return ""
    return found.reading.problem or "the metrics hold no speculation counters: not speculating"


def _speedup(found: Measured) -> model.Speedup | None:
    compared = found.load_ab
    if compared is None:
        return None
    estimate = compared.speedup
    return model.Speedup(
        value=value_of(estimate.value if estimate else None),
        lower=value_of(estimate.lower if estimate else None),
        upper=value_of(estimate.upper if estimate else None),
        pairs=compared.pairs,
        left_out=compared.left_out,
        problem=printable(compared.problem),
    )


def _outputs(found: Measured) -> model.Outputs | None:
    compared = found.outputs
    if compared is None:
        return None
    return model.Outputs(
        endpoint=found.outputs_kind,
        pairs=compared.pairs,
        equal=compared.pairs - compared.failed - len(compared.differences),
        failed=compared.failed,
        problem=printable(compared.problem),
        differences=tuple(
            model.OutputDifference(
                pair=one.pair,
                prompt=one.prompt,
                position=one.position,
                speculative=printable(one.speculative),
                baseline=printable(one.baseline),
            )
            for one in compared.differences[:_MAX_DIFFERENCES]
        ),
    )


def _lateness(found: Measured) -> model.HarnessLateness:
    late = found.lateness
    return model.HarnessLateness(
        send_p50_ms=late.send_p50_ms,
        send_p99_ms=late.send_p99_ms,
        send_max_ms=late.send_max_ms,
        read_p50_ms=late.read_p50_ms,
        read_p99_ms=late.read_p99_ms,
        read_max_ms=late.read_max_ms,
        read_samples=late.read_samples,
        total_p99_ms=late.total_p99_ms,
        sent_share=found.evidence.sent_share,
    )


def _errors(samples: Sequence[Sample]) -> Iterable[model.ErrorGroup]:
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        if not sample.ok:
            groups.setdefault(sample.outcome, []).append(sample)
    for members in sorted(groups.values(), key=len, reverse=True):
        first = members[0]
        yield model.ErrorGroup(
            outcome=first.outcome,
            meaning=MEANING[first.outcome],
            count=len(members),
            example=printable(first.message),
            example_request=first.index,
        )


def _row(sample: Sample, start_ns: int) -> model.RequestRow:
    def rounded(figure: float | None) -> float | None:
        return None if figure is None or not math.isfinite(figure) else round(figure, 4)

    return model.RequestRow(
        number=sample.index,
        at_s=round((sample.intended_ns - start_ns) / NS_PER_S, 6),
        outcome=sample.outcome,
        ttft_ms=rounded(sample.ttft_ms),
        tpot_ms=rounded(sample.tpot_ms),
        e2e_ms=rounded(sample.e2e_ms),
        service_ms=rounded(sample.service_ms),
        send_lag_ms=round(sample.lag_ms, 4),
        output_tokens=sample.output_tokens,
    )


def _warnings(found: Measured) -> list[str]:
    said = speculation.advice(found.reading, found.load_ab)
    good = [sample for sample in found.main if sample.ok]
    promised = found.load.output_tokens
    if found.capped:
        said.append(
            f"{plural(found.capped, 'request')} could not be sent: too many in flight already. "
            "The load was lower than scheduled."
        )
    if any(sample.count_source == "chunks" for sample in good):
        said.append(
            "The endpoint sends no token counts, so chunks were counted as tokens; TPOT is then "
            "too high under speculation."
        )
    elif good:
        mean = statistics.fmean(one.output_tokens for one in good)
        if mean < _SHORT_OUTPUT * promised:
            said.append(
                f"Outputs had {mean:.0f} tokens on average, {promised} were asked for: E2E is "
                "that of shorter answers."
            )
    return said


def _notes(found: Measured) -> list[str]:
    said = list(found.notes)
    if found.reading.record is None and found.sla.speculation is None:
        said.append(f"No acceptance record: {_acceptance_problem(found)}.")
    if found.looks > 1:
        said.append(
            f"The verdict was looked at {found.looks} times while the run extended itself; each "
            "look is at 95%, so over all looks the confidence is somewhat lower."
        )
    return said


def _environment(found: Measured, event_loop: str) -> model.Environment:
    try:
        version = importlib.metadata.version("specrack")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    target = found.target
    return model.Environment(
        os=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpus=os.cpu_count() or 0,
        python=platform.python_version(),
        specrack=version,
        event_loop=event_loop,
        url=printable(target.url),
        baseline_url=printable(target.baseline_url) if target.baseline_url else None,
        model=printable(found.served.model, limit=200),
        engine=printable(found.served.engine, limit=50) if found.served.engine else None,
        server=printable(found.served.server, limit=100),
        seed=found.options.seed,
        repeat_command=printable(found.options.repeat_command or repeat_command(found), limit=4000),
    )
