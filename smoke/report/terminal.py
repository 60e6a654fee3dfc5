"""The report on a terminal: verdict table, warnings, a sample of the errors."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from smoke.report.model import Report
from smoke.report.text import (
    VERDICT_WORD,
    bounds_of,
    limit_of,
    measured_of,
    number,
    plural,
    printable,
)

_STYLE = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow"}
_MAX_ERRORS = 5


def render(report: Report) -> RenderableType:
    """A renderable that fits 100 columns. Endpoint text in it is plain: no markup, no control."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("clause", overflow="fold")
    table.add_column("limit", no_wrap=True)
    table.add_column("measured", no_wrap=True)
    table.add_column("95% bounds", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for clause in report.clauses:
        table.add_row(
            Text(clause.name.removeprefix("speculation.")),
            Text(limit_of(clause)),
            Text(measured_of(clause)),
            Text(bounds_of(clause)),
            Text(f"{clause.n:,}"),
            Text(VERDICT_WORD[clause.verdict], style=_STYLE[clause.verdict]),
        )
    lines: list[RenderableType] = [table, Text()]
    for clause in report.clauses:
        if clause.verdict != "pass":
            reason = Text(f"{clause.name}: ", style=_STYLE[clause.verdict])
            lines.append(reason.append(clause.reason, style="default"))
    lines += [
        Text("warning: ", style="yellow").append(warning, style="default")
        for warning in report.warnings
    ]
    for group in report.errors[:_MAX_ERRORS]:
        lines.append(
            Text(f"{plural(group.count, 'request')} {group.outcome}: ", style="red").append(
                printable(group.example, limit=200), style="default"
            )
        )
    results = report.results
    lines.append(
        Text(
            f"{plural(results.requests, 'request')} at {number(report.offered.rate_rps)}/s, "
            f"{results.errors} failed, {number(results.output_tokens_per_s)} output tokens/s; "
            f"harness late by {number(report.lateness.total_p99_ms)} ms (p99)",
            style="dim",
        )
    )
    verdict = Text(VERDICT_WORD[report.verdict], style=_STYLE[report.verdict])
    lines.append(verdict.append(f"  {report.summary}", style="default"))
    return Group(*lines)
