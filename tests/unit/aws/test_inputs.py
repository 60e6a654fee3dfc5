"""The bucket of weights and the secret: there, in the region, and never read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from infra.aws.checks import inputs
from infra.aws.need import Need
from tests.unit.aws.needs import need
from tests.unit.aws.scripted import Error, scripted

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-token-AbCdEf"
ANY: Need = replace(need(), bucket="my-models", prefix="llama/", hub_secret=ARN)


def bucket(head: Any, listing: Any = None) -> Any:
    script = {"s3.head_bucket": head}
    if listing is not None:
        script["s3.list_objects_v2"] = listing
    [row] = inputs.check_weights(scripted(script), ANY)
    return row


def test_a_bucket_with_weights_is_good() -> None:
    row = bucket({"BucketRegion": "us-east-1"}, {"Contents": [{"Key": "llama/a"}]})
    assert row.verdict == "ok"
    assert "s3://my-models/llama/" in row.found


def test_a_bucket_without_weights_is_refused() -> None:
    row = bucket({"BucketRegion": "us-east-1"}, {"KeyCount": 0})
    assert row.verdict == "no"
    assert "is empty" in row.found


def test_a_bucket_elsewhere_is_a_warning() -> None:
    row = bucket({"BucketRegion": "eu-west-1"}, {"Contents": [{"Key": "llama/a"}]})
    assert row.verdict == "warn"
    assert "eu-west-1" in row.found


def test_a_bucket_that_is_not_there_is_refused() -> None:
    assert bucket(Error("404", status=404)).verdict == "no"


def test_a_bucket_that_this_identity_may_not_look_into_decides_nothing() -> None:
    row = bucket(Error("403", status=403))
    assert row.verdict == "unknown"
    assert "s3:ListBucket" in row.remedy


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"VersionIdsToStages": {"a" * 32: ["AWSCURRENT"]}}, "ok"),
        ({"VersionIdsToStages": {}}, "no"),
        (
            {
                "DeletedDate": datetime(2026, 1, 1, tzinfo=UTC),
                "VersionIdsToStages": {"a" * 32: ["AWSCURRENT"]},
            },
            "no",
        ),
        (Error("ResourceNotFoundException"), "no"),
    ],
)
def test_secrets(answer: Any, verdict: str) -> None:
    aws = scripted({"secretsmanager.describe_secret": answer})
    [row] = inputs.check_secret(aws, ANY)
    assert row.verdict == verdict
    assert "hub-token" in row.found
    assert aws.asked == {"secretsmanager:DescribeSecret"}


def test_what_is_not_named_has_no_row() -> None:
    assert inputs.check_weights(scripted({}), need()) == []
    assert inputs.check_secret(scripted({}), need()) == []
