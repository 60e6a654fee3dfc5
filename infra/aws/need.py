"""What a deployment needs of an AWS account: the question that preflight asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infra.aws import actions
from infra.catalog.hardware import Instance
from infra.errors import InputError
from infra.fleet import Orchestration, ResolvedFleet
from infra.spec.model import Aws, Deployment

Buy = Literal["on_demand", "spot", "reservation", "capacity_block"]
_BUYS: dict[str, Buy] = {
    "on_demand": "on_demand",
    "spot": "spot",
    "reservation": "reservation",
    "capacity_block": "capacity_block",
}


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the lock file holds: an image for ``hosts``, a node release for ``eks``."""

    image: str | None = None
    kubernetes: str | None = None
    release_version: str | None = None


@dataclass(frozen=True, slots=True)
class Helpers:
    """The machines without accelerators that a cluster needs: as stacks/scaled.py makes them.

    ``nodes``: all the time; one more while they are updated. vCPUs: EC2's table of m6i.
    """

    instance: str = "m6i.xlarge"
    vcpus: int = 4
    nodes: int = 2
    quota_code: str = "L-1216C47A"

    @property
    def nodes_peak(self) -> int:
        return self.nodes + 1


@dataclass(frozen=True, slots=True)
class Need:
    """One stack's demand.

    ``surge``: machines that run beside the others while an upgrade or a replacement goes on.
    ``addresses_per_node``: IP addresses that a machine takes when it starts; pods come on top.
    ``makes_vpc``: a VPC of its own is made. ``kubernetes``: version of the cluster, for ``eks``.
    ``other_zone``: where the second subnet of our own VPC goes, for ``eks``.
    """

    deployment: str
    stack_key: str
    region: str
    zone: str
    instance: Instance
    vcpus: int
    nodes_min: int
    nodes_max: int
    surge: int
    buy: Buy
    reservation: str | None
    orchestration: Orchestration
    vendor: str
    addresses_per_node: int
    several_interfaces: bool
    vpc: str | None
    subnets: tuple[str, ...]
    pinned: Pinned
    kubernetes: str | None
    bucket: str | None
    prefix: str
    hub_secret: str | None
    actions: tuple[actions.Group, ...]
    helpers: Helpers | None = None
    other_zone: str | None = None

    @property
    def makes_vpc(self) -> bool:
        return self.vpc is None

    @property
    def reserved(self) -> bool:
        return self.buy in ("reservation", "capacity_block")

    @property
    def nodes_peak(self) -> int:
        """The most machines at one time."""
        return self.nodes_max + self.surge

    @property
    def quota_code(self) -> str:
        """The Service Quotas code that a machine bought in this way draws from."""
        if self.instance.quota is None:
            raise InputError(f"{self.instance.name}: the catalogue names no quota for it")
        return self.instance.quota.spot if self.buy == "spot" else self.instance.quota.on_demand

    @property
    def machines(self) -> str:
        """``2 to 4 x p4d.24xlarge``."""
        count = (
            f"{self.nodes_min}"
            if self.nodes_min == self.nodes_max
            else f"{self.nodes_min} to {self.nodes_max}"
        )
        return f"{count} x {self.instance.name}"


def need_of(
    deployment: Deployment,
    fleet: ResolvedFleet,
    *,
    pinned: Pinned | None = None,
    surge: int = 0,
) -> Need:
    """What ``deployment`` needs on ``fleet``.

    ``surge``: see ``Need``; 0 for a first deploy. Raises InputError for a machine of which the
    catalogue lacks what must be known.
    """
    vcpus = fleet.instance.vcpu
    if vcpus is None:
        raise InputError(f"{fleet.instance.name}: the catalogue does not say how many vCPUs it has")
    aws = deployment.aws or Aws()
    pinned = pinned or Pinned()
    return Need(
        deployment=deployment.name,
        stack_key=deployment.stack_key,
        region=fleet.region,
        zone=fleet.zone,
        instance=fleet.instance,
        vcpus=vcpus,
        nodes_min=fleet.nodes_min,
        nodes_max=fleet.nodes_max,
        surge=surge,
        buy=_BUYS[fleet.buy],
        reservation=fleet.reservation,
        orchestration=fleet.orchestration,
        vendor=fleet.accelerator_vendor,
        addresses_per_node=sum(interface.takes_address for interface in fleet.interfaces),
        several_interfaces=len(fleet.interfaces) > 1,
        vpc=aws.network.vpc,
        subnets=aws.network.subnets,
        pinned=pinned,
        kubernetes=pinned.kubernetes or fleet.kubernetes,
        bucket=aws.weights.bucket if aws.weights else None,
        prefix=aws.weights.prefix if aws.weights else "",
        hub_secret=aws.hub_secret,
        actions=actions.needed(parts_of(deployment, fleet)),
        helpers=Helpers() if fleet.orchestration == "eks" else None,
        other_zone=(
            other_zone(fleet.zone)
            if fleet.orchestration == "eks" and aws.network.vpc is None
            else None
        ),
    )


def parts_of(deployment: Deployment, fleet: ResolvedFleet) -> actions.Parts:
    """What decides which resources the stack of ``deployment`` has."""
    aws = deployment.aws or Aws()
    eks = fleet.orchestration == "eks"
    return actions.Parts(
        eks=eks,
        own_vpc=aws.network.vpc is None,
        spot=fleet.buy == "spot",
        placement_group=eks and fleet.buy in ("on_demand", "reservation"),
        schedule=fleet.schedule is not None,
        budget=deployment.budget is not None and bool(aws.alarm_emails),
        reads=aws.weights is not None or aws.hub_secret is not None,
        lustre=eks and aws.weights is not None and aws.weights.lustre_gib is not None,
    )


def other_zone(zone: str) -> str:
    """The second zone of our own VPC, as stacks/aws/network.py chooses it."""
    letter = next(other for other in "abcd" if other != zone[-1])
    return f"{zone[:-1]}{letter}"
