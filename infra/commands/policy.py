"""``specrack aws-policy NAME``: the IAM policy that whoever deploys needs, as JSON to paste."""

from __future__ import annotations

from typing import Any

from infra.fleet import resolve
from infra.spec.model import Deployment

#: A stand-in that preflight asks about -> all that the stack's names may be.
_WIDER = {
    "/{stack_key}-node": "/{stack_key}-*",
    "/{stack_key}-server": "/{stack_key}-*",
    "/gpu/*": "/*",
    "/vpc-cni/*": "/*",
    "/{stack_key}-start": "/{stack_key}-*",
}
#: Who a role may be handed to, by what runs the deployment.
_HANDED_TO = {
    "hosts": ["ec2.amazonaws.com", "scheduler.amazonaws.com", "vpc-flow-logs.amazonaws.com"],
    "eks": [
        "ec2.amazonaws.com",
        "eks.amazonaws.com",
        "pods.eks.amazonaws.com",
        "vpc-flow-logs.amazonaws.com",
    ],
}


def policy(deployment: Deployment) -> dict[str, Any]:
    """The least that deploying and destroying ``deployment`` needs. Raises UnsupportedError."""
    from infra.aws.actions import ANY, LOGS, PREFLIGHT
    from infra.aws.need import need_of

    fleet = resolve(deployment)
    need = need_of(deployment, fleet)
    by_resource: dict[str, set[str]] = {ANY: set(PREFLIGHT)}
    passing: set[str] = set()
    for group in need.actions:
        actions = set(group.actions)
        resources = [group.resource]
        if group.resource == LOGS:
            # A cluster's own logs are named by EKS.
            cluster = LOGS.replace("/specrack/{stack_key}/flows", "/aws/eks/{stack_key}-*")
            resources = [LOGS.replace("/flows", "/*"), *([cluster] if need.helpers else [])]
        for resource in resources:
            name = _filled(resource, deployment.stack_key, fleet.region)
            if "iam:PassRole" in actions:
                passing.add(name)
            by_resource.setdefault(name, set()).update(actions - {"iam:PassRole"})
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
        for resource, actions in sorted(by_resource.items())
    ]
    statements.append(
        {
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": sorted(passing),
            "Condition": {"StringEquals": {"iam:PassedToService": _HANDED_TO[fleet.orchestration]}},
        }
    )
    return {"Version": "2012-10-17", "Statement": statements}


def _filled(resource: str, stack_key: str, region: str) -> str:
    for narrow, wide in _WIDER.items():
        if resource.endswith(narrow):
            resource = resource.removesuffix(narrow) + wide
    return resource.format(partition="aws", account="*", region=region, stack_key=stack_key)
