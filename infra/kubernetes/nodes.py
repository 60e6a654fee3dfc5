"""Nodes for pods that find no room: the Cluster Autoscaler.

One chain: Ray Serve wants more replicas, Ray's autoscaler wants more pods, and this one raises the
node group. Not Karpenter: it makes launch templates of its own, without the EFA interfaces, the
placement group and the reservation that ours has.
"""

from __future__ import annotations

from infra.fleet import ResolvedFleet
from infra.kubernetes.inputs import POOL_LABEL, SYSTEM_POOL, Cluster, Object
from infra.kubernetes.names import AUTOSCALER, SYSTEM_NAMESPACE, thing
from infra.kubernetes.versions import cluster_autoscaler_image
from infra.spec.model import Deployment

#: How long a node is idle before it is given back. Loading 70B again takes minutes, so not at once.
SCALE_DOWN_AFTER = "10m"
#: A p4d takes minutes to boot, pull an image of tens of GB and join.
PROVISION_LIMIT = "30m"


def autoscaler(
    deployment: Deployment, fleet: ResolvedFleet, cluster: Cluster
) -> tuple[Object, ...]:
    """The autoscaler and what it may do; nothing where the node group never changes.

    Raises UnsupportedError when no version of it is pinned for the cluster's Kubernetes.
    """
    if fleet.nodes_min == fleet.nodes_max:
        return ()
    image = cluster_autoscaler_image(cluster.kubernetes)
    selected = {"app.kubernetes.io/name": AUTOSCALER}
    annotations = {}
    if cluster.autoscaler_role_arn is not None:
        annotations["eks.amazonaws.com/role-arn"] = cluster.autoscaler_role_arn
    account = thing(
        "v1", "ServiceAccount", AUTOSCALER, deployment,
        namespace=SYSTEM_NAMESPACE, annotations=annotations,
    )  # fmt: skip
    tags = f"k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/{cluster.name}"
    command = [
        "./cluster-autoscaler",
        "--cloud-provider=aws",
        f"--node-group-auto-discovery=asg:tag={tags}",
        "--expander=least-waste",
        "--balance-similar-node-groups=false",
        # Engines keep nothing on a node that another node could not load again.
        "--skip-nodes-with-local-storage=false",
        "--skip-nodes-with-system-pods=false",
        f"--scale-down-unneeded-time={SCALE_DOWN_AFTER}",
        f"--scale-down-delay-after-add={SCALE_DOWN_AFTER}",
        f"--max-node-provision-time={PROVISION_LIMIT}",
        "--stderrthreshold=info",
        "--v=2",
    ]
    container = {
        "name": AUTOSCALER,
        "image": image,
        "command": command,
        "env": [{"name": "AWS_REGION", "value": cluster.region}],
        "ports": [{"name": "metrics", "containerPort": 8085}],
        "livenessProbe": {
            "httpGet": {"path": "/health-check", "port": "metrics"},
            "initialDelaySeconds": 30,
            "periodSeconds": 30,
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "600Mi"},
            "limits": {"memory": "600Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    workload = thing(
        "apps/v1", "Deployment", AUTOSCALER, deployment, namespace=SYSTEM_NAMESPACE,
        spec={
            "replicas": 1,
            "selector": {"matchLabels": selected},
            # Never two of them, each with its own idea of the node group.
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {
                    "labels": selected | {"app.kubernetes.io/part-of": "specrack"},
                    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
                },
                "spec": {
                    "serviceAccountName": AUTOSCALER,
                    "priorityClassName": "system-cluster-critical",
                    "nodeSelector": {POOL_LABEL: SYSTEM_POOL},
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65534,
                        "fsGroup": 65534,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                },
            },
        },
    )  # fmt: skip
    return account, *_access(deployment), workload


#: (API group, resources, verbs): what the autoscaler's simulation reads and what it changes, after
#: the autoscaler's own example for AWS, without what needs features that are off here.
_CLUSTER_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("events", "endpoints"), ("create", "patch")),
    ("", ("pods/eviction",), ("create",)),
    ("", ("pods/status",), ("update",)),
    ("", ("nodes",), ("watch", "list", "get", "update")),
    ("", ("namespaces", "pods", "services", "replicationcontrollers", "persistentvolumeclaims",
          "persistentvolumes"), ("watch", "list", "get")),
    ("apps", ("statefulsets", "replicasets", "daemonsets"), ("watch", "list", "get")),
    ("policy", ("poddisruptionbudgets",), ("watch", "list")),
    ("storage.k8s.io", ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities",
                        "volumeattachments"), ("watch", "list", "get")),
    ("batch", ("jobs", "cronjobs"), ("watch", "list", "get")),
    ("resource.k8s.io", ("resourceclaims", "resourceslices", "deviceclasses"),
     ("watch", "list", "get")),
    ("coordination.k8s.io", ("leases",), ("create",)),
)  # fmt: skip


def _access(deployment: Deployment) -> tuple[Object, ...]:
    rules: list[Object] = [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
        for group, resources, verbs in _CLUSTER_RULES
    ]
    own = {"resourceNames": [AUTOSCALER], "verbs": ["get", "update"]}
    rules += [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], **own},
        {"apiGroups": [""], "resources": ["endpoints"], **own},
    ]
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "ServiceAccount", "name": AUTOSCALER, "namespace": SYSTEM_NAMESPACE}]
    status = ["cluster-autoscaler-status"]
    return (
        thing(f"{group}/v1", "ClusterRole", AUTOSCALER, deployment, namespace=None, rules=rules),
        thing(
            f"{group}/v1", "ClusterRoleBinding", AUTOSCALER, deployment, namespace=None,
            roleRef={"apiGroup": group, "kind": "ClusterRole", "name": AUTOSCALER},
            subjects=subjects,
        ),
        thing(
            f"{group}/v1", "Role", AUTOSCALER, deployment, namespace=SYSTEM_NAMESPACE,
            rules=[
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
                {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": status,
                 "verbs": ["get", "update", "delete", "watch"]},
            ],
        ),
        thing(
            f"{group}/v1", "RoleBinding", AUTOSCALER, deployment, namespace=SYSTEM_NAMESPACE,
            roleRef={"apiGroup": group, "kind": "Role", "name": AUTOSCALER},
            subjects=subjects,
        ),
    )  # fmt: skip
