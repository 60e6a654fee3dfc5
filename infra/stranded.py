"""A state that stayed behind when the backend changed. Reads local files only: synth asks this."""

from __future__ import annotations

import json
from pathlib import Path

from infra.errors import InputError
from infra.paths import StatePaths
from infra.state_backend import Backend


def refuse_stranded(backend: Backend, paths: StatePaths) -> None:
    """Raise InputError when the stack's state is elsewhere than ``backend`` says.

    A stack whose state stays behind would be made a second time. Reads local files only.
    """
    name = paths.stack_key
    if backend.kind == "s3" and has_resources(paths.terraform_state):
        raise InputError(
            f"{name}: cdktf.json keeps states in s3://{backend.bucket}, but this stack's state is "
            "still on this machine",
            do="move it: specrack backend move NAME",
        )


def has_resources(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and bool(content.get("resources"))
