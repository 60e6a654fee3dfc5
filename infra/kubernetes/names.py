"""Names and labels, made in one place so that selectors always meet what they select."""

from __future__ import annotations

from typing import Any

from infra.kubernetes.inputs import Object
from infra.spec.model import Deployment

#: Labels that KubeRay puts on the pods of a cluster; network policies and budgets select by them.
RAY_NODE_TYPE, RAY_GROUP = "ray.io/node-type", "ray.io/group"
WORKER_GROUP = "gpu"

#: What serves. A cluster is one deployment's, so it needs no other name; Terraform ties the role
#: that may read weights to the account ``engine`` in this namespace.
NAMESPACE = "specrack"
OPERATOR_NAMESPACE = "kuberay-system"
SYSTEM_NAMESPACE = "kube-system"

SERVE_PORT, DASHBOARD_PORT, GCS_PORT, METRICS_PORT = 8000, 8265, 6379, 8080

#: The Secret with the model hub's token, and its key. The value never passes through here.
HUB_SECRET, HUB_KEY = "hub-token", "token"

ENGINE_ACCOUNT = "engine"
AUTOSCALER = "cluster-autoscaler"


def labels_of(deployment: Deployment, component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": component,
        "app.kubernetes.io/part-of": "specrack",
        "app.kubernetes.io/managed-by": "specrack",
        "specrack/deployment": deployment.name,
    }


def thing(
    api: str,
    kind: str,
    name: str,
    deployment: Deployment,
    *,
    namespace: str | None,
    component: str | None = None,
    annotations: dict[str, str] | None = None,
    **content: Any,
) -> Object:
    """An object with its metadata. ``namespace`` None: of the whole cluster."""
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["labels"] = labels_of(deployment, component or name)
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}
