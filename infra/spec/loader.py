"""Temporary, until the real loader lands: replace this file whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ruamel.yaml import YAML

from infra.spec.model import Deployment


def load_all(root: Path, names: Sequence[str] = ()) -> list[Deployment]:
    found = sorted(path.stem for path in (root / "deployments").glob("*.yaml"))
    return [
        Deployment.model_validate(
            YAML(typ="safe").load((root / "deployments" / f"{name}.yaml").read_text())
        )
        for name in (names or found)
    ]
