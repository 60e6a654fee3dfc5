"""A reservation is used only where everything matches; else it is refused, before a launch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from infra.aws.checks import reservation
from infra.aws.checks.reservation import Reservation, judge, judge_elsewhere
from infra.aws.need import Need
from infra.aws.rows import Row
from tests.unit.aws.needs import RESERVATION, need, reserved, scaled
from tests.unit.aws.scripted import scripted

ACCOUNT = "123456789012"
NOW = datetime(2026, 12, 4, 12, 0, tzinfo=UTC)


def entry(**changes: Any) -> Reservation:
    values: dict[str, Any] = {
        "id": RESERVATION,
        "owner": ACCOUNT,
        "state": "active",
        "type": "p4d.24xlarge",
        "zone": "us-east-1a",
        "platform": "Linux/UNIX",
        "tenancy": "default",
        "total": 2,
        "free": 2,
        "match": "targeted",
        "block": False,
        "start": None,
        "end": None,
        "placement_group": None,
    }
    return Reservation(**(values | changes))


def judged(*known: Reservation, of: Need | None = None, inside: int = 0) -> Row:
    return judge(of or reserved(), known, account=ACCOUNT, running_inside=inside, now=NOW)


def test_one_that_matches_is_good() -> None:
    row = judged(entry())
    assert row.verdict == "ok"
    assert "2 of 2 free in us-east-1a" in row.found


def test_an_open_one_may_be_named_too() -> None:
    assert judged(entry(match="open")).verdict == "ok"


def test_one_that_is_not_there_is_refused() -> None:
    row = judged()
    assert row.verdict == "no"
    assert f"{RESERVATION} is not in account {ACCOUNT} in us-east-1" in row.found


def test_one_in_another_zone_is_refused_and_the_zone_is_the_remedy() -> None:
    row = judged(entry(zone="us-east-1d"))
    assert row.verdict == "no"
    assert "is in us-east-1d, the machines go to us-east-1a" in row.found
    assert row.remedy == "set fleet.zone: us-east-1d"


def test_one_elsewhere_is_answered_with_one_that_would_do() -> None:
    other = entry(id="cr-0bbbbbbbbbbbbbbbb", zone="us-east-1a")
    row = judged(entry(zone="us-east-1d"), other)
    assert row.remedy == "cr-0bbbbbbbbbbbbbbbb would do: 2 free in us-east-1a"


def test_an_expired_block_is_refused() -> None:
    block = reserved(buy="capacity_block")
    past = NOW - timedelta(days=1)
    row = judged(entry(block=True, state="expired", end=past), of=block)
    assert row.verdict == "no"
    assert "is expired since 2026-12-03 12:00 UTC" in row.found
    # AWS may still call it active for a moment.
    assert judged(entry(block=True, end=past), of=block).verdict == "no"


def test_a_block_that_has_not_begun_is_refused_with_its_start() -> None:
    block = reserved(buy="capacity_block")
    start = NOW + timedelta(days=2)
    row = judged(entry(block=True, state="scheduled", start=start), of=block)
    assert row.verdict == "no"
    assert "it starts 2026-12-06 12:00 UTC" in row.found


def test_machines_of_a_block_stop_half_an_hour_before_its_end() -> None:
    block = reserved(buy="capacity_block")
    row = judged(entry(block=True, end=NOW + timedelta(days=3)), of=block)
    assert row.verdict == "ok"
    assert "machines stop 2026-12-07 11:30 UTC" in row.found
    assert judged(entry(block=True, end=NOW + timedelta(hours=5)), of=block).verdict == "warn"


def test_four_nodes_on_a_reservation_of_two_are_refused() -> None:
    row = judged(entry(), of=reserved(4))
    assert row.verdict == "no"
    assert "has room for 2 of 4 machines (2 of 2 free)" in row.found
    assert row.remedy == "set fleet.nodes.max: 2, or enlarge the reservation by 2"


def test_the_most_nodes_count_because_the_autoscaler_will_ask_for_them() -> None:
    growing = reserved(nodes={"min": 2, "max": 4})
    assert judged(entry(), of=growing).verdict == "no"
    assert judged(entry(total=4, free=4), of=growing).verdict == "ok"


def test_room_that_others_use_is_no_room() -> None:
    assert judged(entry(total=4, free=1)).verdict == "no"
    assert "enlarge the reservation by 2" in judged(entry(total=4, free=0)).remedy


def test_machines_of_the_stack_itself_have_their_room() -> None:
    row = judged(entry(free=0), inside=2)
    assert row.verdict == "ok"


def test_a_replacement_on_a_full_reservation_is_offered_to_drain_first() -> None:
    """Field failure 27: new before old needs headroom."""
    row = judged(entry(free=0), of=reserved(surge=1), inside=2)
    assert row.verdict == "no"
    assert "too full to start 1 new beside the old (0 of 2 free)" in row.found
    assert row.remedy.startswith("drain first")
    assert judged(entry(total=3, free=1), of=reserved(surge=1), inside=2).verdict == "ok"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "p5.48xlarge"}, "reserves p5.48xlarge, not p4d.24xlarge"),
        ({"platform": "Red Hat Enterprise Linux"}, "for Red Hat Enterprise Linux"),
        ({"tenancy": "dedicated"}, "tenancy dedicated"),
        ({"placement_group": "arn:aws:ec2:us-east-1:1:placement-group/pg"}, "group pg"),
        ({"state": "cancelled"}, "is cancelled"),
        ({"state": "payment-failed"}, "is payment-failed"),
        ({"state": "pending"}, "is pending"),
        ({"state": "unavailable"}, "is unavailable"),
        ({"block": True}, "is a Capacity Block"),
    ],
)
def test_what_does_not_match_is_refused_on_one_line(change: dict[str, Any], words: str) -> None:
    row = judged(entry(**change))
    assert row.verdict == "no"
    assert words in row.found
    assert row.remedy
    assert "\n" not in row.found + row.remedy


def test_a_reservation_is_no_block() -> None:
    row = judged(entry(), of=reserved(buy="capacity_block"))
    assert row.verdict == "no"
    assert row.remedy == "set fleet.buy: reservation"


def test_one_shared_by_another_account_is_good_and_named() -> None:
    row = judged(entry(owner="999999999999"))
    assert row.verdict == "ok"
    assert "shared by account 999999999999" in row.found


def test_unused_ones_in_another_zone_are_pointed_out() -> None:
    """Field failure 21: capacity that is paid for, one zone further."""
    row = judge_elsewhere(scaled(), [entry(zone="us-east-1d")])
    assert row is not None
    assert row.verdict == "warn"
    assert f"{RESERVATION} (2 in us-east-1d)" in row.found
    assert f"reservation: {RESERVATION}, zone: us-east-1d" in row.remedy


def test_an_open_one_here_is_used_without_a_word() -> None:
    row = judge_elsewhere(scaled(), [entry(match="open")])
    assert row is not None
    assert row.verdict == "ok"


@pytest.mark.parametrize(
    "change", [{"free": 0}, {"state": "expired"}, {"type": "p5.48xlarge"}, {"tenancy": "dedicated"}]
)
def test_what_cannot_be_used_is_not_pointed_out(change: dict[str, Any]) -> None:
    assert judge_elsewhere(scaled(), [entry(**change)]) is None


def test_answers_of_aws_are_read() -> None:
    script = {
        "sts.get_caller_identity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ann"},
        "ec2.describe_instances": {"Reservations": []},
        "ec2.describe_capacity_reservations": {
            "CapacityReservations": [
                {
                    "CapacityReservationId": RESERVATION,
                    "OwnerId": ACCOUNT,
                    "State": "active",
                    "InstanceType": "p4d.24xlarge",
                    "InstancePlatform": "Linux/UNIX",
                    "AvailabilityZone": "us-east-1d",
                    "Tenancy": "default",
                    "TotalInstanceCount": 2,
                    "AvailableInstanceCount": 2,
                    "InstanceMatchCriteria": "targeted",
                    "EndDate": datetime(2030, 1, 1, tzinfo=UTC),
                }
            ]
        },
    }
    rows = reservation.check(scripted(script), reserved())
    assert [row.verdict for row in rows] == ["no"]
    assert "us-east-1d" in rows[0].found


def test_without_a_reservation_there_is_no_row() -> None:
    script = {"ec2.describe_capacity_reservations": {"CapacityReservations": []}}
    assert reservation.check(scripted(script), need()) == []
