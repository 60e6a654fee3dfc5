"""Deployments on AWS, and their stacks built in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from infra.fleet import resolve
from infra.lock import Image, KubernetesRelease
from infra.spec.model import Deployment
from infra.state_backend import Backend
from stacks.aws.stack import AwsStack, Settings
from stacks.engine import cdk
from stacks.prototype import PrototypeStack
from stacks.scaled import ScaledStack

IMAGE = Image(id="ami-0123456789abcdef0", parameter="/aws/service/x", at="2026-12-04")
RELEASE = KubernetesRelease(
    version="1.35", release_version="1.35.2-20261120", parameter="/aws/service/y", at="2026-12-04"
)
SETTINGS = Settings(backend=Backend(), state_path="/state.json", endpoint=None, adopted={})

BASE: dict[str, Any] = {
    "name": "chat",
    "tier": "prototype",
    "site": "aws/us-east-1",
    "model": {
        "target": "meta-llama/Llama-3.1-8B-Instruct",
        "draft": "meta-llama/Llama-3.2-1B-Instruct",
        "max_model_len": 8192,
    },
    "serving": {
        "engine": "vllm",
        "speculation": {"method": "draft_model", "draft_tokens": 5},
    },
    "load": {"sessions": 20, "prompt_tokens": 1024, "output_tokens": 256, "think_s": 10},
    "sla": {"ttft_p95_ms": 400},
    "budget": {"usd_per_month": 3500},
    "fleet": {"schedule": "weekdays 08-20 Europe/Vienna"},
    "aws": {
        "network": {"clients": ["10.20.0.0/16", "fd00:20::/32"]},
        "weights": {"bucket": "acme-models", "prefix": "llama/"},
        "hub_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf",
        "alarm_emails": ["ops@example.com"],
    },
    "tags": {"team": "search", "cost_center": "42"},
}
SCALED: dict[str, Any] = BASE | {
    "name": "answers",
    "tier": "scaled",
    "model": {
        "target": "meta-llama/Llama-3.1-70B-Instruct",
        "draft": "meta-llama/Llama-3.2-1B-Instruct",
        "max_model_len": 8192,
    },
    "budget": {"usd_per_month": 22000},
    "fleet": {"nodes": {"min": 2, "max": 4}},
    "aws": BASE["aws"]
    | {
        "network": {"operators": ["203.0.113.7/32"]},
        "weights": {"bucket": "acme-models", "prefix": "llama/", "lustre_gib": 1200},
    },
}

Build = Callable[..., AwsStack]


def deployment(base: Mapping[str, Any] = BASE, **changes: Any) -> Deployment:
    """A deployment file's content, checked; ``changes`` replace whole keys."""
    return Deployment.model_validate({**base, **changes})


def build(
    base: Mapping[str, Any] = BASE, settings: Settings = SETTINGS, **changes: Any
) -> AwsStack:
    """The stack of a deployment, judged as a whole."""
    of = deployment(base, **changes)
    fleet = resolve(of)
    app = cdk.App(skip_validation=True)
    stack: AwsStack
    if fleet.orchestration == "eks":
        stack = ScaledStack(app, of, fleet, RELEASE, settings=settings)
    else:
        stack = PrototypeStack(app, of, fleet, IMAGE, settings=settings)
    stack.finish()
    return stack


def terraform(stack: AwsStack) -> dict[str, Any]:
    """The stack as Terraform JSON, without the CDK's own notes."""
    found: dict[str, Any] = _without_notes(json.loads(json.dumps(stack.to_terraform())))
    return found


def _without_notes(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_notes(below) for key, below in value.items() if key != "//"}
    if isinstance(value, list):
        return [_without_notes(below) for below in value]
    return value


@pytest.fixture(scope="session")
def prototype() -> dict[str, Any]:
    """The prototype tier with everything that it can have."""
    return terraform(build())


@pytest.fixture(scope="session")
def scaled() -> dict[str, Any]:
    """The scaled tier with everything that it can have."""
    return terraform(build(SCALED))
