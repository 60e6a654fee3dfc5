"""Is the machine type offered in the zone? (Whether one is free, AWS tells nobody beforehand.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.aws.ask import Aws
from infra.aws.checks.reservation import Reservation, reservations
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.rows import Row, listed, no, ok
from infra.aws.subjects import ZONE as SUBJECT


@dataclass(frozen=True, slots=True)
class Offer:
    """``zones``: of the region, for this account. ``offered``: those with the type."""

    zones: tuple[str, ...]
    offered: tuple[str, ...]


def check(aws: Aws, need: Need) -> list[Row]:
    """Raises AwsError."""
    zones = aws.call(
        "ec2", "describe_availability_zones", Filters=[{"Name": "state", "Values": ["available"]}]
    )["AvailabilityZones"]
    offers = aws.pages(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [need.instance.name]}],
    )
    offer = Offer(
        zones=tuple(sorted(str(entry["ZoneName"]) for entry in zones)),
        offered=tuple(sorted(str(entry["Location"]) for entry in offers)),
    )
    try:
        known = reservations(aws)
    except AwsError:  # has a row of its own
        known = []
    return [judge(need, offer, known)]


def judge(need: Need, offer: Offer, known: Sequence[Reservation] = ()) -> Row:
    """The zone against the offers; ``known`` reservations make the better advice."""
    name = need.instance.name
    if need.zone not in offer.zones:
        return no(
            SUBJECT,
            f"{need.zone} is no zone of this account in {need.region}",
            f"set fleet.zone to one of {listed(offer.offered or offer.zones)}",
        )
    if need.other_zone is not None and need.other_zone not in offer.zones:
        return no(
            SUBJECT,
            f"the cluster's second subnet goes to {need.other_zone}, which is no zone of this "
            "account",
            "name an existing VPC with subnets in two zones (aws.network)",
        )
    if need.zone in offer.offered:
        return ok(SUBJECT, f"{name} is offered in {listed(offer.offered)}")
    if not offer.offered:
        return no(
            SUBJECT,
            f"{name} is not offered in {need.region} at all",
            "choose another region (site) or machine (fleet.instance)",
        )
    reserved = [
        entry.zone
        for entry in known
        if entry.type == name and entry.free > 0 and entry.state == "active"
    ]
    best = next((zone for zone in reserved if zone in offer.offered), offer.offered[0])
    why = ", where a reservation is unused" if best in reserved else ""
    return no(
        SUBJECT,
        f"{name} is not offered in {need.zone}, only in {listed(offer.offered)}",
        f"set fleet.zone: {best}{why}",
    )
