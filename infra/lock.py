"""``deployments/<name>.lock.yaml``: versions that AWS would otherwise choose anew each time.

Written by ``specrack lock NAME``, kept in version control, read at synth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.errors import InputError
from infra.files import write_atomic
from infra.spec.loader import FOLDER
from infra.spec.loader import LOCK_SUFFIX as SUFFIX

HEAD = "# Written by `specrack lock {name}`; kept in version control. Change it by that command.\n"


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Image(_Frozen):
    """A machine image, and the public parameter that named it on the day ``at``."""

    id: Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
    parameter: str
    at: str


class KubernetesRelease(_Frozen):
    """The release of AWS's node image for a Kubernetes version."""

    version: Annotated[str, Field(pattern=r"^1\.\d{2}$")]
    release_version: Annotated[str, Field(pattern=r"^1\.\d{2}\.\d+-\d{8}$")]
    parameter: str
    at: str


class AwsLock(_Frozen):
    """What is pinned on AWS: an image for single machines, a release for a cluster's."""

    region: str
    image: Image | None = None
    kubernetes: KubernetesRelease | None = None


class Lock(_Frozen):
    """The lock file of a deployment."""

    version: Literal[1] = 1
    aws: AwsLock | None = None


def path_of(root: Path, name: str) -> Path:
    """Where the lock file of the deployment ``name`` is."""
    return root / FOLDER / f"{name}{SUFFIX}"


def read(root: Path, name: str) -> Lock | None:
    """The lock file of ``name``, or None. Raises InputError for one that cannot be used."""
    path = path_of(root, name)
    place = f"{FOLDER}/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{place}: cannot be read: {error}") from None
    try:
        return Lock.model_validate(_parse(text, place))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{place}: {where}: {first['msg']}", do=f"write it anew: specrack lock {name}"
        ) from None


def _parse(text: str, place: str) -> Any:
    # Loaded where a lock file is read: a local deployment has none.
    from infra.spec.tree import parse

    document = parse(text)
    if document.faults:
        fault = document.faults[0]
        raise InputError(f"{place}:{fault.line}: {fault.what}")
    return document.data()


def write(root: Path, name: str, lock: Lock) -> Path:
    """Write the lock file of ``name``, all at once."""
    from io import StringIO

    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    out = StringIO()
    yaml.dump(lock.model_dump(mode="json", exclude_none=True), out)
    path = path_of(root, name)
    write_atomic(path, HEAD.format(name=name) + out.getvalue())
    return path


def need_image(lock: Lock | None, *, name: str, region: str) -> Image:
    """The pinned image. Raises InputError when there is none for ``region``."""
    if lock is None or lock.aws is None or lock.aws.image is None or lock.aws.region != region:
        raise _unlocked(name, region, "machine image")
    return lock.aws.image


def need_kubernetes(lock: Lock | None, *, name: str, region: str) -> KubernetesRelease:
    """The pinned node release. Raises InputError when there is none for ``region``."""
    if lock is None or lock.aws is None or lock.aws.kubernetes is None or lock.aws.region != region:
        raise _unlocked(name, region, "node image release")
    return lock.aws.kubernetes


def _unlocked(name: str, region: str, what: str) -> InputError:
    return InputError(
        f"{FOLDER}/{name}{SUFFIX}: pins no {what} for {region}", do=f"run specrack lock {name}"
    )
