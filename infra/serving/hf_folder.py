"""A model in Hugging Face form on disk: what the checks must know, without loading it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Scalings of the rotary embedding that lengthen the context by their factor. (``llama3`` and
#: ``longrope`` already state the longer one in max_position_embeddings.)
_LENGTHENING = frozenset({"linear", "dynamic", "yarn"})


class NotAModelError(ValueError):
    """The folder does not hold a usable model. The message says what is wrong, without the path."""


@dataclass(frozen=True, slots=True)
class HfFolder:
    """``vocabulary``: token text -> id, None without a ``tokenizer.json``. ``vocab_size``: rows of
    the embedding, padding included. ``context_tokens``: the context trained for."""

    vocab_size: int | None
    context_tokens: int | None
    vocabulary: dict[str, int] | None


def read_folder(folder: Path, *, needs_tokenizer: bool = True) -> HfFolder:
    """Raises OSError, or NotAModelError for a folder without a usable model."""
    if not folder.is_dir():
        raise NotAModelError(
            "it is a file; a folder with config.json and *.safetensors is wanted"
            if folder.exists()
            else "no such folder"
        )
    if not (folder / "config.json").is_file():
        raise NotAModelError("the folder has no config.json")
    config = _json(folder / "config.json")
    if not any(folder.glob("*.safetensors")):
        raise NotAModelError("the folder has no *.safetensors")
    has_tokenizer = any(
        (folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "tekken.json")
    )
    if needs_tokenizer and not has_tokenizer:
        raise NotAModelError("the folder has no tokenizer.json and no tokenizer.model")
    # Models that also see pictures keep the language model's shape one level down.
    text = config.get("text_config")
    shape = text if isinstance(text, dict) else config
    return HfFolder(
        vocab_size=_integer(shape.get("vocab_size")),
        context_tokens=_context(shape),
        vocabulary=_vocabulary(folder / "tokenizer.json"),
    )


def _vocabulary(path: Path) -> dict[str, int] | None:
    if not path.is_file():
        return None
    tokenizer = _json(path)
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):  # Unigram: [text, score], the id is the place
        return {str(entry[0]): i for i, entry in enumerate(vocabulary) if entry}
    return vocabulary if isinstance(vocabulary, dict) else None


def _context(shape: dict[str, Any]) -> int | None:
    trained = _integer(shape.get("max_position_embeddings"))
    scaling = shape.get("rope_scaling") or shape.get("rope_parameters")
    if trained is None or not isinstance(scaling, dict):
        return trained
    kind = scaling.get("rope_type", scaling.get("type"))
    factor = scaling.get("factor")
    if kind not in _LENGTHENING or not isinstance(factor, int | float):
        return trained
    original = _integer(scaling.get("original_max_position_embeddings")) or trained
    return int(original * factor)


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise NotAModelError(f"{path.name} is not JSON") from error
    if not isinstance(content, dict):
        raise NotAModelError(f"{path.name} does not hold an object")
    return content
