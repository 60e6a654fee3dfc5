"""The machine image: there, usable, still kept?"""

from __future__ import annotations

from datetime import UTC, datetime

from infra.aws.ask import Aws
from infra.aws.images import (
    Image,
    NodeRelease,
    current_image,
    current_kubernetes,
    describe,
    named,
    release_image_name,
)
from infra.aws.need import Need
from infra.aws.rows import Row, no, ok, warn
from infra.aws.subjects import IMAGE as SUBJECT
from infra.errors import InputError

ARCHITECTURE = "x86_64"


def check(aws: Aws, need: Need) -> list[Row]:
    """The image that is pinned, or the one that would be. Raises AwsError."""
    try:
        if need.orchestration == "eks":
            release = need.pinned.release_version
            if release is None:
                return [judge_current_release(need, current_kubernetes(need, aws))]
            name = release_image_name(release, need.vendor)
            return [judge_release(need, release, named(aws, name) if name else None)]
        pinned = need.pinned.image
        if pinned is None:
            return [judge_current(need, current_image(need, aws))]
        return [judge(need, pinned, describe(aws, pinned), now=datetime.now(UTC))]
    except InputError as error:
        return [no(SUBJECT, error.message, error.do or "choose another region (site)")]


def judge(need: Need, image_id: str, image: Image | None, *, now: datetime) -> Row:
    """A pinned image of a machine."""
    again = f"pin the current one: specrack lock {need.deployment}"
    if image is None:
        return no(SUBJECT, f"{image_id} is not in {need.region}, or not shared with us", again)
    shown = f"{image.id} ({image.name})" if image.name else image.id
    if image.state != "available":
        return no(SUBJECT, f"{shown} is {image.state}", again)
    if image.architecture != ARCHITECTURE:
        return no(
            SUBJECT,
            f"{shown} is for {image.architecture}; {need.instance.name} is {ARCHITECTURE}",
            again,
        )
    if image.owner != "amazon":
        return warn(SUBJECT, f"{shown} belongs to {image.owner}, not to Amazon", again)
    if image.deprecated is not None and image.deprecated <= now:
        return warn(
            SUBJECT, f"{shown} is deprecated since {image.deprecated:%Y-%m-%d}; it may go", again
        )
    made = f", made {image.created:%Y-%m-%d}" if image.created else ""
    return ok(SUBJECT, f"{shown}{made}")


def judge_current(need: Need, image: Image) -> Row:
    """Nothing is pinned yet."""
    made = f", made {image.created:%Y-%m-%d}" if image.created else ""
    return warn(
        SUBJECT,
        f"not pinned; the current one is {image.id} ({image.name}{made})",
        f"pin it: specrack lock {need.deployment}",
    )


def judge_release(need: Need, release: str, image: Image | None) -> Row:
    """A pinned release of EKS nodes. ``image``: the image of that release."""
    if image is None:
        return no(
            SUBJECT,
            f"EKS has no node release {release} in {need.region}",
            f"pin the current one: specrack lock {need.deployment}",
        )
    return ok(SUBJECT, f"node release {release}, {image.id}")


def judge_current_release(need: Need, release: NodeRelease) -> Row:
    """Nothing is pinned yet."""
    return warn(
        SUBJECT,
        f"not pinned; the current node release is {release.release_version}",
        f"pin it: specrack lock {need.deployment}",
    )
