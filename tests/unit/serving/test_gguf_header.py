"""Our reader of GGUF headers against the reference one, and against damaged files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.serving.gguf_header import NotGgufError, read_header

from .gguf_files import tokens, write_gguf

TARGET = Path(__file__).parents[3] / "models/tiny/target.gguf"


def test_it_reads_what_the_reference_reader_reads() -> None:
    ours = read_header(TARGET).values
    theirs = {
        key: field.contents()
        for key, field in gguf.GGUFReader(TARGET).fields.items()
        if not key.startswith("GGUF.")
    }
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        mine = ours[key]
        if isinstance(mine, list) and mine and isinstance(mine[0], bytes):
            mine = [entry.decode() for entry in mine]
        assert mine == pytest.approx(value) if isinstance(value, float) else mine == value, key


def test_the_tiny_target_is_a_llama_with_1024_tokens_and_positions() -> None:
    header = read_header(TARGET)
    assert header.architecture == "llama"
    assert header.context_tokens == 1024
    assert header.tokens is not None
    assert len(header.tokens) == 1024


def test_a_large_vocabulary_is_read_whole(tmp_path: Path) -> None:
    header = read_header(write_gguf(tmp_path / "m.gguf", tokens(128_256)))
    assert header.tokens is not None
    assert header.tokens[-1] == b"token128255"


@pytest.mark.parametrize("content", [b"", b"GGU", b"[build-system]\n", b"\x80\x02}q\x00."])
def test_a_file_of_another_kind_is_said_to_be_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(NotGgufError, match="not a GGUF file"):
        read_header(path)


@pytest.mark.parametrize("size", [4, 8, 24, 60, 500])
def test_a_file_that_was_cut_off_is_said_to_be_damaged(tmp_path: Path, size: int) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(TARGET.read_bytes()[:size])
    with pytest.raises(NotGgufError, match="damaged or cut-off"):
        read_header(path)


@given(at=st.integers(4, 700), junk=st.binary(min_size=1, max_size=12))
def test_damage_never_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, at: int, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "m.gguf"
    content = bytearray(TARGET.read_bytes()[:60_000])
    content[at : at + len(junk)] = junk
    path.write_bytes(content)
    with contextlib.suppress(NotGgufError):
        read_header(path)
