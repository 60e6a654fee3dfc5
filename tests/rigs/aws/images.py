"""The public machine images of the test account, and their names."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

#: The date in names and versions.
IMAGE_DATE = "20261120"
KUBERNETES = ("1.31", "1.32", "1.33", "1.34", "1.35")
EKS_VARIANTS = ("standard", "nvidia", "neuron")
#: name of the parameter: how the image's name begins
DLAMI = {
    "base-oss-nvidia-driver-gpu-ubuntu-22.04": (
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)"
    ),
    "base-oss-nvidia-driver-gpu-ubuntu-24.04": (
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04)"
    ),
    "base-oss-nvidia-driver-gpu-amazon-linux-2023": (
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Amazon Linux 2023)"
    ),
}
OWNER = "898082745236"
MADE_AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def image_id(name: str) -> str:
    """The same id for the same name, every run."""
    return "ami-" + hashlib.sha256(name.encode()).hexdigest()[:17]


def images() -> dict[str, str]:
    """Id of each image: its name."""
    names = [f"{title} {IMAGE_DATE}" for title in DLAMI.values()]
    names.append(f"Deep Learning AMI Neuron (Ubuntu 22.04) {IMAGE_DATE}")
    for version in KUBERNETES:
        for variant in EKS_VARIANTS:
            names.append(eks_image(version, variant))
    return {image_id(name): name for name in names}


def eks_image(version: str, variant: str) -> str:
    return f"amazon-eks-node-al2023-x86_64-{variant}-{version}-v{IMAGE_DATE}"
