"""Bytes of a deployment file -> text that a YAML reader and an editor count lines of alike."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

#: A deployment is a page of text. What is larger is another file, or an attack on the parser.
MAX_BYTES = 256 * 1024

# Line breaks that YAML knows and editors do not (U+0085, U+2028, U+2029, a bare carriage return)
# would make line numbers differ from those on the user's screen; the rest is not text at all.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\r(?!\n)"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a file. ``path``: the keys from the top; ``line``: from 1."""

    line: int | None
    path: tuple[str, ...]
    what: str


class UnreadableError(Exception):
    """The file holds no text that could be parsed; ``fault`` says why."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.fault = Fault(line, (), what)


def read_bytes(path: Path) -> bytes:
    """The content of ``path``. Raises UnreadableError, never OSError; never waits on a pipe."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UnreadableError("is a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("is not a regular file")
        if status.st_size > MAX_BYTES:
            raise UnreadableError(f"is larger than {MAX_BYTES // 1024} KiB; no deployment file is")
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES)
    except FileNotFoundError:
        raise UnreadableError("there is no such file") from None
    except ValueError:  # a NUL in the name
        raise UnreadableError("is no valid file name") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from None


def decode(content: bytes) -> str:
    """UTF-8 text, without a byte-order mark. Raises UnreadableError with the line."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableError("is not UTF-8 text", line) from None
    text = text.removeprefix("\ufeff")
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        raise UnreadableError(f"holds the control character U+{ord(bad[0][0]):04X}", line)
    if not text.strip():
        raise UnreadableError("is empty; it must hold a deployment (name: ..., tier: ...)")
    return text
