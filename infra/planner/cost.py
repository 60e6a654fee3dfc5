"""What a fleet costs, by the hour, the month and the session-second; money is Decimal."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from infra.catalog import Catalog
from infra.catalog.hardware import Instance, MarketRate

#: A month has 730 hours everywhere in Specrack.
HOURS_PER_MONTH = 730
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class NodeRate:
    """What one node costs an hour. ``basis``: what kind of price it is, in words."""

    usd_per_hour: Decimal
    basis: str
    as_of: str
    source: tuple[str, ...]
    verified: bool


@dataclass(frozen=True, slots=True)
class FleetCost:
    """A number of nodes around the clock. ``usd_per_month`` is rounded to cents."""

    nodes: int
    usd_per_hour: Decimal
    usd_per_month: Decimal


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a deployment's fleet.

    ``within_budget``: by the schedule if there is one, else around the clock; None without a
    budget. ``duty_within_budget``: the share of the month's hours that the budget pays for, at
    most 1. ``scheduled_...``: the share of the hours that the schedule runs, and their cost.
    ``usd_per_1k_session_seconds``: with the load's sessions busy all the time.
    ``break_even_sessions``: busy sessions, on average, at which the fleet costs what the tier asks
    per 1,000 session-seconds (``asked_...``).
    """

    fleet: FleetCost
    rate: NodeRate
    usd_per_1k_session_seconds: Decimal
    by_nodes: tuple[FleetCost, ...]
    budget_usd_per_month: Decimal | None = None
    within_budget: bool | None = None
    duty_within_budget: Decimal | None = None
    asked_usd_per_1k_session_seconds: Decimal | None = None
    break_even_sessions: Decimal | None = None
    schedule: str | None = None
    scheduled_duty: Decimal | None = None
    scheduled_usd_per_month: Decimal | None = None


def fleet(usd_per_node_hour: Decimal, nodes: int) -> FleetCost:
    """``nodes`` nodes, 730 hours a month."""
    per_hour = usd_per_node_hour * nodes
    return FleetCost(nodes, per_hour, cents(per_hour * HOURS_PER_MONTH))


def per_1k_session_seconds(usd_per_hour: Decimal, sessions: int) -> Decimal:
    """USD per 1,000 session-seconds: fleet USD/h over (3.6 x busy sessions), to 0.0001."""
    return (usd_per_hour / (Decimal("3.6") * sessions)).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def break_even(usd_per_hour: Decimal, usd_per_1k: Decimal) -> Decimal | None:
    """Busy sessions at which a fleet costs ``usd_per_1k`` a 1,000 session-seconds; None at 0."""
    if usd_per_1k == 0:
        return None
    return cents(usd_per_hour / (Decimal("3.6") * usd_per_1k))


def duty(usd_per_month: Decimal, budget: Decimal) -> Decimal:
    """The share of the hours of a month that ``budget`` pays for, at most 1, down to 0.001."""
    if usd_per_month <= budget:
        return Decimal(1)
    return (budget / usd_per_month).quantize(Decimal("0.001"), "ROUND_DOWN")


def node_rate(
    instance: Instance, known: Catalog, market_rate: str | None = None, *, blocks: bool = False
) -> NodeRate | None:
    """The rate to plan a node of ``instance`` with; None when the catalogue knows none.

    On demand first; then the newest rate of the provider ``market_rate`` for its GPUs; then the
    newest Capacity Block that was read in a source, which comes first with ``blocks``.
    """
    if instance.on_demand is not None and not (blocks and instance.capacity_blocks):
        price = instance.on_demand
        basis = "nothing is rented" if instance.provider == "local" else "on-demand list price"
        return NodeRate(price.usd_per_hour, basis, price.as_of, price.source, price.verified)
    rate = _newest(instance.accelerator, market_rate, known) if market_rate else None
    if rate is not None:
        basis = f"{rate.provider}, {rate.usd_per_gpu_hour} a GPU hour"
        node = rate.usd_per_gpu_hour * instance.accelerators
        return NodeRate(node, basis, rate.as_of, rate.source, rate.verified)
    offers = sorted(instance.capacity_blocks, key=lambda block: (block.verified, block.as_of))
    if not offers:
        return None
    block = offers[-1]
    basis = "Capacity Block, paid ahead for a fixed time"
    return NodeRate(block.usd_per_hour, basis, block.as_of, block.source, block.verified)


def _newest(accelerator: str | None, provider: str, known: Catalog) -> MarketRate | None:
    rates = [
        rate for rate in known.market
        if rate.accelerator == accelerator and rate.provider == provider
    ]  # fmt: skip
    return max(rates, key=lambda rate: rate.as_of, default=None)


def cents(value: Decimal) -> Decimal:
    """Rounded to a cent."""
    return value.quantize(_CENT, ROUND_HALF_UP)
