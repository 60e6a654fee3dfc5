"""Which machines of a quota's families run already: shared by several checks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infra.aws.ask import Aws
from infra.aws.need import Need
from infra.catalog import catalog

STACK_TAG = "specrack:stack"

#: Quota code -> (names of types that draw from it, the same as patterns of EC2's filter).
#: Names of the quotas as AWS gives them: docs/preflight.md.
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "L-417A185B": (r"p\d", ("p*",)),
    "L-7212CCBC": (r"p[234]", ("p2*", "p3*", "p4*")),
    "L-C4BD4855": (r"p5", ("p5*",)),
    "L-DB2E81BA": (r"(?:g|gr|vt)\d", ("g*", "vt*")),
    "L-3819A6DF": (r"(?:g|gr|vt)\d", ("g*", "vt*")),
    "L-1945791B": (r"inf\d", ("inf*",)),
    "L-B5D1601B": (r"inf\d", ("inf*",)),
    "L-2C3B7624": (r"trn\d", ("trn*",)),
    "L-6B0D517C": (r"trn\d", ("trn*",)),
    "L-6E869C2A": (r"dl\d", ("dl*",)),
    "L-1216C47A": (r"[acdhimrtz]\d", tuple(f"{letter}*" for letter in "acdhimrtz")),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A pending or running machine. ``lifecycle``: empty for on demand, ``spot``,
    ``capacity-block``. ``reservation``: the reservation that it runs in."""

    id: str
    type: str
    vcpus: int
    lifecycle: str
    reservation: str | None
    stack: str | None


def counts(code: str, instance_type: str) -> bool:
    """Do machines of this type draw from the quota?"""
    pattern, _ = FAMILIES.get(code, (r"(?!)", ()))
    return re.match(pattern, instance_type) is not None


def machines(aws: Aws, code: str) -> list[Machine]:
    """Pending and running machines of the families of the quota ``code``. Raises AwsError."""
    return aws.once(f"machines {code}", lambda: _ask(aws, code))


def own(need: Need, running: list[Machine], instance: str | None = None) -> list[Machine]:
    """Those of the stack itself of one type; the one with accelerators when left out."""
    name = instance or need.instance.name
    return [
        machine for machine in running if machine.stack == need.stack_key and machine.type == name
    ]


def _ask(aws: Aws, code: str) -> list[Machine]:
    _, patterns = FAMILIES.get(code, ("", ("*",)))
    found = []
    reservations = aws.pages(
        "ec2",
        "describe_instances",
        "Reservations",
        Filters=[
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
            {"Name": "instance-type", "Values": list(patterns)},
        ],
    )
    for reservation in reservations:
        for entry in reservation.get("Instances") or ():
            tags = {tag["Key"]: tag["Value"] for tag in entry.get("Tags") or ()}
            options = entry.get("CpuOptions") or {}
            kind = str(entry["InstanceType"])
            found.append(
                Machine(
                    id=str(entry["InstanceId"]),
                    type=kind,
                    vcpus=vcpus_of(kind)
                    or int(options.get("CoreCount", 0)) * int(options.get("ThreadsPerCore", 1)),
                    lifecycle=str(entry.get("InstanceLifecycle") or ""),
                    reservation=entry.get("CapacityReservationId"),
                    stack=tags.get(STACK_TAG),
                )
            )
    return found


def vcpus_of(instance_type: str) -> int | None:
    """From the catalogue: a quota counts a type's vCPUs, whatever CPU options a machine has."""
    row = catalog().instances.get(instance_type)
    return row.vcpu if row else None
