"""``specrack tiers``: each tier, what the brief asks of it, and what it costs at list price.

Pure arithmetic on the catalogue (730 hours a month).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.catalog import Catalog, catalog
from infra.catalog.tiers import Tier
from infra.planner import FleetCost
from infra.planner.cost import break_even, fleet, node_rate

_PERMILLE = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class Sum:
    """The list price of ``cost.nodes`` nodes around the clock, beside what was asked.

    ``duty``: the shares of the hours at which the lowest and the highest sum asked for would pay
    for it, at most 1. ``break_even_sessions``: busy sessions at which the price asked per 1,000
    session-seconds pays for it.
    """

    cost: FleetCost
    duty: tuple[Decimal, Decimal]
    break_even_sessions: Decimal | None


@dataclass(frozen=True, slots=True)
class TierSums:
    """A tier and its sums; none where the catalogue has no price."""

    name: str
    tier: Tier
    basis: str
    as_of: str
    sums: tuple[Sum, ...]


def tier_sums(known: Catalog | None = None) -> list[TierSums]:
    """Every tier that the brief asks for, the one for the fewest sessions first."""
    known = known or catalog()
    found = []
    for name in known.tier_names:
        tier = known.tier(name)
        if tier.asked is None:
            continue
        rate = node_rate(known.instance(tier.nodes.instance), known, tier.market_rate)
        counts = sorted({tier.nodes.min, tier.nodes.max})
        sums = tuple(_sum(tier, fleet(rate.usd_per_hour, count)) for count in counts if rate)
        basis, as_of = (rate.basis, rate.as_of) if rate else ("no price known", "")
        found.append(TierSums(name, tier, basis, as_of, sums))
    return sorted(found, key=lambda one: one.tier.asked.sessions.min if one.tier.asked else 0)


def _sum(tier: Tier, cost: FleetCost) -> Sum:
    asked = tier.asked
    assert asked is not None
    low, high = (
        min(Decimal(1), (limit / cost.usd_per_month).quantize(_PERMILLE, ROUND_DOWN))
        for limit in (asked.usd_per_month.min, asked.usd_per_month.max)
    )
    return Sum(cost, (low, high), break_even(cost.usd_per_hour, asked.usd_per_1k_session_seconds))


def as_json(found: list[TierSums]) -> list[dict[str, Any]]:
    """For programs: money as text."""
    return [
        {
            "tier": one.name,
            "title": one.tier.title,
            "instance": one.tier.nodes.instance,
            "asked": one.tier.asked.model_dump(mode="json") if one.tier.asked else None,
            "basis": one.basis,
            "as_of": one.as_of,
            "sums": [
                {
                    **{key: str(value) for key, value in asdict(entry.cost).items()},
                    "duty": [str(share) for share in entry.duty],
                    "break_even_sessions": str(entry.break_even_sessions),
                }
                for entry in one.sums
            ],
            "better": [row.model_dump(mode="json") for row in one.tier.better],
        }
        for one in found
    ]


def rows(found: list[TierSums]) -> list[tuple[str, ...]]:
    """The table's rows, a node count a row."""
    made: list[tuple[str, ...]] = []
    for one in found:
        asked = one.tier.asked
        assert asked is not None
        for entry in one.sums:
            low, high = entry.duty
            made.append(
                (
                    one.name,
                    f"{entry.cost.nodes} x {one.tier.nodes.instance}",
                    f"{asked.sessions.min}-{asked.sessions.max}",
                    f"{asked.usd_per_month.min:,}-{asked.usd_per_month.max:,}",
                    f"{entry.cost.usd_per_month:,.2f}",
                    f"{low:.1%}-{high:.1%}",
                    f"{entry.break_even_sessions:,.1f}",
                )
            )
    return made


HEADINGS = (
    "tier", "machines", "sessions", "asked $/month", "list $/month", "hours that fit", "break-even",
)  # fmt: skip


def render(found: list[TierSums], console: Console) -> None:
    """A table, then per tier what is better today and why."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    for entry in rows(found):
        table.add_row(*entry)
    console.print(table)
    for one in found:
        console.print()
        priced = f" ({one.basis}, {one.as_of})" if one.as_of else ""
        console.print(Text(f"{one.name}: {one.tier.title}{priced}", style="bold"))
        for better in one.tier.better:
            console.print(Text(f"- {better.use}, instead of {better.instead_of}: {better.reason}"))


def markdown(found: list[TierSums]) -> str:
    """The same table for docs."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(entry) + " |" for entry in rows(found)]
    return "\n".join(lines)
