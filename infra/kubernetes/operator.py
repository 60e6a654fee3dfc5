"""The KubeRay operator: a Helm chart of a fixed version, with values of ours."""

from __future__ import annotations

from typing import Any

from infra.kubernetes.inputs import POOL_LABEL, SYSTEM_POOL, Cluster
from infra.kubernetes.names import NAMESPACE
from infra.spec.model import Deployment


def values(deployment: Deployment, cluster: Cluster) -> dict[str, Any]:
    """The chart's values. The operator watches the deployment's namespace and has rights there
    alone: Roles in place of ClusterRoles."""
    repository, _, tag = cluster.images.kuberay_operator.partition("@")[0].rpartition(":")
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"},
        "singleNamespaceInstall": True,
        "crNamespacedRbacEnable": True,
        "watchNamespace": [NAMESPACE],
        "nodeSelector": {POOL_LABEL: SYSTEM_POOL},
        "resources": {
            "requests": {"cpu": "100m", "memory": "512Mi"},
            # The chart's 100m holds the operator back while it makes a cluster.
            "limits": {"cpu": "500m", "memory": "512Mi"},
        },
        "podSecurityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "env": [
            # Probes are what tells Kubernetes that a Ray process is stuck.
            {"name": "ENABLE_PROBES_INJECTION", "value": "true"},
        ],
    }
