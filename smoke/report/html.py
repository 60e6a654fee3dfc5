"""One self-contained HTML page: the verdict first, then why. No script, nothing loaded."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from smoke.report import svg
from smoke.report.model import Distribution, Report, Value
from smoke.report.style import STYLE
from smoke.report.text import (
    VERDICT_WORD,
    bounds_of,
    limit_of,
    measured_of,
    number,
    printable,
)


def render(report: Report) -> str:
    """The report as an HTML page."""
    sections = [
        _header(report),
        _clauses(report),
        _list("Warnings", report.warnings, css="warnings"),
        _figures(report),
        _latencies(report),
        _timeline(report),
        _speculation(report),
        _outputs(report),
        _errors(report),
        _lateness(report),
        _environment(report),
    ]
    title = f"{VERDICT_WORD[report.verdict]}: {report.name}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Even if something hostile got through the escaping, the browser would load nothing.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main></body></html>\n"
    )


# ---- sections


def _header(report: Report) -> str:
    seconds = (report.ended_at - report.started_at).total_seconds()
    environment = report.environment
    return (
        f'<header class="{report.verdict}"><div class="word">{VERDICT_WORD[report.verdict]}</div>'
        f"<h1>{_text(report.name)}: {_text(environment.model)} at {_text(environment.url)}</h1>"
        f"<p>{_text(report.summary)}</p>"
        f"<p>{report.started_at:%Y-%m-%d %H:%M:%S} UTC, {seconds:.0f} s, "
        f"{report.results.requests:,} measured requests.</p></header>"
    )


def _clauses(report: Report) -> str:
    rows = [
        [
            f'<td class="wide"><b>{_text(one.name)}</b><br>'
            f'<span class="soft">{_text(one.reason)}</span></td>',
            f'<td class="figure">{_text(limit_of(one))}</td>',
            f'<td class="figure">{_text(measured_of(one))}</td>',
            f'<td class="figure">{_text(bounds_of(one))}</td>',
            f'<td class="figure">{one.n:,}</td>',
            f'<td><span class="chip {one.verdict}">{VERDICT_WORD[one.verdict]}</span></td>',
        ]
        for one in report.clauses
    ]
    head = ("clause, and why", "limit", "measured", "95% bounds", "n", "verdict")
    return _section(
        "The SLA, clause by clause",
        _table(head, rows)
        + '<p class="soft">Latencies count from the intended send time. A clause passes when its '
        "limit holds at the unfavourable bound, fails when it is broken at the favourable one. "
        "Failed requests count as errors and as infinite latencies.</p>",
    )


def _figures(report: Report) -> str:
    results, offered = report.results, report.offered
    tiles = [
        (f"{results.requests:,}", "requests"),
        (f"{results.errors:,}", "failed"),
        (f"{number(offered.rate_rps)}/s", f"{offered.arrival} arrivals"),
        (f"{number(results.requests_per_s)}/s", "requests done"),
        (f"{number(results.goodput_per_s)}/s", "goodput (all limits met)"),
        (f"{number(results.output_tokens_per_s)}/s", "output tokens"),
    ]
    if report.acceptance is not None and report.acceptance.acceptance_rate is not None:
        tiles.append((f"{report.acceptance.acceptance_rate:.0%}", "acceptance rate"))
    if report.speedup is not None and isinstance(report.speedup.value, float):
        tiles.append((f"{number(report.speedup.value)}x", "speed-up by speculation"))
    shown = "".join(
        f'<div class="tile"><b>{_text(figure)}</b><span>{_text(word)}</span></div>'
        for figure, word in tiles
    )
    load = report.load
    tokens = ""
    if results.prompt_tokens_mean is not None and results.output_tokens_mean is not None:
        tokens = (
            f" Measured on average: {number(results.prompt_tokens_mean)} prompt and "
            f"{number(results.output_tokens_mean)} output tokens "
            f"(from {results.token_counts_from})."
        )
    words = (
        f"Load: {load.sessions:,} sessions that think {number(load.think_s)} s, service time "
        f"{number(offered.service_time_s * 1000)} ms in the warm-up, {load.prompt_tokens:,} prompt "
        f"and {load.output_tokens:,} output tokens; endpoint {offered.endpoint}. Prompts: "
        f"{offered.prompts}.{tokens}"
    )
    return _section(
        "Load and throughput",
        f'<div class="tiles">{shown}</div><p class="soft">{_text(words)}</p>',
    )


def _latencies(report: Report) -> str:
    results, sla = report.results, report.sla
    plots = []
    for title, spread, values, limit in (
        ("TTFT", results.ttft_ms, [r.ttft_ms for r in report.requests], sla.ttft_p95_ms),
        ("TPOT", results.tpot_ms, [r.tpot_ms for r in report.requests], sla.tpot_p95_ms),
        ("E2E", results.e2e_ms, [r.e2e_ms for r in report.requests], sla.e2e_p95_ms),
    ):
        known = [value for value in values if value is not None]
        if spread is None or not known:
            continue
        bounds = (_float(spread.p95_lower), spread.p95, _float(spread.p95_upper))
        plot = svg.cdf(
            known,
            total=len(known) + results.errors,
            title=f"Distribution of {title}",
            limit=limit,
            p95=bounds,
        )
        plots.append(f"<div><h3>{title}</h3>{plot}</div>")
    named: list[tuple[str, Distribution | None]] = [
        ("TTFT", results.ttft_ms),
        ("TPOT", results.tpot_ms),
        ("ITL per chunk", results.itl_per_chunk_ms),
        ("E2E", results.e2e_ms),
        ("service time", results.service_ms),
    ]
    rows = [
        [f'<td class="figure">{name}</td><td class="figure">{spread.n:,}</td>']
        + [f'<td class="figure">{number(figure)}</td>' for figure in _figures_of(spread)]
        for name, spread in named
        if spread is not None
    ]
    if not rows:
        return _section("Latencies", "<p>No request succeeded.</p>")
    head = ("ms", "n", "mean", "p50", "p90", "p95", "p99", "max")
    return _section(
        "Latencies",
        f'<div class="plots">{"".join(plots)}</div>'
        '<p class="soft">Dashed: the SLA. Band: 95% bounds of p95 (dot). A chunk may carry several '
        "tokens under speculation, so TPOT comes from token counts and ITL is per chunk.</p>"
        + _table(head, rows),
    )


def _timeline(report: Report) -> str:
    if not report.requests:
        return ""
    points = [(max(0.0, row.at_s), row.ttft_ms) for row in report.requests]
    plot = svg.timeline(points, limit=report.sla.ttft_p95_ms, title="TTFT over the run")
    failed = " Crosses: failed requests." if report.results.errors else ""
    return _section(
        "TTFT over the run",
        f'<p class="soft">Milliseconds, one dot a request.{failed}</p>{plot}',
    )


def _speculation(report: Report) -> str:
    acceptance, speedup = report.acceptance, report.speedup
    parts = []
    if acceptance is None:
        parts.append(f"<div><h3>Acceptance</h3><p>{_text(report.acceptance_problem)}.</p></div>")
    else:
        rate = acceptance.acceptance_rate
        words = (
            f"{acceptance.drafts:,} drafts, {acceptance.draft_tokens:,} draft tokens, "
            f"{acceptance.accepted_tokens:,} accepted"
            + (f" ({rate:.0%})" if rate is not None else "")
            + f"; mean acceptance length {number(acceptance.mean_acceptance_length)} tokens a step."
        )
        plot = (
            svg.bars(acceptance.per_position_rate, title="Acceptance per position")
            if acceptance.per_position_rate
            else ""
        )
        parts.append(f"<div><h3>Acceptance per position</h3>{plot}<p>{_text(words)}</p></div>")
    if speedup is None:
        parts.append(
            "<div><h3>Speed-up</h3><p>No baseline was given, so nothing was compared.</p></div>"
        )
    elif isinstance(speedup.value, float):
        limit = report.sla.speculation.speedup_min if report.sla.speculation else None
        plot = svg.interval(
            speedup.value,
            _float(speedup.lower),
            _float(speedup.upper),
            limit=limit,
            title="Speed-up by speculation",
        )
        words = f"{speedup.pairs:,} pairs: the same arrivals and prompts with speculation off"
        words += f"; {speedup.left_out:,} left out." if speedup.left_out else "."
        parts.append(f"<div><h3>Speed-up under this load</h3>{plot}<p>{_text(words)}</p></div>")
    else:
        parts.append(f"<div><h3>Speed-up</h3><p>{_text(speedup.problem)}.</p></div>")
    return _section("Speculation", f'<div class="plots">{"".join(parts)}</div>')


def _outputs(report: Report) -> str:
    outputs = report.outputs
    if outputs is None:
        return ""
    words = (
        f"{outputs.equal:,} of {outputs.pairs:,} greedy outputs are equal with speculation on and "
        f"off ({outputs.endpoint}, one request at a time)."
    )
    if outputs.failed:
        words += f" {outputs.failed:,} pairs failed: {outputs.problem}."
    rows = [
        [
            f'<td class="figure">{one.prompt}</td><td class="figure">{one.position}</td>',
            f'<td class="text"><code>{_text(one.speculative)}</code></td>',
            f'<td class="text"><code>{_text(one.baseline)}</code></td>',
        ]
        for one in outputs.differences
    ]
    head = ("prompt", "first differing character", "with speculation", "without")
    table = _table(head, rows) if rows else ""
    return _section("Outputs compared", f"<p>{_text(words)}</p>{table}")


def _errors(report: Report) -> str:
    if not report.errors:
        return ""
    rows = [
        [
            f'<td class="figure">{_text(group.outcome)}</td>',
            f'<td class="figure">{group.count:,}</td>',
            f'<td class="text">{_text(group.meaning)}</td>',
            f'<td class="text"><code>{_text(group.example)}</code></td>',
        ]
        for group in report.errors
    ]
    return _section("Errors", _table(("outcome", "count", "meaning", "first message"), rows))


def _lateness(report: Report) -> str:
    late = report.lateness
    rows = [
        [
            f'<td class="text">{name}</td>',
            *(f'<td class="figure">{number(figure)}</td>' for figure in figures),
        ]
        for name, figures in (
            (
                "sending: intended moment to request written",
                (late.send_p50_ms, late.send_p99_ms, late.send_max_ms),
            ),
            (
                "reading: bytes ready to time taken",
                (late.read_p50_ms, late.read_p99_ms, late.read_max_ms),
            ),
        )
    ]
    words = (
        f"Both together: p99 {number(late.total_p99_ms)} ms. A latency clause cannot pass when "
        f"this is more than 2% of its limit. {late.sent_share:.1%} of the scheduled "
        f"requests were sent (99% are required); {late.read_samples:,} probes of the reading side."
    )
    table = _table(("the harness's own lateness, ms", "p50", "p99", "max"), rows)
    return _section("Can the measurement be trusted?", f"{table}<p>{_text(words)}</p>")


def _environment(report: Report) -> str:
    about = report.environment
    facts = [
        ("endpoint", about.url),
        ("baseline", about.baseline_url or "none"),
        ("model", about.model),
        ("engine", f"{about.engine or 'unknown'} ({about.server or 'no Server header'})"),
        ("harness on", f"{about.os}, {about.cpus} CPUs"),
        ("versions", f"Specrack {about.specrack}, Python {about.python}, {about.event_loop}"),
        ("seed", str(about.seed)),
        ("start", f"{report.started_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("phases", ", ".join(f"{one.name} {one.seconds:.1f} s" for one in report.phases)),
    ]
    rows = [
        [f'<td class="figure">{name}</td><td class="text">{_text(value)}</td>']
        for name, value in facts
    ]
    notes = "".join(f"<li>{_text(note)}</li>" for note in report.notes)
    return _section(
        "Environment, and how to repeat it",
        _table((), rows)
        + (f"<ul>{notes}</ul>" if notes else "")
        + f"<pre>{_text(about.repeat_command)}</pre>",
    )


# ---- parts


def _section(title: str, content: str, *, css: str = "") -> str:
    return f'<section class="{css}"><h2>{_text(title)}</h2>{content}</section>'


def _list(title: str, items: Sequence[str], *, css: str = "") -> str:
    if not items:
        return ""
    return _section(
        title, "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>", css=css
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{_text(word)}</th>" for word in head)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    shown = f"<thead><tr>{top}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{shown}<tbody>{body}</tbody></table></div>'


def _figures_of(spread: Distribution) -> tuple[float, ...]:
    return (spread.mean, spread.p50, spread.p90, spread.p95, spread.p99, spread.max)


def _float(value: Value) -> float | None:
    return value if isinstance(value, float) else None


def _text(text: str) -> str:
    """Escaped, on one line: everything that is not markup of ours goes through here."""
    return escape(printable(text, limit=4000), quote=True)
