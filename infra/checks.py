"""Checks of deployments that need the disk: are the models there, do they go together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from infra.errors import DeploymentError, Problem
from infra.serving import preflight
from infra.spec.loader import FOLDER, SUFFIX, read
from infra.spec.model import Deployment


def check_models(deployments: Sequence[Deployment], root: Path) -> None:
    """Raise DeploymentError with all faults of the models of all ``deployments``, each at the
    line of its key."""
    found: list[Problem] = []
    for deployment in deployments:
        found += located(preflight.check(deployment, root), deployment, root)
    if found:
        raise DeploymentError(found)


def located(problems: Sequence[Problem], deployment: Deployment, root: Path) -> list[Problem]:
    """``problems`` with the file and line of their keys."""
    if not problems:
        return []
    path = root / FOLDER / f"{deployment.name}{SUFFIX}"
    document = read(path, root=root).document
    return [
        replace(
            problem,
            path=f"{FOLDER}/{deployment.name}{SUFFIX}",
            line=document.line_of(tuple(problem.key.split("."))) if document else None,
        )
        for problem in problems
    ]
