"""From deployments to stacks: one stack a deployment, named like it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infra import state_backend
from infra.errors import UnsupportedError
from infra.files import read_json
from infra.inventory import Inventory, digest_of_folder, trigger_of
from infra.paths import StatePaths
from infra.planning import plan_for
from infra.spec.model import Deployment
from infra.supervisor.epoch import current_epoch
from stacks import local
from stacks.engine import cdk


def build(deployments: Sequence[Deployment], *, root: Path, outdir: Path | None = None) -> cdk.App:
    """An app with a stack for each deployment. Raises UnsupportedError for a site without one."""
    app = cdk.App(
        outdir=str(outdir) if outdir else None,
        # It would start Terraform once a resource, only to ask for its version, which the
        # launcher has done already (infra/tools/terraform.py, MINIMUM).
        skip_validation=True,
    )
    playbooks = digest_of_folder(root / "playbooks")
    for deployment in deployments:
        add_stack(app, deployment, root=root, playbooks=playbooks)
    return app


def add_stack(app: cdk.App, deployment: Deployment, *, root: Path, playbooks: str) -> None:
    """Add the stack of one deployment to ``app``."""
    if deployment.site == "local":
        add_local(app, deployment, root=root, playbooks=playbooks)
    elif deployment.site.startswith("aws/"):
        # Loaded where it is needed: the schema of AWS's resources is no use to a local tier.
        from stacks.on_aws import add

        add(app, deployment, root=root)
    else:
        raise UnsupportedError(
            f"{deployment.name}: there is no stack for site {deployment.site} yet",
            do="use site local or aws/<region>",
        )


def add_local(app: cdk.App, deployment: Deployment, *, root: Path, playbooks: str) -> None:
    """Add the stack of a deployment on this machine to ``app``."""
    paths = StatePaths(root, deployment.stack_key)
    epoch = current_epoch(paths)
    hosts = (local.HOST,)
    inventory = Inventory(
        deployment=deployment.name,
        stack_key=deployment.stack_key,
        hosts=hosts,
        trigger=trigger_of(
            hosts=hosts,
            plan_digest=plan_for(deployment, root=root).digest(),
            playbooks=playbooks,
            epoch=epoch,
        ),
        epoch=epoch,
    )
    local.LocalStack(app, inventory, paths=paths)


def drop_stale_backend(outdir: Path, deployments: Sequence[Deployment], root: Path) -> None:
    """Remove Terraform's pointer to a backend that the stack no longer has.

    After an upgrade (or a moved project) a stack of the same name has another state, and
    ``terraform init`` would stop with "Backend configuration changed". The pointer is a cache
    below the output folder; state itself is never touched.
    """
    backend = state_backend.read(root)
    for deployment in deployments:
        pointer = outdir / "stacks" / deployment.name / ".terraform" / "terraform.tfstate"
        if not pointer.exists():
            continue
        content = read_json(pointer)
        there = _mapping(content, "backend")
        config = _mapping(there, "config")
        if deployment.site == "local" or backend.kind == "local":
            path = str(StatePaths(root, deployment.stack_key).terraform_state)
            same = there.get("type") == "local" and config.get("path") == path
        else:
            same = (
                there.get("type") == "s3"
                and config.get("bucket") == backend.bucket
                and config.get("key") == backend.key_of(deployment.stack_key)
                and config.get("region") == backend.region
            )
        if not same:
            pointer.unlink(missing_ok=True)


def _mapping(content: Any, key: str) -> dict[str, Any]:
    """The mapping at ``key``; an empty one where there is none."""
    value = content.get(key) if isinstance(content, dict) else None
    return value if isinstance(value, dict) else {}
