"""Processes: who is alive, and who must not outlive whom."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time

import psutil

_PR_SET_PDEATHSIG = 1


def die_with_parent(sig: int = signal.SIGTERM) -> None:
    """Ask the kernel to send ``sig`` to this process when its parent is gone (Linux only).

    Survives ``exec``, so that it can be set just before one. Does nothing elsewhere.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


def stop_when_orphaned(*, poll_s: float = 0.2) -> None:
    """Watch from a thread: when our parent is gone, send ourselves SIGTERM.

    For a child of Terraform. The kernel's own signal is tied to the thread that forked us, and a
    Go program may end any of its threads at any time.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(poll_s)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="orphan-watch", daemon=True).start()


def start_time(pid: int) -> float | None:
    """When process ``pid`` was started (seconds since the epoch), or None when it is gone."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None


def is_alive(pid: int, started: float) -> bool:
    """Is this the very process that ``pid`` and its start time meant? Numbers are used again."""
    now = start_time(pid)
    return now is not None and abs(now - started) < 1.0


def kill_group(pgid: int) -> None:
    """Kill what is left of a process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal.SIGKILL)
