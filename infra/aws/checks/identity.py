"""Who asks, and may this account use the region?"""

from __future__ import annotations

from dataclasses import dataclass

from infra.aws.ask import Aws
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.rows import Row, no, ok
from infra.aws.subjects import IDENTITY as SUBJECT
from infra.aws.subjects import REGION


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller. ``arn``: of the user, or of the session of an assumed role."""

    account: str
    arn: str

    @property
    def partition(self) -> str:
        return self.arn.split(":")[1]


def home_region(region: str) -> str:
    """A region of the same partition that every account has."""
    if region.startswith("cn-"):
        return "cn-north-1"
    return "us-gov-west-1" if region.startswith("us-gov-") else "us-east-1"


def identity(aws: Aws) -> Identity:
    """The caller, asked for once. Raises AwsError."""
    return aws.once("identity", lambda: _ask(aws, aws.region))


def check(aws: Aws, need: Need) -> list[Row]:
    """Who we are. Raises AwsError for credentials that AWS does not take."""
    try:
        who = identity(aws)
    except AwsError as error:
        home = home_region(need.region)
        # A region that is not enabled answers like one that does not know the key.
        if error.fault.kind not in ("refused", "region") or home == need.region:
            raise
        who = _ask(aws, home)
        return [
            ok(SUBJECT, f"account {who.account}, {who.arn}"),
            no(
                REGION,
                f"{need.region} is not enabled for account {who.account}",
                f"enable it: aws account enable-region --region-name {need.region}; "
                "or choose another site",
            ),
        ]
    return [ok(SUBJECT, f"account {who.account}, {who.arn}")]


def _ask(aws: Aws, region: str) -> Identity:
    answer = aws.call("sts", "get_caller_identity", region)
    return Identity(account=str(answer["Account"]), arn=str(answer["Arn"]))
