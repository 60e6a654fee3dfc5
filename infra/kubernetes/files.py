"""Files for the pods: our Serve application, the launch plan, and the lock file of Ray."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from infra.kubernetes.inputs import Object
from infra.kubernetes.names import NAMESPACE, thing
from infra.kubernetes.versions import RAY
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment

#: Mounted here, each of them read-only.
APP_FOLDER, PLAN_FOLDER, RAY_FILES_FOLDER = (
    "/etc/specrack/app",
    "/etc/specrack/plan",
    "/etc/specrack/ray",
)
#: Where Ray is installed in an engine's image that has none.
RAY_FOLDER = "/opt/specrack/ray"

APP_PACKAGE = "specrack_app"
PLAN_NAME = "launch-plan.json"
LOCK_NAME = "requirements-ray.lock"
ENVIRONMENT_NAME = "environment.sh"

#: Label of what is replaced, under another name, when its content changes.
CONTENT_LABEL = "specrack/content"

_APP = Path(__file__).parent / "app"
_ROOT = Path(__file__).parents[2]


@cache
def app_sources() -> dict[str, str]:
    """The Serve application: file name -> text."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(_APP.glob("*.py"))}


@cache
def ray_lock() -> str:
    """The lock file that Ray is installed from, with hashes."""
    return (_ROOT / LOCK_NAME).read_text(encoding="utf-8")


def environment(*, engine_has_ray: bool) -> str:
    """Read by every bash that Kubernetes or KubeRay starts in a worker (BASH_ENV).

    An image's own PATH cannot be extended from a pod's definition, only replaced; and the engine
    must not see Ray's packages in place of its own.
    """
    if engine_has_ray:
        return f'export PYTHONPATH="{APP_FOLDER}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
    return (
        'export SPECRACK_ENGINE_PATH="${SPECRACK_ENGINE_PATH:-$PATH}"\n'
        f'export PATH="{RAY_FOLDER}/bin:$SPECRACK_ENGINE_PATH"\n'
        f'export PYTHONPATH="{RAY_FOLDER}:{APP_FOLDER}"\n'
    )


def install_ray() -> str:
    """The script that puts Ray beside the engine when a worker starts. Nothing but what the lock
    file names is installed, and nothing in the image is changed."""
    return (
        "set -eu\n"
        "python3 -m pip install --no-input --disable-pip-version-check --no-cache-dir "
        f"--require-hashes --target {RAY_FOLDER} -r {RAY_FILES_FOLDER}/{LOCK_NAME}\n"
        f"PYTHONPATH={RAY_FOLDER} python3 -c "
        f"'import ray; assert ray.__version__ == \"{RAY}\", ray.__version__'\n"
    )


def config_maps(
    deployment: Deployment, plan: LaunchPlan, *, engine_has_ray: bool
) -> dict[str, Object]:
    """The ConfigMaps by what they hold: ``app``, ``plan``, ``ray``.

    The name ends with a hash of the content, and the content never changes: another plan is
    another name, so the pods that mount it are made anew, as they must be.
    """
    contents = {
        "app": app_sources(),
        "plan": {PLAN_NAME: plan.model_dump_json(indent=2) + "\n"},
        "ray": {
            ENVIRONMENT_NAME: environment(engine_has_ray=engine_has_ray),
            LOCK_NAME: ray_lock(),
        },
    }
    return {what: _config_map(deployment, what, data) for what, data in contents.items()}


def app_items() -> list[dict[str, str]]:
    """Keys of the app's ConfigMap as files of one Python package."""
    return [{"key": name, "path": f"{APP_PACKAGE}/{name}"} for name in app_sources()]


def _config_map(deployment: Deployment, what: str, data: dict[str, str]) -> Object:
    total = hashlib.sha256()
    for name, text in sorted(data.items()):
        total.update(f"{name}\0{len(text)}\0{text}".encode())
    made = thing(
        "v1",
        "ConfigMap",
        f"{what}-{total.hexdigest()[:10]}",
        deployment,
        namespace=NAMESPACE,
        component=what,
        immutable=True,
        data=data,
    )
    made["metadata"]["labels"][CONTENT_LABEL] = "true"
    return made
