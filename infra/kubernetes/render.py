"""Everything that is applied to a cluster for one deployment, in the order of application."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from infra.errors import UnsupportedError
from infra.fleet import ResolvedFleet
from infra.kubernetes import access, devices, files, network, nodes, operator, ray_service
from infra.kubernetes.inputs import Cluster, Object
from infra.kubernetes.names import NAMESPACE, OPERATOR_NAMESPACE
from infra.kubernetes.versions import KUBERAY, KUBERAY_CHART, KUBERAY_CHART_REPOSITORY
from infra.kubernetes.weights import source_of
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart with our values."""

    name: str
    version: str
    repository: str
    namespace: str
    values: dict[str, Any]


def namespaces(deployment: Deployment) -> tuple[Object, ...]:
    """The namespaces: they must exist before the chart and before ``objects``."""
    return access.namespaces(deployment)


def objects(
    deployment: Deployment, fleet: ResolvedFleet, launch_plan: LaunchPlan, cluster: Cluster
) -> tuple[Object, ...]:
    """All objects but the namespaces and what the operator's chart makes.

    Raises UnsupportedError for what a cluster cannot have.
    """
    if fleet.orchestration != "eks":
        raise UnsupportedError(f"{deployment.name}: its tier has no Kubernetes cluster")
    images = cluster.images
    maps = files.config_maps(deployment, launch_plan, engine_has_ray=images.engine_has_ray)
    weights = source_of(deployment, fleet, cluster)
    service = ray_service.ray_service(
        deployment, fleet, cluster, launch_plan, config_maps=maps, weights=weights
    )
    return (
        *devices.plugins(deployment, fleet, images),
        *nodes.autoscaler(deployment, fleet, cluster),
        *network.policies(deployment, cluster),
        access.engine_account(deployment, cluster),
        *weights.objects,
        *maps.values(),
        ray_service.budget(deployment),
        service,
    )


def chart(deployment: Deployment, cluster: Cluster) -> Chart:
    """The KubeRay operator's chart."""
    return Chart(
        name=KUBERAY_CHART,
        version=KUBERAY,
        repository=KUBERAY_CHART_REPOSITORY,
        namespace=OPERATOR_NAMESPACE,
        values=operator.values(deployment, cluster),
    )


def to_yaml(made: Iterable[Object]) -> str:
    """Objects as YAML documents; the same objects give the same text."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import LiteralScalarString

    def readable(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: readable(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [readable(inner) for inner in value]
        # Files and scripts as blocks, so that a diff shows lines.
        return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value

    writer = YAML()
    writer.default_flow_style = False
    writer.width = 10**6
    writer.explicit_start = True
    text = io.StringIO()
    writer.dump_all([readable(one) for one in made], text)
    return text.getvalue()


def ray_service_of(deployment: Deployment) -> tuple[str, str]:
    """Namespace and name of the RayService, to wait for."""
    return NAMESPACE, deployment.name
