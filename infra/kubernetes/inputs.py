"""What the objects are rendered from, beside the deployment, its fleet and its launch plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from infra.kubernetes.versions import Images

#: One object, as it would be written in YAML.
Object = dict[str, Any]

#: The project's root inside the workers: model paths of a launch plan are relative to it.
ROOT = "/srv/specrack"
#: Where weights from FSx or S3 are: ``models/...`` of the deployment file.
MODELS = f"{ROOT}/models"

#: Labels of the two node groups. The cluster's Terraform sets them.
POOL_LABEL = "specrack/pool"
GPU_POOL, SYSTEM_POOL = "gpu", "system"

FIELD_MANAGER = "specrack"


@dataclass(frozen=True, slots=True)
class FileSystem:
    """An FSx for Lustre file system with the weights, and what a client must know to mount it."""

    id: str
    dns_name: str
    mount_name: str
    capacity_gib: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """The EKS cluster, as Terraform's outputs describe it.

    Roles are for service accounts (IRSA); None: the role is tied to the account by EKS Pod
    Identity, or there is none. ``kubernetes``: minor version, such as 1.35.
    """

    name: str
    region: str
    kubernetes: str
    autoscaler_role_arn: str | None = None
    weights_role_arn: str | None = None
    file_system: FileSystem | None = None
    #: Namespaces whose pods may reach the serving port as well (a gateway, Prometheus).
    client_namespaces: tuple[str, ...] = ()
    images: Images = field(default_factory=Images)
