"""The RayService: Serve's configuration, and the Ray cluster that it runs on."""

from __future__ import annotations

import json
from typing import Any

from infra.fleet import ResolvedFleet
from infra.kubernetes import files
from infra.kubernetes.devices import EFA_RESOURCE, accelerator_resource, tolerations
from infra.kubernetes.inputs import GPU_POOL, POOL_LABEL, ROOT, SYSTEM_POOL, Cluster, Object
from infra.kubernetes.names import (
    DASHBOARD_PORT,
    ENGINE_ACCOUNT,
    GCS_PORT,
    HUB_KEY,
    HUB_SECRET,
    METRICS_PORT,
    NAMESPACE,
    RAY_GROUP,
    SERVE_PORT,
    WORKER_GROUP,
    labels_of,
    thing,
)
from infra.kubernetes.network import serve_service
from infra.kubernetes.room import OBJECT_STORE_GIB, Room, room_of
from infra.kubernetes.serving import DRAIN_S, NODE_RESOURCE, serve_config
from infra.kubernetes.versions import RAY, engine_image
from infra.kubernetes.weights import Source
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment

#: After so long without a replica Ray gives a worker back.
IDLE_TIMEOUT_S = 120

_SHM = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 - a mount of the pod's own
_SAFE = {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}}
_NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def ray_service(
    deployment: Deployment,
    fleet: ResolvedFleet,
    cluster: Cluster,
    plan: LaunchPlan,
    *,
    config_maps: dict[str, Object],
    weights: Source,
) -> Object:
    """The whole RayService. Raises UnsupportedError where the fleet or engine cannot be used."""
    names = {what: made["metadata"]["name"] for what, made in config_maps.items()}
    return thing(
        "ray.io/v1",
        "RayService",
        deployment.name,
        deployment,
        namespace=NAMESPACE,
        component="ray",
        spec={
            "serveConfigV2": json.dumps(serve_config(deployment, fleet, plan), indent=2) + "\n",
            "serveService": _embedded(serve_service(deployment)),
            # The head is on a small CPU node: traffic goes straight to the workers.
            "excludeHeadPodFromServeSvc": True,
            "upgradeStrategy": {"type": upgrade_type(fleet)},
            "rayClusterConfig": {
                "rayVersion": RAY,
                # Ray asks for a token by default since 2.5x, and whoever reaches the dashboard
                # without one runs code here. The operator makes a Secret for each cluster.
                "authOptions": {"mode": "token"},
                "enableInTreeAutoscaling": True,
                "autoscalerOptions": {
                    "version": "v2",
                    # "Default" is not rate-limited: with at most a handful of nodes nothing is won
                    # by holding back.
                    "upscalingMode": "Default",
                    "idleTimeoutSeconds": IDLE_TIMEOUT_S,
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "1Gi"},
                        "limits": {"cpu": "500m", "memory": "1Gi"},
                    },
                    "securityContext": _SAFE | {"capabilities": {"drop": ["ALL"]}},
                },
                "headGroupSpec": _head(deployment, cluster, names),
                "workerGroupSpecs": [_workers(deployment, fleet, cluster, plan, names, weights)],
            },
        },
    )


def upgrade_type(fleet: ResolvedFleet) -> str:
    """What a change of the cluster's definition does.

    ``NewCluster``: a second cluster comes up beside the first, and takes over when it is ready;
    both must fit. ``None``: nothing happens until the RayService is deleted and made again.
    """
    return "NewCluster" if fleet.nodes_max >= 2 * fleet.nodes_min else "None"


def budget(deployment: Deployment) -> Object:
    """Of the workers, one at a time may be evicted (an upgrade of the node group does it)."""
    return thing(
        "policy/v1", "PodDisruptionBudget", "workers", deployment,
        namespace=NAMESPACE,
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": {RAY_GROUP: WORKER_GROUP}},
        },
    )  # fmt: skip


def _head(deployment: Deployment, cluster: Cluster, names: dict[str, str]) -> Object:
    container = {
        "name": "ray-head",
        "image": cluster.images.ray,
        "env": [
            {"name": "PYTHONPATH", "value": files.APP_FOLDER},
            *_ray_environment(),
        ],
        "ports": [
            {"name": "gcs-server", "containerPort": GCS_PORT},
            {"name": "dashboard", "containerPort": DASHBOARD_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "serve", "containerPort": SERVE_PORT},
        ],
        "resources": {
            "requests": {"cpu": "2", "memory": "8Gi"},
            "limits": {"cpu": "2", "memory": "8Gi"},
        },
        "securityContext": _SAFE | {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [_app_mount(), _SHM],
    }
    return {
        "rayStartParams": {
            # No replica, no task: the head only keeps the books.
            "num-cpus": "0",
            "dashboard-host": "0.0.0.0",  # noqa: S104 - in its own pod
            "object-store-memory": str(2**30),
        },
        "template": {
            "metadata": {"labels": labels_of(deployment, "ray-head"), "annotations": _NOT_EVICTED},
            "spec": {
                "nodeSelector": {POOL_LABEL: SYSTEM_POOL},
                "containers": [container],
                "volumes": [_app_volume(names), _memory("shm", 2)],
            },
        },
    }


def _workers(
    deployment: Deployment,
    fleet: ResolvedFleet,
    cluster: Cluster,
    plan: LaunchPlan,
    names: dict[str, str],
    weights: Source,
) -> Object:
    room = room_of(fleet.instance, efa=fleet.uses_efa)
    image = engine_image(cluster.images, plan.engine, plan.engine_version)
    has_ray = cluster.images.engine_has_ray
    mounts = [
        _app_mount(),
        {"name": "plan", "mountPath": files.PLAN_FOLDER, "readOnly": True},
        {"name": "ray-files", "mountPath": files.RAY_FILES_FOLDER, "readOnly": True},
        {"name": "ray", "mountPath": files.RAY_FOLDER, "readOnly": True},
        _SHM,
        {"name": "cache", "mountPath": f"{ROOT}/cache", "subPath": "cache"},
        {"name": "cache", "mountPath": f"{ROOT}/run", "subPath": "run"},
        *weights.mounts,
    ]
    container = {
        "name": "ray-worker",
        "image": image,
        "env": _engine_environment(deployment),
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "serve", "containerPort": SERVE_PORT},
        ],
        "resources": _worker_resources(fleet, room),
        # The operator's own probe needs wget, which an engine's image may not have. A worker gets
        # traffic while Serve's proxy on it is well.
        "readinessProbe": {
            "httpGet": {"path": "/-/healthz", "port": SERVE_PORT},
            "periodSeconds": 5,
            "timeoutSeconds": 3,
            "failureThreshold": 2,
        },
        "securityContext": _SAFE,
        "volumeMounts": mounts,
    }
    group: Object = {
        "groupName": WORKER_GROUP,
        "replicas": fleet.nodes_min,
        "minReplicas": fleet.nodes_min,
        "maxReplicas": fleet.nodes_max,
        "numOfHosts": 1,
        "rayStartParams": {"object-store-memory": str(OBJECT_STORE_GIB * 2**30)},
        "template": {
            "metadata": {
                "labels": labels_of(deployment, "ray-worker"),
                "annotations": _NOT_EVICTED,
            },
            "spec": {
                "serviceAccountName": ENGINE_ACCOUNT,
                "automountServiceAccountToken": False,
                "nodeSelector": {
                    POOL_LABEL: GPU_POOL,
                    "node.kubernetes.io/instance-type": fleet.instance.name,
                },
                "tolerations": tolerations(fleet),
                "terminationGracePeriodSeconds": int(DRAIN_S) + 60,
                "initContainers": [
                    *weights.init_containers,
                    *([] if has_ray else [_install_ray(image)]),
                ],
                "containers": [container],
                "volumes": [
                    _app_volume(names),
                    {"name": "plan", "configMap": {"name": names["plan"], "defaultMode": 0o444}},
                    {"name": "ray-files", "configMap": {"name": names["ray"],
                                                        "defaultMode": 0o444}},
                    {"name": "ray", "emptyDir": {"sizeLimit": "4Gi"}},
                    _memory("shm", room.shm_gib),
                    {"name": "cache", "emptyDir": {"sizeLimit": f"{room.cache_gib}Gi"}},
                    *weights.volumes,
                ],
            },
        },
    }  # fmt: skip
    if fleet.accelerator_vendor != "nvidia":
        group["resources"] = {"CPU": str(room.cpus), NODE_RESOURCE: "1"}
    return group


def _worker_resources(fleet: ResolvedFleet, room: Room) -> dict[str, dict[str, str]]:
    """All accelerators and all EFA interfaces: one worker a node. Requests are limits, so that no
    other pod can take memory or CPUs away, and the kubelet may give whole CPUs."""
    wanted = {
        "cpu": str(room.cpus),
        "memory": f"{room.memory_gib}Gi",
        accelerator_resource(fleet): str(fleet.instance.accelerators),
    }
    efa = sum(interface.kind != "interface" for interface in fleet.interfaces)
    if efa:
        wanted[EFA_RESOURCE] = str(efa)
        wanted["hugepages-2Mi"] = f"{room.huge_pages_mib}Mi"
    return {"requests": wanted, "limits": dict(wanted)}


def _install_ray(image: str) -> Object:
    return {
        "name": "ray",
        "image": image,
        "command": ["/bin/bash", "-c", files.install_ray()],
        "resources": {
            "requests": {"cpu": "1", "memory": "2Gi"},
            "limits": {"memory": "4Gi"},
        },
        "securityContext": _SAFE,
        "volumeMounts": [
            {"name": "ray", "mountPath": files.RAY_FOLDER},
            {"name": "ray-files", "mountPath": files.RAY_FILES_FOLDER, "readOnly": True},
        ],
    }


def _engine_environment(deployment: Deployment) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        # KubeRay starts Ray, and asks whether it is well, through bash -c.
        {"name": "BASH_ENV", "value": f"{files.RAY_FILES_FOLDER}/{files.ENVIRONMENT_NAME}"},
        {"name": "HF_HOME", "value": f"{ROOT}/cache/huggingface"},
        {"name": "XDG_CACHE_HOME", "value": f"{ROOT}/cache"},
        *_ray_environment(),
    ]
    if deployment.aws is not None and deployment.aws.hub_secret is not None:
        reference = {"name": HUB_SECRET, "key": HUB_KEY}
        made.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    return made


def _ray_environment() -> list[dict[str, str]]:
    return [
        {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"},
        # Head and workers have images of different makers: Python's last number may differ.
        {"name": "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "value": "minor"},
    ]


def _app_mount() -> Object:
    return {"name": "app", "mountPath": files.APP_FOLDER, "readOnly": True}


def _app_volume(names: dict[str, str]) -> Object:
    return {
        "name": "app",
        "configMap": {"name": names["app"], "defaultMode": 0o444, "items": files.app_items()},
    }


def _memory(name: str, gib: int) -> Object:
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": f"{gib}Gi"}}


def _embedded(service: Object) -> Object:
    """A service inside another object: without what the other object already says."""
    metadata = {key: value for key, value in service["metadata"].items() if key != "namespace"}
    return {"metadata": metadata, "spec": service["spec"]}
