"""Quotas count vCPUs by family; what runs, what is reserved and what comes on top are summed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.aws.checks import quota
from infra.aws.checks.quota import Quota, judge
from infra.aws.checks.running import counts
from infra.aws.need import Need
from infra.catalog import catalog
from tests.unit.aws.needs import need, reserved, scaled
from tests.unit.aws.scripted import Error, scripted

P = "Running On-Demand P instances"
IDENTITY = {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ann"}


def machine(kind: str = "p4d.24xlarge", *, stack: str = "other", **more: Any) -> dict[str, Any]:
    return {
        "InstanceId": "i-0aaaaaaaaaaaaaaaa",
        "InstanceType": kind,
        "CpuOptions": {"CoreCount": 48, "ThreadsPerCore": 2},
        "Tags": [{"Key": "specrack:stack", "Value": stack}],
    } | more


def account(limit: float, *machines: dict[str, Any], reservations: Any = ()) -> dict[str, Any]:
    return {
        "sts.get_caller_identity": IDENTITY,
        "service-quotas.get_service_quota": {"Quota": {"QuotaName": P, "Value": limit}},
        "ec2.describe_instances": {"Reservations": [{"Instances": list(machines)}]},
        "ec2.describe_capacity_reservations": {"CapacityReservations": list(reservations)},
    }


def asked(limit: float, *machines: dict[str, Any], of: Need | None = None, **more: Any) -> Any:
    return quota.check(scripted(account(limit, *machines, **more)), of or scaled())[0]


def test_no_quota_is_refused_with_the_command_that_asks_for_it() -> None:
    row = asked(0)
    assert row.verdict == "no"
    assert "0 of 0 vCPUs free" in row.found
    assert "enough for 0 of 2" in row.found
    assert "--quota-code L-417A185B --desired-value 192 --region us-east-1" in row.remedy


def test_quota_for_one_of_two_is_refused_and_says_so() -> None:
    row = asked(96)
    assert row.verdict == "no"
    assert "2 more p4d.24xlarge need 192: enough for 1 of 2" in row.found


def test_enough_for_the_least_but_not_for_the_most_is_a_warning() -> None:
    row = asked(288, of=scaled(nodes={"min": 2, "max": 4}))
    assert row.verdict == "warn"
    assert "it ends at 3" in row.found
    assert "--desired-value 384" in row.remedy


def test_what_others_run_is_not_free() -> None:
    row = asked(192, machine("p5.48xlarge", CpuOptions={}))
    assert row.verdict == "no"
    assert "0 of 192 vCPUs free" in row.found


def test_what_the_stack_runs_already_needs_no_quota_again() -> None:
    mine = machine(stack="chat-scaled")
    row = asked(192, mine, mine)
    assert row.verdict == "ok"
    assert "at most 0 more are needed" in row.found


def test_blue_and_green_are_summed() -> None:
    """While two new machines come up beside two old ones, four of them count."""
    mine = machine(stack="chat-scaled")
    upgrade = scaled(surge=2)
    row = asked(192, mine, mine, of=upgrade)
    assert row.verdict == "no"
    assert "2 more p4d.24xlarge need 192, 2 of them beside the old" in row.found
    assert "--desired-value 384" in row.remedy
    assert asked(384, mine, mine, of=upgrade).verdict == "ok"


def test_an_unused_reservation_draws_quota_too() -> None:
    unused = {
        "CapacityReservationId": "cr-0bbbbbbbbbbbbbbbb",
        "OwnerId": "123456789012",
        "InstanceType": "p4d.24xlarge",
        "State": "active",
        "TotalInstanceCount": 1,
        "AvailableInstanceCount": 1,
    }
    row = asked(192, reservations=[unused])
    assert row.verdict == "no"
    assert "96 of 192 vCPUs free" in row.found
    inside = machine(CapacityReservationId="cr-0bbbbbbbbbbbbbbbb")
    assert "96 of 192 vCPUs free" in asked(192, inside, reservations=[unused]).found
    theirs = unused | {"OwnerId": "999999999999"}
    assert asked(192, reservations=[theirs]).verdict == "ok"
    block = unused | {"ReservationType": "capacity-block"}
    assert asked(192, reservations=[block]).verdict == "ok"


def test_spot_has_a_quota_of_its_own_and_counts_spot_machines_only() -> None:
    wanted = need(fleet={"buy": "spot"})
    assert wanted.quota_code == "L-3819A6DF"
    row = asked(
        96,
        machine("g5.12xlarge", InstanceLifecycle="spot"),
        machine("g5.48xlarge"),
        of=wanted,
    )
    assert row.verdict == "ok"
    assert "48 of 96 vCPUs free" in row.found


def test_reserved_machines_draw_nothing_more() -> None:
    row, _ = quota.check(scripted(account(100)), reserved())
    assert row.verdict == "ok"
    assert "were counted when they were reserved" in row.found


def test_an_account_without_a_value_of_its_own_has_the_default() -> None:
    script = account(0) | {
        "service-quotas.get_service_quota": Error("NoSuchResourceException"),
        "service-quotas.get_aws_default_service_quota": {"Quota": {"QuotaName": P, "Value": 384}},
    }
    row, _ = quota.check(scripted(script), scaled())
    assert row.verdict == "ok"
    assert "384 of 384" in row.found


def test_a_quota_that_does_not_count_the_machine_decides_nothing() -> None:
    """P5 spot has a quota of its own: the one of P4 says nothing about it."""
    p5 = scaled(instance="p5.48xlarge", buy="spot")
    code = p5.quota_code
    if counts(code, "p5.48xlarge"):
        assert code == "L-C4BD4855"
        return
    row, _ = quota.check(scripted(account(1000)), p5)
    assert row.verdict == "unknown"


def test_a_cluster_needs_machines_without_accelerators_too() -> None:
    """A new account has 5 vCPUs for them; two m6i.xlarge need 8."""
    [row] = [row for row in asked_all(5) if row.subject == "quota (system)"]
    assert row.verdict == "no"
    assert "2 more m6i.xlarge need 8: enough for 1 of 2" in row.found
    assert "--quota-code L-1216C47A --desired-value 12" in row.remedy
    assert [row.subject for row in asked_all(5, of=need())] == ["quota"]


def asked_all(limit: float, of: Need | None = None) -> Any:
    return quota.check(scripted(account(limit)), of or scaled())


@pytest.mark.parametrize(
    "name",
    [name for name, row in catalog().instances.items() if row.provider == "aws"],
)
def test_the_on_demand_quota_of_every_machine_of_the_catalogue_counts_it(name: str) -> None:
    row = catalog().instance(name)
    assert row.quota is not None
    assert counts(row.quota.on_demand, name)
    assert row.quota.vcpu == row.vcpu


@given(
    limit=st.integers(0, 4000),
    used=st.integers(0, 4000),
    ours=st.integers(0, 4),
    low=st.integers(1, 4),
    more=st.integers(0, 4),
    surge=st.integers(0, 4),
)
def test_the_verdict_is_what_the_sum_says(
    limit: int, used: int, ours: int, low: int, more: int, surge: int
) -> None:
    wanted = scaled(nodes={"min": low, "max": low + more}, surge=surge)
    used = max(used, ours * 96)
    row = judge(quota.draw_of(wanted), Quota(P, limit, used, ours * 96))
    others = used - ours * 96
    least = others + max(ours, low + surge) * 96
    most = others + max(ours, low + more + surge) * 96
    # Machines that run already are never asked for again, even above the limit.
    fits_least = least <= limit or low + surge <= ours
    fits_most = most <= limit or low + more + surge <= ours
    expected = "no" if not fits_least else "ok" if fits_most else "warn"
    assert row.verdict == expected
    assert row.verdict == "ok" or f"--desired-value {most}" in row.remedy
