"""What can be said about a need without an account."""

from __future__ import annotations

from infra.aws import prices
from infra.aws.need import Need
from infra.aws.rows import Report, Row, no, ok, skipped, warn
from infra.aws.subjects import IDENTITY, PRICE, RESERVED, subjects

MACHINES = "machines"
INTERFACES = "interfaces"
PURCHASE = "purchase"
DRAWS = "vCPUs"

_BOUGHT = {
    "on_demand": "on demand",
    "spot": "spot",
    "reservation": "in reservation {id}",
    "capacity_block": "in Capacity Block {id}",
}


def report(need: Need) -> Report:
    """What can be said without an account, and what was not looked at."""
    rows = offline_rows(need)
    why = prices.BLOCK_PAID if need.buy == "capacity_block" else "AWS was not asked"
    rows.append(prices.judge(need, None, prices.snapshot(need), why=why))
    rows += [
        skipped(name, "not looked at (--offline)")
        for name in (IDENTITY, *subjects(need))
        if name != PRICE
    ]
    return Report(need.deployment, False, tuple(rows))


def offline_rows(need: Need) -> list[Row]:
    """Rows that the deployment file and the catalogue decide alone."""
    found = [
        _machines(need),
        _interfaces(need),
        _purchase(need),
        _draws(need),
        _kubernetes(need),
    ]
    return [row for row in found if row is not None]


def _machines(need: Need) -> Row:
    bought = _BOUGHT[need.buy].format(id=need.reservation)
    if not need.zone.startswith(need.region):
        return no(
            MACHINES,
            f"zone {need.zone} is not in {need.region}",
            f"set fleet.zone to a zone of {need.region}",
        )
    if need.reserved and need.reservation is None:
        return no(
            MACHINES,
            f"buy: {need.buy} names no reservation",
            "set fleet.reservation: cr-...",
        )
    surge = f", {need.surge} more while they are replaced" if need.surge else ""
    return ok(MACHINES, f"{need.machines} in {need.zone}, {bought}{surge}")


def _interfaces(need: Need) -> Row | None:
    """Several interfaces and a public address exclude each other: AWS refuses such a launch."""
    if not need.several_interfaces:
        return None
    return ok(
        INTERFACES,
        f"EFA: {need.instance.efa_interfaces} of {need.instance.network_cards or 1} network "
        f"cards, {need.addresses_per_node} addresses a machine, no public one",
    )


def _purchase(need: Need) -> Row | None:
    classes = need.instance.usage_classes
    word = {"capacity_block": "capacity-block", "spot": "spot"}.get(need.buy, "on-demand")
    if classes and word not in classes:
        return warn(
            PURCHASE,
            f"{need.instance.name} is sold as {', '.join(classes)}; fleet.buy is {need.buy}",
            "check with AWS that it can be had so in this region",
        )
    return None


def _draws(need: Need) -> Row:
    helpers = need.helpers
    more = ""
    if helpers is not None:
        count = helpers.nodes_peak * helpers.vcpus
        more = f"; {count} of {helpers.quota_code} for {helpers.nodes_peak} {helpers.instance}"
    if need.reserved:
        return ok(DRAWS, f"{RESERVED[need.buy]}{more}")
    low, high = need.nodes_min * need.vcpus, need.nodes_peak * need.vcpus
    span = f"{low}" if low == high else f"{low} to {high}"
    return ok(
        DRAWS, f"{span} of quota {need.quota_code} ({need.vcpus} a {need.instance.name}){more}"
    )


def _kubernetes(need: Need) -> Row | None:
    release, version = need.pinned.release_version, need.kubernetes
    if need.orchestration != "eks" or release is None or version is None:
        return None
    if release.startswith(f"{version}."):
        return None
    return no(
        "node release",
        f"the lock file pins {release}, but the cluster is {version}",
        f"pin them anew: specrack lock {need.deployment}",
    )
