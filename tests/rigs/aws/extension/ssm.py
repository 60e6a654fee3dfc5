"""Public SSM parameters of GPU images, and the images that they name."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.amis import Ami, AmiBackend
from moto.ssm.models import Parameter, ParameterDict

from tests.rigs.aws.extension import settings
from tests.rigs.aws.images import (
    DLAMI,
    EKS_VARIANTS,
    IMAGE_DATE,
    KUBERNETES,
    MADE_AT,
    OWNER,
    eks_image,
    image_id,
    images,
)


def parameters() -> dict[str, str]:
    """The public parameters, with what tests set over them."""
    found = {}
    for key, title in DLAMI.items():
        name = f"{title} {IMAGE_DATE}"
        found[f"/aws/service/deeplearning/ami/x86_64/{key}/latest/ami-id"] = image_id(name)
    found["/aws/service/neuron/dlami/multi-framework/ubuntu-22.04/latest/image_id"] = image_id(
        f"Deep Learning AMI Neuron (Ubuntu 22.04) {IMAGE_DATE}"
    )
    for version in KUBERNETES:
        for variant in EKS_VARIANTS:
            name = eks_image(version, variant)
            base = (
                f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/x86_64/{variant}"
                "/recommended"
            )
            found[f"{base}/image_id"] = image_id(name)
            found[f"{base}/image_name"] = name
            found[f"{base}/release_version"] = f"{version}.5-{IMAGE_DATE}"
    for name, value in settings.VALUES["parameters"].items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def install() -> None:
    check_loading = ParameterDict._check_loading_status
    load_amis = AmiBackend._load_amis

    def _check_loading_status(self: Any, key: str) -> None:
        check_loading(self, key)
        if not str(key or "").startswith("/aws/service/"):
            return
        wanted = parameters()
        for name in self.__dict__.setdefault("rig_loaded", set()) - set(wanted):
            dict.pop(self, name, None)
        self.rig_loaded = set(wanted)
        for name, value in wanted.items():
            have = dict.get(self, name)
            if have and have[-1].value == value:
                continue
            made = Parameter(
                account_id=self.account_id,
                name=name,
                value=value,
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=MADE_AT,
                version=len(have or []) + 1,
                data_type="aws:ec2:image" if value.startswith("ami-") else "text",
            )
            dict.__setitem__(self, name, [*(have or []), made])

    def _load_amis(self: Any) -> None:
        load_amis(self)
        for key, name in images().items():
            self.amis[key] = Ami(
                self,
                key,
                name=name,
                description=name,
                owner_id=OWNER,
                owner_alias="amazon",
                public=True,
                virtualization_type="hvm",
                architecture="x86_64",
                creation_date=MADE_AT,
                image_location=f"amazon/{name}",
                hypervisor="xen",
                root_device_type="ebs",
                root_device_name="/dev/xvda" if "ubuntu" not in name.lower() else "/dev/sda1",
                product_codes=set(),
            )

    ParameterDict._check_loading_status = _check_loading_status  # type: ignore[method-assign]
    AmiBackend._load_amis = _load_amis  # type: ignore[method-assign]
