"""A folder with everything that the role ``kubernetes_objects`` applies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infra.files import write_atomic
from infra.fleet import ResolvedFleet
from infra.kubernetes import render
from infra.kubernetes.inputs import Cluster
from infra.kubernetes.names import HUB_KEY, HUB_SECRET, NAMESPACE
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment

NAMESPACES, OBJECTS, VALUES = "namespaces.yaml", "objects.yaml", "operator-values.yaml"


def write(
    folder: Path,
    deployment: Deployment,
    fleet: ResolvedFleet,
    launch_plan: LaunchPlan,
    cluster: Cluster,
) -> dict[str, Any]:
    """Write the files into ``folder``; answers with the role's variables.

    Raises UnsupportedError for what a cluster cannot have, InputError when the folder cannot be
    written.
    """
    made = render.objects(deployment, fleet, launch_plan, cluster)
    chart = render.chart(deployment, cluster)
    write_atomic(folder / NAMESPACES, render.to_yaml(render.namespaces(deployment)))
    write_atomic(folder / OBJECTS, render.to_yaml(made))
    write_atomic(folder / VALUES, render.to_yaml([chart.values]))
    namespace, name = render.ray_service_of(deployment)
    wants_token = deployment.aws is not None and deployment.aws.hub_secret is not None
    return {
        "kubernetes_objects_folder": str(folder),
        "kubernetes_objects_namespace": NAMESPACE,
        "kubernetes_objects_chart": {
            "name": chart.name,
            "version": chart.version,
            "repository": chart.repository,
            "namespace": chart.namespace,
        },
        "kubernetes_objects_ray_service": {"namespace": namespace, "name": name},
        "kubernetes_objects_hub_secret": (
            {"name": HUB_SECRET, "key": HUB_KEY} if wants_token else {}
        ),
        "kubernetes_objects_config_maps": [
            one["metadata"]["name"] for one in made if one["kind"] == "ConfigMap"
        ],
    }
