"""Terraform's state in S3: make the bucket safely, read states and locks, remove a lock."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from infra import state_lock
from infra.aws.faults import code_of, telling
from infra.aws.session import client
from infra.errors import InputError
from infra.state_backend import Backend
from infra.state_lock import Lock

TLS_ONLY = "SpecrackTlsOnly"
OLD_STATES = "specrack-old-states"
#: Old versions of a state are a way back; after this they go, but for the newest few.
OLD_DAYS = 90
OLD_KEPT = 20
PREFIX = "specrack/"
ALL_BLOCKED = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
_ABSENT = frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"})
_UNSET = frozenset(
    {
        "ServerSideEncryptionConfigurationNotFoundError",
        "NoSuchPublicAccessBlockConfiguration",
        "NoSuchBucketPolicy",
        "NoSuchLifecycleConfiguration",
        "NoSuchTagSet",
    }
)


@dataclass(frozen=True, slots=True)
class Done:
    """A step of ``make``: what is so now, and whether it had to be changed."""

    what: str
    changed: bool


# --- the bucket ---------------------------------------------------------------------------------


@dataclass
class _Bucket:
    """A bucket of this account. Every call names the account, so that a bucket which is deleted
    and taken by somebody else in between is never touched."""

    s3: Any
    name: str
    account: str

    def ask(self, operation: str, **more: Any) -> dict[str, Any]:
        """Call an operation. Raises ClientError."""
        call = getattr(self.s3, operation)
        answer: dict[str, Any] = call(Bucket=self.name, ExpectedBucketOwner=self.account, **more)
        return answer

    def get(self, operation: str) -> dict[str, Any]:
        """A setting; empty when it was never set."""
        try:
            return self.ask(operation)
        except ClientError as error:
            if code_of(error) in _UNSET:
                return {}
            raise


def make(
    bucket: str, region: str, kms_key: str | None, *, say: Callable[[Done], None] = lambda _: None
) -> list[Done]:
    """Make the bucket for states, or bring one of ours to what it must be.

    Each step looks before it acts; a second call changes nothing. Raises InputError for a bucket
    of somebody else or of another region, AwsError for what AWS refuses.
    """
    done: list[Done] = []

    def note(what: str, changed: bool) -> None:
        done.append(Done(what, changed))
        say(done[-1])

    with telling("s3", region, doing=f"bucket {bucket}"):
        account = str(client("sts", region).get_caller_identity()["Account"])
        s3 = client("s3", region)
        ours = _Bucket(s3, bucket, account)
        note(f"bucket {bucket} in {region}, account {account}", _make_bucket(ours, region))
        note("versions are kept", _versioning(ours))
        note(f"encrypted with {kms_key or 'the key of S3'}", _encryption(ours, kms_key))
        note("no public access", _public_access(ours))
        note("reached by TLS alone", _tls_only(ours))
        note(
            f"old versions go after {OLD_DAYS} days, but for the newest {OLD_KEPT}",
            _lifecycle(ours),
        )
    return done


def _make_bucket(bucket: _Bucket, region: str) -> bool:
    try:
        bucket.ask("head_bucket")
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if status == 403:
            raise InputError(
                f"bucket {bucket.name} exists and is not ours (account {bucket.account}), or we "
                "may not look at it",
                do="choose another name; names of buckets are shared by all of AWS",
            ) from None
        if status == 301:
            raise InputError(
                f"bucket {bucket.name} is in another region than {region}",
                do="name the region that it is in with --region",
            ) from None
        if status != 404:
            raise
        _create(bucket, region)
        return True
    where = bucket.ask("get_bucket_location").get("LocationConstraint") or "us-east-1"
    where = {"EU": "eu-west-1"}.get(where, where)
    if where != region:
        raise InputError(
            f"bucket {bucket.name} is in {where}, not in {region}", do=f"give --region {where}"
        )
    return False


def _create(bucket: _Bucket, region: str) -> None:
    more: dict[str, Any] = {"ObjectOwnership": "BucketOwnerEnforced"}
    if region != "us-east-1":
        more["CreateBucketConfiguration"] = {"LocationConstraint": region}
    try:
        bucket.s3.create_bucket(Bucket=bucket.name, **more)
    except ClientError as error:
        if code_of(error) == "BucketAlreadyOwnedByYou":
            return
        if code_of(error) == "BucketAlreadyExists":
            raise InputError(
                f"bucket {bucket.name} exists and belongs to another account",
                do="choose another name; names of buckets are shared by all of AWS",
            ) from None
        raise
    bucket.s3.get_waiter("bucket_exists").wait(
        Bucket=bucket.name, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )


def _versioning(bucket: _Bucket) -> bool:
    if bucket.get("get_bucket_versioning").get("Status") == "Enabled":
        return False
    bucket.ask("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    return True


def _encryption(bucket: _Bucket, kms_key: str | None) -> bool:
    wanted: dict[str, Any] = {"SSEAlgorithm": "AES256"}
    if kms_key:
        wanted = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": kms_key}
    found = bucket.get("get_bucket_encryption").get("ServerSideEncryptionConfiguration") or {}
    for rule in found.get("Rules") or []:
        have = rule.get("ApplyServerSideEncryptionByDefault") or {}
        # A key that somebody chose for the bucket is no worse than S3's own.
        if have == wanted or (kms_key is None and have.get("SSEAlgorithm", "").startswith("aws:")):
            return False
    rule = {"ApplyServerSideEncryptionByDefault": wanted, "BucketKeyEnabled": bool(kms_key)}
    bucket.ask("put_bucket_encryption", ServerSideEncryptionConfiguration={"Rules": [rule]})
    return True


def _public_access(bucket: _Bucket) -> bool:
    found = bucket.get("get_public_access_block").get("PublicAccessBlockConfiguration") or {}
    if all(found.get(key) for key in ALL_BLOCKED):
        return False
    bucket.ask("put_public_access_block", PublicAccessBlockConfiguration=ALL_BLOCKED)
    return True


def _tls_only(bucket: _Bucket) -> bool:
    text = bucket.get("get_bucket_policy").get("Policy")
    policy: dict[str, Any] = json.loads(text) if text else {"Version": "2012-10-17"}
    statements = policy.get("Statement") or []
    statements = statements if isinstance(statements, list) else [statements]
    partition = str(bucket.s3.meta.partition)
    arn = f"arn:{partition}:s3:::{bucket.name}"
    wanted = {
        "Sid": TLS_ONLY,
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    if wanted in statements:
        return False
    policy["Statement"] = [one for one in statements if one.get("Sid") != TLS_ONLY] + [wanted]
    bucket.ask("put_bucket_policy", Policy=json.dumps(policy))
    return True


def _lifecycle(bucket: _Bucket) -> bool:
    rules: list[dict[str, Any]] = (
        bucket.get("get_bucket_lifecycle_configuration").get("Rules") or []
    )
    if any(rule.get("ID") == OLD_STATES and rule.get("Status") == "Enabled" for rule in rules):
        return False
    ours = {
        "ID": OLD_STATES,
        "Status": "Enabled",
        "Filter": {"Prefix": PREFIX},
        "NoncurrentVersionExpiration": {
            "NoncurrentDays": OLD_DAYS,
            "NewerNoncurrentVersions": OLD_KEPT,
        },
        # What is left of lock files.
        "Expiration": {"ExpiredObjectDeleteMarker": True},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    }
    kept = [rule for rule in rules if rule.get("ID") != OLD_STATES]
    bucket.ask(
        "put_bucket_lifecycle_configuration", LifecycleConfiguration={"Rules": [*kept, ours]}
    )
    return True


# --- states and locks ---------------------------------------------------------------------------


def _get(backend: Backend, key: str) -> tuple[str, str] | None:
    """Text and version tag of an object of the bucket, or None. Raises AwsError."""
    region = backend.region or ""
    with telling("s3", region, doing=f"s3://{backend.bucket}/{key}"):
        try:
            answer = client("s3", region).get_object(Bucket=backend.bucket, Key=key)
            return answer["Body"].read().decode("utf-8"), str(answer.get("ETag", ""))
        except ClientError as error:
            if code_of(error) in _ABSENT - {"NoSuchBucket"}:
                return None
            if code_of(error) == "NoSuchBucket":
                raise InputError(
                    f"the bucket for states, {backend.bucket}, does not exist",
                    do=f"specrack backend init --bucket {backend.bucket} --region {region}",
                ) from None
            raise


def read_state(backend: Backend, stack_key: str) -> str | None:
    """The state of a stack as text, or None when there is none. Raises AwsError, InputError."""
    found = _get(backend, backend.key_of(stack_key))
    return found[0] if found else None


def lock_key(backend: Backend, stack_key: str) -> str:
    return f"{backend.key_of(stack_key)}.tflock"


def read_lock(backend: Backend, stack_key: str) -> Lock | None:
    """Who has locked a state, or None. Raises AwsError, InputError."""
    key = lock_key(backend, stack_key)
    found = _get(backend, key)
    if found is None:
        return None
    place = f"s3://{backend.bucket}/{key}"
    return state_lock.parse(found[0], place) or Lock("", "unknown", "unknown", None, place)


def remove_lock(backend: Backend, stack_key: str, lock_id: str) -> Lock:
    """Remove the lock with that id, and no other. Returns it. Raises AwsError, InputError."""
    key = lock_key(backend, stack_key)
    found = _get(backend, key)
    if found is None:
        raise InputError(f"{stack_key}: the state is not locked", do="nothing to do")
    place = f"s3://{backend.bucket}/{key}"
    lock = state_lock.parse(found[0], place)
    if lock is None or lock.id != lock_id:
        raise InputError(
            f"{stack_key}: the state is locked by another lock than {lock_id}",
            do="see specrack backend status for the one that holds it now",
        )
    region = backend.region or ""
    with telling("s3", region, doing=place):
        # Only if it is still the very same object.
        client("s3", region).delete_object(Bucket=backend.bucket, Key=key, IfMatch=found[1])
    return lock


def states(backend: Backend) -> Sequence[str]:
    """Keys of the stacks that have a state in the bucket. Raises AwsError."""
    region = backend.region or ""
    found = []
    with telling("s3", region, doing=f"bucket {backend.bucket}"):
        pages = client("s3", region).get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=backend.bucket, Prefix=PREFIX):
            for one in page.get("Contents") or []:
                name = str(one["Key"])[len(PREFIX) :]
                if name.endswith(".tfstate"):
                    found.append(name.removesuffix(".tfstate"))
    return found
