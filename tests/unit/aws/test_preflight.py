"""The whole table: what refuses, what stays open, and that it always comes back in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import exceptions as raised

from infra.aws import preflight, subjects
from infra.aws.actions import PREFLIGHT
from infra.aws.ask import Aws
from infra.aws.faults import AwsError, read
from infra.aws.need import Need
from infra.aws.rows import Report, ok
from infra.errors import EXIT_BAD_INPUT, EXIT_INCONCLUSIVE, EXIT_OK
from tests.unit.aws.needs import OTHER_SUBNET, RESERVATION, SUBNET, in_vpc, need, reserved, scaled
from tests.unit.aws.scripted import Error, scripted
from tests.unit.aws.test_network import DEFAULT, given

ACCOUNT = "123456789012"
IMAGE = {"ImageId": "ami-0aaaaaaaaaaaaaaaa", "State": "available", "Architecture": "x86_64"}
BLOCK = {
    "CapacityReservationId": RESERVATION,
    "OwnerId": ACCOUNT,
    "State": "active",
    "InstanceType": "p4d.24xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1a",
    "Tenancy": "default",
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 2,
    "ReservationType": "capacity-block",
    "InstanceMatchCriteria": "targeted",
    "EndDate": datetime(2099, 1, 1, tzinfo=UTC),
}
ODCR = {key: value for key, value in BLOCK.items() if key not in ("ReservationType", "EndDate")}


def account(wanted: Need, **changes: Any) -> dict[str, Any]:
    """An account in which all is well for ``wanted``; ``ec2__describe_images=...`` changes it."""
    script: dict[str, Any] = {
        "sts.get_caller_identity": {
            "Account": ACCOUNT,
            "Arn": f"arn:aws:iam::{ACCOUNT}:user/ann",
        },
        "service-quotas.get_service_quota": {
            "Quota": {"QuotaName": "Running On-Demand P instances", "Value": 1000.0}
        },
        "ec2.describe_availability_zones": {
            "AvailabilityZones": [{"ZoneName": "us-east-1a"}, {"ZoneName": "us-east-1d"}]
        },
        "ec2.describe_instance_type_offerings": {
            "InstanceTypeOfferings": [{"Location": "us-east-1a"}]
        },
        "ec2.describe_capacity_reservations": {"CapacityReservations": []},
        "ec2.describe_images": {"Images": [IMAGE | {"ImageOwnerAlias": "amazon"}]},
        "eks.describe_cluster_versions": {
            "clusterVersions": [{"clusterVersion": "1.35", "versionStatus": "STANDARD_SUPPORT"}]
        },
        "iam.simulate_principal_policy": [
            {
                "EvaluationResults": [
                    {"EvalActionName": action, "EvalDecision": "allowed"}
                    for action in group.actions
                ]
            }
            for group in wanted.actions
        ],
        "pricing.get_products": {"PriceList": []},
    } | given([DEFAULT])
    script["ec2.describe_subnets"] = {
        "Subnets": [
            {
                "SubnetId": name,
                "VpcId": wanted.vpc or "vpc-0aaaaaaaa",
                "AvailabilityZone": zone,
                "AvailableIpAddressCount": 200,
            }
            for name, zone in zip(wanted.subnets, ("us-east-1a", "us-east-1d"), strict=False)
        ]
    }
    script["ec2.describe_route_tables"] = {
        "RouteTables": [
            {
                "VpcId": "vpc-0aaaaaaaa",
                "Associations": [{"Main": True}],
                "Routes": [DEFAULT],
            }
        ]
    }
    return script | {name.replace("__", "."): value for name, value in changes.items()}


CLUSTER = in_vpc(scaled(), SUBNET, OTHER_SUBNET)


def report(wanted: Need = CLUSTER, **changes: Any) -> Report:
    return preflight.run(wanted, aws=scripted(account(wanted, **changes)))


def verdicts(made: Report) -> dict[str, str]:
    return {row.subject: row.verdict for row in made.rows}


def test_an_account_in_which_all_is_well() -> None:
    made = report()
    assert set(verdicts(made).values()) == {"ok"}
    assert (made.verdict, made.exit_status) == ("good", EXIT_OK)
    assert [row.subject for row in made.rows] == [
        "machines", "interfaces", "vCPUs", "identity", "zone", "quota", "quota (system)", "image",
        "kubernetes", "network", "permissions", "price",
    ]  # fmt: skip


def test_it_asks_nothing_that_changes_anything_and_nothing_that_the_docs_do_not_allow() -> None:
    seen: set[str] = set()
    block = in_vpc(reserved(buy="capacity_block"), SUBNET, OTHER_SUBNET)
    full = replace(
        CLUSTER,
        bucket="my-models",
        hub_secret="arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf",
    )
    for wanted in (CLUSTER, block, full, need(), need(fleet={"buy": "spot"})):
        aws = scripted(
            account(
                wanted,
                s3__head_bucket={},
                s3__list_objects_v2={"Contents": [{"Key": "a"}]},
                secretsmanager__describe_secret={"VersionIdsToStages": {"a" * 32: ["AWSCURRENT"]}},
                ec2__describe_vpcs={"Vpcs": []},
                ec2__describe_internet_gateways={"InternetGateways": []},
                ec2__describe_addresses={"Addresses": []},
                ec2__describe_nat_gateways={"NatGateways": []},
                ec2__describe_spot_price_history={"SpotPriceHistory": []},
            )
        )
        made = preflight.run(wanted, aws=aws)
        assert not [row for row in made.rows if row.verdict == "unknown"]
        seen |= aws.asked
    assert seen <= set(PREFLIGHT)
    reading = ("Describe", "Get", "List", "Simulate")
    assert all(action.partition(":")[2].startswith(reading) for action in PREFLIGHT)


NOT_OFFERED = {"InstanceTypeOfferings": [{"Location": "us-east-1d"}]}
DENIED = [
    {"EvaluationResults": [{"EvalActionName": "ec2:RunInstances", "EvalDecision": "implicitDeny"}]}
]


def quota_of(vcpus: int) -> dict[str, Any]:
    return {"Quota": {"QuotaName": "Running On-Demand instances", "Value": float(vcpus)}}


HOST = in_vpc(need())
NO_ADDRESSES = {
    "Subnets": [
        {
            "SubnetId": name,
            "VpcId": "vpc-0aaaaaaaa",
            "AvailabilityZone": zone,
            "AvailableIpAddressCount": 0,
        }
        for name, zone in ((SUBNET, "us-east-1a"), (OTHER_SUBNET, "us-east-1d"))
    ]
}
ON_RESERVATION = in_vpc(reserved(), SUBNET, OTHER_SUBNET)
FOUR_ON_RESERVATION = in_vpc(reserved(4), SUBNET, OTHER_SUBNET)
ON_BLOCK = in_vpc(reserved(buy="capacity_block"), SUBNET, OTHER_SUBNET)
EXPIRED = {"State": "expired", "EndDate": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("wanted", "changes", "subject", "words"),
    [
        (HOST, {"service-quotas__get_service_quota": quota_of(0)}, "quota", "enough for 0 of 1"),
        (
            CLUSTER,
            {"service-quotas__get_service_quota": quota_of(96)},
            "quota",
            "enough for 1 of 2",
        ),
        (
            CLUSTER,
            {"ec2__describe_instance_type_offerings": NOT_OFFERED},
            "zone",
            "only in us-east-1d",
        ),
        (
            ON_RESERVATION,
            {
                "ec2__describe_capacity_reservations": {
                    "CapacityReservations": [ODCR | {"AvailabilityZone": "us-east-1d"}]
                }
            },
            "reservation",
            "is in us-east-1d",
        ),
        (
            ON_BLOCK,
            {"ec2__describe_capacity_reservations": {"CapacityReservations": [BLOCK | EXPIRED]}},
            "reservation",
            "is expired",
        ),
        (
            FOUR_ON_RESERVATION,
            {"ec2__describe_capacity_reservations": {"CapacityReservations": [ODCR]}},
            "reservation",
            "room for 2 of 4",
        ),
        (
            CLUSTER,
            {"iam__simulate_principal_policy": DENIED * len(CLUSTER.actions)},
            "permissions",
            "may not ec2:RunInstances",
        ),
        (CLUSTER, {"ec2__describe_images": {"Images": []}}, "image", "no node release"),
        (CLUSTER, {"ec2__describe_subnets": NO_ADDRESSES}, "network", "0 free addresses"),
        (
            CLUSTER,
            {"sts__get_caller_identity": Error("ExpiredToken", status=403)},
            "identity",
            "have expired",
        ),
        (
            CLUSTER,
            {"sts__get_caller_identity": Error("InvalidClientTokenId", status=403)},
            "identity",
            "does not accept these credentials",
        ),
    ],
)
def test_each_of_these_is_refused_with_one_line_and_its_remedy(
    wanted: Need, changes: dict[str, Any], subject: str, words: str
) -> None:
    made = report(wanted, **changes)
    assert made.exit_status == EXIT_BAD_INPUT
    [row] = made.refused
    assert row.subject == subject
    assert words in row.found
    assert row.remedy
    assert "\n" not in row.found + row.remedy
    if subject != "identity":
        assert not made.undecided


def test_no_credentials_are_refused_and_nothing_else_is_asked() -> None:
    def make_client(service: str, region: str) -> Any:
        assert service == "sts"
        raise AwsError(read(raised.NoCredentialsError(), service=service, region=region))

    made = preflight.run(CLUSTER, aws=Aws("us-east-1", make_client=make_client))
    [row] = made.refused
    assert (row.subject, row.found) == ("identity", "no AWS credentials found")
    assert "aws sso login" in row.remedy
    assert made.exit_status == EXIT_BAD_INPUT
    asked = [row for row in made.rows if row.verdict == "skipped"]
    assert [row.subject for row in asked] == list(subjects.subjects(CLUSTER))


def test_a_throttled_row_is_open_and_so_is_the_whole() -> None:
    made = report(ec2__describe_availability_zones=Error("RequestLimitExceeded", status=503))
    [row] = made.undecided
    assert row.subject == "zone"
    assert row.found.startswith("throttled: ec2 throttled us (RequestLimitExceeded)")
    assert row.remedy == "wait a minute and run it again"
    assert made.exit_status == EXIT_INCONCLUSIVE
    assert verdicts(made)["quota"] == "ok"


def test_what_is_refused_outweighs_what_is_open() -> None:
    made = report(
        ec2__describe_availability_zones=Error("RequestLimitExceeded", status=503),
        ec2__describe_images={"Images": []},
    )
    assert made.exit_status == EXIT_BAD_INPUT


def test_a_call_that_is_not_allowed_leaves_its_row_open_and_says_which() -> None:
    message = (
        f"User: arn:aws:iam::{ACCOUNT}:user/ann is not authorized to perform: "
        "eks:DescribeClusterVersions on resource: *"
    )
    made = report(
        eks__describe_cluster_versions=Error("AccessDeniedException", message, status=403)
    )
    [row] = made.undecided
    assert "may not eks:DescribeClusterVersions" in row.found
    assert "allow eks:DescribeClusterVersions" in row.remedy


def test_a_region_that_is_not_enabled_is_told_from_wrong_keys() -> None:
    wanted = need(site="aws/ap-east-1")
    who = {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ann"}
    refused = Error("InvalidClientTokenId", status=403)

    class Regional(dict[str, Any]):
        pass

    clients = {
        "ap-east-1": scripted({"sts.get_caller_identity": refused}, "ap-east-1"),
        "us-east-1": scripted({"sts.get_caller_identity": who}),
    }
    aws = Aws(
        "ap-east-1",
        make_client=lambda service, region: clients[region].client(service, region),
    )
    made = preflight.run(wanted, aws=aws)
    [row] = made.refused
    assert row.subject == "region"
    assert "ap-east-1 is not enabled for account" in row.found
    assert "aws account enable-region --region-name ap-east-1" in row.remedy


def with_check(check: Callable[[Aws, Need], Any], **more: Any) -> Report:
    return preflight.run(
        CLUSTER, aws=scripted(account(CLUSTER)), checks=[(subjects.ZONE, check)], **more
    )


def test_a_check_that_hangs_does_not_hold_up_the_table() -> None:
    forever = threading.Event()

    def hang(aws: Aws, need: Need) -> Any:
        forever.wait(30)

    started = time.monotonic()
    made = with_check(hang, deadline_s=0.5)
    forever.set()
    assert time.monotonic() - started < 5
    [row] = made.undecided
    assert "no answer within" in row.found
    assert made.exit_status == EXIT_INCONCLUSIVE


def test_an_answer_that_is_not_understood_takes_no_other_row_with_it() -> None:
    def stumble(aws: Aws, need: Need) -> Any:
        raise KeyError("InstanceType")

    [row] = with_check(stumble).undecided
    assert "was not understood (KeyError: 'InstanceType')" in row.found


def test_checks_run_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=5)

    def meet(aws: Aws, need: Need) -> Any:
        meeting.wait()
        return [ok("met", "all of them")]

    names = (subjects.ZONE, subjects.QUOTA, subjects.PRICE)
    made = preflight.run(
        CLUSTER, aws=scripted(account(CLUSTER)), checks=[(name, meet) for name in names]
    )
    assert [row.subject for row in made.rows].count("met") == 3


def test_the_machine_form_has_all_rows() -> None:
    value = report(ec2__describe_images={"Images": []}).to_json()
    assert value["verdict"] == "refused"
    assert value["exit_status"] == 2
    assert {"subject", "verdict", "found", "remedy"} == set(value["rows"][0])
