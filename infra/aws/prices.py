"""Prices of machines: the catalogue's with its date, the Pricing API's, and what to say of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from infra.aws.need import Need
from infra.aws.rows import Row, ok, warn
from infra.aws.subjects import PRICE as SUBJECT
from infra.catalog.hardware import Instance, Price

#: Where prices of the catalogue are from when they name no region.
CATALOGUE_REGION = "us-east-1"
#: Below this the difference to the catalogue is not worth a word.
SAME = Decimal("0.005")
BLOCK_PAID = "blocks are paid for when they are bought"


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """USD an hour for one machine. ``live``: asked just now; else of the date ``as_of``."""

    usd_per_hour: Decimal
    basis: str
    live: bool
    as_of: str
    region: str


def judge(
    need: Need,
    live: HourlyPrice | None,
    known: HourlyPrice | None,
    *,
    why: str = "",
    today: date | None = None,
) -> Row:
    """The price, where it is from and how old it is. ``why``: there is no live one."""
    if live is not None:
        text = f"{_usd(live.usd_per_hour)} an hour each, {live.basis}, asked just now"
        if (
            known is not None
            and known.region == need.region
            and known.basis == live.basis
            and abs(live.usd_per_hour - known.usd_per_hour) > SAME * known.usd_per_hour
        ):
            return warn(
                SUBJECT,
                f"{text}; the estimate reckons with {_usd(known.usd_per_hour)} of {known.as_of}",
                "reckon with the price of today; the catalogue is due for an update",
            )
        return ok(SUBJECT, text)
    reason = f" ({why})" if why else ""
    if known is None:
        return warn(
            SUBJECT,
            f"no price is known for {need.instance.name}{reason}",
            "look it up: aws.amazon.com/ec2/pricing",
        )
    age = _age(known.as_of, today or datetime.now(UTC).date())
    text = f"{_usd(known.usd_per_hour)} an hour each, {known.basis}, catalogue of {known.as_of}"
    text += f", {age} days old{reason}" if age is not None else reason
    if known.region != need.region:
        return warn(
            SUBJECT,
            f"{text}; that is {known.region}'s price",
            f"look up the price of {need.region}",
        )
    return ok(SUBJECT, text)


def list_price(products: Sequence[str], instance_type: str) -> Decimal | None:
    """The USD an hour of the one product among the answers; None when there is none, or several
    that differ (which would mean that the filters no longer single one out)."""
    found: set[Decimal] = set()
    for text in products:
        product = json.loads(text)
        if product.get("product", {}).get("attributes", {}).get("instanceType") != instance_type:
            continue
        for term in (product.get("terms", {}).get("OnDemand") or {}).values():
            for dimension in (term.get("priceDimensions") or {}).values():
                found |= _hourly(dimension)
    return found.pop() if len(found) == 1 else None


def _hourly(dimension: dict[str, Any]) -> set[Decimal]:
    if dimension.get("unit") not in ("Hrs", "hours"):
        return set()
    try:
        price = Decimal(str(dimension.get("pricePerUnit", {}).get("USD")))
    except InvalidOperation:
        return set()
    return {price} if price > 0 else set()


def snapshot(need: Need) -> HourlyPrice | None:
    """The catalogue's price for this way of buying, with its date; None when it has none."""
    row = need.instance
    if need.buy == "capacity_block":
        return _block(row, need.region)
    if need.buy == "spot":
        plans = [plan for plan in row.plans if plan.kind.startswith("spot")]
        dearest = max(plans, key=lambda plan: plan.usd_per_hour, default=None)
        return _of(dearest, "spot, high end of what was seen", need.region) if dearest else None
    return _of(row.on_demand, "on demand", need.region) if row.on_demand else None


def _block(row: Instance, region: str) -> HourlyPrice | None:
    blocks = sorted(
        row.capacity_blocks,
        key=lambda block: (region in block.regions, block.verified, block.as_of),
    )
    return _of(blocks[-1], "in a Capacity Block", region) if blocks else None


def _of(price: Price, basis: str, region: str) -> HourlyPrice:
    regions = price.regions or (CATALOGUE_REGION,)
    where = region if region in regions else regions[0]
    sure = "" if price.verified else ", unverified"
    return HourlyPrice(price.usd_per_hour, f"{basis}{sure}", False, price.as_of, where)


def _age(as_of: str, today: date) -> int | None:
    try:
        return (today - date.fromisoformat(as_of)).days
    except ValueError:  # a month, a quarter or a year
        return None


def _usd(amount: Decimal) -> str:
    return f"${amount.normalize():f}"
