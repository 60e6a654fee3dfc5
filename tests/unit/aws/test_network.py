"""Subnets that are given must fit; a VPC of our own must have room."""

from __future__ import annotations

from typing import Any

import pytest

from infra.aws.checks import network
from infra.aws.checks.network import Subnet, judge
from infra.aws.need import Need
from infra.aws.rows import Row
from tests.unit.aws.needs import OTHER_SUBNET, SUBNET, VPC, in_vpc, need, scaled
from tests.unit.aws.scripted import Error, scripted

HOST = in_vpc(need())
CLUSTER = in_vpc(scaled(), SUBNET, OTHER_SUBNET)


def subnet(name: str = SUBNET, **changes: Any) -> Subnet:
    values: dict[str, Any] = {
        "id": name,
        "vpc": VPC,
        "zone": "us-east-1a",
        "free": 200,
        "state": "available",
        "public_by_default": False,
        "way_out": "nat-0aaaaaaaaaaaaaaaa",
    }
    return Subnet(**(values | changes))


def judged(*subnets: Subnet, of: Need = HOST, **more: Any) -> Row:
    return judge(of, subnets or (subnet(),), (), **more)


def cluster(**changes: Any) -> Row:
    return judged(subnet(**changes), subnet(OTHER_SUBNET, zone="us-east-1b"), of=CLUSTER)


def test_a_private_subnet_with_a_way_out_is_good() -> None:
    row = judged()
    assert row.verdict == "ok"
    assert "200 addresses free, way out by nat-0aaaaaaaaaaaaaaaa" in row.found


def test_a_transit_gateway_is_a_way_out_too() -> None:
    assert judged(subnet(way_out="tgw-0aaaaaaaaaaaaaaaa")).verdict == "ok"


def test_a_subnet_without_addresses_is_refused() -> None:
    row = judged(subnet(free=0))
    assert row.verdict == "no"
    assert f"{SUBNET} has 0 free addresses; 1 are needed" in row.found
    assert row.remedy


def test_every_efa_interface_with_an_address_counts() -> None:
    """A p4d takes one address a network card, and EKS some of its own."""
    assert CLUSTER.addresses_per_node == 4
    assert cluster(free=2 * 4 + 16 + 3 - 1).verdict == "no"
    assert cluster(free=2 * 4 + 16 + 3).verdict == "ok"
    p5 = in_vpc(scaled(instance="p5.48xlarge"), SUBNET, OTHER_SUBNET)
    assert p5.addresses_per_node == 1


def test_addresses_for_the_least_but_not_for_the_most_are_a_warning() -> None:
    growing = in_vpc(scaled(nodes={"min": 2, "max": 4}), SUBNET, OTHER_SUBNET)
    row = judged(subnet(free=33), subnet(OTHER_SUBNET, zone="us-east-1b"), of=growing)
    assert row.verdict == "warn"
    assert "all 4 machines need 35" in row.found


def test_machines_that_run_already_have_their_addresses() -> None:
    assert judged(subnet(free=0), running=1).verdict == "ok"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vpc": "vpc-0bbbbbbbb"}, f"is in vpc-0bbbbbbbb, not in {VPC}"),
        ({"zone": "us-east-1d"}, "is in us-east-1d; the machines go to us-east-1a"),
        ({"way_out": ""}, "no default route"),
        ({"way_out": "igw-0aaaaaaaaaaaaaaaa"}, "public subnet"),
        ({"blackhole": True}, "which is gone"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    row = judged(subnet(**change))
    assert row.verdict == "no"
    assert words in row.found
    assert row.remedy


def test_endpoints_without_a_way_out_are_a_warning() -> None:
    row = judged(subnet(way_out=""), endpoints=frozenset({"ssm", "ssmmessages", "s3"}))
    assert row.verdict == "warn"
    assert judged(subnet(way_out=""), endpoints=frozenset({"ssm"})).verdict == "no"


def test_public_addresses_by_default_do_not_go_with_several_interfaces() -> None:
    """Field failure 20."""
    assert cluster(public_by_default=True).verdict == "warn"
    assert judged(subnet(public_by_default=True)).verdict == "ok"


def test_a_cluster_wants_two_zones() -> None:
    row = judged(subnet(), subnet(OTHER_SUBNET), of=CLUSTER)
    assert row.verdict == "no"
    assert "EKS wants two zones" in row.found


def given(routes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "ec2.describe_subnets": {
            "Subnets": [
                {
                    "SubnetId": SUBNET,
                    "VpcId": VPC,
                    "AvailabilityZone": "us-east-1a",
                    "AvailableIpAddressCount": 9,
                }
            ]
        },
        "ec2.describe_route_tables": {
            "RouteTables": [
                {"VpcId": VPC, "Associations": [{"Main": True}], "Routes": []},
                {"VpcId": VPC, "Associations": [{"SubnetId": SUBNET}], "Routes": routes},
            ]
        },
        "ec2.describe_instances": {"Reservations": []},
        "ec2.describe_vpc_endpoints": {"VpcEndpoints": []},
    } | more


DEFAULT = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-0a", "State": "active"}


@pytest.mark.parametrize(
    ("routes", "verdict"),
    [
        ([DEFAULT], "ok"),
        ([DEFAULT | {"State": "blackhole"}], "no"),
        ([{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}], "no"),
        ([{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-0a"}], "no"),
    ],
)
def test_answers_of_aws_are_read(routes: list[dict[str, Any]], verdict: str) -> None:
    [row] = network.check(scripted(given(routes)), HOST)
    assert row.verdict == verdict


def test_the_main_table_holds_for_subnets_without_one_of_their_own() -> None:
    main = {"VpcId": VPC, "Associations": [{"Main": True}], "Routes": [DEFAULT]}
    script = given([], **{"ec2.describe_route_tables": {"RouteTables": [main]}})
    assert network.check(scripted(script), HOST)[0].verdict == "ok"


def test_a_subnet_that_is_not_there_is_refused_by_name() -> None:
    script = given([], **{
        "ec2.describe_subnets": [
            Error("InvalidSubnetID.NotFound"),
            {"Subnets": [{"SubnetId": SUBNET, "VpcId": VPC, "AvailabilityZone": "us-east-1a"}]},
        ]
    })  # fmt: skip
    [row] = network.check(scripted(script), in_vpc(need(), SUBNET, OTHER_SUBNET))
    assert row.verdict == "no"
    assert OTHER_SUBNET in row.found


def own_vpc(**limits: float) -> dict[str, Any]:
    values = {"vpcs": 5, "gateways": 5, "nats": 5, "addresses": 5} | limits
    return {
        "ec2.describe_vpcs": {"Vpcs": [{"VpcId": VPC}] * 4},
        "ec2.describe_internet_gateways": {"InternetGateways": []},
        "ec2.describe_addresses": {"Addresses": [{"PublicIp": "192.0.2.1"}]},
        "ec2.describe_nat_gateways": {
            "NatGateways": [{"NatGatewayId": "nat-0a", "SubnetId": SUBNET}]
        },
        "ec2.describe_subnets": {"Subnets": [{"SubnetId": SUBNET}]},
        "service-quotas.get_service_quota": [
            {"Quota": {"Value": float(values[name])}}
            for name in ("vpcs", "gateways", "addresses", "nats")
        ],
    }


def test_room_for_a_vpc_of_our_own() -> None:
    [row] = network.check(scripted(own_vpc()), need())
    assert row.verdict == "ok"
    assert "VPCs 4 of 5" in row.found


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"vpcs": 4}, "4 of 4 VPCs"),
        ({"addresses": 1}, "1 of 1 Elastic IP addresses"),
        ({"nats": 1}, "1 of 1 NAT gateways in us-east-1a"),
        ({"gateways": 0}, "0 of 0 internet gateways"),
    ],
)
def test_a_limit_that_is_reached_is_refused(limits: dict[str, float], words: str) -> None:
    [row] = network.check(scripted(own_vpc(**limits)), need())
    assert row.verdict == "no"
    assert words in row.found
    assert "aws.network.vpc" in row.remedy


def test_the_vpc_that_the_stack_has_already_needs_no_room() -> None:
    mine = {"VpcId": VPC, "Tags": [{"Key": "specrack:stack", "Value": "chat-prototype"}]}
    [row] = network.check(scripted({"ec2.describe_vpcs": {"Vpcs": [mine]}}), need())
    assert row.verdict == "ok"
