"""Files that survive a kill: written whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.errors import InputError


def write_atomic(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old content or the new, never a part.

    A temporary file in the same folder is written, flushed to disk and renamed over ``path``.
    Raises InputError when the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise unwritable(path.parent, error) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(mode)
        os.replace(temporary, path)  # noqa: PTH105 - replace, with the name it has in POSIX
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def unwritable(folder: Path, error: OSError) -> InputError:
    """The one line for a folder that we may not write."""
    return InputError(
        f"{folder}: cannot write here: {error.strerror or error}",
        do="check the owner and the free space, or run from a folder of your own",
    )


def write_json(path: Path, value: Any) -> None:
    """``write_atomic`` of ``value`` as indented JSON."""
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> Any:
    """The JSON in ``path``, or None when the file is absent or was never finished."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def locked(path: Path, *, wait_s: float, what: str) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; it goes with the process, whatever kills it.

    Waits up to ``wait_s`` seconds for another holder. Raises InputError, naming its process id,
    when it is still there then.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise unwritable(path.parent, error) from error
    with stream:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    stream.seek(0)
                    holder = stream.read().strip() or "unknown"
                    raise InputError(
                        f"{what} is already going on for this deployment (process {holder})",
                        do="wait for it, or stop that process",
                    ) from None
                time.sleep(0.1)
        stream.truncate(0)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        yield
