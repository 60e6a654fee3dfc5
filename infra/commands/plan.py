"""``specrack plan``: the estimate for a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from infra.planner import Cost, Estimate, Fit

if TYPE_CHECKING:
    from infra.aws.rows import Report
    from infra.spec.model import Deployment

_STYLE = {"fits": "green", "tight": "yellow", "does not fit": "bold red", "unknown": "yellow"}


def preflight(deployment: Deployment, root: Path, *, offline: bool) -> Report | None:
    """What the cloud account says of ``deployment``; None where there is no account to ask."""
    if not deployment.site.startswith("aws/"):
        return None
    from infra import lock
    from infra.aws.need import Pinned
    from infra.commands.lock import pinned
    from infra.commands.preflight import report_for
    from infra.fleet import resolve

    pins = pinned(lock.read(root, deployment.name), resolve(deployment).region)
    return report_for(deployment, offline=offline, pinned=Pinned(**pins))


def render(estimate: Estimate, console: Console) -> None:
    """Print fit, cost and notes."""
    nodes = "node" if estimate.nodes == 1 else "nodes"
    head = (
        f"{estimate.deployment}: tier {estimate.tier}, "
        f"{estimate.nodes} {nodes} of {estimate.instance}"
    )
    if estimate.accelerator:
        head += f" ({estimate.accelerators_per_node} x {estimate.accelerator})"
    parts: list[RenderableType] = [Text(head, style="bold"), Text(), fits(estimate), Text()]
    parts.append(money(estimate.cost) if estimate.cost else Text("cost: not known, see below"))
    parts += [Text(f"note: {note}") for note in estimate.notes]
    console.print(Group(*parts))


def fits(estimate: Estimate) -> Table:
    """Memory, for the chosen split over GPUs and the others."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("split", "replicas", "weights GB", "KV tokens", "per session", "verdict", "why"):
        table.add_column(title, overflow="fold")
    for fit in (estimate.fit, *estimate.alternatives):
        table.add_row(*_fit_row(fit, chosen=fit is estimate.fit))
    return table


def _fit_row(fit: Fit, *, chosen: bool) -> tuple[RenderableType, ...]:
    return (
        f"TP{fit.tensor_parallel}" + (" *" if chosen else ""),
        str(fit.replicas),
        _number(fit.weights_gb),
        _number(fit.kv_tokens),
        _number(fit.tokens_per_session),
        Text(fit.verdict, style=_STYLE.get(fit.verdict, "")),
        fit.reason,
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def money(cost: Cost) -> Text:
    """What it costs, against the budget and against the price that the tier aims at."""
    lines = [
        f"${cost.fleet.usd_per_hour:,.2f} an hour, ${cost.fleet.usd_per_month:,.2f} a month "
        f"around the clock; ${cost.usd_per_1k_session_seconds:,.4f} per 1,000 session-seconds"
    ]
    if cost.scheduled_usd_per_month is not None:
        lines.append(
            f"${cost.scheduled_usd_per_month:,.2f} a month by the schedule {cost.schedule} "
            f"({cost.scheduled_duty:.1%} of the hours)"
        )
    if cost.budget_usd_per_month is not None:
        word = "within" if cost.within_budget else "over"
        line = f"{word} the budget of ${cost.budget_usd_per_month:,.2f} a month"
        if not cost.within_budget and cost.duty_within_budget is not None:
            line += f"; the budget pays for {cost.duty_within_budget:.0%} of the hours"
        lines.append(line)
    if cost.break_even_sessions is not None:
        lines.append(
            f"break-even at {cost.break_even_sessions:,.1f} busy sessions "
            f"(${cost.asked_usd_per_1k_session_seconds} per 1,000 session-seconds)"
        )
    return Text("\n".join(lines))
