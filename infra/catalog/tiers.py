"""Tiers: what a deployment may name as ``tier``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from infra.catalog.values import Count, Frozen, Rows, SourceIds, Span, Texts, Usd, UsdSpan

SiteKind = Literal["aws", "rack", "local"]
Fabric = Literal["none", "efa", "infiniband"]


class Nodes(Span):
    """Which machine, and how many of it. ``instance`` names a row of ``data/instances/``."""

    instance: str
    source: SourceIds
    note: str | None = None


class Engines(Frozen):
    """Engines that the tier offers, by their names in deployment files."""

    default: str
    offered: Texts

    @model_validator(mode="after")
    def _default_is_offered(self) -> Self:
        if self.default not in self.offered:
            raise ValueError(f"the default engine {self.default} is not offered")
        return self


class DefaultSpeculation(Frozen):
    """What a new deployment on the tier starts with, and why."""

    method: str
    draft_tokens: Count | None
    reason: str
    source: SourceIds


class Pair(Frozen):
    """Model names as the brief gives them; None where it is silent."""

    draft: str | None
    target: str | None


class Asked(Frozen):
    """What the brief asks of the tier, word for word."""

    sessions: Span
    usd_per_month: UsdSpan
    usd_per_1k_session_seconds: Usd
    models: Pair
    stack: Texts
    cost_allocation: str
    autoscaling: str
    source: SourceIds


class Better(Frozen):
    """What is better today beside what was asked, with the reason and the figure."""

    use: str
    instead_of: str
    reason: str
    source: SourceIds


class Kubernetes(Frozen):
    """The Kubernetes version of a new cluster."""

    version: Annotated[str, Field(pattern=r"^1\.\d{2}$")]
    source: SourceIds


class Tier(Frozen):
    """A tier. ``tensor_parallel``: GPUs that one replica of the served model uses."""

    title: str
    nodes: Nodes
    tensor_parallel: Count
    #: Between nodes. GPUs of one node: see the instance.
    fabric: Fabric
    #: What the machines are joined by: nothing (each one is configured by itself) or EKS.
    orchestration: Literal["hosts", "eks"] = "hosts"
    #: For ``eks``: the Kubernetes version of a new cluster.
    kubernetes: Kubernetes | None = None
    sites: Annotated[tuple[SiteKind, ...], Rows, Field(min_length=1)]
    engines: Engines
    speculation: DefaultSpeculation
    scheduler: str
    source: SourceIds
    #: The provider in ``market.yaml`` whose rate is planned with, where no list price exists.
    market_rate: str | None = None
    asked: Asked | None = None
    better: Annotated[tuple[Better, ...], Rows] = ()
