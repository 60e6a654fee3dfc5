"""The tiny pair that comes with Specrack is what its own scripts make."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TINY = Path(__file__).parents[3] / "models/tiny"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TINY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_gguf = load("make_gguf")


@pytest.mark.parametrize("name", ["target", "draft"])
def test_converting_gives_the_shipped_bytes(tmp_path: Path, name: str) -> None:
    made = tmp_path / "made.gguf"
    assert make_gguf.main([str(TINY / name), str(made)]) == 0
    assert made.read_bytes() == (TINY / f"{name}.gguf").read_bytes()


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("config.json", {"model_type": "qwen2"}, "not a Llama with tied embeddings"),
        ("config.json", {"vocab_size": 1000}, "the vocabulary is not the 1000 ids from 0"),
        ("tokenizer.json", {"pre_tokenizer": {"type": "Split"}}, "not byte-level BPE"),
    ],
)
def test_a_model_that_it_cannot_convert_is_refused_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    change: dict[str, object],
    says: str,
) -> None:
    source = tmp_path / "source"
    shutil.copytree(TINY / "draft", source)
    content = json.loads((source / file).read_text()) | change
    (source / file).write_text(json.dumps(content))
    assert make_gguf.main([str(source), str(tmp_path / "made.gguf")]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_missing_folder_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_gguf.main([str(tmp_path / "nope"), str(tmp_path / "made.gguf")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_the_training_script_explains_itself_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, TINY / "train_pair.py", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "--target-steps" in done.stdout


def test_the_licence_of_the_training_text_lies_beside_the_weights() -> None:
    text = (TINY / "LICENSE-PSF.txt").read_text()
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in text
