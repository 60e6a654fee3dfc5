"""What the llama.cpp child process is told: ``server.json`` in the service's directory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

LlamaCppMethod = Literal["none", "draft_model", "ngram"]

_Positive = Annotated[int, Field(gt=0)]


class ServerConfig(BaseModel):
    """One llama.cpp server. Strict: written by the adapter, read by the child, nobody else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    #: Absolute path of the target's GGUF file.
    model: Annotated[str, Field(min_length=1)]
    #: The name under which it is served.
    alias: Annotated[str, Field(min_length=1)]
    method: LlamaCppMethod
    #: Absolute path of the draft's GGUF file, with method ``draft_model``.
    draft: str | None = None
    #: k: tokens proposed per step, at most.
    draft_tokens: Annotated[int, Field(ge=1, le=64)] | None = None
    #: Keep this many tokens a step on average, whatever the draft says (load tests).
    synthetic_acceptance_length: Annotated[float, Field(ge=1)] | None = None
    #: Requests decoded at the same time; more wait.
    slots: _Positive
    #: Context of one slot, prompt plus output, in tokens.
    slot_context_tokens: _Positive
    #: CPU threads for computing.
    threads: _Positive
    #: HTTP connections served at the same time, waiting ones included.
    connections: _Positive
