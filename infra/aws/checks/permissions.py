"""May this identity do what the deploy will do? Asked of IAM's own simulation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from infra.aws.actions import ANY
from infra.aws.ask import Aws
from infra.aws.checks.identity import Identity, identity
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.rows import Row, listed, no, ok, unknown, warn
from infra.aws.subjects import PERMISSIONS as SUBJECT

_SESSION = re.compile(r"^arn:(?P<partition>[^:]+):sts::\d+:assumed-role/(?P<role>[^/]+)/")
#: Names that one call of the simulation takes without complaint.
AT_A_TIME = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """One action. ``conditions``: keys of conditions that the simulation had no value for."""

    action: str
    decision: str
    conditions: tuple[str, ...] = ()
    organization: bool = True

    @property
    def allowed(self) -> bool:
        return self.decision == "allowed" and self.organization


def check(aws: Aws, need: Need) -> list[Row]:
    """Raises AwsError."""
    who = identity(aws)
    if who.arn.endswith(":root"):
        return [warn(SUBJECT, "the root user may do everything", "deploy as a role instead")]
    source = _source(aws, who)
    if source is None:
        return [
            unknown(
                SUBJECT,
                f"IAM cannot simulate {who.arn}",
                "sign in as a role or a user, or compare with docs/preflight.md by hand",
            )
        ]
    try:
        answers = _simulate(aws, need, who, source)
    except AwsError as error:
        if error.fault.kind != "denied":
            raise
        return [
            unknown(
                SUBJECT,
                "not known: this identity may not iam:SimulatePrincipalPolicy",
                "allow it (docs/preflight.md), or have someone who may run this row",
            )
        ]
    return [judge(answers, source)]


def judge(answers: Sequence[Answer], source: str) -> Row:
    """All actions, in one row: the denied ones first."""
    name = source.rpartition(":")[2]
    denied = [answer for answer in answers if not answer.allowed]
    if not denied:
        return ok(SUBJECT, f"{name} may do all {len(answers)} actions of a deploy")
    outside = sorted({answer.action for answer in denied if not answer.organization})
    if outside:
        return no(
            SUBJECT,
            f"a policy of the organization denies {listed(outside, most=4)}",
            "ask whoever looks after the organization's service control policies",
        )
    certain = sorted({answer.action for answer in denied if not answer.conditions})
    if certain:
        return no(
            SUBJECT,
            f"{name} may not {listed(certain, most=4)}",
            "allow them for this identity; docs/preflight.md has the policy",
        )
    actions = sorted({answer.action for answer in denied})
    keys = sorted({key for answer in denied for key in answer.conditions})
    return warn(
        SUBJECT,
        f"{name} may {listed(actions, most=3)} under conditions only ({listed(keys, most=3)})",
        "check these conditions by hand; the simulation has no values for them",
    )


def _source(aws: Aws, who: Identity) -> str | None:
    """The ARN of the user or role behind the caller; None for a federated user.

    A session's ARN lacks the role's path (IAM Identity Center's roles have one), so IAM is asked.
    """
    session = _SESSION.match(who.arn)
    if session is None:
        return who.arn if ":user/" in who.arn or ":role/" in who.arn else None
    role = session["role"]
    try:
        return str(aws.call("iam", "get_role", RoleName=role)["Role"]["Arn"])
    except AwsError as error:
        if error.fault.kind not in ("denied", "answer"):
            raise
        return f"arn:{session['partition']}:iam::{who.account}:role/{role}"


def _simulate(aws: Aws, need: Need, who: Identity, source: str) -> list[Answer]:
    answers = []
    for group in need.actions:
        resource = group.resource.format(
            partition=who.partition,
            account=who.account,
            region=need.region,
            stack_key=need.stack_key,
        )
        for start in range(0, len(group.actions), AT_A_TIME):
            results = aws.pages(
                "iam",
                "simulate_principal_policy",
                "EvaluationResults",
                PolicySourceArn=source,
                ActionNames=list(group.actions[start : start + AT_A_TIME]),
                ContextEntries=_context(need),
                **({} if resource == ANY else {"ResourceArns": [resource]}),
            )
            for entry in results:
                organization = entry.get("OrganizationsDecisionDetail") or {}
                answers.append(
                    Answer(
                        action=str(entry["EvalActionName"]),
                        decision=str(entry["EvalDecision"]),
                        conditions=tuple(entry.get("MissingContextValues") or ()),
                        organization=bool(organization.get("AllowedByOrganizations", True)),
                    )
                )
    return answers


def _context(need: Need) -> list[dict[str, object]]:
    """What is known of the requests to come: many policies ask for these two."""
    service = "eks.amazonaws.com" if need.orchestration == "eks" else "ec2.amazonaws.com"
    values = {"aws:RequestedRegion": need.region, "iam:PassedToService": service}
    return [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
        for key, value in values.items()
    ]
