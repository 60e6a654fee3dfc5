"""Who may talk to whom, and the address of the serving port."""

from __future__ import annotations

from typing import Any

from infra.kubernetes.inputs import Cluster, Object
from infra.kubernetes.names import (
    DASHBOARD_PORT,
    NAMESPACE,
    OPERATOR_NAMESPACE,
    RAY_NODE_TYPE,
    SERVE_PORT,
    thing,
)
from infra.spec.model import Deployment

_BALANCER = "service.beta.kubernetes.io/aws-load-balancer"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def clients_of(deployment: Deployment) -> tuple[str, ...]:
    """The networks that may reach the serving port."""
    return deployment.aws.network.clients if deployment.aws is not None else ()


def serve_service(deployment: Deployment) -> Object:
    """The service in front of Serve; the operator points it at the cluster that is in use.

    With clients: a load balancer inside the VPC. The one that EKS itself makes: it needs no
    controller of its own, gives the source's address through, and keeps to the source ranges in
    the nodes' security group. Without clients: an address inside the cluster alone.
    """
    spec: dict[str, Any] = {
        "type": "ClusterIP",
        "ports": [{"name": "serve", "port": SERVE_PORT, "targetPort": SERVE_PORT}],
    }
    annotations = {}
    clients = clients_of(deployment)
    if clients:
        annotations = {
            f"{_BALANCER}-type": "nlb",
            f"{_BALANCER}-internal": "true",
            f"{_BALANCER}-cross-zone-load-balancing-enabled": "true",
        }
        spec |= {
            "type": "LoadBalancer",
            # Only nodes with a replica answer, and pods see the client's own address: the
            # network policy below decides by it.
            "externalTrafficPolicy": "Local",
            "loadBalancerSourceRanges": list(clients),
        }
    return thing(
        "v1", "Service", f"{deployment.name}-serve", deployment,
        namespace=NAMESPACE, annotations=annotations, spec=spec,
    )  # fmt: skip


def policies(deployment: Deployment, cluster: Cluster) -> tuple[Object, ...]:
    """Nothing comes in and nothing goes out, but: Ray's pods among themselves, the operator to the
    head, named clients to the serving port; out to DNS and HTTPS (hub, S3, the Kubernetes API).

    They hold only where the VPC CNI enforces them (``enableNetworkPolicy``). EFA's own traffic
    passes below them and is held by the security group.
    """
    every_pod: dict[str, Any] = {}
    ray_pods = {"matchExpressions": [{"key": RAY_NODE_TYPE, "operator": "Exists"}]}
    among = [{"podSelector": ray_pods}]
    outside = [
        {"ports": [_port(53, "UDP"), _port(53, "TCP")]},
        {"ports": [_port(443, "TCP")]},
    ]
    # EKS Pod Identity's agent, an address of the node itself.
    pod_identity = {
        "to": [{"ipBlock": {"cidr": "169.254.170.23/32"}}],
        "ports": [_port(80, "TCP")],
    }
    made = [
        _policy(deployment, "deny-all", every_pod, types=["Ingress", "Egress"]),
        _policy(
            deployment, "ray-among-itself", ray_pods, types=["Ingress", "Egress"],
            ingress=[{"from": among}], egress=[{"to": among}, *outside, pod_identity],
        ),
        _policy(
            deployment, "operator-to-ray", ray_pods, types=["Ingress"],
            ingress=[
                {"from": [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME:
                                                                 OPERATOR_NAMESPACE}}}],
                 "ports": [_port(DASHBOARD_PORT, "TCP"), _port(SERVE_PORT, "TCP")]},
            ],
        ),
    ]  # fmt: skip
    sources: list[Object] = [{"ipBlock": {"cidr": cidr}} for cidr in clients_of(deployment)]
    sources += [
        {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}}
        for name in cluster.client_namespaces
    ]
    if sources:
        workers = {"matchLabels": {RAY_NODE_TYPE: "worker"}}
        made.append(
            _policy(
                deployment, "clients-to-serve", workers, types=["Ingress"],
                ingress=[{"from": sources, "ports": [_port(SERVE_PORT, "TCP")]}],
            )
        )  # fmt: skip
    return tuple(made)


def _policy(
    deployment: Deployment, name: str, pods: Object, *, types: list[str], **rules: Any
) -> Object:
    return thing(
        "networking.k8s.io/v1", "NetworkPolicy", name, deployment,
        namespace=NAMESPACE, component="network",
        spec={"podSelector": pods, "policyTypes": types, **rules},
    )  # fmt: skip


def _port(port: int, protocol: str) -> Object:
    return {"port": port, "protocol": protocol}
