"""Namespaces and service accounts."""

from __future__ import annotations

from infra.kubernetes.inputs import Cluster, Object
from infra.kubernetes.names import ENGINE_ACCOUNT, NAMESPACE, OPERATOR_NAMESPACE, thing
from infra.spec.model import Deployment

_POD_SECURITY = "pod-security.kubernetes.io"


def namespaces(deployment: Deployment) -> tuple[Object, ...]:
    """Applied before everything else: Helm and the rest need them.

    ``baseline`` is enforced for what serves: engines run as root in their vendors' images, which
    ``restricted`` refuses; it is told as a warning. The operator meets ``restricted``.
    """
    return (
        _namespace(deployment, OPERATOR_NAMESPACE, enforce="restricted"),
        _namespace(deployment, NAMESPACE, enforce="baseline"),
    )


def _namespace(deployment: Deployment, name: str, *, enforce: str) -> Object:
    made = thing("v1", "Namespace", name, deployment, namespace=None)
    made["metadata"]["labels"] |= {
        f"{_POD_SECURITY}/enforce": enforce,
        f"{_POD_SECURITY}/warn": "restricted",
        f"{_POD_SECURITY}/audit": "restricted",
    }
    return made


def engine_account(deployment: Deployment, cluster: Cluster) -> Object:
    """The workers' account: no token for the Kubernetes API, at most a role to read weights.

    The head has the account that the operator makes for it: the Ray autoscaler in it may change
    its own RayCluster, and nothing else.
    """
    annotations = {}
    if cluster.weights_role_arn is not None:
        annotations["eks.amazonaws.com/role-arn"] = cluster.weights_role_arn
    return thing(
        "v1",
        "ServiceAccount",
        ENGINE_ACCOUNT,
        deployment,
        namespace=NAMESPACE,
        annotations=annotations,
        automountServiceAccountToken=False,
    )
