"""The deployment file as types (``deployments/<name>.yaml``).

Strict: unknown keys and wrong types are refused; nothing is coerced from a string. Units are in
the names. Checks that need only the file itself live here; whatever needs the catalogue (is the
tier known?) or the disk (is the model there?) is checked by whoever owns that knowledge.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

EngineName = Literal["vllm", "trtllm", "llamacpp"]
SpeculationMethod = Literal[
    "none",
    "draft_model",
    "ngram",
    "suffix",
    "lookahead",
    "medusa",
    "eagle",
    "eagle3",
    "mtp",
]

#: Methods that need a second set of weights, named by ``model.draft``.
METHODS_WITH_DRAFT: frozenset[str] = frozenset({"draft_model", "medusa", "eagle", "eagle3"})

NAME_PATTERN = r"^[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?$"
SITE_PATTERN = r"^(?:local|aws/[a-z]{2}(?:-[a-z]+)+-\d|rack/[a-z][a-z0-9-]*)$"


def _int_as_float(value: Any) -> Any:
    """YAML writes 400 where a float is meant; an int is exact, so take it (but never a bool)."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _number_as_decimal(value: Any) -> Any:
    """Money is Decimal: through ``str`` so that 0.1 stays 0.1; text is refused like elsewhere."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    return value


Number = Annotated[float, BeforeValidator(_int_as_float), Field(allow_inf_nan=False)]
PositiveNumber = Annotated[Number, Field(gt=0)]
Money = Annotated[Decimal, BeforeValidator(_number_as_decimal), Field(ge=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1, max_length=300)]


class Strict(BaseModel):
    """Base of every part of a deployment: frozen, strict, no unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Model(Strict):
    """The model pair. Names are hub ids, or paths from the project's root."""

    target: Text
    draft: Text | None = None
    max_model_len: PositiveInt


class Speculation(Strict):
    """How drafts are made. ``draft_tokens`` is k, the tokens proposed per step."""

    method: SpeculationMethod
    draft_tokens: Annotated[int, Field(ge=1, le=64)] | None = None
    #: Pretend that steps keep this many tokens on average, whatever the draft says: for load
    #: tests without a good draft. The outputs are then no longer the target's own.
    synthetic_acceptance_length: Annotated[Number, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.method == "none" and self.draft_tokens is not None:
            raise ValueError("draft_tokens has no meaning with method none; remove it")
        if self.method not in ("none", "suffix") and self.draft_tokens is None:
            raise ValueError(f"method {self.method} needs draft_tokens (how many a step, e.g. 4)")
        if self.method == "none" and self.synthetic_acceptance_length is not None:
            raise ValueError("synthetic_acceptance_length has no meaning with method none")
        return self


class Serving(Strict):
    """Which engine serves the pair, and where it listens."""

    engine: EngineName
    speculation: Speculation
    #: A fixed TCP port on the host. Left out, a free one is chosen and kept.
    port: Annotated[int, Field(ge=1, le=65535)] | None = None


class Load(Strict):
    """The load that the SLA is promised for: concurrent multi-turn sessions with think time."""

    sessions: PositiveInt
    prompt_tokens: PositiveInt
    output_tokens: PositiveInt
    think_s: Annotated[Number, Field(ge=0)] = 0.0


class SpeculationSla(Strict):
    """What speculation must bring. There is no clause on the bare acceptance rate on purpose: it
    falls with k by nature (docs/architecture.md, section "Engines")."""

    #: Time without speculation over time with it, same prompts, same load.
    speedup_min: PositiveNumber | None = None
    #: Tokens kept per step: 1 + sum(accepted at position i) / drafts.
    mean_acceptance_length_min: Annotated[Number, Field(ge=1)] | None = None
    #: ``identical``: greedy outputs equal those without speculation, token by token.
    output: Literal["identical", "any"] = "any"


class Sla(Strict):
    """The clauses of the promise. Latencies are from the intended send time, in milliseconds."""

    ttft_p95_ms: PositiveNumber | None = None
    tpot_p95_ms: PositiveNumber | None = None
    e2e_p95_ms: PositiveNumber | None = None
    error_rate_max: Annotated[Number, Field(ge=0, lt=1)] = 0.001
    speculation: SpeculationSla | None = None

    @model_validator(mode="after")
    def _promises_something(self) -> Self:
        if self.ttft_p95_ms is None and self.tpot_p95_ms is None and self.e2e_p95_ms is None:
            raise ValueError("give at least one of ttft_p95_ms, tpot_p95_ms, e2e_p95_ms")
        return self


class Budget(Strict):
    """The most that the deployment may cost."""

    usd_per_month: Money


class Deployment(Strict):
    """One served endpoint: what to serve, where, how, under which SLA, for how much."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    tier: Text
    site: Annotated[str, Field(pattern=SITE_PATTERN)]
    model: Model
    serving: Serving
    load: Load
    sla: Sla
    budget: Budget | None = None
    tags: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        method = self.serving.speculation.method
        if method in METHODS_WITH_DRAFT and self.model.draft is None:
            raise ValueError(f"speculation method {method} needs model.draft")
        if method == "none" and self.sla.speculation is not None:
            raise ValueError("sla.speculation has no meaning with speculation method none")
        room = self.load.prompt_tokens + self.load.output_tokens
        if room > self.model.max_model_len:
            raise ValueError(
                f"load.prompt_tokens + load.output_tokens is {room}, "
                f"more than model.max_model_len {self.model.max_model_len}"
            )
        if self.name.endswith("-next"):
            raise ValueError("a name ending in -next is kept for upgrades in progress")
        return self

    @property
    def stack_key(self) -> str:
        """The key of the Terraform state: ``<deployment>-<tier>``."""
        return f"{self.name}-{self.tier}"
