"""What no stack of ours may do. Judged at every synth, on all resources together.

Each rule is a function over the parts of a stack that yields faults, address first. They hold for
everybody's stacks, so that a change which opens, leaks or breaks is found in milliseconds and not
by AWS, an auditor or an attacker.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from infra.catalog import catalog
from infra.catalog.interfaces import Interface, with_efa

INGRESS, EGRESS = "aws_vpc_security_group_ingress_rule", "aws_vpc_security_group_egress_rule"
SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class Part:
    """A resource or data source: ``kind``, ``type``, name, and its arguments as plain values."""

    kind: str
    type: str
    name: str
    arguments: Mapping[str, Any]

    @property
    def address(self) -> str:
        return f"{'data.' if self.kind == 'data' else ''}{self.type}.{self.name}"

    def get(self, *path: str) -> Any:
        """The value at a path of blocks, the first of each; None where there is none."""
        value: Any = self.arguments
        for key in path:
            value = first(value)
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


def first(value: Any) -> Any:
    """A block may be written alone or in a list."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return (value[0] if value else None) if is_list else value


def each(value: Any) -> list[Any]:
    """Blocks as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, Mapping | str) else list(value)


def true(value: Any) -> bool:
    """Terraform takes booleans as text as well."""
    return value is True or value == "true"


Parts = Sequence[Part]
Rule = Callable[[Parts], Iterator[str]]


def broken(parts: Parts) -> Iterator[str]:
    """Every fault of every rule."""
    for rule in RULES:
        yield from rule(parts)


def _of(parts: Parts, *types: str) -> list[Part]:
    return [part for part in parts if part.kind == "resource" and part.type in types]


# --- who may come in -----------------------------------------------------------------------------


def no_open_ingress(parts: Parts) -> Iterator[str]:
    for part in _of(parts, INGRESS):
        for key in ("cidr_ipv4", "cidr_ipv6"):
            cidr = part.get(key)
            if isinstance(cidr, str) and "${" not in cidr and ip_network(cidr).prefixlen == 0:
                yield f"{part.address}: {key} {cidr} lets the whole internet in"


def no_ssh(parts: Parts) -> Iterator[str]:
    """Machines are reached through Session Manager."""
    for part in _of(parts, INGRESS):
        if part.get("referenced_security_group_id") is not None:
            continue
        low, high = part.get("from_port"), part.get("to_port")
        everything = str(part.get("ip_protocol")) == "-1"
        if everything or (low is not None and high is not None and low <= SSH_PORT <= high):
            yield f"{part.address}: opens port 22; machines are reached through Session Manager"


def rules_stand_alone(parts: Parts) -> Iterator[str]:
    """Rules inside a group fight with rules beside it."""
    for part in _of(parts, "aws_security_group"):
        for key in ("ingress", "egress"):
            if part.get(key) is not None:
                yield f"{part.address}: {key} inside the group; use a rule resource of its own"
    for part in _of(parts, "aws_default_security_group"):
        if part.get("ingress") is not None or part.get("egress") is not None:
            yield f"{part.address}: the default group must stay empty"


def descriptions(parts: Parts) -> Iterator[str]:
    for part in _of(parts, INGRESS, EGRESS, "aws_security_group"):
        if not part.get("description"):
            yield f"{part.address}: has no description of who may come, and why"


def no_public_addresses(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_subnet"):
        if true(part.get("map_public_ip_on_launch")):
            yield f"{part.address}: map_public_ip_on_launch gives every machine a public address"
    for part in _of(parts, "aws_instance"):
        if part.get("associate_public_ip_address") is not False:
            yield f"{part.address}: associate_public_ip_address must be false"
    for part in _of(parts, "aws_launch_template"):
        for number, card in enumerate(each(part.get("network_interfaces"))):
            if true(card.get("associate_public_ip_address")):
                yield (
                    f"{part.address}: network_interfaces[{number}]: a public address; AWS refuses "
                    "it with several interfaces"
                )


def api_is_not_open(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_eks_cluster"):
        network = first(part.get("vpc_config")) or {}
        if network.get("endpoint_public_access") is False:
            continue
        cidrs = each(network.get("public_access_cidrs"))
        if not cidrs:
            yield f"{part.address}: the API is open to the internet; name public_access_cidrs"
        for cidr in cidrs:
            if ip_network(cidr).prefixlen == 0:
                yield f"{part.address}: public_access_cidrs {cidr} opens the API to everybody"
        if network.get("endpoint_private_access") is not True:
            yield f"{part.address}: endpoint_private_access must be true, nodes use it"


# --- what is kept safe ---------------------------------------------------------------------------


def metadata_needs_a_token(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_instance", "aws_launch_template"):
        if part.get("metadata_options", "http_tokens") != "required":
            yield f"{part.address}: metadata_options.http_tokens must be required (IMDSv2)"
        hops = part.get("metadata_options", "http_put_response_hop_limit")
        # Two only where pods on a cluster's node ask for themselves.
        most = 2 if part.type == "aws_launch_template" else 1
        if hops is None or hops > most:
            yield f"{part.address}: metadata_options.http_put_response_hop_limit must be {most}"


def disks_are_encrypted(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_instance"):
        disks = each(part.get("root_block_device"))
        if not disks:
            yield f"{part.address}: has no root_block_device, so that its encryption is unknown"
        for disk in [*disks, *each(part.get("ebs_block_device"))]:
            yield from _disk(part, disk)
    for part in _of(parts, "aws_launch_template"):
        mappings = each(part.get("block_device_mappings"))
        if not mappings:
            yield f"{part.address}: has no block_device_mappings, so that encryption is unknown"
        for mapping in mappings:
            yield from _disk(part, first(mapping.get("ebs")) or {})


def _disk(part: Part, disk: Mapping[str, Any]) -> Iterator[str]:
    if not true(disk.get("encrypted")):
        yield f"{part.address}: a disk is not encrypted"
    if disk.get("volume_type") != "gp3":
        yield f"{part.address}: volume_type must be gp3, got {disk.get('volume_type')}"
    if part.type == "aws_launch_template" and not true(disk.get("delete_on_termination")):
        yield f"{part.address}: a disk outlives its machine; delete_on_termination must be true"


def secrets_of_kubernetes_are_encrypted(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_eks_cluster"):
        if "secrets" not in each(part.get("encryption_config", "resources")):
            yield f"{part.address}: encryption_config must cover secrets"
        if not part.get("enabled_cluster_log_types"):
            yield f"{part.address}: enabled_cluster_log_types is empty; audits need them"


def buckets_are_closed(parts: Parts) -> Iterator[str]:
    closing = (
        "aws_s3_bucket_public_access_block",
        "aws_s3_bucket_server_side_encryption_configuration",
        "aws_s3_bucket_versioning",
    )
    for part in _of(parts, "aws_s3_bucket"):
        for type_ in closing:
            names = [str(other.get("bucket")) for other in _of(parts, type_)]
            if not any(part.address in name for name in names):
                yield f"{part.address}: has no {type_}"


def logs_end(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_cloudwatch_log_group"):
        if not part.get("retention_in_days"):
            yield f"{part.address}: retention_in_days is missing; logs would be kept for ever"


def no_secrets_in_user_data(parts: Parts) -> Iterator[str]:
    """User data can be read by everything on the machine, and stands in the state."""
    for part in _of(parts, "aws_instance", "aws_launch_template"):
        text = str(part.get("user_data") or part.get("user_data_base64") or "").lower()
        if any(word in text for word in ("secret", "token", "password", "aws_access_key")):
            yield f"{part.address}: user_data speaks of a secret; let the machine fetch it"


#: Actions that know no resources. AWS's service authorization reference lists them so.
UNSCOPED = frozenset(
    {
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeAutoScalingInstances",
        "autoscaling:DescribeLaunchConfigurations",
        "autoscaling:DescribeScalingActivities",
        "autoscaling:DescribeTags",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeLaunchTemplateVersions",
        "ec2:GetInstanceTypesFromInstanceRequirements",
    }
)


def policies_are_narrow(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_iam_role_policy", "aws_iam_policy", "aws_s3_bucket_policy"):
        for rule in _statements(part.get("policy")):
            if rule.get("Effect") != "Allow":
                continue
            actions, resources = each(rule.get("Action")), each(rule.get("Resource"))
            for action in actions:
                if "*" in action:
                    yield f"{part.address}: action {action} holds a wildcard"
            if "*" in resources and not set(actions) <= UNSCOPED:
                yield f"{part.address}: resource * for {', '.join(sorted(set(actions) - UNSCOPED))}"
            if not resources and part.type != "aws_s3_bucket_policy":
                yield f"{part.address}: a statement names no resource"
            if "NotAction" in rule or "NotResource" in rule:
                yield f"{part.address}: allows all but what it names; name what it allows"
    for part in _of(parts, "aws_iam_role"):
        for rule in _statements(part.get("assume_role_policy")):
            principal = rule.get("Principal")
            if principal == "*" or (isinstance(principal, Mapping) and principal.get("AWS") == "*"):
                yield f"{part.address}: anybody may take the role"


def _statements(policy: Any) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(policy) if isinstance(policy, str) else policy
    except json.JSONDecodeError:
        return []
    return each(document.get("Statement")) if isinstance(document, Mapping) else []


def no_administrators(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_iam_role_policy_attachment"):
        arn = str(part.get("policy_arn"))
        if arn.rpartition("/")[2].endswith(
            ("AdministratorAccess", "FullAccess", "PowerUserAccess")
        ):
            yield f"{part.address}: {arn} gives far more than a machine needs"


# --- what AWS would refuse -----------------------------------------------------------------------


def interfaces_fit_the_machine(parts: Parts) -> Iterator[str]:
    """Cards and device indexes as the machine has them; wrong ones fail at launch."""
    machines = catalog().instances
    for part in _of(parts, "aws_launch_template"):
        cards = each(part.get("network_interfaces"))
        if not cards:
            continue
        places = [(card.get("network_card_index", 0), card.get("device_index")) for card in cards]
        for place, count in Counter(places).items():
            if count > 1:
                yield f"{part.address}: card {place[0]}, device {place[1]} is used {count} times"
        if (0, 0) not in places:
            yield f"{part.address}: no interface at card 0, device 0; a machine needs one there"
        for card in cards:
            primary = (card.get("network_card_index", 0), card.get("device_index")) == (0, 0)
            if primary and card.get("interface_type") == "efa-only":
                yield f"{part.address}: the primary interface cannot be efa-only"
        if any(card.get("network_card_index") is None for card in cards[1:]):
            yield f"{part.address}: network_card_index is missing; all would be on card 0"
        machine = machines.get(str(part.get("instance_type")))
        if machine is not None and any("efa" in str(card.get("interface_type")) for card in cards):
            have = {_interface(card) for card in cards}
            want = set(with_efa(machine))
            for wrong in sorted(have - want, key=lambda one: (one.card, one.device)):
                yield (
                    f"{part.address}: {wrong.kind} at card {wrong.card}, device {wrong.device} is "
                    f"not in the layout of {machine.name} ({machine.efa_layout})"
                )
            for missing in sorted(want - have, key=lambda one: (one.card, one.device)):
                yield (
                    f"{part.address}: {machine.name} has {missing.kind} at card {missing.card}, "
                    f"device {missing.device}, which is not used"
                )


def _interface(card: Mapping[str, Any]) -> Interface:
    return Interface(
        int(card.get("network_card_index") or 0),
        int(card.get("device_index") or 0),
        card.get("interface_type") or "interface",
    )


def efa_talks_to_itself(parts: Parts) -> Iterator[str]:
    """EFA needs a group that lets everything in from itself and out to itself."""
    groups = {
        text
        for part in _of(parts, "aws_launch_template")
        for card in each(part.get("network_interfaces"))
        if "efa" in str(card.get("interface_type"))
        for text in each(card.get("security_groups"))
    }
    if not groups:
        return
    for type_, word in ((INGRESS, "in from"), (EGRESS, "out to")):
        if not any(
            part.get("security_group_id") in groups
            and part.get("referenced_security_group_id") == part.get("security_group_id")
            and str(part.get("ip_protocol")) == "-1"
            for part in _of(parts, type_)
        ):
            yield (
                f"aws_launch_template: EFA interfaces are in no security group with a rule that "
                f"lets everything {word} itself"
            )


def capacity_is_really_used(parts: Parts) -> Iterator[str]:
    """A reservation that is named is one that the launch will use."""
    for part in _of(parts, "aws_instance", "aws_launch_template"):
        target = part.get(
            "capacity_reservation_specification",
            "capacity_reservation_target",
            "capacity_reservation_id",
        )
        preference = part.get(
            "capacity_reservation_specification", "capacity_reservation_preference"
        )
        market = part.get("instance_market_options", "market_type")
        if target is not None and preference is not None:
            yield (
                f"{part.address}: capacity_reservation_preference beside a reservation's id: AWS "
                "takes one of them, and the id would be dropped"
            )
        if market == "capacity-block":
            if target is None:
                yield f"{part.address}: market_type capacity-block without a reservation's id"
            if part.get("placement_group") or part.get("placement", "group_name"):
                yield (
                    f"{part.address}: a placement group with a Capacity Block ends in "
                    "InsufficientInstanceCapacity"
                )
        if market == "spot" and target is not None:
            yield f"{part.address}: spot machines cannot use a reservation; its id would be dropped"


def node_groups_fit(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_eks_node_group"):
        low, want, high = (
            part.get("scaling_config", key) for key in ("min_size", "desired_size", "max_size")
        )
        if not low <= want <= high:
            yield f"{part.address}: scaling_config must have min <= desired <= max"
        template = str(part.get("launch_template", "id"))
        for other in _of(parts, "aws_launch_template"):
            if other.address not in template:
                continue
            if other.get("instance_type") and part.get("instance_types"):
                yield f"{part.address}: instance_types beside the launch template's instance_type"
            market = other.get("instance_market_options", "market_type")
            want_capacity = {"capacity-block": "CAPACITY_BLOCK", "spot": "SPOT"}.get(market)
            if want_capacity and part.get("capacity_type") != want_capacity:
                yield f"{part.address}: capacity_type must be {want_capacity}, as the template's"
            if len(each(part.get("subnet_ids"))) != 1 and other.get("network_interfaces"):
                yield f"{part.address}: EFA works inside one subnet; name exactly one"


def routes_lead_somewhere(parts: Parts) -> Iterator[str]:
    for part in _of(parts, "aws_route"):
        targets = [key for key in part.arguments if key.endswith("_id") and key != "route_table_id"]
        if len(targets) != 1:
            yield f"{part.address}: needs exactly one target, has {', '.join(targets) or 'none'}"


RULES: tuple[Rule, ...] = (
    no_open_ingress,
    no_ssh,
    rules_stand_alone,
    descriptions,
    no_public_addresses,
    api_is_not_open,
    metadata_needs_a_token,
    disks_are_encrypted,
    secrets_of_kubernetes_are_encrypted,
    buckets_are_closed,
    logs_end,
    no_secrets_in_user_data,
    policies_are_narrow,
    no_administrators,
    interfaces_fit_the_machine,
    efa_talks_to_itself,
    capacity_is_really_used,
    node_groups_fit,
    routes_lead_somewhere,
)
