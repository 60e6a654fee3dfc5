"""``specrack lock NAME``: ask AWS what is current, and pin it in the deployment's lock file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from infra import lock
from infra.errors import InputError
from infra.fleet import ResolvedFleet, resolve
from infra.spec.model import Deployment


def pinned(lock_file: lock.Lock | None, region: str) -> dict[str, str | None]:
    """What the lock file pins for ``region``: image id, Kubernetes version and node release."""
    aws = lock_file.aws if lock_file and lock_file.aws and lock_file.aws.region == region else None
    return {
        "image": aws.image.id if aws and aws.image else None,
        "kubernetes": aws.kubernetes.version if aws and aws.kubernetes else None,
        "release_version": aws.kubernetes.release_version if aws and aws.kubernetes else None,
    }


def update(deployment: Deployment, root: Path) -> list[str]:
    """Write the lock file of ``deployment``; what changed, a line each.

    Raises InputError for a site that pins nothing, and what asking AWS raises.
    """
    if not deployment.site.startswith("aws/"):
        raise InputError(f"{deployment.name}: site {deployment.site} has nothing to pin yet")
    fleet = resolve(deployment)
    before = pinned(lock.read(root, deployment.name), fleet.region)
    made = lock.Lock(aws=current(deployment, fleet))
    after = pinned(made, fleet.region)
    if before != after:
        # An unchanged file keeps its dates: nothing to review.
        lock.write(root, deployment.name, made)
    place = lock.path_of(root, deployment.name).relative_to(root)
    changes = [
        f"{place}: {key}: {before[key] or 'nothing'} -> {value}"
        for key, value in after.items()
        if value is not None and value != before[key]
    ]
    return changes or [f"{place}: current"]


def current(deployment: Deployment, fleet: ResolvedFleet) -> lock.AwsLock:
    """What is current today. Raises InputError, and what asking AWS raises."""
    # boto3 takes a third of a second to load.
    from infra.aws import images
    from infra.aws.need import need_of

    need = need_of(deployment, fleet)
    today = datetime.now(UTC).date().isoformat()
    if fleet.orchestration == "eks":
        release = images.current_kubernetes(need)
        return lock.AwsLock(
            region=fleet.region,
            kubernetes=lock.KubernetesRelease(
                version=release.kubernetes,
                release_version=release.release_version,
                parameter=release.parameter,
                at=today,
            ),
        )
    image = images.current_image(need)
    return lock.AwsLock(
        region=fleet.region,
        image=lock.Image(id=image.id, parameter=image.parameter, at=today),
    )
