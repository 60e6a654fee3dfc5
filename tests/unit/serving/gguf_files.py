"""Small GGUF files for tests, written by the real ``gguf`` package."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np


def write_gguf(
    path: Path, tokens: list[str], *, context_tokens: int = 1024, eos_token_id: int = 2
) -> Path:
    """A GGUF file with a vocabulary and one tiny tensor; not a model that could be served."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context_tokens)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([5 if text == "[PAD]" else 1 for text in tokens])
    writer.add_eos_token_id(eos_token_id)
    writer.add_add_eos_token(True)
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tokens(count: int) -> list[str]:
    return [f"token{i}" for i in range(count)]
