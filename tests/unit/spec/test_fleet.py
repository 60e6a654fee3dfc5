"""The parts of a deployment file that only clouds need: fleet, schedule, network, lock file."""

# ruff: noqa: E501

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import lock
from infra.commands.policy import policy
from infra.commands.tiers import markdown, tier_sums
from infra.errors import InputError
from infra.spec.loader import load_all, read_text
from infra.spec.schedule import parse
from tests.unit.stacks.aws.conftest import BASE, SCALED, deployment

ROOT = Path(__file__).parents[3]


def told(**changes: Any) -> list[str]:
    """What is said of a file with these keys changed, without the line."""
    text = json.dumps({**BASE, **changes}, indent=1)
    found = read_text(text, place="chat.yaml", stem="chat")
    return [f"{problem.key}: {problem.what}" for problem in found.problems]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"env": "prd"},
            "env: must be one of dev, staging, prod; got the text 'prd', did you mean prod?",
        ),
        (
            {"fleet": {"buy": "reservation"}},
            "fleet.reservation: is missing; buy: reservation needs its id (cr-...)",
        ),
        (
            {"fleet": {"reservation": "cr-01234567", "zone": "us-east-1a"}},
            "fleet.reservation: would be ignored with buy: on_demand; say buy: reservation",
        ),
        (
            {"fleet": {"buy": "capacity_block", "reservation": "cr-01234567"}},
            "fleet.zone: is missing; a reservation holds in one availability zone only",
        ),
        (
            {"fleet": {"nodes": {"min": 3, "max": 2}}},
            "fleet.nodes.min: must not be above max 2, got 3",
        ),
        (
            {"fleet": {"zone": "us-west-2a"}},
            "fleet.zone: must be a zone of us-east-1, such as us-east-1a; got us-west-2a",
        ),
        (
            {"fleet": {"schedule": "daily 20-08"}},
            "fleet.schedule: must end after it begins, got 20-08",
        ),
        (
            {"fleet": {"schedule": "daily 08-20 Mars/Base"}},
            "fleet.schedule: unknown time zone Mars/Base; write one such as Europe/Vienna",
        ),
        (
            {
                "fleet": {
                    "buy": "reservation",
                    "reservation": "cr-01234567",
                    "zone": "us-east-1a",
                    "schedule": "daily 08-20",
                }
            },
            "fleet.schedule: saves nothing with buy: reservation, which is paid around the clock",
        ),
        (
            {"aws": {"network": {"clients": ["0.0.0.0/0"]}}},
            "aws.network.clients.0: must not open to the whole internet; name who may come; got the text '0.0.0.0/0'",
        ),
        (
            {"aws": {"network": {"clients": ["10.0.0.1/8"]}}},
            "aws.network.clients.0: must be a network such as 10.20.0.0/16, without host bits; got the text '10.0.0.1/8'",
        ),
        (
            {"aws": {"network": {"vpc": "vpc-01234567"}}},
            "aws.network.subnets: is missing; name the private subnets of the VPC that may be used",
        ),
        (
            {"aws": {"weights": {"bucket": "models", "prefix": "llama"}}},
            "aws.weights.prefix: must be a prefix that ends with a slash, such as llama/; got the text 'llama'",
        ),
        (
            {"aws": {"weights": {"bucket": "models", "lustre_gib": 1300}}},
            "aws.weights.lustre_gib: must be 1200 or a multiple of 2400, got 1300",
        ),
        (
            {"aws": {"hub_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:*"}},
            "aws.hub_secret: must be the whole ARN of one secret in Secrets Manager, without wildcards; got the text 'arn:aws:secretsmanager:us-east-1:123456789012:secret:*'",
        ),
        (
            {"budget": None, "aws": {"alarm_emails": ["a@b.example"]}},
            "budget: is missing; aws.alarm_emails are told when it is passed",
        ),
        (
            {
                "tier": "local",
                "site": "local",
                "serving": {"engine": "llamacpp", "speculation": {"method": "none"}},
                "fleet": {},
            },
            "fleet: has no meaning at site local; remove it",
        ),
    ],
)
def test_a_fault_is_one_line_with_the_remedy(changes: dict[str, Any], line: str) -> None:
    assert line in told(**changes)


@given(st.sampled_from(["weekdays", "daily"]), st.integers(0, 23), st.integers(1, 24))
def test_a_schedule_runs_for_its_hours(days: str, start: int, end: int) -> None:
    text = f"{days} {start:02}-{end:02}"
    if start >= end:
        with pytest.raises(ValueError, match="must end after"):
            parse(text)
        return
    made = parse(text)
    assert made.hours_per_week == (end - start) * (5 if days == "weekdays" else 7)
    assert Decimal(0) < made.duty <= 1
    assert made.zone == "UTC"


def test_an_end_at_midnight_is_the_next_day() -> None:
    assert parse("weekdays 08-24").stop_cron == "cron(0 0 ? * TUE-SAT *)"
    assert parse("daily 06-24").stop_cron == "cron(0 0 * * ? *)"


# --- the lock file -------------------------------------------------------------------------------

IMAGE = lock.Image(id="ami-0123456789abcdef0", parameter="/aws/service/x", at="2026-12-04")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "deployments").mkdir()
    return tmp_path


def test_a_lock_file_is_read_as_it_was_written_and_is_no_deployment(root: Path) -> None:
    made = lock.Lock(aws=lock.AwsLock(region="us-east-1", image=IMAGE))
    path = lock.write(root, "chat", made)
    assert lock.read(root, "chat") == made
    assert path.read_text().startswith("# Written by `specrack lock chat`")
    (root / "deployments" / "chat.yaml").write_text(json.dumps(BASE))
    assert [one.name for one in load_all(root)] == ["chat"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "chat.lock.yaml"),
        ("version: 2", "version"),
        ("aws: {region: us-east-1, image: {id: latest, parameter: x, at: '2026'}}", "aws.image.id"),
        ("latest: true", "latest"),
    ],
)
def test_a_lock_file_that_cannot_be_used_is_told(text: str, said: str, root: Path) -> None:
    lock.path_of(root, "chat").write_text(text)
    with pytest.raises(InputError, match=said):
        lock.read(root, "chat")


def test_another_regions_image_is_not_used() -> None:
    made = lock.Lock(aws=lock.AwsLock(region="eu-west-1", image=IMAGE))
    with pytest.raises(InputError, match="run specrack lock chat"):
        lock.need_image(made, name="chat", region="us-east-1")
    assert lock.need_image(made, name="chat", region="eu-west-1") == IMAGE


# --- what follows from the catalogue -------------------------------------------------------------


def test_the_costs_page_shows_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "what-it-costs.md").read_text()
    assert markdown(tier_sums()) in page


def test_the_sums_are_those_of_the_list_prices() -> None:
    """The figures of the tier audit: 4,140.56; 32,058.16 and 64,116.31 USD a month."""
    sums = {one.name: [str(entry.cost.usd_per_month) for entry in one.sums] for one in tier_sums()}
    assert sums["prototype"] == ["4140.56"]
    assert sums["scaled"] == ["32058.16", "64116.31"]


@pytest.mark.parametrize("base", [BASE, SCALED])
def test_the_policy_of_a_deployer_is_narrow(base: dict[str, Any]) -> None:
    made = policy(deployment(base))
    size = len(json.dumps(made, separators=(",", ":")))
    assert size <= 6144, "larger than a managed policy may be"
    for statement in made["Statement"]:
        actions = statement["Action"]
        assert "*" not in "".join([actions] if isinstance(actions, str) else actions)
    iam = [one for one in made["Statement"] if "iam:CreateRole" in one["Action"]]
    assert [one["Resource"] for one in iam] == [
        f"arn:aws:iam::*:role/{base['name']}-{base['tier']}-*"
    ]
    passing = [one for one in made["Statement"] if one["Action"] == "iam:PassRole"]
    assert passing[0]["Condition"]["StringEquals"]["iam:PassedToService"]
