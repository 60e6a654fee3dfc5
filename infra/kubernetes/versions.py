"""What is installed into a cluster, pinned: one place, each with the source and the day.

Images are pinned by tag. Digests would be better and are not here: a registry must be asked for
them, and the machines that this project is built on reach none. ``Images`` can be given with a
digest in each reference (``name:tag@sha256:...``), and a mirror of one's own goes in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

from infra.errors import UnsupportedError

#: PyPI, 2026-11. Head, workers and the tests' own Ray are this one version.
RAY = "2.60.0"

#: The KubeRay operator and its Helm chart; tag v1.7.0 of 2026-08-19, whose chart, CRDs and
#: validation were read. It asks for Ray >= 2.52 when tokens are used, which Ray wants by default.
KUBERAY = "1.7.0"
KUBERAY_CHART = "kuberay-operator"
KUBERAY_CHART_REPOSITORY = "https://ray-project.github.io/kuberay-helm/"

#: The Cluster Autoscaler's minor version must be the cluster's. kops, 2026.
CLUSTER_AUTOSCALER = {
    "1.33": "v1.33.1",
    "1.34": "v1.34.4",
    "1.35": "v1.35.1",
    "1.36": "v1.36.0",
}

#: Python of the images below; head and workers must agree in the first two numbers.
RAY_PYTHON = "py312"


@dataclass(frozen=True, slots=True)
class Images:
    """References of the images that are run."""

    #: Tag v0.20.0 of 2026, deployments/static/nvidia-device-plugin.yml.
    nvidia_device_plugin: str = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
    #: aws/eks-charts 2026-08-03: chart v0.5.30, app v0.5.20. AWS serves every region from there.
    efa_device_plugin: str = (
        "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
    )
    #: The newest tag found in public repositories in 2026; AWS publishes no list of tags that
    #: could be read here.
    neuron_device_plugin: str = "public.ecr.aws/neuron/neuron-device-plugin:2.29.16.0"
    kuberay_operator: str = f"quay.io/kuberay/operator:v{KUBERAY}"
    ray: str = f"rayproject/ray:{RAY}-{RAY_PYTHON}"
    #: Copies weights from a bucket before the engine starts.
    aws_cli: str = "public.ecr.aws/aws-cli/aws-cli:2.31.0"
    #: What workers run; None: by engine and version, see ``engine_image``.
    engine: str | None = None
    #: Is Ray in the engine's image already? Else it is installed when a worker starts.
    engine_has_ray: bool = False


def engine_image(images: Images, engine: str, version: str) -> str:
    """The image with the engine. Raises UnsupportedError where there is none for clusters."""
    if images.engine is not None:
        return images.engine
    if engine == "trtllm":
        return f"nvcr.io/nvidia/tensorrt-llm/release:{version}"
    if engine == "vllm":
        return f"vllm/vllm-openai:v{version}"
    raise UnsupportedError(
        f"engine {engine} has no image for a cluster", do="use trtllm or vllm there"
    )


def cluster_autoscaler_image(kubernetes: str) -> str:
    """Raises UnsupportedError for a version of Kubernetes that has no pin."""
    tag = CLUSTER_AUTOSCALER.get(kubernetes)
    if tag is None:
        raise UnsupportedError(
            f"there is no pinned Cluster Autoscaler for Kubernetes {kubernetes}",
            do=f"use one of {', '.join(sorted(CLUSTER_AUTOSCALER))}",
        )
    return f"registry.k8s.io/autoscaling/cluster-autoscaler:{tag}"
