"""Versions as tuples of numbers, and how to ask a program for its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence

Version = tuple[int, ...]


def parse(text: str) -> Version | None:
    """The first ``1.2`` or ``1.2.3`` in ``text``: ``v20.11.1`` -> (20, 11, 1). None if absent."""
    found = re.search(r"(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def show(version: Version) -> str:
    """(1, 6) -> ``1.6``."""
    return ".".join(str(part) for part in version)


def ask(
    command: Sequence[str], *, timeout_s: float = 20.0, env: Mapping[str, str] | None = None
) -> Version | None:
    """Run ``command`` and read a version from its output; None when it does not run."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
            env=env,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(done.stdout) if done.returncode == 0 else None
