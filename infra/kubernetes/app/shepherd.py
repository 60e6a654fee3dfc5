"""Keeps one engine and everything that it starts, and leaves nothing behind.

An engine's GPUs are lost to the node while any of its processes lives, and engines start others
(one a GPU, by MPI or by fork). A replica of Ray Serve can be killed without a word. So a process
of its own stands between: it holds the engine in a session of its own, adopts the orphans among
its descendants, and ends them all when its standard input closes, which the kernel does when the
replica is gone, however it went.

Run as a program: one line of JSON on standard input, then that stays open as long as the engine is
wanted. ``{"command": [...], "env": {...}, "folder": "...", "stop_timeout_s": 60}``; ``env`` is all
that the engine gets. Exits with the engine's status. Only the standard library, and no import of
the other modules.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

LOG_NAME = "engine.log"
#: When the log is longer, it becomes ``engine.log.1`` (the one before is dropped).
LOG_LIMIT_BYTES = 32 * 1024 * 1024
#: After the engine itself is gone: how often what it left is looked for and killed.
_SWEEP_EVERY_S = 0.1
_SWEEP_AT_MOST_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Start the engine, wait for its end or for that of our standard input."""
    wanted: dict[str, Any] = json.loads(sys.stdin.readline())
    adopt_orphans()
    try:
        engine = subprocess.Popen(
            wanted["command"],
            env=wanted["env"],
            cwd=wanted["folder"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        log = Path(wanted["folder"]) / LOG_NAME
        log.write_text(f"{wanted['command'][0]}: {error.strerror}\n", encoding="utf-8")
        return 127
    assert engine.stdout is not None
    log_to = Path(wanted["folder"]) / LOG_NAME
    threading.Thread(target=keep_log, args=(engine.stdout, log_to), daemon=True).start()
    stop_timeout_s = float(wanted["stop_timeout_s"])

    def stop() -> None:
        stop_group(engine, stop_timeout_s)

    def stop_at_end_of_input() -> None:
        with contextlib.suppress(OSError, ValueError):
            while sys.stdin.read(4096):
                pass
        stop()

    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop, daemon=True).start())
    status = engine.wait()
    sweep()
    return status if status >= 0 else 128 - status


def adopt_orphans() -> None:
    """Descendants whose parent ends become our children instead of init's (Linux)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def keep_log(stream: IO[bytes], path: Path) -> None:
    """Copy ``stream`` to ``path`` until it ends, and never let the file grow without limit."""
    written = 0
    log = path.open("wb", buffering=0)
    try:
        while chunk := os.read(stream.fileno(), 65536):
            log.write(chunk)
            written += len(chunk)
            if written > LOG_LIMIT_BYTES:
                log.close()
                path.replace(path.with_name(f"{path.name}.1"))
                log, written = path.open("wb", buffering=0), 0
    finally:
        log.close()


def stop_group(engine: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Ask the engine and its group to stop, and kill them when they have not within the limit."""
    _signal_group(engine.pid, signal.SIGTERM)
    try:
        engine.wait(timeout_s)
    except subprocess.TimeoutExpired:
        _signal_group(engine.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def sweep() -> None:
    """Kill whatever descends from us still, until there is nothing."""
    deadline = time.monotonic() + _SWEEP_AT_MOST_S
    while left := children(os.getpid()):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > deadline:
            return
        time.sleep(_SWEEP_EVERY_S)


def children(process: int) -> list[int]:
    """Ids of the processes whose parent is ``process``."""
    found = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in tasks.read_text().split()]
    return found


if __name__ == "__main__":
    sys.exit(main())
