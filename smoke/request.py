"""What is asked of the engine: greedy, seeded, streamed, of a promised length."""

from __future__ import annotations

import json
from typing import Any, Literal

Kind = Literal["chat", "completions"]

PATH: dict[Kind, str] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


def body(
    kind: Kind,
    prompt: str,
    *,
    model: str,
    max_tokens: int,
    seed: int,
    engine: str | None = None,
    ignore_eos: bool = True,
) -> bytes:
    """The JSON of one request.

    Temperature 0 so that outputs can be compared. ``ignore_eos`` (vLLM and llama.cpp take it)
    makes every output ``max_tokens`` long. llama.cpp is told not to reuse the prompt cache of
    another request, so that a repeated prompt costs what a new one does.
    """
    fields: dict[str, Any] = {"model": model}
    if kind == "chat":
        fields["messages"] = [{"role": "user", "content": prompt}]
    else:
        fields["prompt"] = prompt
    fields |= {
        "max_tokens": max_tokens,
        "temperature": 0,
        "seed": seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if ignore_eos:
        fields["ignore_eos"] = True
    if engine == "llamacpp":
        fields["cache_prompt"] = False
    return json.dumps(fields, separators=(",", ":")).encode()
