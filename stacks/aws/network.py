"""The network of a deployment: a VPC of its own, or an existing one."""

from __future__ import annotations

import json
from dataclasses import dataclass

from infra.spec.model import Network
from stacks.aws import resources as aws
from stacks.aws.stack import AwsStack, allow, statements, trusted

#: Of a VPC of our own: room for 16 subnets of 4,094 addresses.
VPC_CIDR = "10.64.0.0/16"
#: How long flow and audit logs are kept: incidents are found late.
LOG_DAYS = 365


@dataclass(frozen=True, slots=True)
class Place:
    """Where machines go. ``machines``: the subnet of those with accelerators; ``others``: more
    subnets in other zones, which a cluster's control plane needs."""

    vpc_id: str
    machines: str
    others: tuple[str, ...]


def place(stack: AwsStack, network: Network, *, zone: str, zones: int = 1) -> Place:
    """The subnets to use, in ``zones`` zones of which ``zone`` is the first."""
    if network.vpc is not None:
        return Place(network.vpc, network.subnets[0], tuple(network.subnets[1:]))
    return _own(stack, [zone, *_other_zones(zone)][:zones])


def _other_zones(zone: str) -> list[str]:
    """Neighbours of a zone, by letter."""
    region, letter = zone[:-1], zone[-1]
    return [f"{region}{other}" for other in "abcd" if other != letter]


def _own(stack: AwsStack, zones: list[str]) -> Place:
    """A VPC with private subnets that reach out through one NAT gateway."""
    vpc = aws.Vpc(
        stack,
        "network",
        cidr_block=VPC_CIDR,
        enable_dns_support=True,
        enable_dns_hostnames=True,
    )
    # Emptied: what is put nowhere else must not end in a group that is open inside.
    aws.DefaultSecurityGroup(stack, "unused", vpc_id=vpc.id)
    gateway = aws.InternetGateway(stack, "gateway", vpc_id=vpc.id)
    public = aws.Subnet(
        stack, "public", vpc_id=vpc.id, cidr_block="10.64.0.0/24", availability_zone=zones[0]
    )
    public_routes = aws.RouteTable(stack, "public-routes", vpc_id=vpc.id)
    to_internet = aws.Route(
        stack,
        "public-out",
        route_table_id=public_routes.id,
        destination_cidr_block="0.0.0.0/0",
        gateway_id=gateway.id,
    )
    aws.RouteTableAssociation(
        stack, "public-link", subnet_id=public.id, route_table_id=public_routes.id
    )
    address = aws.Eip(stack, "nat-address", domain="vpc")
    nat = aws.NatGateway(
        stack,
        "nat",
        allocation_id=address.id,
        subnet_id=public.id,
        depends_on=[to_internet],
    )
    routes = aws.RouteTable(stack, "private-routes", vpc_id=vpc.id)
    aws.Route(
        stack,
        "private-out",
        route_table_id=routes.id,
        destination_cidr_block="0.0.0.0/0",
        nat_gateway_id=nat.id,
    )
    subnets = []
    for number, zone in enumerate(zones):
        private = aws.Subnet(
            stack,
            f"private-{zone[-1]}",
            vpc_id=vpc.id,
            # 4,094 addresses: a p5 takes up to 32, and a cluster's pods theirs.
            cidr_block=f"10.64.{16 * (number + 1)}.0/20",
            availability_zone=zone,
        )
        aws.RouteTableAssociation(
            stack, f"private-{zone[-1]}-link", subnet_id=private.id, route_table_id=routes.id
        )
        subnets.append(private.id)
    # Weights come from S3: through the gateway endpoint they cost no NAT traffic.
    aws.VpcEndpoint(
        stack,
        "s3",
        vpc_id=vpc.id,
        service_name=f"com.amazonaws.{stack.region}.s3",
        vpc_endpoint_type="Gateway",
        route_table_ids=[routes.id],
    )
    _flow_log(stack, vpc)
    return Place(vpc.id, subnets[0], tuple(subnets[1:]))


def _flow_log(stack: AwsStack, vpc: aws.Vpc) -> None:
    """Who talked to whom: asked for after every incident."""
    logs = aws.CloudwatchLogGroup(
        stack, "flows", name=f"/specrack/{stack.key}/flows", retention_in_days=LOG_DAYS
    )
    role = aws.IamRole(
        stack,
        "flows-role",
        name=stack.named("flows"),
        assume_role_policy=json.dumps(trusted("vpc-flow-logs.amazonaws.com")),
    )
    aws.IamRolePolicy(
        stack,
        "flows-policy",
        name="write",
        role=role.name,
        policy=json.dumps(
            statements(
                allow(["logs:CreateLogStream", "logs:PutLogEvents"], [f"{logs.arn}:*"]),
                allow(["logs:DescribeLogStreams"], [logs.arn]),
            )
        ),
    )
    aws.FlowLog(
        stack,
        "flow-log",
        vpc_id=vpc.id,
        traffic_type="REJECT",
        iam_role_arn=role.arn,
        log_destination=logs.arn,
    )
