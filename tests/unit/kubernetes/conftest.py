"""A deployment of the ``scaled`` tier, to be varied by the tests."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import pytest

from infra.fleet import ResolvedFleet, resolve
from infra.kubernetes import inputs
from infra.kubernetes.inputs import Cluster, Object
from infra.kubernetes.render import objects
from infra.serving.adapters import Node, adapter
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment

BASE: dict[str, Any] = {
    "name": "chat",
    "tier": "scaled",
    "site": "aws/us-east-1",
    "model": {
        "target": "meta-llama/Llama-3.1-70B-Instruct",
        "draft": "meta-llama/Llama-3.2-1B-Instruct",
        "max_model_len": 8192,
    },
    "serving": {
        "engine": "trtllm",
        "speculation": {"method": "draft_model", "draft_tokens": 3},
    },
    "load": {"sessions": 100, "prompt_tokens": 1024, "output_tokens": 256},
    "sla": {"ttft_p95_ms": 400},
    "aws": {"network": {"clients": ["10.20.0.0/16"]}},
}

HUB = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"


class Rendered:
    """A deployment, what it was resolved to, and its objects."""

    def __init__(self, deployment: Deployment, **cluster: Any) -> None:
        self.deployment = deployment
        self.fleet: ResolvedFleet = resolve(deployment)
        self.plan: LaunchPlan = adapter(deployment.serving.engine).launch_plan(
            deployment,
            Node(
                kind="gpu",
                gpus=self.fleet.instance.accelerators,
                threads=self.fleet.instance.vcpu or 1,
                root=inputs.ROOT,
                replicas=self.fleet.nodes_max,
            ),
            baseline=False,
        )
        self.cluster = Cluster(
            **{
                "name": deployment.stack_key,
                "region": self.fleet.region,
                "kubernetes": self.fleet.kubernetes,
                **cluster,
            }
        )
        self.objects = objects(deployment, self.fleet, self.plan, self.cluster)

    def one(self, kind: str, name: str = "") -> Object:
        """The only object of this kind (and name)."""
        (found,) = [
            one
            for one in self.objects
            if one["kind"] == kind and name in ("", one["metadata"]["name"])
        ]
        return found

    def names(self, kind: str) -> list[str]:
        return [one["metadata"]["name"] for one in self.objects if one["kind"] == kind]

    @property
    def ray(self) -> Object:
        made: Object = self.one("RayService")["spec"]["rayClusterConfig"]
        return made

    @property
    def workers(self) -> Object:
        (group,) = self.ray["workerGroupSpecs"]
        return dict(group)

    @property
    def worker(self) -> Object:
        (container,) = self.workers["template"]["spec"]["containers"]
        return dict(container)


class Render(Protocol):
    """``render(**{"load.sessions": 8}, cluster={...})``: keys replaced (None: removed)."""

    def __call__(self, *, cluster: dict[str, Any] | None = None, **changes: Any) -> Rendered: ...


@pytest.fixture
def render() -> Render:
    def build(*, cluster: dict[str, Any] | None = None, **changes: Any) -> Rendered:
        content = copy.deepcopy(BASE)
        for key, value in changes.items():
            *parents, last = key.split(".")
            place = content
            for parent in parents:
                place = place.setdefault(parent, {})
            if value is None:
                place.pop(last, None)
            else:
                place[last] = value
        return Rendered(Deployment.model_validate(content), **(cluster or {}))

    return build
