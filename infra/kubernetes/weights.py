"""Where a worker's weights come from: FSx for Lustre, a bucket, or the model hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infra.fleet import ResolvedFleet
from infra.kubernetes.inputs import MODELS, Cluster, FileSystem, Object
from infra.kubernetes.names import NAMESPACE, thing
from infra.spec.model import Deployment

CLAIM = "weights"
_DRIVER = "fsx.csi.aws.com"


@dataclass(frozen=True, slots=True)
class Source:
    """What it adds to the cluster and to a worker's pod."""

    objects: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()
    mounts: tuple[Object, ...] = ()
    init_containers: tuple[Object, ...] = ()


def source_of(deployment: Deployment, fleet: ResolvedFleet, cluster: Cluster) -> Source:
    """FSx when there is a file system, else the bucket when one is named, else nothing: the engine
    then downloads from the hub into its cache."""
    if cluster.file_system is not None:
        return _lustre(deployment, cluster.file_system)
    if deployment.aws is not None and deployment.aws.weights is not None:
        return _bucket(deployment, fleet, cluster)
    return Source()


def _lustre(deployment: Deployment, system: FileSystem) -> Source:
    """A volume that exists already (static provisioning): nothing is made, nothing deleted."""
    name = f"{NAMESPACE}-{CLAIM}"
    size = {"storage": f"{system.capacity_gib}Gi"}
    volume = thing(
        "v1", "PersistentVolume", name, deployment, namespace=None, component=CLAIM,
        spec={
            "capacity": size,
            "accessModes": ["ReadOnlyMany"],
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": ["flock", "ro"],
            "claimRef": {"namespace": NAMESPACE, "name": CLAIM},
            "csi": {
                "driver": _DRIVER,
                "volumeHandle": system.id,
                "readOnly": True,
                "volumeAttributes": {
                    "dnsname": system.dns_name,
                    "mountname": system.mount_name,
                },
            },
        },
    )  # fmt: skip
    claim = thing(
        "v1", "PersistentVolumeClaim", CLAIM, deployment, namespace=NAMESPACE,
        spec={
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "volumeName": name,
            "resources": {"requests": size},
        },
    )  # fmt: skip
    return Source(
        objects=(volume, claim),
        volumes=(
            {"name": "weights", "persistentVolumeClaim": {"claimName": CLAIM, "readOnly": True}},
        ),
        mounts=({"name": "weights", "mountPath": MODELS, "readOnly": True},),
    )


def _bucket(deployment: Deployment, fleet: ResolvedFleet, cluster: Cluster) -> Source:
    assert deployment.aws is not None
    weights = deployment.aws.weights
    assert weights is not None
    # On the node's own disks; a subfolder of the cache, so that both share what room there is.
    mount = {"name": "cache", "mountPath": MODELS, "subPath": "models"}
    container: dict[str, Any] = {
        "name": "weights",
        "image": cluster.images.aws_cli,
        # What is there already (a restarted container) is not copied again.
        "command": [
            "aws", "s3", "sync", "--no-progress", "--only-show-errors",
            f"s3://{weights.bucket}/{weights.prefix}", MODELS,
        ],
        "env": [
            {"name": "AWS_REGION", "value": fleet.region},
            {"name": "AWS_MAX_ATTEMPTS", "value": "10"},
            {"name": "AWS_RETRY_MODE", "value": "adaptive"},
        ],
        "resources": {
            "requests": {"cpu": "4", "memory": "4Gi"},
            "limits": {"memory": "8Gi"},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [mount],
    }  # fmt: skip
    return Source(
        mounts=(mount | {"readOnly": True},),
        init_containers=(container,),
    )
