"""Single faults put into the stacks: each is caught at synth, long before AWS sees it.

A mutation changes the arguments of one resource while the stack is built, as a slip in the code of
a stack would. Caught means that building or judging the stack raises StackError with a line that
names the resource; ``needle`` is what the line must speak of. What only the provider knows (values
of enumerations, formats) is in tests/e2e/test_aws_validate.py.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from stacks.aws.core import Resource, StackError
from stacks.aws.values import Block, Ref
from tests.unit.stacks.aws.conftest import BASE, SCALED, build

Change = Callable[[dict[str, Any]], None]
BLOCK_FLEET = {"buy": "capacity_block", "reservation": "cr-0123456789abcdef0", "zone": "us-east-1a"}


@dataclass(frozen=True)
class Mutation:
    base: dict[str, Any]
    address: str
    change: Change
    needle: str


def into(*path: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The arguments of the block at ``path``; of the first, where there are several."""

    def walk(given: dict[str, Any]) -> dict[str, Any]:
        for key in path:
            value = given[key]
            block = value[0] if isinstance(value, list) else value
            assert isinstance(block, Block)
            given = block.given
        return given

    return walk


def put(*path: str, **values: Any) -> Change:
    """Set arguments, in the block at ``path``."""
    return lambda given: into(*path)(given).update(values)


def drop(key: str, *path: str) -> Change:
    def change(given: dict[str, Any]) -> None:
        del into(*path)(given)[key]

    return change


def rename(old: str, new: str, *path: str) -> Change:
    def change(given: dict[str, Any]) -> None:
        block = into(*path)(given)
        block[new] = block.pop(old)

    return change


def card(number: int, **values: Any) -> Change:
    """Change one network interface."""
    return lambda given: given["network_interfaces"][number].given.update(values)


def lose_card(number: int) -> Change:
    def change(given: dict[str, Any]) -> None:
        del given["network_interfaces"][number]

    return change


def policy(**values: Any) -> Change:
    """Change the last statement of a policy."""

    def change(given: dict[str, Any]) -> None:
        document = json.loads(given["policy"])
        document["Statement"][-1].update(values)
        given["policy"] = json.dumps(document)

    return change


def lost(key: str, suffix: str = "x") -> Change:
    """A reference that leads to a resource which is not there."""

    def change(given: dict[str, Any]) -> None:
        given[key] = str(given[key]).replace("}", "}").replace(".", f"{suffix}.", 1)

    return change


def text(key: str, value: str) -> Change:
    return lambda given: given.update({key: value})


P, S = BASE, SCALED
BLOCK = SCALED | {"fleet": BLOCK_FLEET}
SPOT = BASE | {"fleet": {"buy": "spot"}}
SERVER, GPU = "aws_instance.server", "aws_launch_template.gpu-template"
POOL, CLUSTER = "aws_eks_node_group.gpu-pool", "aws_eks_cluster.cluster"
CLIENTS = "aws_vpc_security_group_ingress_rule.clients-0"

MUTATIONS: dict[str, Mutation] = {
    # Keys
    "a misspelt argument": Mutation(P, SERVER, rename("ami", "amii"), "did you mean ami?"),
    "a misspelt argument of a block": Mutation(P, SERVER, rename("http_tokens", "http_token", "metadata_options"), "did you mean http_tokens?"),
    "a misspelt argument of a deep block": Mutation(S, GPU, rename("encrypted", "encrypt", "block_device_mappings", "ebs"), "did you mean encrypted?"),
    "an argument of another resource": Mutation(P, "aws_vpc.network", put(instance_type="p4d.24xlarge"), "instance_type: unknown argument"),
    "an argument that AWS chooses": Mutation(P, "aws_vpc.network", put(arn="arn:aws:ec2:::vpc/1"), "chosen by AWS"),
    "an argument that provider 6 dropped": Mutation(P, "aws_eip.nat-address", put(vpc=True), "vpc: unknown argument"),
    "a missing argument": Mutation(P, "aws_iam_role.server-role", drop("assume_role_policy"), "assume_role_policy: is missing"),
    "a missing argument of a pool": Mutation(S, POOL, drop("node_role_arn"), "node_role_arn: is missing"),
    "a missing argument of a block": Mutation(S, POOL, drop("max_size", "scaling_config"), "max_size: is missing"),
    "a missing block": Mutation(S, CLUSTER, drop("vpc_config"), "vpc_config: is missing"),
    "a missing group of a rule": Mutation(S, "aws_vpc_security_group_ingress_rule.efa-in", drop("security_group_id"), "security_group_id: is missing"),
    "a missing target": Mutation(P, "aws_scheduler_schedule.stop-hour", drop("target"), "target: is missing"),
    "two blocks where one is taken": Mutation(P, SERVER, lambda given: given.update(root_block_device=[given["root_block_device"]] * 2), "at most 1, got 2"),
    "a mapping where a block is taken": Mutation(P, SERVER, put(metadata_options={"http_tokens": "required"}), "must be a block"),
    # Types
    "text for a number": Mutation(P, SERVER, put("root_block_device", volume_size="200"), "must be a number"),
    "text for true": Mutation(P, SERVER, put(ebs_optimized="yes"), "must be true or false"),
    "a number for text": Mutation(P, "aws_vpc.network", put(cidr_block=10), "must be text"),
    "true for text": Mutation(S, GPU, put("block_device_mappings", "ebs", encrypted=True), "must be text"),
    "one text for a list": Mutation(P, SERVER, put(vpc_security_group_ids="sg-01234567"), "must be a list"),
    "a list for a mapping": Mutation(S, POOL, put(labels=["gpu"]), "must be a mapping"),
    "a number in a list of texts": Mutation(S, CLUSTER, put(enabled_cluster_log_types=["api", 5]), "must be text"),
    "a number in a mapping": Mutation(P, "aws_vpc.network", put(tags={"team": 5}), "must be text"),
    "a list of another resource": Mutation(P, SERVER, put(subnet_id=Ref("aws_vpc_endpoint.s3.route_table_ids", ["set", "string"])), "is a set of text"),
    # References
    "a subnet that is not there": Mutation(P, SERVER, lost("subnet_id"), "not in the stack"),
    "a role that is not there": Mutation(S, POOL, lost("node_role_arn"), "not in the stack"),
    "a key that is not there": Mutation(S, CLUSTER, put("encryption_config", "provider", key_arn="${aws_kms_key.secret-key.arn}"), "did you mean aws_kms_key.secrets-key?"),
    "an attribute that is not there": Mutation(P, "aws_iam_instance_profile.server-profile", text("role", "${aws_iam_role.server-role.nam}"), "no attribute nam"),
    "an attribute that is not there, inside a text": Mutation(P, "aws_iam_role_policy.hours-policy", policy(Resource=["${aws_instance.server.arnn}"]), "no attribute arnn"),
    "a data source that is not there": Mutation(P, SERVER, text("ami", "${data.aws_ssm_parameter.ami.value}"), "not in the stack"),
    # Who may come in
    "an open serving port": Mutation(P, CLIENTS, put(cidr_ipv4="0.0.0.0/0"), "whole internet"),
    "an open serving port, IPv6": Mutation(P, "aws_vpc_security_group_ingress_rule.clients-1", put(cidr_ipv6="::/0"), "whole internet"),
    "an SSH port": Mutation(P, CLIENTS, put(from_port=22, to_port=22), "port 22"),
    "an SSH port in a range": Mutation(P, CLIENTS, put(from_port=0, to_port=65535), "port 22"),
    "every port": Mutation(P, CLIENTS, put(ip_protocol="-1"), "port 22"),
    "a rule without a reason": Mutation(P, CLIENTS, drop("description"), "no description"),
    "an open Kubernetes API": Mutation(S, CLUSTER, put("vpc_config", public_access_cidrs=["0.0.0.0/0"]), "opens the API"),
    "a Kubernetes API without limits": Mutation(S, CLUSTER, drop("public_access_cidrs", "vpc_config"), "open to the internet"),
    "a Kubernetes API that nodes cannot reach": Mutation(S, CLUSTER, put("vpc_config", endpoint_private_access=False), "endpoint_private_access"),
    "a public address": Mutation(P, SERVER, put(associate_public_ip_address=True), "associate_public_ip_address"),
    "a public address by default": Mutation(P, SERVER, drop("associate_public_ip_address"), "associate_public_ip_address"),
    "a public address with several interfaces": Mutation(S, GPU, card(0, associate_public_ip_address="true"), "public address"),
    "a subnet that gives public addresses": Mutation(P, "aws_subnet.private-a", put(map_public_ip_on_launch=True), "map_public_ip_on_launch"),
    # What is kept safe
    "an unencrypted disk": Mutation(P, SERVER, put("root_block_device", encrypted=False), "not encrypted"),
    "an unencrypted disk by default": Mutation(S, GPU, drop("encrypted", "block_device_mappings", "ebs"), "not encrypted"),
    "an old kind of disk": Mutation(P, SERVER, put("root_block_device", volume_type="gp2"), "must be gp3"),
    "a disk that outlives its machine": Mutation(S, GPU, put("block_device_mappings", "ebs", delete_on_termination="false"), "outlives"),
    "metadata without a token": Mutation(P, SERVER, put("metadata_options", http_tokens="optional"), "IMDSv2"),
    "metadata over two hops": Mutation(P, SERVER, put("metadata_options", http_put_response_hop_limit=2), "hop_limit"),
    "no metadata options": Mutation(S, GPU, drop("metadata_options"), "IMDSv2"),
    "secrets of Kubernetes in the clear": Mutation(S, CLUSTER, drop("encryption_config"), "must cover secrets"),
    "a cluster without logs": Mutation(S, CLUSTER, put(enabled_cluster_log_types=[]), "audits need them"),
    "logs for ever": Mutation(P, "aws_cloudwatch_log_group.flows", drop("retention_in_days"), "for ever"),
    "a secret in user data": Mutation(P, SERVER, put(user_data="export HF_TOKEN=hf_abc"), "speaks of a secret"),
    "every action": Mutation(P, "aws_iam_role_policy.reading", policy(Action=["s3:*"]), "wildcard"),
    "every resource": Mutation(P, "aws_iam_role_policy.reading", policy(Resource=["*"]), "resource *"),
    "everything but": Mutation(P, "aws_iam_role_policy.hours-policy", policy(NotResource=["arn:aws:ec2:::x"]), "names"),
    "a role for anybody": Mutation(P, "aws_iam_role.server-role", lambda given: given.update(assume_role_policy=json.dumps({"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}]})), "anybody"),
    "an administrator": Mutation(P, "aws_iam_role_policy_attachment.session-manager", put(policy_arn="arn:aws:iam::aws:policy/AdministratorAccess"), "far more"),
    # What AWS would refuse, or drop
    "device index 0 on a further card": Mutation(S, GPU, card(1, device_index=0), "not in the layout"),
    "all interfaces on card 0": Mutation(S, GPU, card(2, network_card_index=1), "used 2 times"),
    "a card without its interface": Mutation(S, GPU, lose_card(3), "which is not used"),
    "no interface at the first place": Mutation(S, GPU, card(0, device_index=1), "no interface at card 0, device 0"),
    "a primary interface without addresses": Mutation(S, GPU, card(0, interface_type="efa-only"), "cannot be efa-only"),
    "a plain interface in place of EFA": Mutation(S, GPU, card(1, interface_type="interface"), "not in the layout"),
    "no card index": Mutation(S, GPU, lambda given: given["network_interfaces"][2].given.pop("network_card_index"), "network_card_index is missing"),
    "EFA that cannot hear itself": Mutation(S, "aws_vpc_security_group_ingress_rule.efa-in", put(referenced_security_group_id=None, cidr_ipv4="10.64.0.0/16", from_port=5000, to_port=5001, ip_protocol="tcp"), "in from itself"),
    "EFA that cannot speak to itself": Mutation(S, "aws_vpc_security_group_egress_rule.efa-out", put(ip_protocol="tcp"), "out to itself"),
    "EFA in another group": Mutation(S, GPU, lambda given: [one.given.update(security_groups=["sg-01234567"]) for one in given["network_interfaces"]], "itself"),
    "a placement group with a Capacity Block": Mutation(BLOCK, GPU, put(placement=Block(group_name="near")), "InsufficientInstanceCapacity"),
    "a Capacity Block without its id": Mutation(BLOCK, GPU, drop("capacity_reservation_specification"), "without a reservation's id"),
    "a preference that hides the reservation": Mutation(BLOCK, GPU, put("capacity_reservation_specification", capacity_reservation_preference="open"), "would be dropped"),
    "spot with a reservation": Mutation(SPOT, SERVER, put(capacity_reservation_specification=Block(capacity_reservation_target=Block(capacity_reservation_id="cr-01234567"))), "spot machines"),
    "a pool of another capacity type": Mutation(BLOCK, POOL, put(capacity_type="ON_DEMAND"), "must be CAPACITY_BLOCK"),
    "a pool over two subnets": Mutation(S, POOL, put(subnet_ids=["subnet-1", "subnet-2"]), "exactly one"),
    "a pool with fewer than its least": Mutation(S, POOL, put("scaling_config", desired_size=1), "min <= desired <= max"),
    "two instance types": Mutation(S, POOL, put(instance_types=["p4d.24xlarge"]), "beside the launch template"),
    "a route to nowhere": Mutation(P, "aws_route.private-out", drop("nat_gateway_id"), "exactly one target"),
    "rules inside a group": Mutation(P, "aws_security_group.server-group", put(ingress=[{"from_port": 1, "to_port": 2, "protocol": "tcp"}]), "inside the group"),
    "a default group that is open": Mutation(P, "aws_default_security_group.unused", put(ingress=[{"from_port": 0, "to_port": 0, "protocol": "-1", "self": True}]), "must stay empty"),
}  # fmt: skip


def test_there_are_enough_of_them() -> None:
    assert len(MUTATIONS) >= 60


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_is_caught_at_synth(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = MUTATIONS[name]
    applied = []
    take = Resource._take

    def mutated(self: Resource, scope: Any, id_: str, given: dict[str, Any]) -> None:
        if f"{self.TYPE}.{id_}" == mutation.address:
            given = {key: value for key, value in given.items() if value is not None}
            mutation.change(given)
            applied.append(name)
        take(self, scope, id_, given)

    monkeypatch.setattr(Resource, "_take", mutated)
    with pytest.raises(StackError) as caught:
        build(mutation.base)
    assert applied == [name]
    told = [line for line in caught.value.lines if mutation.needle in line]
    assert told, caught.value.lines
    assert any(mutation.address in line or "EFA" in name for line in told), told


def test_an_attribute_that_does_not_exist_fails_where_it_is_read() -> None:
    stack = build()
    vpc = next(part for part in stack.parts if part.address == "aws_vpc.network")
    with pytest.raises(AttributeError, match=r"aws_vpc\.network has no attribute idd.*mean id\?"):
        _ = vpc.idd
