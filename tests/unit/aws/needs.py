"""Needs of small deployments, made by the real resolver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from infra.aws.need import Need, Pinned, need_of
from infra.fleet import resolve
from infra.spec.model import Deployment

RESERVATION = "cr-0aaaaaaaaaaaaaaaa"
VPC, SUBNET, OTHER_SUBNET = "vpc-0aaaaaaaa", "subnet-0aaaaaaaa", "subnet-0bbbbbbbb"
PINNED = {
    "prototype": Pinned(image="ami-0aaaaaaaaaaaaaaaa"),
    "scaled": Pinned(kubernetes="1.35", release_version="1.35.4-20261120"),
}


def deployment(**changes: Any) -> Deployment:
    """A deployment on AWS: tier prototype unless ``tier`` says otherwise."""
    data: dict[str, Any] = {
        "name": "chat",
        "tier": "prototype",
        "site": "aws/us-east-1",
        "model": {"target": "big", "draft": "small", "max_model_len": 8192},
        "serving": {
            "engine": "vllm",
            "speculation": {"method": "draft_model", "draft_tokens": 5},
        },
        "load": {"sessions": 20, "prompt_tokens": 1024, "output_tokens": 256},
        "sla": {"ttft_p95_ms": 400},
        "budget": {"usd_per_month": 3500},
    }
    return Deployment.model_validate(data | changes)


def need(*, surge: int = 0, pinned: Pinned | None = None, **changes: Any) -> Need:
    """What ``deployment(**changes)`` needs."""
    made = deployment(**changes)
    return need_of(
        made, resolve(made), pinned=PINNED[made.tier] if pinned is None else pinned, surge=surge
    )


def scaled(*, surge: int = 0, **fleet: Any) -> Need:
    """Two p4d.24xlarge on EKS in us-east-1a, unless ``fleet`` says otherwise."""
    return need(
        tier="scaled",
        fleet={"nodes": {"min": 2, "max": 2}, "zone": "us-east-1a"} | fleet,
        surge=surge,
    )


def reserved(count: int = 2, *, surge: int = 0, **fleet: Any) -> Need:
    """``count`` machines of ``scaled`` on reservation RESERVATION."""
    base = {"buy": "reservation", "reservation": RESERVATION, "nodes": {"min": count, "max": count}}
    return scaled(surge=surge, **(base | fleet))


def in_vpc(made: Need, *subnets: str) -> Need:
    """The same in an existing VPC."""
    return replace(made, vpc=VPC, subnets=subnets or (SUBNET,), other_zone=None)
