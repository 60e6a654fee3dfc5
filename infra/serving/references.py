"""Model names in a deployment: a hub id, or a path from the project's root."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

#: ``owner/name`` as the Hugging Face hub spells it.
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def is_hub_id(name: str) -> bool:
    """Is ``name`` a hub id (``meta-llama/Llama-3.1-8B-Instruct``)?

    Everything else is a path: what starts with ``/``, ``.`` or ``models/``, ends in ``.gguf``, or
    has not exactly one slash.
    """
    if name.startswith("models/") or name.endswith(".gguf"):
        return False
    return _HUB_ID.fullmatch(name) is not None


def on_host(name: str, root: str) -> str:
    """The absolute path of a model that is a path; a hub id as it is."""
    return name if is_hub_id(name) else str(PurePosixPath(root) / name)
