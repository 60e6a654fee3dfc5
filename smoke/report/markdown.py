"""Markdown, for a pull request or a job summary."""

from __future__ import annotations

import re

from smoke.report.model import Distribution, Report
from smoke.report.text import VERDICT_WORD, bounds_of, limit_of, measured_of, number, printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def render(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    results, offered = report.results, report.offered
    lines = [
        f"## {VERDICT_WORD[report.verdict]}: smoke run of {escape(report.name)}",
        "",
        escape(report.summary),
        "",
        "| clause | limit | measured | 95% bounds | n | verdict | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for clause in report.clauses:
        cells = [
            clause.name,
            limit_of(clause),
            measured_of(clause),
            bounds_of(clause),
            f"{clause.n:,}",
        ]
        shown = " | ".join(escape(cell) for cell in cells)
        word = VERDICT_WORD[clause.verdict]
        lines.append(f"| {shown} | **{word}** | {escape(clause.reason)} |")
    if report.warnings:
        lines += ["", "### Warnings", ""]
        lines += [f"- {escape(warning)}" for warning in report.warnings]
    lines += [
        "",
        "### Figures",
        "",
        f"{results.requests:,} requests at {number(offered.rate_rps)}/s ({offered.arrival}), "
        f"{results.errors:,} failed; {number(results.output_tokens_per_s)} output tokens/s; "
        f"goodput {number(results.goodput_per_s)}/s.",
        "",
        "| ms | n | mean | p50 | p90 | p95 | p99 | max |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows: list[tuple[str, Distribution | None]] = [
        ("TTFT", results.ttft_ms),
        ("TPOT", results.tpot_ms),
        ("ITL per chunk", results.itl_per_chunk_ms),
        ("E2E", results.e2e_ms),
        ("service", results.service_ms),
    ]
    for name, spread in rows:
        if spread is not None:
            figures = (
                spread.mean,
                spread.p50,
                spread.p90,
                spread.p95,
                spread.p99,
                spread.max,
            )
            cells = [number(figure) for figure in figures]
            lines.append(f"| {name} | {spread.n:,} | {' | '.join(cells)} |")
    if report.errors:
        lines += ["", "### Errors", ""]
        lines += [
            f"- {group.count:,} x {escape(group.outcome)}: {escape(group.example)}"
            for group in report.errors
        ]
    environment = report.environment
    about = (
        f"{environment.model} at {environment.url}, seed {environment.seed}, "
        f"{report.started_at:%Y-%m-%d %H:%M:%S} UTC, harness late by "
        f"{number(report.lateness.total_p99_ms)} ms (p99)"
    )
    lines += ["", escape(about) + ".", "", "Repeat with:", "", *_code(environment.repeat_command)]
    lines += [*(f"\n{escape(note)}" for note in report.notes), ""]
    return "\n".join(lines)


def escape(text: str) -> str:
    """``text`` as plain words of one line: no markup, no HTML, no mentions."""
    # A zero-width space after @ keeps an endpoint's words from notifying people.
    return _SPECIAL.sub(r"\\\1", printable(text, limit=2000)).replace("@", "@\u200b")


def _code(text: str) -> list[str]:
    return [f"    {printable(text, limit=4000)}"]
