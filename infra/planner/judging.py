"""A deployment and the catalogue -> an estimate: does it fit, what does it cost.

Predicting how much faster speculation makes it is not part of this.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from infra.catalog import Catalog, catalog
from infra.catalog.hardware import Accelerator, Instance
from infra.catalog.models import ModelRow
from infra.catalog.tiers import Tier
from infra.planner import machine
from infra.planner.cost import (
    Cost,
    break_even,
    cents,
    duty,
    fleet,
    node_rate,
    per_1k_session_seconds,
)
from infra.planner.memory import MIB, VERDICTS, Demand, Fit, Pair, judge, splits
from infra.spec.model import METHODS_WITH_DRAFT, Deployment, Fleet
from infra.spec.schedule import parse

PRICE_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the catalogue says about a deployment before anything is started.

    ``nodes``: the fewest of the tier's range that reach the best verdict; ``fit`` is for them and
    the tier's tensor-parallel size, ``alternatives`` for the other sizes. ``cost`` is None when
    the catalogue has no price; a note says so. ``notes``: what to know about the figures.
    """

    deployment: str
    tier: str
    instance: str
    nodes: int
    accelerator: str | None
    accelerators_per_node: int
    fit: Fit
    alternatives: tuple[Fit, ...]
    cost: Cost | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values: money and shares are numbers, sizes are in the units of their names."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def estimate(
    deployment: Deployment,
    known: Catalog | None = None,
    *,
    instance: str | None = None,
    memory_bytes: int | None = None,
) -> Estimate:
    """Does ``deployment`` fit, and what does it cost?

    ``known``: the catalogue, the built-in one by default. ``instance``: judge another machine of
    the catalogue in place of the tier's. ``memory_bytes``: memory of this machine, for a machine
    without accelerators; read from the system when left out.

    A model that the catalogue does not know gives the verdict ``unknown``, never a guess.
    Raises InputError for a tier or an instance that the catalogue does not know.
    """
    known = known or catalog()
    tier = known.tier(deployment.tier)
    asked = deployment.fleet or Fleet()
    chosen = instance or asked.instance
    row = known.instance(chosen or tier.nodes.instance)
    chip = known.accelerators[row.accelerator] if row.accelerator else None
    pair, notes = _pair(deployment, known)
    if chip is None:
        memory = machine.memory_bytes() if memory_bytes is None else memory_bytes
    else:
        memory, note = _memory_of(chip)
        notes += note
    sizes = splits(row.accelerators) or (1,)
    low, high = (asked.nodes or tier.nodes).min, (asked.nodes or tier.nodes).max
    counts = range(low if instance is None else 1, high + 1)
    wanted = tier.tensor_parallel
    first = (wanted,) if chosen is None and wanted in sizes else sizes
    demand = Demand(
        sessions=deployment.load.sessions,
        session_tokens=deployment.load.prompt_tokens + deployment.load.output_tokens,
        max_model_len=deployment.model.max_model_len,
    )

    def fit(nodes: int, size: int) -> Fit:
        replicas = nodes * max(row.accelerators // size, 1)
        if isinstance(pair, str):
            return Fit(size, replicas, "unknown", pair)
        return judge(
            memory_bytes=memory, tensor_parallel=size, replicas=replicas, pair=pair, demand=demand
        )

    # The first of the best: fewest nodes, then the smallest size.
    best_of = [(nodes, fit(nodes, size)) for nodes in counts for size in first]
    nodes, best = min(best_of, key=lambda entry: VERDICTS.index(entry[1].verdict))
    cost, more = _cost(deployment, tier, row, nodes, counts, known)
    return Estimate(
        deployment=deployment.name,
        tier=deployment.tier,
        instance=row.name,
        nodes=nodes,
        accelerator=row.accelerator,
        accelerators_per_node=row.accelerators,
        fit=best,
        alternatives=tuple(fit(nodes, size) for size in sizes if size != best.tensor_parallel),
        cost=cost,
        notes=tuple(notes + more),
    )


def compare(deployment: Deployment, known: Catalog | None = None) -> list[Estimate]:
    """Estimates for every machine with accelerators, best verdict first, then the cheapest.

    Machines without a price come after those with one.
    """
    known = known or catalog()
    found = [
        estimate(deployment, known, instance=name)
        for name, row in known.instances.items()
        if row.accelerators
    ]

    def order(entry: Estimate) -> tuple[int, Decimal]:
        usd = entry.cost.fleet.usd_per_hour if entry.cost else Decimal("Infinity")
        return VERDICTS.index(entry.fit.verdict), usd

    return sorted(found, key=order)


def _pair(deployment: Deployment, known: Catalog) -> tuple[Pair | str, list[str]]:
    """What the pair needs, or why that cannot be said; and notes."""
    method = deployment.serving.speculation.method
    names = [deployment.model.target]
    notes = []
    if deployment.model.draft is not None:
        if method in METHODS_WITH_DRAFT:
            names.append(deployment.model.draft)
        else:
            notes.append(f"model.draft is not used by speculation method {method}")
    missing = [name for name in names if name not in known.models]
    if missing:
        return f"not in the catalogue, so the fit cannot be judged: {', '.join(missing)}", notes
    rows: list[ModelRow] = [known.models[name] for name in names]
    unsure = [row.name for row in rows if not row.is_verified("weights_gb")]
    if unsure:
        notes.append(f"weights of {' and '.join(unsure)} are from memory, unverified")
    pair = Pair(
        weights_gb=round(sum(row.weights_gb for row in rows), 9),
        kv_bytes_per_token=sum(row.kv_bytes_per_token for row in rows),
    )
    return pair, notes


def _memory_of(chip: Accelerator) -> tuple[int, list[str]]:
    for field in ("memory_mib_seen", "memory_mib_reported"):
        value = getattr(chip, field)
        if value is not None:
            unsure = [] if chip.is_verified(field) else [f"{field} of {chip.name} is unverified"]
            return value * MIB, unsure
    note = (
        f"{chip.name}: planned with its nominal {chip.memory_gb:g} GB; what it reports is unknown"
    )
    return int(chip.memory_gb * 1e9), [note]


def _cost(
    deployment: Deployment,
    tier: Tier,
    row: Instance,
    nodes: int,
    counts: range,
    known: Catalog,
) -> tuple[Cost | None, list[str]]:
    asked = deployment.fleet or Fleet()
    rate = node_rate(row, known, tier.market_rate, blocks=asked.buy == "capacity_block")
    if rate is None:
        return None, [f"the catalogue has no price for {row.name}"]
    notes = [] if rate.verified else [f"the price of {row.name} is unverified"]
    kind, _, region = deployment.site.partition("/")
    if kind == "aws" and region != PRICE_REGION:
        notes.append(f"the price is that of {PRICE_REGION}; {region} may differ")
    if asked.buy == "spot":
        notes.append("spot costs less than this, and AWS may take the machines back at any time")
    if asked.buy == "reservation":
        notes.append("a reservation costs this whether it is used or not")
    chosen = fleet(rate.usd_per_hour, nodes)
    schedule = parse(asked.schedule) if asked.schedule else None
    scheduled = cents(chosen.usd_per_month * schedule.duty) if schedule else None
    counted = chosen.usd_per_month if scheduled is None else scheduled
    budget = deployment.budget.usd_per_month if deployment.budget else None
    aim = tier.asked.usd_per_1k_session_seconds if tier.asked else None
    cost = Cost(
        fleet=chosen,
        rate=rate,
        usd_per_1k_session_seconds=per_1k_session_seconds(
            chosen.usd_per_hour, deployment.load.sessions
        ),
        by_nodes=tuple(fleet(rate.usd_per_hour, count) for count in counts),
        budget_usd_per_month=budget,
        within_budget=None if budget is None else counted <= budget,
        duty_within_budget=None if budget is None else duty(chosen.usd_per_month, budget),
        asked_usd_per_1k_session_seconds=aim,
        break_even_sessions=None if aim is None else break_even(chosen.usd_per_hour, aim),
        schedule=asked.schedule,
        scheduled_duty=schedule.duty if schedule else None,
        scheduled_usd_per_month=scheduled,
    )
    return cost, notes


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(below) for below in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
