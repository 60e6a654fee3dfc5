"""Which launch plan a deployment gets on its hosts."""

from __future__ import annotations

import os
from pathlib import Path

from infra.errors import UnsupportedError
from infra.serving.adapters import Node, adapter
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment


def plan_for(deployment: Deployment, *, root: Path) -> LaunchPlan:
    """The launch plan of ``deployment``. Raises UnsupportedError."""
    return adapter(deployment.serving.engine).launch_plan(
        deployment, node_of(deployment, root=root), baseline=needs_baseline(deployment)
    )


def needs_baseline(deployment: Deployment) -> bool:
    """Does the SLA compare with speculation off? Then the same engine runs without it as well."""
    clauses = deployment.sla.speculation
    return clauses is not None and (
        clauses.speedup_min is not None or clauses.output == "identical"
    )


def node_of(deployment: Deployment, *, root: Path) -> Node:
    """The machine that the deployment's servers run on. Raises UnsupportedError."""
    if deployment.site != "local":
        raise UnsupportedError(
            f"{deployment.name}: there is no launch plan for site {deployment.site} yet",
            do="site local is the one that can be deployed today",
        )
    # Half the cores: the other half is the load generator's, which must not be late.
    threads = max(1, (os.cpu_count() or 1) // 2)
    # Two servers share the threads where there is a baseline; A/B runs load one at a time.
    return Node(kind="cpu", gpus=0, threads=threads, root=str(root))
