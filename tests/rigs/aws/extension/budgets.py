"""Subscribers and tags of budgets, and their change."""

from __future__ import annotations

from typing import Any

from moto.budgets.exceptions import NotFoundException
from moto.budgets.responses import BudgetsResponse

from tests.rigs.aws.extension.registry import Parameters, attach, operation, store


def _budget(response: Any, parameters: Parameters) -> Any:
    name = parameters["BudgetName"]
    found = response.backend.budgets[parameters["AccountId"]].get(name)
    if found is None:
        raise NotFoundException(f"Unable to get budget: {name} - the budget doesn't exist.")
    return found


def _notification(response: Any, parameters: Parameters) -> Any:
    wanted = parameters["Notification"]
    for one in _budget(response, parameters).notifications:
        # Numbers compare as numbers: 80 is 80.0.
        if all(one.details.get(key) == value for key, value in wanted.items()):
            return one
    raise NotFoundException("Unable to get notification - the notification does not exist.")


@operation("budgets", "UpdateBudget")
def update_budget(response: Any, parameters: Parameters) -> dict[str, Any]:
    changed = parameters["NewBudget"]
    found = _budget(response, {**parameters, "BudgetName": changed["BudgetName"]})
    found.budget.update(response._get_param("NewBudget"))
    return {}


@operation("budgets", "DescribeSubscribersForNotification")
def describe_subscribers(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {"Subscribers": list(_notification(response, parameters).subscribers)}


@operation("budgets", "CreateSubscriber")
def create_subscriber(response: Any, parameters: Parameters) -> dict[str, Any]:
    _notification(response, parameters).subscribers.append(parameters["Subscriber"])
    return {}


@operation("budgets", "DeleteSubscriber")
def delete_subscriber(response: Any, parameters: Parameters) -> dict[str, Any]:
    _notification(response, parameters).subscribers.remove(parameters["Subscriber"])
    return {}


def _tags(response: Any, arn: str) -> dict[str, str]:
    return store(response.backend, "tags").setdefault(arn, {})


@operation("budgets", "ListTagsForResource")
def list_tags(response: Any, parameters: Parameters) -> dict[str, Any]:
    tags = _tags(response, parameters["ResourceARN"])
    return {"ResourceTags": [{"Key": key, "Value": value} for key, value in tags.items()]}


@operation("budgets", "TagResource")
def tag_resource(response: Any, parameters: Parameters) -> dict[str, Any]:
    tags = _tags(response, parameters["ResourceARN"])
    tags.update({one["Key"]: one["Value"] for one in parameters["ResourceTags"]})
    return {}


@operation("budgets", "UntagResource")
def untag_resource(response: Any, parameters: Parameters) -> dict[str, Any]:
    for key in parameters["ResourceTagKeys"]:
        _tags(response, parameters["ResourceARN"]).pop(key, None)
    return {}


def install() -> None:
    attach(BudgetsResponse, "budgets")
    create = BudgetsResponse.create_budget
    delete = BudgetsResponse.delete_budget

    def arn(response: Any, name: str) -> str:
        return f"arn:aws:budgets::{response._get_param('AccountId')}:budget/{name}"

    def create_budget(self: Any) -> str:
        answer = create(self)
        name = self._get_param("Budget")["BudgetName"]
        tags = self._get_param("ResourceTags") or []
        _tags(self, arn(self, name)).update({one["Key"]: one["Value"] for one in tags})
        return answer

    def delete_budget(self: Any) -> str:
        answer = delete(self)
        store(self.backend, "tags").pop(arn(self, self._get_param("BudgetName")), None)
        return answer

    BudgetsResponse.create_budget = create_budget  # type: ignore[method-assign]
    BudgetsResponse.delete_budget = delete_budget  # type: ignore[method-assign]
