"""Deployments of the tiny pair, to be varied by the tests."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Protocol

import pytest

from infra.spec.model import Deployment

ROOT = Path(__file__).parents[3]

BASE: dict[str, Any] = {
    "name": "chat",
    "tier": "local",
    "site": "local",
    "model": {
        "target": "models/tiny/target.gguf",
        "draft": "models/tiny/draft.gguf",
        "max_model_len": 512,
    },
    "serving": {
        "engine": "llamacpp",
        "speculation": {"method": "draft_model", "draft_tokens": 4},
    },
    "load": {"sessions": 4, "prompt_tokens": 128, "output_tokens": 64},
    "sla": {"ttft_p95_ms": 400, "speculation": {"mean_acceptance_length_min": 1.5}},
}


class MakeDeployment(Protocol):
    """``make(**{"model.target": "x"})``: the base deployment with keys replaced (None: removed)."""

    def __call__(self, **changes: Any) -> Deployment: ...


@pytest.fixture
def make() -> MakeDeployment:
    def build(**changes: Any) -> Deployment:
        content = copy.deepcopy(BASE)
        for key, value in changes.items():
            *parents, last = key.split(".")
            place = content
            for parent in parents:
                place = place[parent]
            if value is None:
                del place[last]
            else:
                place[last] = value
        return Deployment.model_validate(content)

    return build


@pytest.fixture
def root() -> Path:
    """The project's root, where models/tiny lies."""
    return ROOT


@pytest.fixture
def fixtures() -> Path:
    return Path(__file__).parent / "fixtures"
