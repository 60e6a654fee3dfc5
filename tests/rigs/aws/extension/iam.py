"""SimulatePrincipalPolicy: allowed, but for what the test denies. No policy is evaluated."""

from __future__ import annotations

from typing import Any

from moto.iam.responses import IamResponse

from tests.rigs.aws.extension import settings
from tests.rigs.aws.extension.registry import Parameters, attach, operation


@operation("iam", "SimulatePrincipalPolicy")
def simulate_principal_policy(response: Any, parameters: Parameters) -> dict[str, Any]:
    denied = {action.lower() for action in settings.VALUES["denied"]}
    resources = parameters.get("ResourceArns") or ["*"]
    return {
        "IsTruncated": False,
        "EvaluationResults": [
            {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": "implicitDeny" if action.lower() in denied else "allowed",
                "MatchedStatements": [],
                "MissingContextValues": [],
            }
            for action in parameters["ActionNames"]
            for resource in resources
        ],
    }


def install() -> None:
    attach(IamResponse, "iam")
