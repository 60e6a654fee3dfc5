"""Images: pinned ones must be there and usable; current ones come from AWS's public parameters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from infra.aws.checks import image
from infra.aws.images import (
    HOST_PARAMETERS,
    NodeRelease,
    current_image,
    current_kubernetes,
    release_image_name,
)
from infra.aws.need import Pinned
from infra.errors import InputError
from tests.unit.aws.needs import need, scaled
from tests.unit.aws.scripted import Error, scripted

ID = "ami-0aaaaaaaaaaaaaaaa"
DLAMI = {
    "ImageId": ID,
    "Name": "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20261120",
    "State": "available",
    "Architecture": "x86_64",
    "ImageOwnerAlias": "amazon",
    "CreationDate": "2026-11-20T01:02:03.000Z",
    "DeprecationTime": "2030-11-20T01:02:03.000Z",
}


def checked(**change: Any) -> Any:
    entry = {key: value for key, value in (DLAMI | change).items() if value is not None}
    [row] = image.check(scripted({"ec2.describe_images": {"Images": [entry]}}), need())
    return row


def test_a_pinned_image_that_is_there_is_good() -> None:
    row = checked()
    assert row.verdict == "ok"
    assert "made 2026-11-20" in row.found


@pytest.mark.parametrize(
    "code", ["InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable"]
)
def test_an_unknown_image_is_refused(code: str) -> None:
    [row] = image.check(scripted({"ec2.describe_images": Error(code)}), need())
    assert row.verdict == "no"
    assert f"{ID} is not in us-east-1" in row.found
    assert row.remedy == "pin the current one: specrack lock chat"


def test_an_answer_without_the_image_is_refused_too() -> None:
    [row] = image.check(scripted({"ec2.describe_images": {"Images": []}}), need())
    assert row.verdict == "no"


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        ({"State": "deregistered"}, "no", "is deregistered"),
        ({"Architecture": "arm64"}, "no", "is for arm64"),
        ({"ImageOwnerAlias": None, "OwnerId": "999999999999"}, "warn", "belongs to 999999999999"),
        ({"DeprecationTime": "2026-01-01T00:00:00.000Z"}, "warn", "deprecated since 2026-01-01"),
    ],
)
def test_an_image_that_is_not_right_says_what(
    change: dict[str, Any], verdict: str, words: str
) -> None:
    row = checked(**change)
    assert (row.verdict, words in row.found) == (verdict, True)


def test_without_a_pin_the_current_one_is_shown_and_locking_is_the_remedy() -> None:
    script = {
        "ssm.get_parameter": {"Parameter": {"Value": ID}},
        "ec2.describe_images": {"Images": [DLAMI]},
    }
    [row] = image.check(scripted(script), need(pinned=Pinned()))
    assert row.verdict == "warn"
    assert ID in row.found
    assert row.remedy == "pin it: specrack lock chat"


def test_the_current_image_comes_with_its_parameter_name_and_date() -> None:
    script = {
        "ssm.get_parameter": {"Parameter": {"Value": ID}},
        "ec2.describe_images": {"Images": [DLAMI]},
    }
    found = current_image(need(), scripted(script))
    assert (found.id, found.parameter) == (ID, HOST_PARAMETERS["nvidia"][0])
    assert found.created == datetime(2026, 11, 20, 1, 2, 3, tzinfo=UTC)


def test_a_parameter_that_is_gone_gives_way_to_the_next() -> None:
    script = {
        "ssm.get_parameter": [Error("ParameterNotFound"), {"Parameter": {"Value": ID}}],
        "ec2.describe_images": {"Images": [DLAMI]},
    }
    found = current_image(need(), scripted(script))
    assert found.parameter == HOST_PARAMETERS["nvidia"][1]


def test_a_region_without_any_is_a_clear_error() -> None:
    aws = scripted({"ssm.get_parameter": Error("ParameterNotFound")})
    with pytest.raises(InputError, match=r"us-east-1 has no image for g5\.12xlarge"):
        current_image(need(), aws)


def test_neuron_machines_get_neuron_images() -> None:
    trn = scaled(instance="trn2.48xlarge")
    assert trn.vendor == "aws"
    script = {"ssm.get_parameter": {"Parameter": {"Value": "1.35.4-20261120"}}}
    found = current_kubernetes(trn, scripted(script))
    assert found == NodeRelease(
        "1.35",
        "1.35.4-20261120",
        "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/neuron/recommended/"
        "release_version",
    )
    assert found.image_day == "20261120"


def test_a_kubernetes_version_without_images_is_a_clear_error() -> None:
    aws = scripted({"ssm.get_parameter": Error("ParameterNotFound")})
    with pytest.raises(InputError, match=r"no node image for Kubernetes 1\.35"):
        current_kubernetes(scaled(), aws)


def test_a_pinned_node_release_is_looked_up_by_the_name_of_its_image() -> None:
    name = "amazon-eks-node-al2023-x86_64-nvidia-1.35-v20261120"
    assert release_image_name("1.35.4-20261120", "nvidia") == name
    script = {"ec2.describe_images": {"Images": [DLAMI | {"Name": name}]}}
    [row] = image.check(scripted(script), scaled())
    assert row.verdict == "ok"


@pytest.mark.parametrize("release", ["1.35.4-20261120", "newest", "1.35"])
def test_a_node_release_that_eks_does_not_have_is_refused(release: str) -> None:
    wanted = replace(scaled(), pinned=Pinned(kubernetes="1.35", release_version=release))
    [row] = image.check(scripted({"ec2.describe_images": {"Images": []}}), wanted)
    assert row.verdict == "no"
    assert f"EKS has no node release {release}" in row.found
