"""What keeps a deployment from costing or reading more than it should."""

from __future__ import annotations

import json

from infra.spec.model import Aws
from stacks.aws import resources as aws
from stacks.aws.stack import AwsStack, allow, statements

#: Percent of the month's budget: told when spent, and when forecast.
SPENT_PERCENT, FORECAST_PERCENT = 80, 100


def budget(stack: AwsStack, settings: Aws) -> None:
    """An AWS Budgets alarm on what carries the deployment's tag.

    The tag ``specrack:deployment`` has to be activated for cost allocation once an account.
    """
    limit = stack.deployment.budget
    if limit is None or not settings.alarm_emails:
        return
    aws.BudgetsBudget(
        stack,
        "budget",
        name=stack.named("month"),
        budget_type="COST",
        # As AWS writes it back: anything else would be a change at every plan.
        limit_amount=f"{limit.usd_per_month.normalize():f}",
        limit_unit="USD",
        time_unit="MONTHLY",
        cost_filter=aws.BudgetsBudgetCostFilter(
            name="TagKeyValue", values=[f"user:specrack:deployment${stack.deployment.name}"]
        ),
        notification=[
            aws.BudgetsBudgetNotification(
                comparison_operator="GREATER_THAN",
                threshold=percent,
                threshold_type="PERCENTAGE",
                notification_type=kind,
                subscriber_email_addresses=list(settings.alarm_emails),
            )
            for kind, percent in (("ACTUAL", SPENT_PERCENT), ("FORECASTED", FORECAST_PERCENT))
        ],
    )


def reading(stack: AwsStack, settings: Aws, role: aws.IamRole) -> None:
    """``role`` may read the weights below their prefix and the one secret; nothing else."""
    rules = []
    if settings.weights is not None:
        bucket = f"arn:aws:s3:::{settings.weights.bucket}"
        prefix = settings.weights.prefix
        condition = {"StringLike": {"s3:prefix": [f"{prefix}*"]}}
        rules += [
            allow(["s3:ListBucket"], [bucket], condition if prefix else None),
            allow(["s3:GetObject"], [f"{bucket}/{prefix}*"]),
        ]
    if settings.hub_secret is not None:
        rules.append(allow(["secretsmanager:GetSecretValue"], [settings.hub_secret]))
    if rules:
        aws.IamRolePolicy(
            stack,
            "reading",
            name="read-models",
            role=role.name,
            policy=json.dumps(statements(*rules)),
        )
