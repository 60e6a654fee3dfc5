"""Objects that an interrupted deploy left without a state, and that the next one takes over.

``.specrack/<stack>/adopt.json`` is written by the launcher and read by the synth, which puts an
``import`` block for each into the stack. An import of what the state knows already does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.files import read_json, write_json
from infra.paths import StatePaths

FILE = "adopt.json"


def read(paths: StatePaths) -> dict[str, str]:
    """Import ids by address (``aws_vpc.network``); empty when there is nothing to take over."""
    data: Any = read_json(paths.base / FILE)
    if not isinstance(data, dict):
        return {}
    return {
        str(address): found for address, found in data.items() if isinstance(found, str) and found
    }


def write(paths: StatePaths, found: Mapping[str, str]) -> None:
    """What the next synth shall take over. Raises InputError."""
    write_json(paths.base / FILE, dict(found))


def clear(paths: StatePaths) -> None:
    """Nothing is left to take over."""
    (paths.base / FILE).unlink(missing_ok=True)
