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
from ipaddress import ip_network
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

from infra.spec import schedule as schedules

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
SCHEDULE_PATTERN = (
    r"^(?:weekdays|daily) (?:[01]\d|2[0-3])-(?:[01]\d|2[0-4])"
    r"(?: [A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+)*)?$"
)
RESERVATION_PATTERN = r"^cr-[0-9a-f]{8,17}$"
ZONE_PATTERN = r"^[a-z]{2}(?:-[a-z]+)+-\d[a-z]$"
VPC_PATTERN = r"^vpc-[0-9a-f]{8,17}$"
SUBNET_PATTERN = r"^subnet-[0-9a-f]{8,17}$"
MAIL_PATTERN = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
BUCKET_PATTERN = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
PREFIX_PATTERN = r"^(?:[A-Za-z0-9!_.()-]+/)*$"
HUB_ARN_PATTERN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[^\s*?]+$"

#: Error types of our own, beside pydantic's.
BROKEN_RULES, UNPRINTABLE, RESERVED_TAG = "broken_rules", "unprintable", "reserved_tag"
NOT_A_NETWORK = "not_a_network"

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


def _list_as_tuple(value: Any) -> Any:
    """YAML has lists; deployments are frozen."""
    return tuple(value) if isinstance(value, list) else value


def _network(value: str) -> str:
    try:
        network = ip_network(value)
    except ValueError:
        why = "must be a network such as 10.20.0.0/16, without host bits"
        raise PydanticCustomError(NOT_A_NETWORK, "{why}", {"why": why}) from None
    if network.prefixlen == 0:
        why = "must not open to the whole internet; name who may come"
        raise PydanticCustomError(NOT_A_NETWORK, "{why}", {"why": why})
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


Cidr = Annotated[Text, AfterValidator(_network)]
Subnet = Annotated[str, Field(pattern=SUBNET_PATTERN)]
Mail = Annotated[Text, Field(pattern=MAIL_PATTERN)]
Many = BeforeValidator(_list_as_tuple)


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


def _in_order(get: Get) -> tuple[str, str] | None:
    low, high = get("min"), get("max")
    if low is not None and high is not None and low > high:
        return "min", f"must not be above max {high}, got {low}"
    return None


class NodeCount(Strict):
    """How many machines, at least and at most."""

    RULES = (_in_order,)

    min: Annotated[int, Field(ge=1, le=512)]
    max: Annotated[int, Field(ge=1, le=512)]


RESERVED_KINDS = ("reservation", "capacity_block")


def _reservation_goes_with_kind(get: Get) -> tuple[str, str] | None:
    buy, reservation = get("buy") or "on_demand", get("reservation")
    if buy in RESERVED_KINDS and reservation is None:
        return "reservation", f"is missing; buy: {buy} needs its id (cr-...)"
    if buy not in RESERVED_KINDS and reservation is not None:
        return "reservation", f"would be ignored with buy: {buy}; say buy: reservation"
    return None


def _reservation_has_a_zone(get: Get) -> tuple[str, str] | None:
    if get("reservation") is not None and get("zone") is None:
        return "zone", "is missing; a reservation holds in one availability zone only"
    return None


def _schedule_lets_go(get: Get) -> tuple[str, str] | None:
    buy = get("buy") or "on_demand"
    if get("schedule") is not None and buy in RESERVED_KINDS:
        return "schedule", f"saves nothing with buy: {buy}, which is paid around the clock"
    return None


def _schedule_makes_sense(get: Get) -> tuple[str, str] | None:
    text = get("schedule")
    if text is None:
        return None
    try:
        schedules.parse(text)
    except ValueError as error:
        return "schedule", str(error)
    return None


class Fleet(Strict):
    """Which machines, how many, and how they are bought. What it leaves out, the tier names."""

    RULES = (
        _reservation_goes_with_kind,
        _reservation_has_a_zone,
        _schedule_lets_go,
        _schedule_makes_sense,
    )

    #: A machine of the catalogue in place of the tier's.
    instance: Text | None = None
    nodes: NodeCount | None = None
    buy: Literal["on_demand", "spot", "reservation", "capacity_block"] = "on_demand"
    reservation: Annotated[str, Field(pattern=RESERVATION_PATTERN)] | None = None
    #: Where the machines with accelerators are; the region's first zone when left out.
    zone: Annotated[str, Field(pattern=ZONE_PATTERN)] | None = None
    #: When the machines run: ``weekdays 08-20``, ``daily 06-22 Europe/Vienna``; else always.
    schedule: Annotated[str, Field(pattern=SCHEDULE_PATTERN)] | None = None


def _subnets_go_with_a_vpc(get: Get) -> tuple[str, str] | None:
    vpc, subnets = get("vpc"), get("subnets")
    if vpc is not None and not subnets:
        return "subnets", "is missing; name the private subnets of the VPC that may be used"
    if vpc is None and subnets:
        return "vpc", "is missing; subnets belong to an existing VPC"
    return None


class Network(Strict):
    """Where the machines stand and who may come in."""

    RULES = (_subnets_go_with_a_vpc,)

    #: An existing VPC; a new one is made when left out.
    vpc: Annotated[str, Field(pattern=VPC_PATTERN)] | None = None
    #: Of the existing VPC, with a way out; the first is where the machines stand.
    subnets: Annotated[tuple[Subnet, ...], Many, Field(max_length=8)] = ()
    #: Who may reach the serving port. Nobody when left out.
    clients: Annotated[tuple[Cidr, ...], Many, Field(max_length=20)] = ()
    #: Who may reach the Kubernetes API of the ``scaled`` tier.
    operators: Annotated[tuple[Cidr, ...], Many, Field(max_length=20)] = ()


def _lustre_comes_in_sizes(get: Get) -> tuple[str, str] | None:
    size = get("lustre_gib")
    if isinstance(size, int) and size != 1200 and size % 2400:
        return "lustre_gib", f"must be 1200 or a multiple of 2400, got {size}"
    return None


class Weights(Strict):
    """An S3 bucket that holds the model's weights, below ``prefix``."""

    RULES = (_lustre_comes_in_sizes,)

    bucket: Annotated[str, Field(pattern=BUCKET_PATTERN)]
    prefix: Annotated[str, Field(max_length=512, pattern=PREFIX_PATTERN)] = ""
    #: A Lustre file system of this size in front of the bucket (tier ``scaled``): AWS sells 1200,
    #: 2400 and multiples of 2400. Left out, machines read the bucket itself.
    lustre_gib: Annotated[int, Field(ge=1200, le=100_800)] | None = None


class Aws(Strict):
    """What only a deployment on AWS has."""

    network: Network = Field(default_factory=Network)
    weights: Weights | None = None
    #: The Secrets Manager secret with the model hub's token: the one that machines may read.
    hub_secret: Annotated[str, Field(pattern=HUB_ARN_PATTERN)] | None = None
    #: Told when the month's cost passes 80% of the budget, or is forecast to pass it.
    alarm_emails: Annotated[tuple[Mail, ...], Many, Field(max_length=10)] = ()


def _alarm_has_a_budget(get: Get) -> tuple[str, str] | None:
    if get("aws.alarm_emails") and get("budget") is None:
        return "budget", "is missing; aws.alarm_emails are told when it is passed"
    return None


def _aws_is_aws(get: Get) -> tuple[str, str] | None:
    site = get("site")
    if isinstance(site, str) and not site.startswith("aws/") and get("aws") is not None:
        return "aws", f"has no meaning at site {site}; remove it"
    return None


def _local_has_no_fleet(get: Get) -> tuple[str, str] | None:
    if get("site") == "local" and get("fleet") is not None:
        return "fleet", "has no meaning at site local; remove it"
    return None


def _zone_is_in_the_region(get: Get) -> tuple[str, str] | None:
    site, zone = get("site"), get("fleet.zone")
    if isinstance(site, str) and zone is not None:
        kind, _, region = site.partition("/")
        if kind == "aws" and zone[:-1] != region:
            return "fleet.zone", f"must be a zone of {region}, such as {region}a; got {zone}"
    return None


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

    RULES = (
        _draft_is_there,
        _no_clause_without_speculation,
        _load_fits_context,
        _name_is_free,
        _alarm_has_a_budget,
        _aws_is_aws,
        _local_has_no_fleet,
        _zone_is_in_the_region,
    )

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    tier: Text
    site: Annotated[str, Field(pattern=SITE_PATTERN)]
    #: ``prod`` protects machines and state against deletion.
    env: Literal["dev", "staging", "prod"] = "dev"
    model: Model
    serving: Serving
    load: Load
    sla: Sla
    budget: Budget | None = None
    fleet: Fleet | None = None
    aws: Aws | None = None
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=40)] = Field(default_factory=dict)

    @property
    def stack_key(self) -> str:
        """The key of the Terraform state: ``<deployment>-<tier>``."""
        return f"{self.name}-{self.tier}"
