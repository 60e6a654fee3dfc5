"""Which machine image is current: the public SSM parameters, and what they name.

``specrack lock`` writes the answers down; stacks use what is written, so that a new image never
comes by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from infra.aws.ask import Aws
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.errors import InputError

#: vendor -> parameters of images for ``hosts``, the preferred first. NVIDIA's: deep learning base
#: image with AWS's open driver; Neuron's: the base image with driver, EFA and tools
#: (awsdocs-neuron, "Neuron DLAMI User Guide"; its 22.04 parameters are retired).
HOST_PARAMETERS: dict[str, tuple[str, ...]] = {
    "nvidia": (
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
    ),
    "aws": (
        "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id",
        "/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id",
        "/aws/service/neuron/dlami/multi-framework/ubuntu-22.04/latest/image_id",
    ),
}
#: Who one signs in as on these: all are Ubuntu.
LOGIN_USER = "ubuntu"
#: vendor -> the variant of Amazon's EKS images.
EKS_VARIANTS: dict[str, str] = {"nvidia": "nvidia", "aws": "neuron"}

_RELEASE = re.compile(r"^(?P<version>\d+\.\d+)\.\d+-(?P<day>\d{8})$")


@dataclass(frozen=True, slots=True)
class Image:
    """An image. ``parameter``: whose value it is; ``created``: when AWS made the image."""

    id: str
    parameter: str
    name: str
    created: datetime | None
    state: str = "available"
    architecture: str = "x86_64"
    owner: str = "amazon"
    deprecated: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeRelease:
    """A release of Amazon's EKS node image: ``1.33.5-20261120``."""

    kubernetes: str
    release_version: str
    parameter: str

    @property
    def image_day(self) -> str:
        """``20261120``."""
        return self.release_version.rpartition("-")[2]


def current_image(need: Need, aws: Aws | None = None) -> Image:
    """The image that machines of a ``hosts`` tier start with today.

    Raises InputError when AWS has none for this kind of machine in the region, AwsError when it
    cannot be asked.
    """
    aws = aws or Aws(need.region)
    for parameter in HOST_PARAMETERS[need.vendor]:
        value = _parameter(aws, parameter)
        if value is None:
            continue
        image = describe(aws, value, parameter=parameter)
        if image is None:
            raise InputError(f"{parameter} names {value}, which {need.region} does not have")
        return image
    raise InputError(
        f"{need.region} has no image for {need.instance.name}: "
        f"no parameter {HOST_PARAMETERS[need.vendor][0]}",
        do="choose another region (site)",
    )


def current_kubernetes(need: Need, aws: Aws | None = None) -> NodeRelease:
    """The node release that an ``eks`` tier starts with today.

    Raises InputError when AWS has no images for the Kubernetes version, AwsError when it cannot be
    asked.
    """
    aws = aws or Aws(need.region)
    if need.kubernetes is None:
        raise InputError(f"{need.deployment}: its tier names no Kubernetes version")
    parameter = release_parameter(need.kubernetes, need.vendor)
    value = _parameter(aws, parameter)
    if value is None:
        raise InputError(
            f"AWS has no node image for Kubernetes {need.kubernetes} in {need.region}: "
            f"no parameter {parameter}",
            do="choose a Kubernetes version that EKS supports",
        )
    return NodeRelease(need.kubernetes, value, parameter)


def release_parameter(kubernetes: str, vendor: str) -> str:
    """The parameter that holds the recommended release for a Kubernetes version."""
    return (
        f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/x86_64/"
        f"{EKS_VARIANTS[vendor]}/recommended/release_version"
    )


def release_image_name(release_version: str, vendor: str) -> str | None:
    """The name of the image of a release, or None when the release is not written as AWS does."""
    parts = _RELEASE.match(release_version)
    if parts is None:
        return None
    variant = EKS_VARIANTS[vendor]
    return f"amazon-eks-node-al2023-x86_64-{variant}-{parts['version']}-v{parts['day']}"


def describe(aws: Aws, image_id: str, *, parameter: str = "") -> Image | None:
    """The image with this id, or None when the region has none. Raises AwsError."""
    try:
        images = aws.call("ec2", "describe_images", ImageIds=[image_id])["Images"]
    except AwsError as error:
        if error.fault.code.startswith("InvalidAMIID"):
            return None
        raise
    return _image(images[0], parameter) if images else None


def named(aws: Aws, name: str) -> Image | None:
    """Amazon's image of this name, or None. Raises AwsError."""
    images = aws.call(
        "ec2",
        "describe_images",
        Owners=["amazon"],
        Filters=[{"Name": "name", "Values": [name]}],
    )["Images"]
    return _image(images[0], "") if images else None


def _image(entry: dict[str, str], parameter: str) -> Image:
    return Image(
        id=entry["ImageId"],
        parameter=parameter,
        name=entry.get("Name") or "",
        created=_time(entry.get("CreationDate")),
        state=entry.get("State") or "unknown",
        architecture=entry.get("Architecture") or "unknown",
        owner=entry.get("ImageOwnerAlias") or entry.get("OwnerId") or "unknown",
        deprecated=_time(entry.get("DeprecationTime")),
    )


def _parameter(aws: Aws, name: str) -> str | None:
    try:
        return str(aws.call("ssm", "get_parameter", Name=name)["Parameter"]["Value"])
    except AwsError as error:
        if error.fault.code == "ParameterNotFound":
            return None
        raise


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
