"""How much memory this machine has."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def memory_bytes(cgroup_limit: Path = CGROUP_LIMIT) -> int:
    """The memory that programs here may use: the machine's, or less where a container limits it."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(cgroup_limit.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return physical
    return min(physical, limit)
