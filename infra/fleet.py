"""Which machines a deployment gets: its ``fleet`` section over what the tier names."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from infra.catalog import Catalog, catalog
from infra.catalog.hardware import Instance
from infra.catalog.interfaces import Interface, plain, with_efa
from infra.errors import UnsupportedError
from infra.spec.model import Deployment, Fleet
from infra.spec.schedule import Schedule, parse

Orchestration = Literal["hosts", "eks"]


@dataclass(frozen=True, slots=True)
class ResolvedFleet:
    """The machines of a deployment on AWS.

    ``interfaces``: of each machine. ``schedule``: when they run; None for always.
    ``kubernetes``: the version of the cluster, for ``eks``.
    """

    region: str
    zone: str
    instance: Instance
    nodes_min: int
    nodes_max: int
    buy: str
    reservation: str | None
    schedule: Schedule | None
    orchestration: Orchestration
    kubernetes: str | None
    interfaces: tuple[Interface, ...]

    @property
    def duty(self) -> Decimal:
        """The share of the hours that the machines run."""
        return self.schedule.duty if self.schedule else Decimal(1)

    @property
    def accelerator_vendor(self) -> str:
        """``nvidia`` or ``aws`` (Neuron); decides drivers, images and device plugins."""
        return catalog().accelerators[self.instance.accelerator or ""].vendor

    @property
    def uses_efa(self) -> bool:
        return any(interface.kind != "interface" for interface in self.interfaces)


def resolve(deployment: Deployment, known: Catalog | None = None) -> ResolvedFleet:
    """The machines of ``deployment``, which must be at a site ``aws/<region>``.

    Raises UnsupportedError for another site, and for a machine that the tier cannot use;
    InputError for one that the catalogue does not know.
    """
    kind, _, region = deployment.site.partition("/")
    if kind != "aws":
        raise UnsupportedError(
            f"{deployment.name}: site {deployment.site} has no fleet of AWS machines"
        )
    known = known or catalog()
    tier = known.tier(deployment.tier)
    asked = deployment.fleet or Fleet()
    instance = known.instance(asked.instance or tier.nodes.instance)
    if instance.provider != "aws":
        raise UnsupportedError(
            f"{deployment.name}: fleet.instance {instance.name} is no machine of AWS",
            do=f"choose one such as {tier.nodes.instance}",
        )
    low, high = tier.nodes.min, tier.nodes.max
    if asked.nodes is not None:
        low, high = asked.nodes.min, asked.nodes.max
    if tier.orchestration == "hosts" and high > 1:
        raise UnsupportedError(
            f"{deployment.name}: tier {deployment.tier} is one machine, not {high} (fleet.nodes)",
            do="use tier scaled for more than one",
        )
    if tier.orchestration == "eks" and asked.schedule is not None:
        raise UnsupportedError(
            f"{deployment.name}: fleet.schedule does not work with tier {deployment.tier} yet",
            do="remove it, or use tier prototype",
        )
    return ResolvedFleet(
        region=region,
        zone=asked.zone or f"{region}a",
        instance=instance,
        nodes_min=low,
        nodes_max=high,
        buy=asked.buy,
        reservation=asked.reservation,
        schedule=parse(asked.schedule) if asked.schedule else None,
        orchestration=tier.orchestration,
        kubernetes=tier.kubernetes.version if tier.kubernetes else None,
        # One machine has nobody to talk to.
        interfaces=with_efa(instance) if tier.fabric == "efa" else plain(),
    )
