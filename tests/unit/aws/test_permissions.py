"""What the identity may not do is named before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from infra.aws.actions import BY_TYPE, Parts, needed, types
from infra.aws.checks import permissions
from infra.aws.checks.permissions import Answer, judge
from infra.aws.need import Helpers, Need, other_zone, parts_of
from infra.aws.rows import Row
from infra.fleet import resolve
from stacks import scaled as scaled_stack
from tests.unit.aws.needs import OTHER_SUBNET, SUBNET, VPC, deployment, need, scaled
from tests.unit.aws.scripted import Error, scripted
from tests.unit.stacks.aws.conftest import build, terraform

USER = "arn:aws:iam::123456789012:user/ann"
SESSION = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Deploy_0a/ann"
ROLE = "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Deploy_0a"


def checked(arn: str, *simulated: Any, of: Need | None = None, **more: Any) -> Row:
    wanted = of or need()
    allowed = [
        {
            "EvaluationResults": [
                {"EvalActionName": action, "EvalDecision": "allowed"} for action in group.actions
            ]
        }
        for group in wanted.actions
    ]
    script = {
        "sts.get_caller_identity": {"Account": "123456789012", "Arn": arn},
        "iam.simulate_principal_policy": list(simulated) or allowed,
    } | more
    [row] = permissions.check(scripted(script), wanted)
    return row


def test_an_identity_that_may_all_is_good() -> None:
    row = checked(USER)
    assert row.verdict == "ok"
    assert row.found.startswith("user/ann may do all ")


def test_a_missing_permission_is_refused_by_name() -> None:
    denied = {"EvalActionName": "ec2:RunInstances", "EvalDecision": "implicitDeny"}
    answers = [{"EvaluationResults": [denied]}] * len(need().actions)
    row = checked(USER, *answers)
    assert row.verdict == "no"
    assert row.found == "user/ann may not ec2:RunInstances"
    assert "docs/preflight.md" in row.remedy


def test_the_role_behind_a_session_is_simulated_with_its_path() -> None:
    row = checked(
        SESSION,
        **{
            "iam.get_role": {
                "Role": {
                    "Arn": ROLE,
                    "Path": "/aws-reserved/sso.amazonaws.com/",
                    "RoleName": "AWSReservedSSO_Deploy_0a",
                    "RoleId": "AROAEXAMPLEEXAMPLE",
                    "CreateDate": "2026-01-01T00:00:00Z",
                }
            }
        },
    )
    assert "role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Deploy_0a may do all" in row.found


def test_a_session_that_may_not_look_at_its_role_is_still_simulated() -> None:
    row = checked(SESSION, **{"iam.get_role": Error("AccessDenied", status=403)})
    assert row.verdict == "ok"
    assert "role/AWSReservedSSO_Deploy_0a" in row.found


def test_where_the_simulation_is_not_allowed_the_answer_is_open() -> None:
    row = checked(USER, Error("AccessDenied", status=403))
    assert row.verdict == "unknown"
    assert "iam:SimulatePrincipalPolicy" in row.found
    assert row.remedy


def test_a_federated_user_cannot_be_simulated() -> None:
    row = checked("arn:aws:sts::123456789012:federated-user/ann")
    assert row.verdict == "unknown"


def test_the_root_user_may_all_and_should_not() -> None:
    row = checked("arn:aws:iam::123456789012:root")
    assert row.verdict == "warn"


def test_a_denial_by_the_organization_is_told_apart() -> None:
    row = judge([Answer("ec2:RunInstances", "allowed", organization=False)], USER)
    assert row.verdict == "no"
    assert "organization" in row.found


def test_what_depends_on_conditions_is_a_warning() -> None:
    row = judge([Answer("ec2:RunInstances", "implicitDeny", ("aws:RequestTag/team",))], USER)
    assert row.verdict == "warn"
    assert "aws:RequestTag/team" in row.found


def test_resources_with_names_are_simulated_by_name() -> None:
    resources = {group.resource for group in scaled().actions}
    assert any(":cluster/" in resource for resource in resources)
    assert all(resource == "*" or resource.startswith("arn:") for resource in resources)


def test_a_cluster_needs_other_actions_than_a_machine() -> None:
    def names(wanted: Need) -> set[str]:
        return {action for group in wanted.actions for action in group.actions}

    assert "eks:CreateCluster" in names(scaled())
    assert "eks:CreateCluster" not in names(need())
    assert "ec2:CreateVpc" in names(need())
    assert "ssm:StartSession" in names(need())


@pytest.mark.parametrize("kind", sorted(BY_TYPE))
def test_actions_are_written_as_iam_does_and_never_with_a_star(kind: str) -> None:
    _, actions = BY_TYPE[kind]
    for action in actions:
        service, _, name = action.partition(":")
        assert service.replace("-", "").isalnum()
        assert name.isalnum()
        assert name[0].isupper()


def test_an_action_is_asked_for_once_a_resource() -> None:
    for group in needed(Parts(eks=True, own_vpc=True, spot=True, schedule=True, budget=True)):
        assert len(set(group.actions)) == len(group.actions)


FULL = {
    "network": {"clients": ["10.20.0.0/16"]},
    "weights": {"bucket": "my-models", "prefix": "llama/"},
    "hub_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf",
    "alarm_emails": ["ops@example.com"],
}
GIVEN = {"network": {"vpc": VPC, "subnets": [SUBNET, OTHER_SUBNET]}}
LUSTRE = FULL | {"weights": {"bucket": "my-models", "lustre_gib": 1200}}


@pytest.mark.parametrize(
    "changes",
    [
        {"aws": FULL, "fleet": {"schedule": "weekdays 08-20"}},
        {"aws": GIVEN | {"weights": {"bucket": "my-models"}}},
        {"tier": "scaled", "aws": LUSTRE},
        {"tier": "scaled", "aws": GIVEN, "fleet": {"buy": "spot"}},
    ],
    ids=["prototype", "prototype in a VPC", "scaled", "scaled in a VPC, spot"],
)
def test_the_actions_cover_every_resource_of_the_real_stack(changes: dict[str, Any]) -> None:
    made = deployment(**changes)
    fleet = resolve(made)
    used = set(terraform(build(made.model_dump(exclude_none=True)))["resource"])
    assert used <= types(parts_of(made, fleet))
    spare = types(parts_of(made, fleet)) - used
    # A machine in an existing VPC without named clients has no ingress rule.
    assert spare <= {"aws_vpc_security_group_ingress_rule"}


def test_names_are_those_that_the_stacks_give() -> None:
    made = terraform(build(deployment(tier="scaled").model_dump(exclude_none=True)))
    names = {role["name"] for role in made["resource"]["aws_iam_role"].values()}
    assert "chat-scaled-node" in names
    [cluster] = made["resource"]["aws_eks_cluster"].values()
    assert cluster["name"] == "chat-scaled-cluster"
    assert Helpers().instance == scaled_stack.SYSTEM_INSTANCE
    assert Helpers().nodes == scaled_stack.SYSTEM_NODES
    zones = [zone["availability_zone"] for zone in made["resource"]["aws_subnet"].values()]
    assert other_zone("us-east-1a") in zones
