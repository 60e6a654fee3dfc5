"""What the machines read: the bucket of weights, and the one secret. Values are never read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from infra.aws.ask import Aws
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.rows import Row, no, ok, unknown, warn
from infra.aws.subjects import SECRET, WEIGHTS


@dataclass(frozen=True, slots=True)
class Bucket:
    """``region``: where it is, or empty when AWS does not say. ``holds``: anything at the
    prefix?"""

    region: str
    holds: bool


def check_weights(aws: Aws, need: Need) -> list[Row]:
    """The bucket, if one is named. Raises AwsError."""
    name = need.bucket
    if name is None:
        return []
    try:
        region = str(aws.call("s3", "head_bucket", Bucket=name).get("BucketRegion") or "")
    except AwsError as error:
        if error.fault.code in ("404", "NoSuchBucket"):
            return [no(WEIGHTS, f"there is no bucket {name}", "mend aws.weights.bucket")]
        if error.fault.kind == "denied":
            return [
                unknown(
                    WEIGHTS,
                    f"this identity may not look into {name}; whether the machines may is open",
                    f"allow s3:ListBucket on {name}, here and in the bucket's own policy",
                )
            ]
        raise
    where = region or need.region
    listing = aws.call("s3", "list_objects_v2", where, Bucket=name, Prefix=need.prefix, MaxKeys=1)
    return [judge_weights(need, Bucket(region, bool(listing.get("Contents"))))]


def judge_weights(need: Need, bucket: Bucket) -> Row:
    """A bucket that is there."""
    place = f"s3://{need.bucket}/{need.prefix}"
    if not bucket.holds:
        return no(
            WEIGHTS, f"{place} is empty", "upload the model there, or mend aws.weights.prefix"
        )
    if bucket.region and bucket.region != need.region:
        return warn(
            WEIGHTS,
            f"{place} is in {bucket.region}, the machines in {need.region}: slow, and traffic is "
            "charged",
            f"copy it to a bucket in {need.region}",
        )
    return ok(WEIGHTS, f"{place} is there, in {bucket.region or need.region}")


@dataclass(frozen=True, slots=True)
class Secret:
    """``deleted``: when it was marked for deletion. ``has_value``: is a version current?"""

    region: str
    deleted: datetime | None
    has_value: bool


def check_secret(aws: Aws, need: Need) -> list[Row]:
    """The secret, if one is named: that it is there, never what it says. Raises AwsError."""
    arn = need.hub_secret
    if arn is None:
        return []
    region = arn.split(":")[3]
    try:
        entry = aws.call("secretsmanager", "describe_secret", region, SecretId=arn)
    except AwsError as error:
        if error.fault.code == "ResourceNotFoundException":
            return [
                no(
                    SECRET,
                    f"{_name(arn)} is not in {region}",
                    "mend aws.hub_secret, or make it: aws secretsmanager create-secret",
                )
            ]
        raise
    stages = entry.get("VersionIdsToStages") or {}
    current = any("AWSCURRENT" in names for names in stages.values())
    return [judge_secret(need, arn, Secret(region, entry.get("DeletedDate"), current))]


def judge_secret(need: Need, arn: str, secret: Secret) -> Row:
    """A secret that is there."""
    name = _name(arn)
    if secret.deleted is not None:
        return no(
            SECRET,
            f"{name} is marked for deletion",
            f"aws secretsmanager restore-secret --secret-id {name} --region {secret.region}",
        )
    if not secret.has_value:
        return no(
            SECRET,
            f"{name} has no value",
            f"aws secretsmanager put-secret-value --secret-id {name} --region {secret.region}",
        )
    if secret.region != need.region:
        return warn(
            SECRET,
            f"{name} is in {secret.region}, the machines in {need.region}",
            f"replicate it to {need.region}, so that a start does not hang on another region",
        )
    return ok(SECRET, f"{name} is there (its value was not read)")


def _name(arn: str) -> str:
    return arn.rpartition(":secret:")[2]
