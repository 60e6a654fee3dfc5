"""Convert a tiny Llama in Hugging Face form to GGUF, with the ``gguf`` package alone (no torch).

    python models/tiny/make_gguf.py models/tiny/target models/tiny/target.gguf

Matrices are written as float32, or float16 with ``--type f16``; the norm vectors always as float32,
because llama.cpp refuses other types there. The same input gives the same bytes on every run.
README.md tells why float32 is the default.

Reads only what ``train_pair.py`` writes: one ``model.safetensors`` in BF16 or F32, a byte-level BPE
``tokenizer.json`` with GPT-2's splitting, tied embeddings. Anything else is refused.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

#: Hugging Face's names inside a layer -> llama.cpp's.
LAYER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
FILE_TYPES = {"f16": gguf.LlamaFileType.MOSTLY_F16, "f32": gguf.LlamaFileType.ALL_F32}

TOP_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}


def main(arguments: list[str] | None = None) -> int:
    """Command line. Returns the exit status: 0 written, 2 input that this script cannot convert."""
    parser = argparse.ArgumentParser(
        description="Convert a tiny Llama in Hugging Face form to GGUF.",
        epilog="example: python models/tiny/make_gguf.py models/tiny/target target.gguf",
    )
    parser.add_argument("source", type=Path, help="folder with config.json, model.safetensors, ...")
    parser.add_argument("destination", type=Path, help="the GGUF file to write")
    parser.add_argument("--type", choices=FILE_TYPES, default="f32", help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        convert(options.source, options.destination, matrices=options.type)
    except (OSError, ValueError) as error:
        print(f"make_gguf: {error}", file=sys.stderr)
        return 2
    return 0


def convert(source: Path, destination: Path, *, matrices: str = "f32") -> None:
    """Write ``source`` as GGUF to ``destination``, with ``matrices`` of type f16 or f32.

    Raises OSError for a file that cannot be read or written, ValueError for one that holds
    something this script does not know.
    """
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "llama" or not config.get("tie_word_embeddings"):
        raise ValueError(f"{source}: not a Llama with tied embeddings")
    tensors = read_safetensors(source / "model.safetensors")
    writer = gguf.GGUFWriter(destination, "llama")
    writer.add_name("tiny")
    writer.add_file_type(FILE_TYPES[matrices])
    _add_shape(writer, config)
    _add_tokenizer(writer, source, vocabulary_size=config["vocab_size"])
    # By name: the order in the input file is whatever its writer chose.
    for name in sorted(tensors):
        new_name, values = rename(name, tensors[name], config)
        as_f32 = values.ndim == 1 or matrices == "f32"
        writer.add_tensor(
            new_name, np.ascontiguousarray(values, np.float32 if as_f32 else np.float16)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_safetensors(path: Path) -> dict[str, Array]:
    """All tensors of a safetensors file as float32: 8 bytes header length, JSON, raw data."""
    content = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + header_bytes])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        tensors[name] = _as_float32(content[begin:end], entry["dtype"]).reshape(entry["shape"])
    return tensors


def _as_float32(raw: bytes, dtype: str) -> Array:
    if dtype == "F32":
        return np.frombuffer(raw, np.float32)
    if dtype == "BF16":
        # bfloat16 is the upper half of a float32.
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
    raise ValueError(f"tensor type {dtype}: only F32 and BF16 are known here")


def rename(name: str, values: Array, config: dict[str, Any]) -> tuple[str, Array]:
    """llama.cpp's name and layout of one tensor. Raises ValueError for an unknown name."""
    stem = name.removesuffix(".weight")
    if stem in TOP_NAMES:
        return f"{TOP_NAMES[stem]}.weight", values
    if not stem.startswith("model.layers."):
        raise ValueError(f"unknown tensor {name}")
    _, _, layer, inner = stem.split(".", 3)
    if inner not in LAYER_NAMES:
        raise ValueError(f"unknown tensor {name}")
    if inner == "self_attn.q_proj":
        values = interleave_rotary(values, config["num_attention_heads"])
    if inner == "self_attn.k_proj":
        values = interleave_rotary(values, config["num_key_value_heads"])
    return f"blk.{layer}.{LAYER_NAMES[inner]}.weight", values


def interleave_rotary(weights: Array, heads: int) -> Array:
    """Rows of a query or key projection from Hugging Face's order to llama.cpp's.

    Hugging Face rotates row i of a head with row i + d/2; llama.cpp's ``llama`` architecture
    rotates neighbours, 2i with 2i + 1.
    """
    rows, columns = weights.shape
    by_halves = weights.reshape(heads, 2, rows // heads // 2, columns)
    return by_halves.swapaxes(1, 2).reshape(rows, columns)


def _add_shape(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    head_width = config["hidden_size"] // config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(head_width)
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])


def _add_tokenizer(writer: gguf.GGUFWriter, source: Path, *, vocabulary_size: int) -> None:
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    if tokenizer["pre_tokenizer"]["type"] != "ByteLevel":
        raise ValueError(f"{source}: the tokenizer is not byte-level BPE")
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    if sorted(vocabulary.values()) != list(range(vocabulary_size)):
        raise ValueError(f"{source}: the vocabulary is not the {vocabulary_size} ids from 0")
    special = {entry["id"] for entry in tokenizer["added_tokens"] if entry["special"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [
            gguf.TokenType.CONTROL if token_id in special else gguf.TokenType.NORMAL
            for token_id in range(vocabulary_size)
        ]
    )
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((source / "chat_template.jinja").read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
