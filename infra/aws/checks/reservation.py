"""Reservations (ODCR) and Capacity Blocks: would the machines really get into it?

An id that does not fit is not always an error at AWS: a launch can go ahead without the reserved
capacity, which is then paid for and empty. So everything that must match is compared here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from infra.aws.ask import Aws
from infra.aws.checks.identity import identity
from infra.aws.checks.running import machines, own
from infra.aws.need import Need
from infra.aws.rows import Row, listed, no, ok, warn
from infra.aws.subjects import RESERVATION as SUBJECT
from infra.aws.subjects import UNUSED

#: Ours are: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations.html
PLATFORM, TENANCY = "Linux/UNIX", "default"
#: EC2 begins to stop what runs in a Capacity Block so long before its end (EC2 User Guide).
BLOCK_ENDS_EARLY = timedelta(minutes=30)
SOON = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as AWS describes it; ``free``: machines that may still start in it."""

    id: str
    owner: str
    state: str
    type: str
    zone: str
    platform: str
    tenancy: str
    total: int
    free: int
    match: str
    block: bool
    start: datetime | None
    end: datetime | None
    placement_group: str | None


def reservations(aws: Aws) -> list[Reservation]:
    """All reservations of the region that the account owns or shares. Raises AwsError."""
    return aws.once("reservations", lambda: _ask(aws))


def check(aws: Aws, need: Need) -> list[Row]:
    """The reservation that is named, and what else lies unused. Raises AwsError."""
    known = reservations(aws)
    rows = []
    if need.reserved:
        inside = [
            machine
            for machine in own(need, machines(aws, need.quota_code))
            if machine.reservation == need.reservation
        ]
        rows.append(
            judge(
                need,
                known,
                account=identity(aws).account,
                running_inside=len(inside),
                now=datetime.now(UTC),
            )
        )
    elsewhere = judge_elsewhere(need, known)
    return [*rows, elsewhere] if elsewhere else rows


def judge(
    need: Need,
    known: Sequence[Reservation],
    *,
    account: str,
    running_inside: int,
    now: datetime,
) -> Row:
    """The reservation that ``need`` names. ``running_inside``: this stack's machines in it."""
    found = next((entry for entry in known if entry.id == need.reservation), None)
    if found is None:
        return no(
            SUBJECT,
            f"{need.reservation} is not in account {account} in {need.region}, nor shared with it",
            _other(need, known) or "check fleet.reservation and the region of site",
        )
    return (
        _kind(need, found)
        or _place(need, found, known)
        or _time(found, now)
        or _room(need, found, running_inside)
        or _good(need, found, account, now)
    )


def _kind(need: Need, found: Reservation) -> Row | None:
    name = found.id
    if found.block != (need.buy == "capacity_block"):
        right = "capacity_block" if found.block else "reservation"
        kind = "a Capacity Block" if found.block else "an on-demand reservation"
        return no(SUBJECT, f"{name} is {kind}, not bought as such", f"set fleet.buy: {right}")
    if found.type != need.instance.name:
        return no(
            SUBJECT,
            f"{name} reserves {found.type}, not {need.instance.name}: it would stay empty",
            f"set fleet.instance: {found.type}, or name a reservation of {need.instance.name}",
        )
    if found.platform != PLATFORM:
        return no(
            SUBJECT,
            f"{name} is for {found.platform}; our machines run {PLATFORM}",
            f"reserve {need.instance.name} for {PLATFORM}",
        )
    if found.tenancy != TENANCY:
        return no(
            SUBJECT,
            f"{name} has tenancy {found.tenancy}; our machines have {TENANCY}",
            f"reserve {need.instance.name} with tenancy {TENANCY}",
        )
    if found.placement_group:
        group = found.placement_group.rsplit("/", 1)[-1]
        return no(
            SUBJECT,
            f"{name} belongs to placement group {group}, which our machines are not in",
            "reserve without a placement group; the stack makes its own where it helps",
        )
    return None


def _place(need: Need, found: Reservation, known: Sequence[Reservation]) -> Row | None:
    if found.zone == need.zone:
        return None
    return no(
        SUBJECT,
        f"{found.id} is in {found.zone}, the machines go to {need.zone}: it would stay empty",
        _other(need, known, zone=need.zone) or f"set fleet.zone: {found.zone}",
    )


def _time(found: Reservation, now: datetime) -> Row | None:
    name = found.id
    if found.state in ("expired", "cancelled", "failed", "payment-failed", "unsupported") or (
        found.end is not None and found.end <= now
    ):
        ended = f" since {_when(found.end)}" if found.end and found.end <= now else ""
        state = "expired" if found.state == "active" else found.state
        return no(SUBJECT, f"{name} is {state}{ended}", "name a reservation that is active")
    if found.state in ("scheduled", "pending", "payment-pending", "assessing", "delayed"):
        start = f": it starts {_when(found.start)}" if found.start else ""
        return no(SUBJECT, f"{name} is {found.state}{start}", "deploy when it is active")
    if found.state != "active":
        return no(SUBJECT, f"{name} is {found.state}", "name a reservation that is active")
    return None


def _room(need: Need, found: Reservation, running_inside: int) -> Row | None:
    room = found.free + running_inside
    if need.nodes_max > room:
        return no(
            SUBJECT,
            f"{found.id} has room for {room} of {need.nodes_max} machines "
            f"({found.free} of {found.total} free)",
            f"set fleet.nodes.max: {room}, or enlarge the reservation by {need.nodes_max - room}"
            if room
            else f"enlarge the reservation by {need.nodes_max}, or free it",
        )
    if need.nodes_peak > room:
        return no(
            SUBJECT,
            f"{found.id} is too full to start {need.surge} new beside the old "
            f"({found.free} of {found.total} free)",
            f"drain first (old machines go before new ones come), or enlarge it by "
            f"{need.nodes_peak - room}",
        )
    return None


def _good(need: Need, found: Reservation, account: str, now: datetime) -> Row:
    text = f"{found.id}: {found.free} of {found.total} free in {found.zone}, {found.match}"
    if found.owner != account:
        text += f", shared by account {found.owner}"
    if found.end is None:
        return ok(SUBJECT, text)
    end = found.end - BLOCK_ENDS_EARLY if found.block else found.end
    text += f", machines stop {_when(end)}"
    if end - now < SOON:
        return warn(SUBJECT, text, "extend it, or move to another before then")
    if found.free == 0 and need.surge == 0:
        text += "; full, so a replacement must drain first"
    return ok(SUBJECT, text)


def judge_elsewhere(need: Need, known: Sequence[Reservation]) -> Row | None:
    """Reserved machines of the type that nobody uses and that this deployment would not use."""
    unused = [entry for entry in _usable(need, known) if entry.id != need.reservation]
    if need.buy == "on_demand":
        # These are used without being named.
        taken = [entry for entry in unused if entry.match == "open" and entry.zone == need.zone]
        unused = [entry for entry in unused if entry not in taken]
        if taken and not unused:
            return ok(UNUSED, f"{_shown(taken)}: open, so machines here run in it")
    if not unused or need.buy == "capacity_block":
        return None
    first = unused[0]
    buy = "capacity_block" if first.block else "reservation"
    return warn(
        UNUSED,
        f"paid for and empty: {_shown(unused)}",
        f"set fleet: {{buy: {buy}, reservation: {first.id}, zone: {first.zone}}}",
    )


def _usable(need: Need, known: Sequence[Reservation]) -> list[Reservation]:
    return [
        entry
        for entry in known
        if entry.type == need.instance.name
        and entry.state == "active"
        and entry.free > 0
        and entry.platform == PLATFORM
        and entry.tenancy == TENANCY
        and not entry.placement_group
    ]


def _other(need: Need, known: Sequence[Reservation], zone: str | None = None) -> str:
    """The remedy that names a reservation which would do, or nothing."""
    for entry in _usable(need, known):
        if (
            entry.block == (need.buy == "capacity_block")
            and entry.free >= need.nodes_peak
            and zone in (None, entry.zone)
        ):
            return f"{entry.id} would do: {entry.free} free in {entry.zone}"
    return ""


def _shown(entries: Sequence[Reservation]) -> str:
    return listed([f"{entry.id} ({entry.free} in {entry.zone})" for entry in entries], most=3)


def _when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "at a time unknown"


def _ask(aws: Aws) -> list[Reservation]:
    entries = aws.pages("ec2", "describe_capacity_reservations", "CapacityReservations")
    return [
        Reservation(
            id=str(entry["CapacityReservationId"]),
            owner=str(entry.get("OwnerId") or ""),
            state=str(entry.get("State") or "unknown"),
            type=str(entry.get("InstanceType") or ""),
            zone=str(entry.get("AvailabilityZone") or ""),
            platform=str(entry.get("InstancePlatform") or PLATFORM),
            tenancy=str(entry.get("Tenancy") or TENANCY),
            total=int(entry.get("TotalInstanceCount") or 0),
            free=int(entry.get("AvailableInstanceCount") or 0),
            match=str(entry.get("InstanceMatchCriteria") or "open"),
            block=entry.get("ReservationType") == "capacity-block",
            start=_utc(entry.get("StartDate")),
            end=_utc(entry.get("EndDate")),
            placement_group=entry.get("PlacementGroupArn") or None,
        )
        for entry in entries
    ]


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment else None
