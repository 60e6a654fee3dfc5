"""Write the choice of where states are kept into ``cdktf.json``, and nothing else in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from infra import state_backend
from infra.errors import InputError
from infra.files import write_atomic
from infra.state_backend import Backend


def refuse_other(root: Path, wanted: Backend) -> None:
    """Raise InputError when the project keeps its states in another bucket already."""
    current = state_backend.read(root)
    if current.kind == "s3" and (current.bucket, current.region) != (wanted.bucket, wanted.region):
        raise InputError(
            f"{state_backend.PLACE}: states are kept in {current.bucket} ({current.region})",
            do="copy them to the new bucket first, then change cdktf.json by hand",
        )


def write(root: Path, wanted: Backend) -> bool:
    """Put ``wanted`` into ``cdktf.json``; everything else, and its order, stays. Returns whether
    the file was changed. Raises InputError."""
    entry = {"bucket": wanted.bucket, "region": wanted.region}
    if wanted.kms_key:
        entry["kms_key"] = wanted.kms_key
    # A project may link the file; the link stays.
    path = (root / state_backend.FILE).resolve()
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{state_backend.FILE}: cannot be read: {error}") from None
    place = content
    for key in ("context", "specrack"):
        if not isinstance(place, dict):
            raise InputError(f"{state_backend.FILE}: must hold an object where {key} belongs")
        place = place.setdefault(key, {})
    if not isinstance(place, dict):
        raise InputError(f"{state_backend.FILE}: context.specrack must be an object")
    if place.get("backend") == entry:
        return False
    place["backend"] = entry
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_atomic(path, text, mode=path.stat().st_mode & 0o777)
    return True
