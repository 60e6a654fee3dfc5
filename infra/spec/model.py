"""The deployment file as types (``deployments/<name>.yaml``).

Strict: unknown keys and wrong types are refused; nothing is coerced from a string. Units are in
the names. Checks that need only the file itself live here; whatever needs the catalogue (is the
tier known?) or the disk (is the model there?) is checked by whoever owns that knowledge.

What ties several keys together is a *rule*: a function that reads values by dotted key and answers
which key is at fault and why. The types apply the rules to finished objects; the loader applies
the same rules to files that have other faults as well, so that all of them are told at once.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError

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

#: Error types of our own, beside pydantic's.
BROKEN_RULES, UNPRINTABLE, RESERVED_TAG = "broken_rules", "unprintable", "reserved_tag"

#: Reads a value by dotted key, relative to the model that the rule belongs to.
Get = Callable[[str], Any]
#: Answers (dotted key, what is wrong with it), or None when all is well.
Rule = Callable[[Get], tuple[str, str] | None]


def _number_as_decimal(value: Any) -> Any:
    """Money is Decimal: through ``str`` so that 0.1 stays 0.1; text is refused like elsewhere."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    return value


def _int_as_float(value: Any) -> Any:
    """YAML writes 400 where a float is meant; an int is exact, so take it (but never a bool).

    One too large for a float stays what it is: the upper limits then name it.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return float(min(max(value, -(10**300)), 10**300))
    return value


def _printable(value: str) -> str:
    """Names end up in paths, tags, logs and terminals: no control characters, no blank ends."""
    if not value.isprintable() or value != value.strip():
        raise PydanticCustomError(
            UNPRINTABLE, "must not hold control characters, nor begin or end with a blank"
        )
    return value


def _not_reserved(value: str) -> str:
    if value.lower().startswith("aws:"):
        raise PydanticCustomError(RESERVED_TAG, "must not begin with aws: (kept by AWS)")
    return value


# The upper limits are far beyond any real use; they catch slips, and keep the arithmetic finite.
Number = Annotated[float, BeforeValidator(_int_as_float), Field(allow_inf_nan=False, le=1e9)]
PositiveNumber = Annotated[Number, Field(gt=0)]
Money = Annotated[
    Decimal, BeforeValidator(_number_as_decimal), Field(ge=0, le=10**12, allow_inf_nan=False)
]
Tokens = Annotated[int, Field(gt=0, le=100_000_000)]
Text = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_printable)]
# The limits of AWS cost-allocation tags, the tightest of those that tags are passed on to.
TagKey = Annotated[Text, Field(max_length=128), AfterValidator(_not_reserved)]
TagValue = Annotated[str, Field(max_length=256), AfterValidator(_printable)]


class Strict(BaseModel):
    """Base of every part of a deployment: frozen, strict, no unknown keys."""

    # Validators are built on first use: most programs need that of Deployment alone.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    RULES: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        found = tuple(broken for rule in self.RULES if (broken := rule(self._get)) is not None)
        if found:
            text = "; ".join(f"{key}: {what}" if key else what for key, what in found)
            # Braces would be read as places to fill in.
            safe = text.replace("{", "(").replace("}", ")")
            raise PydanticCustomError(BROKEN_RULES, safe)
        return self

    def _get(self, key: str) -> Any:
        value: Any = self
        for part in key.split("."):
            value = None if value is None else getattr(value, part)
        return value


class Model(Strict):
    """The model pair. Names are hub ids, or paths from the project's root."""

    target: Text
    draft: Text | None = None
    max_model_len: Tokens


def _no_tokens_without_method(get: Get) -> tuple[str, str] | None:
    if get("method") == "none" and get("draft_tokens") is not None:
        return "draft_tokens", "has no meaning with method none; remove it"
    return None


def _tokens_with_method(get: Get) -> tuple[str, str] | None:
    method = get("method")
    if method not in ("none", "suffix") and get("draft_tokens") is None:
        return "draft_tokens", f"is missing; method {method} needs it (how many a step, e.g. 4)"
    return None


def _nothing_to_pretend(get: Get) -> tuple[str, str] | None:
    if get("method") == "none" and get("synthetic_acceptance_length") is not None:
        return "synthetic_acceptance_length", "has no meaning with method none; remove it"
    return None


def _no_more_than_a_step(get: Get) -> tuple[str, str] | None:
    k, length = get("draft_tokens"), get("synthetic_acceptance_length")
    if k is not None and length is not None and length > k + 1:
        return (
            "synthetic_acceptance_length",
            f"must be at most draft_tokens + 1 = {k + 1}, what a step can keep, got {length:g}",
        )
    return None


class Speculation(Strict):
    """How drafts are made. ``draft_tokens`` is k, the tokens proposed per step."""

    RULES = (
        _no_tokens_without_method,
        _tokens_with_method,
        _nothing_to_pretend,
        _no_more_than_a_step,
    )

    method: SpeculationMethod
    draft_tokens: Annotated[int, Field(ge=1, le=64)] | None = None
    #: Pretend that steps keep this many tokens on average, whatever the draft says: for load
    #: tests without a good draft. The outputs are then no longer the target's own.
    synthetic_acceptance_length: Annotated[Number, Field(ge=1)] | None = None


class Serving(Strict):
    """Which engine serves the pair, and where it listens."""

    engine: EngineName
    speculation: Speculation
    #: A fixed TCP port on the host. Left out, a free one is chosen and kept.
    port: Annotated[int, Field(ge=1, le=65535)] | None = None


class Load(Strict):
    """The load that the SLA is promised for: concurrent multi-turn sessions with think time."""

    sessions: Annotated[int, Field(gt=0, le=1_000_000)]
    prompt_tokens: Tokens
    output_tokens: Tokens
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


_LATENCIES = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms")


def _promises_something(get: Get) -> tuple[str, str] | None:
    if all(get(key) is None for key in _LATENCIES):
        return "", f"must give at least one of {', '.join(_LATENCIES)}"
    return None


class Sla(Strict):
    """The clauses of the promise. Latencies are from the intended send time, in milliseconds."""

    RULES = (_promises_something,)

    ttft_p95_ms: PositiveNumber | None = None
    tpot_p95_ms: PositiveNumber | None = None
    e2e_p95_ms: PositiveNumber | None = None
    error_rate_max: Annotated[Number, Field(ge=0, lt=1)] = 0.001
    speculation: SpeculationSla | None = None


class Budget(Strict):
    """The most that the deployment may cost."""

    usd_per_month: Money


def _draft_is_there(get: Get) -> tuple[str, str] | None:
    method = get("serving.speculation.method")
    if method in METHODS_WITH_DRAFT and get("model.draft") is None:
        return "model.draft", f"is missing; speculation method {method} needs it"
    return None


def _no_clause_without_speculation(get: Get) -> tuple[str, str] | None:
    if get("serving.speculation.method") == "none" and get("sla.speculation") is not None:
        return "sla.speculation", "has no meaning with speculation method none; remove it"
    return None


def _load_fits_context(get: Get) -> tuple[str, str] | None:
    most = get("model.max_model_len")
    room = get("load.prompt_tokens") + get("load.output_tokens")
    if room > most:
        return "load", (
            f"prompt_tokens + output_tokens is {room}, more than model.max_model_len {most}"
        )
    return None


def _name_is_free(get: Get) -> tuple[str, str] | None:
    name = get("name")
    if name.endswith("-next"):
        return "name", f"must not end in -next (kept for upgrades in progress), got {name!r}"
    return None


class Deployment(Strict):
    """One served endpoint: what to serve, where, how, under which SLA, for how much."""

    RULES = (_draft_is_there, _no_clause_without_speculation, _load_fits_context, _name_is_free)

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    tier: Text
    site: Annotated[str, Field(pattern=SITE_PATTERN)]
    model: Model
    serving: Serving
    load: Load
    sla: Sla
    budget: Budget | None = None
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=40)] = Field(default_factory=dict)

    @property
    def stack_key(self) -> str:
        """The key of the Terraform state: ``<deployment>-<tier>``."""
        return f"{self.name}-{self.tier}"
