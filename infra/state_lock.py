"""Terraform's lock on a state: who holds it, for what, since when. No network here.

Two forms of the same JSON object (``ID``, ``Who``, ``Operation``, ``Created``, ...): the file
``.<state>.lock.info`` beside a local state, and ``<key>.tflock`` beside one in S3. A local lock is
a lock of the kernel besides, which dies with its process; the file alone locks nothing.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import re
import socket
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import psutil

#: What Terraform writes as the operation: what a person would call it.
OPERATIONS = {
    "OperationTypeApply": "apply",
    "OperationTypePlan": "plan",
    "OperationTypeRefresh": "refresh",
    "OperationTypeInvalid": "another command",
}
PROGRAMS = ("terraform", "tofu")
Owner = Literal["alive", "dead", "elsewhere"]


@dataclass(frozen=True, slots=True)
class Lock:
    """``place``: where the lock is, for a person. ``created`` is None when it is not to be read."""

    id: str
    who: str
    operation: str
    created: datetime | None
    place: str

    def age(self, now: datetime) -> str:
        """``12 min``, ``3 h``; how long it has been held."""
        if self.created is None:
            return "an unknown time"
        seconds = max(0.0, (now - self.created).total_seconds())
        for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (172800, "h", 3600)):
            if seconds < limit:
                return f"{seconds / size:.0f} {unit}"
        return f"{seconds / 86400:.0f} days"

    def since(self) -> str:
        return f"{self.created:%Y-%m-%d %H:%M:%S} UTC" if self.created else "unknown"


def parse(text: str, place: str) -> Lock | None:
    """The lock that ``text`` describes; None when it describes none."""
    try:
        data: Any = json.loads(text)
        return Lock(
            id=str(data["ID"]),
            who=str(data.get("Who") or "unknown"),
            operation=_operation(str(data.get("Operation") or "")),
            created=_time(data.get("Created")),
            place=place,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _operation(word: str) -> str:
    return OPERATIONS.get(word, word) or "unknown"


def _time(text: Any) -> datetime | None:
    """RFC 3339; Go writes nanoseconds, of which Python takes six digits."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


# --- the local state ----------------------------------------------------------------------------


def info_path(state: Path) -> Path:
    """Where Terraform describes its lock on a local state."""
    return state.parent / f".{state.name}.lock.info"


def holder(state: Path) -> int | None:
    """The process that holds the kernel's lock on a local state; None when nobody does."""
    try:
        with state.open("r+b") as stream:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(stream, fcntl.F_GETLK, asked))
    except OSError:
        return None
    return None if kind == fcntl.F_UNLCK else int(pid)


def local(state: Path) -> tuple[Lock, int] | None:
    """The lock on a local state and the process that holds it; None when it is free."""
    pid = holder(state)
    if pid is None:
        return None
    try:
        text = info_path(state).read_text(encoding="utf-8")
    except OSError:
        text = ""
    lock = parse(text, str(state)) or Lock("", "unknown", "unknown", None, str(state))
    return lock, pid


# --- who is it? ---------------------------------------------------------------------------------


def here() -> str:
    """What Terraform writes as the owner of a lock on this machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return f"{user}@{socket.gethostname()}"


def owner(lock: Lock) -> tuple[Owner, int | None]:
    """Is the owner of ``lock`` still there? With its process, when it is on this machine.

    The lock names user and host, no process. On this machine it is dead when no Terraform runs
    that is as old as the lock.
    """
    if lock.who.rpartition("@")[2] != socket.gethostname():
        return "elsewhere", None
    limit = (lock.created or datetime.now(UTC)) + timedelta(seconds=2)
    for process in psutil.process_iter(["name", "cmdline", "create_time", "status"]):
        info = process.info
        if info["status"] == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            continue
        if _is_terraform(info["name"] or "", info["cmdline"] or []):
            born = datetime.fromtimestamp(info["create_time"], UTC)
            if born <= limit:
                return "alive", process.pid
    return "dead", None


def _is_terraform(name: str, words: list[str]) -> bool:
    """The program, or the library in a Python of ours; not the provider's processes."""
    if name in PROGRAMS or (words and Path(words[0]).name in PROGRAMS):
        return True
    return "infra.tools.terraform" in words
