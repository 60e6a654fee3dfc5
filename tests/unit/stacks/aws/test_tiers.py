"""The AWS tiers: what they make, and what differs by machine, purchase and environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from infra.catalog import catalog
from infra.catalog.interfaces import with_efa
from infra.errors import UnsupportedError
from infra.fleet import resolve
from infra.state_backend import Backend
from stacks.aws.arguments import faults
from stacks.aws.core import StackError
from stacks.aws.schema import RESOURCE, _shape, known, shape_of
from stacks.aws.stack import Settings
from tests.unit.stacks.aws.conftest import BASE, SCALED, build, deployment, terraform

LATER = Path(__file__).parents[4] / "stacks/aws/schema/aws-6.25.json"
RESERVED = {"buy": "reservation", "reservation": "cr-0123456789abcdef0", "zone": "us-east-1b"}
BLOCK = RESERVED | {"buy": "capacity_block"}


def resources(stack: dict[str, Any]) -> dict[str, Any]:
    """Address -> arguments."""
    return {
        f"{type_}.{name}": arguments
        for type_, entries in stack["resource"].items()
        for name, arguments in entries.items()
    }


def test_the_prototype_tier(prototype: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    assert json.dumps(prototype, indent=2, sort_keys=True) == snapshot


def test_the_scaled_tier(scaled: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    assert json.dumps(scaled, indent=2, sort_keys=True) == snapshot


def test_an_existing_network_is_used_and_no_other_made(snapshot: SnapshotAssertion) -> None:
    network = {"vpc": "vpc-01234567", "subnets": ["subnet-01234567"]}
    made = terraform(build(aws={"network": network}, fleet={}))
    assert not {"aws_vpc", "aws_subnet", "aws_nat_gateway"} & made["resource"].keys()
    assert made["resource"]["aws_instance"]["server"]["subnet_id"] == "subnet-01234567"
    assert json.dumps(made, indent=2, sort_keys=True) == snapshot


def test_nobody_comes_in_who_is_not_named() -> None:
    made = terraform(build(aws={}))
    assert "aws_vpc_security_group_ingress_rule" not in made["resource"]


def test_everything_carries_its_address_and_the_tags_for_cost_allocation(
    prototype: dict[str, Any], scaled: dict[str, Any]
) -> None:
    for stack in (prototype, scaled):
        for address, arguments in resources(stack).items():
            type_ = address.partition(".")[0]
            if type_ in known(RESOURCE) and "tags" in shape_of(RESOURCE, type_).arguments:
                assert arguments["tags"]["specrack:address"] == address
    common = prototype["provider"]["aws"][0]["default_tags"][0]["tags"]
    assert common == {
        "team": "search", "cost_center": "42", "specrack:deployment": "chat",
        "specrack:stack": "chat-prototype", "specrack:env": "dev",
    }  # fmt: skip


def test_prod_is_protected_against_deletion(prototype: dict[str, Any]) -> None:
    assert resources(prototype)["aws_instance.server"]["disable_api_termination"] is False
    made = resources(terraform(build(env="prod")))["aws_instance.server"]
    assert made["disable_api_termination"] is True
    assert made["lifecycle"] == {"prevent_destroy": True}
    cluster = resources(terraform(build(SCALED, env="prod")))["aws_eks_cluster.cluster"]
    assert cluster["lifecycle"] == {"prevent_destroy": True}


def test_the_machine_runs_by_the_clock_of_its_users(prototype: dict[str, Any]) -> None:
    hours = prototype["resource"]["aws_scheduler_schedule"]
    assert hours["start-hour"]["schedule_expression"] == "cron(0 8 ? * MON-FRI *)"
    assert hours["stop-hour"]["schedule_expression"] == "cron(0 20 ? * MON-FRI *)"
    assert hours["stop-hour"]["schedule_expression_timezone"] == "Europe/Vienna"
    assert "aws_scheduler_schedule" not in terraform(build(fleet={}))["resource"]


@pytest.mark.parametrize(
    ("fleet", "market", "reservation"),
    [
        ({}, None, None),
        ({"buy": "spot"}, "spot", None),
        (RESERVED, None, "cr-0123456789abcdef0"),
        (BLOCK, "capacity-block", "cr-0123456789abcdef0"),
    ],
)
def test_a_machine_is_bought_as_asked(
    fleet: dict[str, str], market: str | None, reservation: str | None
) -> None:
    made = resources(terraform(build(fleet=fleet)))["aws_instance.server"]
    assert made.get("instance_market_options", {}).get("market_type") == market
    target = made.get("capacity_reservation_specification", {})
    assert target.get("capacity_reservation_target", {}).get("capacity_reservation_id") == (
        reservation
    )


@pytest.mark.parametrize(
    ("fleet", "capacity_type", "placed"),
    [
        ({}, "ON_DEMAND", True),
        ({"buy": "spot"}, "SPOT", False),
        (RESERVED, "ON_DEMAND", True),
        (BLOCK, "CAPACITY_BLOCK", False),
    ],
)
def test_a_pool_is_bought_as_asked(fleet: dict[str, str], capacity_type: str, placed: bool) -> None:
    """Capacity Blocks come placed by AWS: a placement group of ours would break the launch."""
    made = resources(terraform(build(SCALED, fleet=fleet)))
    assert made["aws_eks_node_group.gpu-pool"]["capacity_type"] == capacity_type
    assert ("aws_placement_group.nearby" in made) is placed
    assert ("placement" in made["aws_launch_template.gpu-template"]) is placed


AWS_MACHINES = [name for name, row in catalog().instances.items() if row.provider == "aws"]
EFA_MACHINES = [name for name in AWS_MACHINES if catalog().instances[name].efa_layout]


@pytest.mark.parametrize("name", AWS_MACHINES)
def test_every_machine_of_the_catalogue_makes_a_prototype(name: str) -> None:
    made = resources(terraform(build(fleet={"instance": name})))
    assert made["aws_instance.server"]["instance_type"] == name


@pytest.mark.parametrize("name", EFA_MACHINES)
def test_every_machine_with_efa_makes_a_pool_with_its_layout(name: str) -> None:
    made = resources(terraform(build(SCALED, fleet={"instance": name})))
    template = made["aws_launch_template.gpu-template"]
    cards = template["network_interfaces"]
    machine = catalog().instances[name]
    assert [
        (card["network_card_index"], card["device_index"], card["interface_type"]) for card in cards
    ] == [(one.card, one.device, one.kind) for one in with_efa(machine)]
    efa = [card for card in cards if card["interface_type"].startswith("efa")]
    assert len(efa) == machine.efa_interfaces
    assert not any("associate_public_ip_address" in card for card in cards)
    neuron = name.startswith("trn")
    pool = made["aws_eks_node_group.gpu-pool"]
    assert pool["ami_type"] == ("AL2023_x86_64_NEURON" if neuron else "AL2023_x86_64_NVIDIA")
    assert pool["taint"]["key"] == ("aws.amazon.com/neuron" if neuron else "nvidia.com/gpu")


def test_a_p4d_has_four_efa_interfaces_one_a_card(scaled: dict[str, Any]) -> None:
    cards = resources(scaled)["aws_launch_template.gpu-template"]["network_interfaces"]
    assert [(card["network_card_index"], card["device_index"]) for card in cards] == [
        (0, 0), (1, 1), (2, 1), (3, 1),
    ]  # fmt: skip
    assert {card["interface_type"] for card in cards} == {"efa"}


def test_the_machine_may_read_its_bucket_and_its_secret_and_nothing_else(
    prototype: dict[str, Any],
) -> None:
    found = resources(prototype)
    policies = [
        json.loads(arguments["policy"])
        for address, arguments in found.items()
        if address.startswith("aws_iam_role_policy.") and "server" in arguments["role"]
    ]
    allowed = {
        (action, resource)
        for policy in policies
        for rule in policy["Statement"]
        for action in rule["Action"]
        for resource in rule["Resource"]
    }
    assert allowed == {
        ("s3:ListBucket", "arn:aws:s3:::acme-models"),
        ("s3:GetObject", "arn:aws:s3:::acme-models/llama/*"),
        ("secretsmanager:GetSecretValue", BASE["aws"]["hub_secret"]),
    }
    attached = [
        arguments["policy_arn"]
        for address, arguments in found.items()
        if address.startswith("aws_iam_role_policy_attachment.")
    ]
    assert attached == ["arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"]


def test_state_in_a_bucket_is_locked_and_encrypted() -> None:
    backend = Backend("s3", "acme-state", "eu-west-1", "arn:aws:kms:eu-west-1:123456789012:key/1")
    settings = Settings(backend=backend, state_path="", endpoint=None, adopted={})
    made = terraform(build(settings=settings))["terraform"]["backend"]
    assert made == {
        "s3": {
            "bucket": "acme-state",
            "key": "specrack/chat-prototype.tfstate",
            "region": "eu-west-1",
            "encrypt": True,
            "kms_key_id": "arn:aws:kms:eu-west-1:123456789012:key/1",
            "use_lockfile": True,
        }
    }


def test_what_an_interrupted_deploy_left_is_imported() -> None:
    adopted = {"aws_vpc.network": "vpc-0abc", "aws_vpc.gone": "vpc-0def"}
    settings = Settings(backend=Backend(), state_path="/s", endpoint=None, adopted=adopted)
    made = terraform(build(settings=settings))
    assert made["import"] == [{"to": "aws_vpc.network", "id": "vpc-0abc"}]


@pytest.mark.parametrize("base", [BASE, SCALED], ids=["prototype", "scaled"])
def test_arguments_are_valid_for_provider_6_as_well(base: dict[str, Any]) -> None:
    later = json.loads(LATER.read_text())["resource"]
    stack = build(base)
    found = [
        f"{part.address}: {fault}"
        for part in stack.parts
        for fault in faults(_shape(later[part.TYPE]), part._given)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("base", "fleet", "told"),
    [
        (BASE, {"nodes": {"min": 1, "max": 2}}, "one machine"),
        (BASE, {"instance": "Standard_ND96isr_H100_v5"}, "no machine of AWS"),
        (SCALED, {"instance": "inf2.48xlarge"}, "has no EFA"),
        (SCALED, {"schedule": "daily 08-20"}, "does not work with tier scaled"),
    ],
)
def test_a_fleet_that_the_tier_cannot_be_is_refused(
    base: dict[str, Any], fleet: dict[str, Any], told: str
) -> None:
    with pytest.raises(UnsupportedError, match=told):
        resolve(deployment(base, fleet=fleet))


def test_faults_of_the_whole_stack_are_told_together() -> None:
    """Two rules broken in one stack: both are said, with deployment and address."""
    stack = build()
    for part in stack.parts:
        if part.address == "aws_instance.server":
            part._given["associate_public_ip_address"] = True
            part._given["metadata_options"].given["http_tokens"] = "optional"
    with pytest.raises(StackError) as caught:
        stack.finish()
    assert caught.value.lines == (
        "chat: aws_instance.server: associate_public_ip_address must be false",
        "chat: aws_instance.server: metadata_options.http_tokens must be required (IMDSv2)",
    )
