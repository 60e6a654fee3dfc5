"""A deployment and its fleet become a question to the account."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infra.aws.need import need_of, other_zone
from infra.errors import InputError
from infra.fleet import resolve
from tests.unit.aws.needs import deployment, need, reserved, scaled


def test_the_prototype_is_one_machine_in_a_vpc_of_its_own() -> None:
    made = need()
    assert (made.instance.name, made.vcpus, made.nodes_max) == ("g5.12xlarge", 48, 1)
    assert (made.region, made.zone, made.stack_key) == ("us-east-1", "us-east-1a", "chat-prototype")
    assert made.makes_vpc
    assert made.quota_code == "L-DB2E81BA"
    assert (made.addresses_per_node, made.several_interfaces) == (1, False)
    assert (made.helpers, made.other_zone, made.kubernetes) == (None, None, None)


def test_a_cluster_has_system_machines_and_a_second_zone() -> None:
    made = scaled(zone="us-east-1b")
    assert made.helpers is not None
    assert made.other_zone == "us-east-1a"
    assert made.kubernetes == "1.35"
    assert made.machines == "2 x p4d.24xlarge"
    assert (made.addresses_per_node, made.several_interfaces) == (4, True)


def test_machines_of_an_upgrade_come_on_top() -> None:
    assert scaled(surge=2).nodes_peak == 4


def test_what_the_deployment_reads_is_asked_for() -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"
    made = need(aws={"weights": {"bucket": "my-models", "prefix": "a/"}, "hub_secret": arn})
    assert (made.bucket, made.prefix, made.hub_secret) == ("my-models", "a/", arn)


def test_spot_has_its_own_quota_and_reservations_are_known_as_such() -> None:
    assert need(fleet={"buy": "spot"}).quota_code == "L-3819A6DF"
    assert reserved().reserved
    assert not need().reserved


@pytest.mark.parametrize(("zone", "other"), [("us-east-1a", "us-east-1b"), ("x-1c", "x-1a")])
def test_the_second_zone_is_a_neighbour(zone: str, other: str) -> None:
    assert other_zone(zone) == other


def test_a_machine_whose_vcpus_are_unknown_is_a_clear_error() -> None:
    made = deployment()
    fleet = resolve(made)
    unknown = fleet.instance.model_copy(update={"vcpu": None})
    with pytest.raises(InputError, match="does not say how many vCPUs"):
        need_of(made, replace(fleet, instance=unknown))
