"""The key-value header of a GGUF file, without its tensors.

Own reader on purpose: ``gguf.GGUFReader`` builds numpy views for every token and needs 9.9 s and
650 MB for a vocabulary of 128,256; this one needs a fraction of a second and no numpy.
Format: the GGUF specification, versions 2 and 3, little endian (github.com/ggml-org/ggml,
docs/gguf.md).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"GGUF"

_STRING, _ARRAY = 8, 9
#: Type number -> struct format of the scalars.
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip


class NotGgufError(ValueError):
    """The file is not GGUF, or a damaged one. The message says which, without the path."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the checks need to know about a GGUF model."""

    values: dict[str, Any]

    @property
    def architecture(self) -> str:
        """For example ``llama``; empty if the file does not say."""
        return str(self.values.get("general.architecture", ""))

    @property
    def context_tokens(self) -> int | None:
        """The context that the model was trained for, in tokens."""
        value = self.values.get(f"{self.architecture}.context_length")
        return value if isinstance(value, int) else None

    @property
    def tokens(self) -> list[bytes] | None:
        """The vocabulary, by token id; None if the file has none."""
        value = self.values.get("tokenizer.ggml.tokens")
        return value if isinstance(value, list) else None

    @property
    def token_types(self) -> list[int]:
        """GGUF's type of each token (1: a word, 3: control, 5: unused); empty if not stated."""
        value = self.values.get("tokenizer.ggml.token_type")
        return value if isinstance(value, list) else []


def read_header(path: Path) -> GgufHeader:
    """Read the header of ``path``. Raises OSError, or NotGgufError for anything but GGUF."""
    with path.open("rb") as stream:
        if stream.read(4) != MAGIC:
            raise NotGgufError("it is not a GGUF file (it does not begin with GGUF)")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                return GgufHeader(_Cursor(content).header())
            except (struct.error, OverflowError, UnicodeDecodeError) as error:
                raise NotGgufError("it is a damaged or cut-off GGUF file") from error


class _Cursor:
    """Reads forward; struct.error at the end of the file."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._at = len(MAGIC)

    def header(self) -> dict[str, Any]:
        version = self._number("I")
        if version not in (2, 3):
            raise NotGgufError(f"it is GGUF version {version}; versions 2 and 3 are known")
        self._number("Q")  # how many tensors
        return dict(self._pair() for _ in range(self._number("Q")))

    def _pair(self) -> tuple[str, Any]:
        key = self._bytes().decode()
        return key, self._value(self._number("I"))

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._bytes().decode("utf-8", "replace")
        if kind == _ARRAY:
            return self._array()
        return self._number(self._scalar(kind))

    def _array(self) -> list[Any]:
        kind, count = self._number("I"), self._number("Q")
        if kind == _STRING:
            return [self._bytes() for _ in range(count)]
        if kind == _ARRAY:
            return [self._array() for _ in range(count)]
        # unpack_from checks the length against the file before it makes the list.
        layout = struct.Struct(f"<{count}{self._scalar(kind)}")
        values = layout.unpack_from(self._content, self._at)
        self._at += layout.size
        return list(values)

    def _scalar(self, kind: int) -> str:
        try:
            return _SCALARS[kind]
        except KeyError:
            raise NotGgufError(f"it holds a value of unknown type {kind}") from None

    def _number(self, layout: str) -> Any:
        (value,) = struct.unpack_from("<" + layout, self._content, self._at)
        self._at += struct.calcsize("<" + layout)
        return value

    def _bytes(self) -> bytes:
        length = self._number("Q")
        end = self._at + length
        if end > len(self._content):
            raise struct.error("string beyond the end of the file")
        value = self._content[self._at : end]
        self._at = end
        return value
