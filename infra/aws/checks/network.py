"""Subnets that are given, or the limits that a VPC of our own must fit into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.aws.ask import Aws
from infra.aws.checks.quota import limit_of
from infra.aws.checks.running import STACK_TAG, machines, own
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.rows import Row, no, ok, warn
from infra.aws.subjects import NETWORK

#: EKS puts its own interfaces into the cluster's subnets; the user guide asks for 16 free ones.
EKS_ADDRESSES = 16
#: (service, code, what) -> how many a VPC of ours takes.
#: Codes: public tools that ask for them by these, e.g. AWS's own quota monitors.
VPCS, GATEWAYS, NATS, ADDRESSES = (
    ("vpc", "L-F678F1CE", "VPCs"),
    ("vpc", "L-A4707A72", "internet gateways"),
    ("vpc", "L-FE5A380F", "NAT gateways in {zone}"),
    ("ec2", "L-0263D0A3", "Elastic IP addresses"),
)
#: Without a way out, a machine still is reachable by Session Manager through these.
SSM_ENDPOINTS = frozenset({"ssm", "ssmmessages"})


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet. ``way_out``: where its default route leads (``nat-...``, ``tgw-...``), or empty;
    ``blackhole``: the route leads to something that is gone."""

    id: str
    vpc: str
    zone: str
    free: int
    state: str
    public_by_default: bool
    way_out: str
    blackhole: bool = False


def check(aws: Aws, need: Need) -> list[Row]:
    """The network that is given, or room for one. Raises AwsError."""
    if need.makes_vpc:
        return check_limits(aws, need)
    subnets, missing = _subnets(aws, need)
    running = len(own(need, machines(aws, need.quota_code)))
    return [judge(need, subnets, missing, running=running, endpoints=_endpoints(aws, need))]


def judge(
    need: Need,
    subnets: Sequence[Subnet],
    missing: Sequence[str],
    *,
    running: int = 0,
    endpoints: frozenset[str] = frozenset(),
) -> Row:
    """The first thing that is wrong with the subnets, or that all is well.

    ``running``: machines of the stack that have their addresses. ``endpoints``: services with an
    interface endpoint in the VPC.
    """
    if missing:
        return no(
            NETWORK,
            f"{missing[0]} is not in this account in {need.region}",
            "list what there is: aws ec2 describe-subnets --filters Name=vpc-id,"
            f"Values={need.vpc} --region {need.region}",
        )
    first = subnets[0]
    for subnet in subnets:
        if subnet.vpc != need.vpc:
            return no(
                NETWORK,
                f"{subnet.id} is in {subnet.vpc}, not in {need.vpc}",
                "name subnets of aws.network.vpc",
            )
    if first.zone != need.zone:
        return no(
            NETWORK,
            f"{first.id} is in {first.zone}; the machines go to {need.zone}",
            f"put a subnet of {need.zone} first, or set fleet.zone: {first.zone}",
        )
    if need.orchestration == "eks" and len({subnet.zone for subnet in subnets}) < 2:
        return no(
            NETWORK,
            f"all are in {first.zone}; EKS wants two zones",
            "add a subnet of another zone to aws.network.subnets",
        )
    return (
        _addresses(need, first, running)
        or _way_out(need, subnets, endpoints)
        or ok(NETWORK, f"{first.id}: {first.free} addresses free, way out by {first.way_out}")
    )


def addresses_needed(need: Need, nodes: int, running: int) -> int:
    """Free addresses for ``nodes`` machines of which ``running`` have theirs."""
    own = max(0, nodes - running) * need.addresses_per_node
    if need.helpers is None or running:
        return own
    return own + EKS_ADDRESSES + need.helpers.nodes_peak


def _addresses(need: Need, first: Subnet, running: int) -> Row | None:
    least = addresses_needed(need, need.nodes_min + need.surge, running)
    most = addresses_needed(need, need.nodes_peak, running)
    each = f"{need.addresses_per_node} a machine"
    if need.orchestration == "eks":
        each += f", {EKS_ADDRESSES} for EKS, its system machines, pods on top"
    if first.free < least:
        return no(
            NETWORK,
            f"{first.id} has {first.free} free addresses; {least} are needed ({each})",
            "use a larger subnet, or free addresses in it",
        )
    if first.free < most:
        return warn(
            NETWORK,
            f"{first.id} has {first.free} free addresses; all {need.nodes_peak} machines need "
            f"{most} ({each})",
            "use a larger subnet, or lower fleet.nodes.max",
        )
    return None


def _way_out(need: Need, subnets: Sequence[Subnet], endpoints: frozenset[str]) -> Row | None:
    for subnet in subnets:
        if subnet.blackhole:
            return no(
                NETWORK,
                f"the default route of {subnet.id} leads to {subnet.way_out}, which is gone",
                "point it at a NAT gateway that exists",
            )
        if subnet.way_out.startswith("igw-"):
            return no(
                NETWORK,
                f"{subnet.id} is a public subnet; machines here have no public address, so "
                "no way out",
                "use a private subnet with a route to a NAT gateway",
            )
        if not subnet.way_out:
            if endpoints >= SSM_ENDPOINTS:
                return warn(
                    NETWORK,
                    f"{subnet.id} has no default route, only endpoints: models and packages must "
                    "come through them",
                    "keep the weights in aws.weights.bucket, with an S3 endpoint in the VPC",
                )
            return no(
                NETWORK,
                f"{subnet.id} has no default route: no packages, no models, no Session Manager",
                "route 0.0.0.0/0 to a NAT gateway",
            )
        if need.several_interfaces and subnet.public_by_default:
            return warn(
                NETWORK,
                f"{subnet.id} gives public addresses, which machines with several interfaces "
                "cannot have",
                "switch MapPublicIpOnLaunch off, or use a private subnet",
            )
    return None


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: how many there may be, are, and come on top."""

    what: str
    service: str
    code: str
    limit: int
    used: int
    more: int


def check_limits(aws: Aws, need: Need) -> list[Row]:
    """Room for a VPC with an internet gateway, a NAT gateway and its address. Raises AwsError."""
    vpcs = list(aws.pages("ec2", "describe_vpcs", "Vpcs"))
    # The stack's own VPC is there already: nothing comes on top.
    mine = any(
        tag.get("Key") == STACK_TAG and tag.get("Value") == need.stack_key
        for vpc in vpcs
        for tag in vpc.get("Tags") or ()
    )
    if mine:
        return [ok(NETWORK, "the stack's VPC is there already")]
    gateways = list(aws.pages("ec2", "describe_internet_gateways", "InternetGateways"))
    addresses = aws.call("ec2", "describe_addresses")["Addresses"]
    used = {VPCS: len(vpcs), GATEWAYS: len(gateways), ADDRESSES: len(addresses)}
    used[NATS] = _nat_gateways(aws, need)
    limits = []
    for key, count in used.items():
        service, code, what = key
        _, limit = limit_of(aws, service, code)
        limits.append(Limit(what.format(zone=need.zone), service, code, limit, count, 1))
    return [judge_limits(need, limits)]


def judge_limits(need: Need, limits: Sequence[Limit]) -> Row:
    """The first limit that is reached, or that there is room."""
    for entry in limits:
        if entry.used + entry.more > entry.limit:
            wanted = entry.used + entry.more
            return no(
                NETWORK,
                f"{entry.used} of {entry.limit} {entry.what} are in use; one more is needed",
                f"delete one, name an existing VPC (aws.network.vpc), or ask for {wanted}: "
                f"quota {entry.service} {entry.code}",
            )
    shown = ", ".join(f"{entry.what} {entry.used} of {entry.limit}" for entry in limits)
    return ok(NETWORK, f"room for one more of each: {shown}")


def _nat_gateways(aws: Aws, need: Need) -> int:
    """NAT gateways in the zone: the limit is by zone."""
    entries = aws.pages(
        "ec2",
        "describe_nat_gateways",
        "NatGateways",
        Filter=[{"Name": "state", "Values": ["pending", "available", "deleting"]}],
    )
    here = {
        str(entry["SubnetId"])
        for entry in aws.pages(
            "ec2",
            "describe_subnets",
            "Subnets",
            Filters=[{"Name": "availability-zone", "Values": [need.zone]}],
        )
    }
    return sum(entry.get("SubnetId") in here for entry in entries)


def _subnets(aws: Aws, need: Need) -> tuple[list[Subnet], list[str]]:
    """The subnets, in the order of the deployment file, and the ids that are not there."""
    try:
        entries = aws.call("ec2", "describe_subnets", SubnetIds=list(need.subnets))["Subnets"]
    except AwsError as error:
        if error.fault.code != "InvalidSubnetID.NotFound":
            raise
        # AWS names but one of them; ask by filter, which leaves out what is not there.
        entries = list(
            aws.pages(
                "ec2",
                "describe_subnets",
                "Subnets",
                Filters=[{"Name": "subnet-id", "Values": list(need.subnets)}],
            )
        )
    found = {str(entry["SubnetId"]): entry for entry in entries}
    missing = [name for name in need.subnets if name not in found]
    tables = (
        list(
            aws.pages(
                "ec2",
                "describe_route_tables",
                "RouteTables",
                Filters=[{"Name": "vpc-id", "Values": sorted({str(s["VpcId"]) for s in entries})}],
            )
        )
        if entries
        else []
    )
    subnets = []
    for name in need.subnets:
        if name not in found:
            continue
        entry = found[name]
        way_out, blackhole = _default_route(tables, name, str(entry["VpcId"]))
        subnets.append(
            Subnet(
                id=name,
                vpc=str(entry["VpcId"]),
                zone=str(entry["AvailabilityZone"]),
                free=int(entry.get("AvailableIpAddressCount") or 0),
                state=str(entry.get("State") or "available"),
                public_by_default=bool(entry.get("MapPublicIpOnLaunch")),
                way_out=way_out,
                blackhole=blackhole,
            )
        )
    return subnets, missing


_TARGETS = (
    "NatGatewayId",
    "TransitGatewayId",
    "GatewayId",
    "NetworkInterfaceId",
    "VpcPeeringConnectionId",
    "InstanceId",
    "CoreNetworkArn",
    "CarrierGatewayId",
    "LocalGatewayId",
)


def _default_route(tables: Sequence[dict[str, object]], subnet: str, vpc: str) -> tuple[str, bool]:
    """(target, is it gone?) of 0.0.0.0/0 in the subnet's table, else in the VPC's main one."""
    explicit: dict[str, object] | None = None
    main: dict[str, object] | None = None
    for table in tables:
        if table.get("VpcId") != vpc:
            continue
        for link in _dicts(table.get("Associations")):
            if link.get("SubnetId") == subnet:
                explicit = table
            elif link.get("Main"):
                main = table
    for route in _dicts((explicit or main or {}).get("Routes")):
        if route.get("DestinationCidrBlock") == "0.0.0.0/0":
            target = next((str(route[key]) for key in _TARGETS if route.get(key)), "unknown")
            return target, route.get("State") == "blackhole"
    return "", False


def _dicts(value: object) -> list[dict[str, object]]:
    return list(value) if isinstance(value, list) else []


def _endpoints(aws: Aws, need: Need) -> frozenset[str]:
    entries = aws.pages(
        "ec2",
        "describe_vpc_endpoints",
        "VpcEndpoints",
        Filters=[{"Name": "vpc-id", "Values": [str(need.vpc)]}],
    )
    return frozenset(
        str(entry["ServiceName"]).rpartition(".")[2]
        for entry in entries
        if str(entry.get("State") or "").lower() == "available"
    )
