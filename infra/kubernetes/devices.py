"""Device plugins: what makes accelerators and EFA interfaces countable for the scheduler."""

from __future__ import annotations

from typing import Any

from infra.errors import UnsupportedError
from infra.fleet import ResolvedFleet
from infra.kubernetes.inputs import GPU_POOL, POOL_LABEL, Object
from infra.kubernetes.names import SYSTEM_NAMESPACE, thing
from infra.kubernetes.versions import Images
from infra.spec.model import Deployment

EFA_RESOURCE = "vpc.amazonaws.com/efa"
#: By vendor of the accelerator.
ACCELERATOR_RESOURCES = {"nvidia": "nvidia.com/gpu", "aws": "aws.amazon.com/neuron"}

_PLUGINS = "/var/lib/kubelet/device-plugins"


def accelerator_resource(fleet: ResolvedFleet) -> str:
    """The resource that a worker asks for. Raises UnsupportedError."""
    try:
        return ACCELERATOR_RESOURCES[fleet.accelerator_vendor]
    except KeyError:
        raise UnsupportedError(
            f"{fleet.instance.name} has accelerators of {fleet.accelerator_vendor}, for which "
            "there is no device plugin here"
        ) from None


def tolerations(fleet: ResolvedFleet) -> list[dict[str, str]]:
    """Of everything that may run on the nodes with accelerators, which are tainted."""
    return [{"key": accelerator_resource(fleet), "operator": "Exists", "effect": "NoSchedule"}]


def plugins(deployment: Deployment, fleet: ResolvedFleet, images: Images) -> tuple[Object, ...]:
    """The plugin for the accelerators, and the one for EFA where there is EFA."""
    if fleet.accelerator_vendor == "nvidia":
        made = [_nvidia(deployment, fleet, images)]
    else:
        made = [_neuron(deployment, fleet, images), *_neuron_access(deployment)]
    if fleet.uses_efa:
        made.append(_efa(deployment, fleet, images))
    return tuple(made)


def _nvidia(deployment: Deployment, fleet: ResolvedFleet, images: Images) -> Object:
    container = {
        "name": "nvidia-device-plugin",
        "image": images.nvidia_device_plugin,
        # A GPU that fails is taken out of the node's count, and the pod that had it is told.
        "env": [{"name": "FAIL_ON_INIT_ERROR", "value": "true"}],
        "resources": _small(),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "device-plugins", "mountPath": _PLUGINS}],
    }
    volumes = [_host("device-plugins", _PLUGINS)]
    return _daemon_set(deployment, fleet, "nvidia-device-plugin", container, volumes)


def _neuron(deployment: Deployment, fleet: ResolvedFleet, images: Images) -> Object:
    container = {
        "name": "neuron-device-plugin",
        "image": images.neuron_device_plugin,
        "env": [
            {"name": "KUBECONFIG", "value": "/etc/kubernetes/kubelet.conf"},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "resources": _small(),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "device-plugins", "mountPath": _PLUGINS},
            {"name": "infa-map", "mountPath": "/run"},
        ],
    }
    volumes = [_host("device-plugins", _PLUGINS), _host("infa-map", "/run")]
    made = _daemon_set(deployment, fleet, "neuron-device-plugin", container, volumes)
    pod = made["spec"]["template"]["spec"]
    pod["serviceAccountName"] = "neuron-device-plugin"
    pod["automountServiceAccountToken"] = True
    return made


def _neuron_access(deployment: Deployment) -> tuple[Object, ...]:
    """What the Neuron plugin does with the API: it writes its node's allocation as annotations."""
    name = "neuron-device-plugin"
    account = thing("v1", "ServiceAccount", name, deployment, namespace=SYSTEM_NAMESPACE)
    role = thing(
        "rbac.authorization.k8s.io/v1", "ClusterRole", name, deployment, namespace=None,
        rules=[
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": [""], "resources": ["pods"],
             "verbs": ["get", "list", "watch", "update", "patch"]},
            {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
        ],
    )  # fmt: skip
    binding = thing(
        "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name, deployment, namespace=None,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}],
    )  # fmt: skip
    return account, role, binding


def _efa(deployment: Deployment, fleet: ResolvedFleet, images: Images) -> Object:
    container = {
        "name": "efa-device-plugin",
        "image": images.efa_device_plugin,
        "resources": _small(),
        # As AWS's own chart: it opens the devices of the host.
        "securityContext": {"privileged": True, "allowPrivilegeEscalation": True, "runAsUser": 0},
        "volumeMounts": [
            {"name": "device-plugins", "mountPath": _PLUGINS},
            {"name": "infiniband", "mountPath": "/dev/infiniband"},
            {"name": "neuron-tools", "mountPath": "/opt/aws/neuron"},
        ],
    }
    volumes = [
        _host("device-plugins", _PLUGINS),
        _host("infiniband", "/dev/infiniband"),
        _host("neuron-tools", "/opt/aws/neuron", kind="DirectoryOrCreate"),
    ]
    made = _daemon_set(deployment, fleet, "efa-device-plugin", container, volumes)
    made["spec"]["template"]["spec"]["hostNetwork"] = True
    return made


def _daemon_set(
    deployment: Deployment,
    fleet: ResolvedFleet,
    name: str,
    container: dict[str, Any],
    volumes: list[dict[str, Any]],
) -> Object:
    selected = {"app.kubernetes.io/name": name}
    return thing(
        "apps/v1",
        "DaemonSet",
        name,
        deployment,
        namespace=SYSTEM_NAMESPACE,
        spec={
            "selector": {"matchLabels": selected},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": selected | {"app.kubernetes.io/part-of": "specrack"}},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "automountServiceAccountToken": False,
                    "nodeSelector": {POOL_LABEL: GPU_POOL},
                    "tolerations": [
                        {"key": "CriticalAddonsOnly", "operator": "Exists"},
                        *tolerations(fleet),
                    ],
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    )


def _small() -> dict[str, dict[str, str]]:
    # Small, and without a limit on CPU: a plugin that is held back loses the node its devices.
    return {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}


def _host(name: str, path: str, *, kind: str = "Directory") -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path, "type": kind}}
