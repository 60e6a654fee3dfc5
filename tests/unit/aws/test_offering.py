"""A machine type that the zone does not have is refused, and the zones that have it are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.aws.checks import offering
from infra.aws.checks.offering import Offer, judge
from tests.unit.aws.needs import need, scaled
from tests.unit.aws.scripted import scripted
from tests.unit.aws.test_reservation import entry

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d")
REAL = Path(__file__).parents[4] / "shared" / "cases" / "aws" / "offerings-az-us-east-1-gpu.json"


def test_a_zone_that_has_the_type_is_good() -> None:
    row = judge(scaled(), Offer(ZONES, ("us-east-1a", "us-east-1d")))
    assert row.verdict == "ok"
    assert "us-east-1a, us-east-1d" in row.found


def test_a_zone_without_the_type_is_refused_and_the_others_are_named() -> None:
    row = judge(scaled(), Offer(ZONES, ("us-east-1c", "us-east-1d")))
    assert row.verdict == "no"
    assert "not offered in us-east-1a, only in us-east-1c, us-east-1d" in row.found
    assert row.remedy == "set fleet.zone: us-east-1c"


def test_a_zone_with_an_unused_reservation_is_the_better_remedy() -> None:
    """Field failure 21."""
    row = judge(scaled(), Offer(ZONES, ("us-east-1c", "us-east-1d")), [entry(zone="us-east-1d")])
    assert row.remedy == "set fleet.zone: us-east-1d, where a reservation is unused"


def test_a_zone_that_the_account_does_not_have_is_refused() -> None:
    row = judge(scaled(zone="us-east-1f"), Offer(ZONES, ("us-east-1c",)))
    assert row.verdict == "no"
    assert "is no zone of this account" in row.found


def test_the_second_zone_of_a_cluster_must_be_there_too() -> None:
    row = judge(scaled(), Offer(("us-east-1a", "us-east-1c"), ("us-east-1a",)))
    assert row.verdict == "no"
    assert "second subnet goes to us-east-1b" in row.found


def test_a_region_without_the_type_is_refused() -> None:
    assert "at all" in judge(scaled(), Offer(ZONES, ())).found


def test_answers_of_aws_are_read() -> None:
    script = {
        "ec2.describe_availability_zones": {
            "AvailabilityZones": [{"ZoneName": zone, "State": "available"} for zone in ZONES]
        },
        "ec2.describe_instance_type_offerings": {
            "InstanceTypeOfferings": [
                {"InstanceType": "p4d.24xlarge", "Location": "us-east-1d"},
                {"InstanceType": "p4d.24xlarge", "Location": "us-east-1c"},
            ]
        },
        "ec2.describe_capacity_reservations": {"CapacityReservations": []},
    }
    [row] = offering.check(scripted(script), scaled())
    assert row.verdict == "no"
    assert "only in us-east-1c, us-east-1d" in row.found


@pytest.mark.skipif(not REAL.exists(), reason="the recorded offerings are not here")
def test_recorded_offerings_of_us_east_1() -> None:
    recorded = json.loads(REAL.read_text(encoding="utf-8"))
    by_type: dict[str, list[str]] = {}
    for one in recorded if isinstance(recorded, list) else recorded["InstanceTypeOfferings"]:
        by_type.setdefault(one["InstanceType"], []).append(one["Location"])
    zones = tuple(sorted({zone for names in by_type.values() for zone in names}))
    offered = tuple(sorted(by_type["g5.12xlarge"]))
    inside = need(fleet={"zone": offered[0]})
    assert judge(inside, Offer(zones, offered)).verdict == "ok"
    for zone in sorted(set(zones) - set(offered)):
        assert judge(need(fleet={"zone": zone}), Offer(zones, offered)).verdict == "no"
