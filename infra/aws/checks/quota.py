"""Quotas, counted in vCPUs by family: what runs, what is reserved, what comes on top.

Running machines and on-demand reservations draw from the same quota, a reservation whether or not
it is used (EC2 User Guide, "On-Demand Instance quotas"); machines inside a reservation of the
account are not counted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.aws.ask import Aws
from infra.aws.checks.identity import identity
from infra.aws.checks.reservation import Reservation, reservations
from infra.aws.checks.running import Machine, counts, machines, own, vcpus_of
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.rows import Row, no, ok, unknown, warn
from infra.aws.subjects import HELPERS, RESERVED
from infra.aws.subjects import QUOTA as SUBJECT

#: Reservations in these states count (EC2 User Guide, "Capacity Reservation quotas").
_COUNTED = frozenset({"assessing", "scheduled", "pending", "active", "delayed"})


@dataclass(frozen=True, slots=True)
class Quota:
    """In vCPUs. ``used``: by everybody in the account; ``ours``: by this stack, part of it."""

    name: str
    limit: int
    used: int
    ours: int


@dataclass(frozen=True, slots=True)
class Draw:
    """What one kind of machine draws: from ``least`` to ``most`` of them, ``surge`` of them beside
    the old ones."""

    subject: str
    instance: str
    vcpus: int
    code: str
    region: str
    least: int
    most: int
    surge: int


def check(aws: Aws, need: Need) -> list[Row]:
    """The quotas that the machines draw from. Raises AwsError."""
    rows = []
    if need.reserved:
        rows.append(ok(SUBJECT, f"none is drawn now: {RESERVED[need.buy]}"))
    elif not counts(need.quota_code, need.instance.name):
        rows.append(
            unknown(
                SUBJECT,
                f"quota {need.quota_code} of the catalogue does not count {need.instance.name}",
                f"mend the quota of {need.instance.name} in infra/catalog/data/instances/",
            )
        )
    else:
        rows.append(_row(aws, need, draw_of(need)))
    helpers = helpers_of(need)
    if helpers is not None:
        rows.append(_row(aws, need, helpers))
    return rows


def draw_of(need: Need) -> Draw:
    """Of the machines with accelerators."""
    return Draw(
        subject=SUBJECT,
        instance=need.instance.name,
        vcpus=need.vcpus,
        code=need.quota_code,
        region=need.region,
        least=need.nodes_min + need.surge,
        most=need.nodes_peak,
        surge=need.surge,
    )


def helpers_of(need: Need) -> Draw | None:
    """Of the machines without, which a cluster needs too; new accounts have few vCPUs for them."""
    if need.helpers is None:
        return None
    return Draw(
        subject=HELPERS,
        instance=need.helpers.instance,
        vcpus=need.helpers.vcpus,
        code=need.helpers.quota_code,
        region=need.region,
        least=need.helpers.nodes,
        most=need.helpers.nodes_peak,
        surge=0,
    )


def _row(aws: Aws, need: Need, draw: Draw) -> Row:
    name, limit = limit_of(aws, "ec2", draw.code)
    running = machines(aws, draw.code)
    if need.buy == "spot" and draw.code == need.quota_code:
        used = used_spot(draw.code, running)
    else:
        account = identity(aws).account
        used = used_on_demand(draw.code, running, reservations(aws), account=account)
    mine = own(need, running, draw.instance)
    ours = sum(machine.vcpus for machine in mine if not machine.reservation)
    return judge(draw, Quota(name, limit, used, ours))


def judge(draw: Draw, quota: Quota) -> Row:
    """Blue and green summed: what runs stays, what is asked for comes on top of it."""
    # Below 0 when AWS lowered the quota: what runs goes on.
    free = max(0, quota.limit - quota.used)
    to_start = max(0, draw.least * draw.vcpus - quota.ours)
    at_most = max(0, draw.most * draw.vcpus - quota.ours)
    state = f"{free} of {quota.limit} vCPUs free in {quota.name} ({draw.code})"
    wanted = quota.used + at_most
    remedy = (
        f"ask for {wanted}: aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {draw.code} --desired-value {wanted} --region {draw.region}"
    )
    beside = f", {draw.surge} of them beside the old" if draw.surge else ""
    if to_start > free:
        count = -(-to_start // draw.vcpus)
        return no(
            draw.subject,
            f"{state}; {count} more {draw.instance} need {to_start}{beside}: "
            f"enough for {free // draw.vcpus} of {count}",
            remedy,
        )
    if at_most > free:
        enough = draw.least + (free - to_start) // draw.vcpus
        return warn(
            draw.subject,
            f"{state}; all {draw.most} {draw.instance} need {at_most} more{beside}: "
            f"it ends at {enough}",
            remedy,
        )
    return ok(draw.subject, f"{state}; at most {at_most} more are needed")


def used_spot(code: str, running: Sequence[Machine]) -> int:
    """vCPUs of spot machines that draw from ``code``."""
    return sum(
        machine.vcpus
        for machine in running
        if machine.lifecycle == "spot" and counts(code, machine.type)
    )


def used_on_demand(
    code: str, running: Sequence[Machine], known: Sequence[Reservation], *, account: str
) -> int:
    """vCPUs of on-demand machines outside our reservations, and of those reservations."""
    counted = [
        entry
        for entry in known
        if entry.owner == account
        and not entry.block
        and entry.state in _COUNTED
        and counts(code, entry.type)
    ]
    ids = {entry.id for entry in counted}
    outside = [
        machine
        for machine in running
        if machine.lifecycle == "" and counts(code, machine.type) and machine.reservation not in ids
    ]
    sizes = {machine.type: machine.vcpus for machine in running}
    return sum(machine.vcpus for machine in outside) + sum(
        entry.total * (vcpus_of(entry.type) or sizes.get(entry.type, 0)) for entry in counted
    )


def limit_of(aws: Aws, service: str, code: str) -> tuple[str, int]:
    """(name, value) of a quota: the account's own value, else AWS's default. Raises AwsError."""
    request = {"ServiceCode": service, "QuotaCode": code}
    try:
        answer = aws.call("service-quotas", "get_service_quota", **request)
    except AwsError as error:
        if error.fault.code != "NoSuchResourceException":
            raise
        answer = aws.call("service-quotas", "get_aws_default_service_quota", **request)
    quota = answer["Quota"]
    return str(quota.get("QuotaName") or code), int(quota["Value"])
