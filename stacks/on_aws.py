"""Deployments on AWS: which stack, with which settings."""

from __future__ import annotations

import os
from pathlib import Path

from infra import adoption, lock, state_backend
from infra.errors import UnsupportedError
from infra.fleet import resolve
from infra.paths import StatePaths
from infra.spec.model import Deployment
from infra.stranded import refuse_stranded
from stacks.aws.stack import AwsStack, Settings
from stacks.engine import cdk

#: A server to use in place of AWS: a test server, or a private endpoint.
ENDPOINT = "SPECRACK_AWS_ENDPOINT"
#: ``hosts``: the machines alone, neither configured nor measured.
LAYERS = "SPECRACK_LAYERS"


def add(app: cdk.App, deployment: Deployment, *, root: Path) -> AwsStack:
    """Add the stack of one deployment on AWS. Raises InputError, UnsupportedError, StackError."""
    if os.environ.get(LAYERS) != "hosts":
        raise UnsupportedError(
            f"{deployment.name}: machines on AWS can be made, but not yet configured",
            do=f"make the machines alone: {LAYERS}=hosts cdktf deploy {deployment.name}",
        )
    fleet = resolve(deployment)
    pinned = lock.read(root, deployment.name)
    paths = StatePaths(root, deployment.stack_key)
    backend = state_backend.read(root)
    refuse_stranded(backend, paths)
    settings = Settings(
        backend=backend,
        state_path=str(paths.terraform_state),
        endpoint=os.environ.get(ENDPOINT) or None,
        adopted=adoption.read(paths),
    )
    stack: AwsStack
    if fleet.orchestration == "eks":
        from stacks.scaled import ScaledStack

        release = lock.need_kubernetes(pinned, name=deployment.name, region=fleet.region)
        stack = ScaledStack(app, deployment, fleet, release, settings=settings)
    else:
        from stacks.prototype import PrototypeStack

        image = lock.need_image(pinned, name=deployment.name, region=fleet.region)
        stack = PrototypeStack(app, deployment, fleet, image, settings=settings)
    stack.finish()
    return stack
