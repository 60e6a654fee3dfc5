"""Preflight over HTTP, against moto's server with its extension (tests/rigs/aws)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from infra.aws import preflight, session
from infra.aws.images import current_image, current_kubernetes
from infra.aws.need import Need, Pinned
from infra.aws.rows import Report, Row
from tests.rigs.aws.fixtures import aws, aws_env, aws_server  # noqa: F401
from tests.rigs.aws.images import IMAGE_DATE, images
from tests.rigs.aws.rig import AwsRig
from tests.unit.aws.needs import need, scaled

pytestmark = pytest.mark.e2e
IMAGE = next(iter(images()))


@pytest.fixture(scope="module", autouse=True)
def _sessions() -> Iterator[None]:
    """Once for all: a session that forgets reads the models of all services anew."""
    session.forget()
    yield
    session.forget()


@pytest.fixture
def rig(aws_env: AwsRig) -> AwsRig:  # noqa: F811
    return aws_env


def host() -> Need:
    return need(pinned=Pinned(image=IMAGE))


def cluster() -> Need:
    release = f"1.35.5-{IMAGE_DATE}"
    return replace(scaled(), pinned=Pinned(kubernetes="1.35", release_version=release))


def refused(report: Report) -> Row:
    [row] = report.refused
    assert report.exit_status == 2
    assert row.remedy
    return row


@pytest.mark.parametrize("make", [host, cluster])
def test_an_account_in_which_all_is_well(rig: AwsRig, make: object) -> None:
    assert callable(make)
    report = preflight.run(make())
    assert {row.verdict for row in report.rows} == {"ok"}
    price = next(row for row in report.rows if row.subject == "price")
    assert "asked just now" in price.found


def test_it_changes_nothing(rig: AwsRig) -> None:
    before = len(rig.calls())
    preflight.run(cluster())
    for call in rig.calls()[before:]:
        assert call["action"].startswith(("Describe", "Get", "List", "Simulate")), call


def test_no_quota(rig: AwsRig) -> None:
    rig.set(quotas={"ec2": {"L-417A185B": 0}})
    assert "enough for 0 of 2" in refused(preflight.run(cluster())).found


def test_quota_for_one_of_two(rig: AwsRig) -> None:
    rig.set(quotas={"ec2": {"L-417A185B": 96}})
    assert "enough for 1 of 2" in refused(preflight.run(cluster())).found


def test_a_zone_without_the_type(rig: AwsRig) -> None:
    rig.set(not_offered={"us-east-1a": ["p4d.24xlarge"]})
    row = refused(preflight.run(cluster()))
    assert (row.subject, "not offered in us-east-1a" in row.found) == ("zone", True)


def reservation(rig: AwsRig, zone: str = "us-east-1a", count: int = 2) -> str:
    made = rig.client("ec2").create_capacity_reservation(
        InstanceType="p4d.24xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=zone,
        InstanceCount=count,
        InstanceMatchCriteria="targeted",
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def on(name: str, buy: str = "reservation", nodes: int = 2) -> Need:
    wanted = scaled(reservation=name, buy=buy, nodes={"min": nodes, "max": nodes})
    return replace(wanted, pinned=cluster().pinned)


def test_a_reservation_that_fits_and_one_elsewhere(rig: AwsRig) -> None:
    assert preflight.run(on(reservation(rig))).exit_status == 0
    row = refused(preflight.run(on(reservation(rig, zone="us-east-1d"))))
    assert "is in us-east-1d, the machines go to us-east-1a" in row.found


def test_four_nodes_on_a_reservation_of_two(rig: AwsRig) -> None:
    row = refused(preflight.run(on(reservation(rig), nodes=4)))
    assert "room for 2 of 4" in row.found


def test_an_expired_block(rig: AwsRig) -> None:
    name = reservation(rig)
    rig.set(reservations={name: {"State": "expired", "ReservationType": "capacity-block"}})
    assert "is expired" in refused(preflight.run(on(name, buy="capacity_block"))).found


def test_a_missing_permission(rig: AwsRig) -> None:
    rig.set(denied=["ec2:RunInstances"])
    assert "may not ec2:RunInstances" in refused(preflight.run(host())).found


def test_an_unknown_image(rig: AwsRig) -> None:
    row = refused(preflight.run(need(pinned=Pinned(image="ami-0bbbbbbbbbbbbbbbb"))))
    assert "ami-0bbbbbbbbbbbbbbbb is not in us-east-1" in row.found


def test_a_subnet_without_addresses(rig: AwsRig) -> None:
    ec2 = rig.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24", AvailabilityZone="us-east-1a")[
        "Subnet"
    ]["SubnetId"]
    rig.set(free_addresses={subnet: 0})
    row = refused(preflight.run(replace(host(), vpc=vpc, subnets=(subnet,))))
    assert f"{subnet} has 0 free addresses" in row.found


def test_a_throttled_call_is_tried_again_before_it_is_open(rig: AwsRig) -> None:
    rig.faults(
        {
            "service": "ec2",
            "action": "DescribeInstanceTypeOfferings",
            "count": 99,
            "status": 503,
            "code": "RequestLimitExceeded",
        }
    )
    report = preflight.run(host())
    [row] = report.undecided
    assert (row.subject, row.found.startswith("throttled: ")) == ("zone", True)
    assert report.exit_status == 3
    tried = [one for one in rig.calls() if one["action"] == "DescribeInstanceTypeOfferings"]
    assert len(tried) >= session.ATTEMPTS


def test_an_expired_token(rig: AwsRig) -> None:
    rig.faults({"service": "sts", "count": 99, "status": 403, "code": "ExpiredToken"})
    row = refused(preflight.run(host()))
    assert (row.subject, row.found) == ("identity", "the AWS credentials have expired")


def test_a_service_that_is_slow_does_not_hold_up_the_table(rig: AwsRig) -> None:
    rig.faults({"service": "iam", "count": 9, "delay_s": 8})
    report = preflight.run(host(), deadline_s=3)
    assert [row.subject for row in report.undecided] == ["permissions"]
    assert report.exit_status == 3


def test_current_images(rig: AwsRig) -> None:
    image = current_image(need())
    assert image.id in images()
    assert image.created is not None
    assert current_kubernetes(scaled()).release_version.endswith(IMAGE_DATE)
    neuron = current_kubernetes(scaled(instance="trn2.48xlarge"))
    assert "/neuron/recommended/" in neuron.parameter
