"""Which deploys of a stack began and did not end well: ``.specrack/<stack>/journal.json``.

Written before Terraform may change anything, closed when it said that all went well. An entry that
is still open at the next deploy means: there may be objects that no state knows.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.files import read_json, write_json
from infra.process import start_time

FILE = "journal.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """``since``: the beginning of the first of the runs that did not end well (seconds since the
    epoch); ``began``: that of the last one; ``pid``, ``born``: its launcher; ``why``: how it
    ended, empty when nobody knows."""

    run: str
    command: str
    since: float
    began: float
    pid: int
    born: float
    why: str = ""

    @property
    def since_utc(self) -> datetime:
        return datetime.fromtimestamp(self.since, UTC)


def read(base: Path) -> Entry | None:
    """The open entry of the stack whose folder is ``base``, or None."""
    data: Any = read_json(base / FILE)
    try:
        return Entry(**data)
    except TypeError:
        return None


def begin(base: Path, *, run: str, command: str) -> Entry:
    """Open an entry. An open one before it is continued. Raises InputError."""
    earlier = read(base)
    now = time.time()
    entry = Entry(
        run=run,
        command=command,
        since=earlier.since if earlier else now,
        began=now,
        pid=os.getpid(),
        born=start_time(os.getpid()) or 0.0,
    )
    write_json(base / FILE, asdict(entry))
    return entry


def close(base: Path) -> None:
    """All went well: what is in the state is all there is."""
    (base / FILE).unlink(missing_ok=True)


def leave_open(base: Path, entry: Entry, why: str) -> None:
    """It did not go well: the next deploy shall look for objects that no state knows."""
    write_json(base / FILE, asdict(entry) | {"why": why})


def mark(base: Path, *, since: float, why: str) -> None:
    """Make the next deploy look, after something else than a deploy (a lock that was removed)."""
    entry = read(base) or begin(base, run="", command="unlock")
    leave_open(base, entry, why)
    if since < entry.since:
        write_json(base / FILE, asdict(entry) | {"since": since, "why": why})
