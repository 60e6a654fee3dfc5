"""Do a draft and its target share the vocabulary? Each engine has its own rule for "share"."""

from __future__ import annotations

from itertools import islice
from typing import Any

from infra.serving.gguf_header import GgufHeader
from infra.serving.hf_folder import HfFolder

#: llama.cpp's rule (common/speculative.cpp, common_speculative_are_compatible): sizes may differ by
#: so much (padding) ...
GGUF_SIZE_SLACK_TOKENS = 128
#: ... and the texts of the first ids (special tokens by habit) are not compared.
GGUF_FIRST_COMPARED_ID = 5

#: GGUF's token type of words; padding is of type 5 (unused).
_NORMAL = 1


def gguf_mismatch(target: GgufHeader, draft: GgufHeader) -> str | None:
    """Why llama.cpp would not speculate with this pair, in words; None when it would.

    llama.cpp itself only writes a line to its log and serves *without* speculation.
    """
    ours, theirs = target.tokens, draft.tokens
    if ours is None or theirs is None:
        return f"the {'target' if ours is None else 'draft'} holds no vocabulary"
    if abs(len(ours) - len(theirs)) > GGUF_SIZE_SLACK_TOKENS:
        return f"the draft has {len(theirs)} tokens, the target {len(ours)}"
    for token_id, (a, b) in enumerate(
        islice(zip(ours, theirs, strict=False), GGUF_FIRST_COMPARED_ID, None),
        start=GGUF_FIRST_COMPARED_ID,
    ):
        if a != b:
            return (
                f"token {token_id} is {b.decode('utf-8', 'replace')!r} in the draft "
                f"and {a.decode('utf-8', 'replace')!r} in the target"
            )
    return _surplus_mismatch(target, draft) or _special_tokens_mismatch(target, draft)


def _surplus_mismatch(target: GgufHeader, draft: GgufHeader) -> str | None:
    """Tokens that one model has beyond the other's last must be padding.

    llama.cpp takes any, and aborts at the first real one (tried: xllamacpp 2026.10.11549).
    """
    sizes = {"target": len(target.tokens or ()), "draft": len(draft.tokens or ())}
    shorter, longer = sorted(sizes, key=sizes.__getitem__)
    types = {"target": target, "draft": draft}[longer].token_types
    for token_id in range(sizes[shorter], min(sizes[longer], len(types))):
        if types[token_id] == _NORMAL:
            return f"the {shorter} lacks token {token_id} of the {longer} ({sizes[shorter]} tokens)"
    return None


def _special_tokens_mismatch(target: GgufHeader, draft: GgufHeader) -> str | None:
    """A key that one file leaves out has an engine's default, so only what both say counts."""
    for key in ("model", "add_bos_token", "add_eos_token"):
        ours, theirs = _both(target, draft, key)
        if None not in (ours, theirs) and ours != theirs:
            return f"tokenizer.ggml.{key} is {theirs} in the draft and {ours} in the target"
    for added, key in (("add_bos_token", "bos_token_id"), ("add_eos_token", "eos_token_id")):
        ours, theirs = _both(target, draft, key)
        if _both(target, draft, added) == (True, True) and ours != theirs:
            return f"tokenizer.ggml.{key} is {theirs} in the draft and {ours} in the target"
    return None


def _both(target: GgufHeader, draft: GgufHeader, key: str) -> tuple[Any, Any]:
    name = f"tokenizer.ggml.{key}"
    return target.values.get(name), draft.values.get(name)


def hf_mismatch(target: HfFolder, draft: HfFolder) -> str | None:
    """Why vLLM would refuse this draft model, or worse, draft nonsense; None when they fit.

    vLLM compares the embeddings' sizes and nothing else (config/speculative.py,
    verify_equal_vocab_size_if_draft_model), so the texts of the tokens are compared here.
    """
    if target.vocab_size != draft.vocab_size:
        return (
            f"vocab_size is {draft.vocab_size} in the draft and {target.vocab_size} in the target"
        )
    ours, theirs = target.vocabulary, draft.vocabulary
    if ours is None or theirs is None or ours == theirs:
        return None
    different = sorted(
        (token_id, text) for text, token_id in theirs.items() if ours.get(text) != token_id
    )
    if not different:
        return f"the draft's tokenizer has {len(theirs)} tokens, the target's {len(ours)}"
    token_id, text = different[0]
    return f"token {token_id}, {text!r} in the draft, is another one in the target"
