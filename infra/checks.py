"""Checks of deployments that need the disk: are the models there, do they go together?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from infra.spec.model import Deployment


def check_models(deployments: Sequence[Deployment], root: Path) -> None:
    """Raise DeploymentError with all faults of the models of all ``deployments``."""
