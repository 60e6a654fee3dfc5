"""The report: everything that was found out, as data, with a versioned schema.

``Report.model_json_schema()`` is the schema of ``report.json``. Fields are only ever added under
the same version; a reader of ``specrack.smoke/1`` may rely on what is here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from infra.spec.model import Load, Sla
from smoke.verdict import EXIT_STATUS, Verdict

SCHEMA = "specrack.smoke/1"

#: A figure that may have no end (a latency, where requests failed) or not exist (None).
Value = Annotated[float, Field(allow_inf_nan=False)] | Literal["infinity"] | None


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ClauseResult(_Part):
    """One clause of the SLA. Bounds are one-sided at 95% each, in ``unit``."""

    name: str
    verdict: Verdict
    limit: float | None
    unit: str
    measured: Value
    lower: Value
    upper: Value
    n: int
    reason: str


class Distribution(_Part):
    """A latency over the requests that succeeded, in milliseconds."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    #: One-sided 95% bounds of p95 where failed requests count as infinite, as in the clauses.
    p95_lower: Value
    p95_upper: Value


class Results(_Part):
    """The main run in figures."""

    requests: int
    errors: int
    #: From the first intended send to the last reply, in seconds.
    duration_s: float
    requests_per_s: float
    output_tokens_per_s: float
    #: Requests a second that met all latency limits of the SLA together.
    goodput_per_s: float
    ttft_ms: Distribution | None
    tpot_ms: Distribution | None
    #: Per chunk: under speculation one chunk carries several tokens.
    itl_per_chunk_ms: Distribution | None
    e2e_ms: Distribution | None
    #: From the request written, not from the intended moment.
    service_ms: Distribution | None
    prompt_tokens_mean: float | None
    output_tokens_mean: float | None
    #: Where token counts come from: ``usage``, ``timings``, ``chunks`` (a guess) or ``mixed``.
    token_counts_from: str


class OfferedLoad(_Part):
    """What was sent, and how it follows from the load of the deployment."""

    arrival: Literal["poisson", "constant"]
    rate_rps: float
    #: R: median service time in the warm-up.
    service_time_s: float
    endpoint: Literal["chat", "completions"]
    scheduled: int
    #: Not sent because too many were in flight.
    not_sent: int
    #: How often the verdict was looked at before the run ended; each look is at 95%.
    looks: int
    prompts: str


class Acceptance(_Part):
    """Speculation counters over the main run."""

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: tuple[int, ...]
    acceptance_rate: float | None
    mean_acceptance_length: float | None
    per_position_rate: tuple[float, ...]
    restarted: bool


class Speedup(_Part):
    """The same arrivals and prompts with speculation off: total service time off / on."""

    value: Value
    lower: Value
    upper: Value
    pairs: int
    left_out: int
    problem: str


class OutputDifference(_Part):
    """Where two outputs part; ``position`` counts characters from 0."""

    pair: int
    prompt: int
    position: int
    speculative: str
    baseline: str


class Outputs(_Part):
    """Greedy outputs, one request at a time, speculation on against off."""

    endpoint: Literal["chat", "completions"]
    pairs: int
    equal: int
    failed: int
    problem: str
    #: The first few.
    differences: tuple[OutputDifference, ...]


class HarnessLateness(_Part):
    """The harness's own error, in milliseconds."""

    send_p50_ms: float
    send_p99_ms: float
    send_max_ms: float
    read_p50_ms: float
    read_p99_ms: float
    read_max_ms: float
    read_samples: int
    total_p99_ms: float
    sent_share: float


class ErrorGroup(_Part):
    """Failed requests of one kind."""

    outcome: str
    meaning: str
    count: int
    #: The message of the first, and its request number.
    example: str
    example_request: int


class RequestRow(_Part):
    """One request of the main run. ``at_s`` is the intended send time from the run's start."""

    number: int
    at_s: float
    outcome: str
    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    service_ms: float | None
    send_lag_ms: float
    output_tokens: int


class Phase(_Part):
    name: str
    seconds: float


class Environment(_Part):
    """Where the harness ran and what it spoke to. Holds no secrets."""

    os: str
    cpus: int
    python: str
    specrack: str
    event_loop: str
    url: str
    baseline_url: str | None
    model: str
    engine: str | None
    server: str
    seed: int
    repeat_command: str


class Report(_Part):
    """A smoke run and its verdict."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, title=SCHEMA)

    schema_version: Literal["specrack.smoke/1"] = Field(alias="schema")
    name: str
    verdict: Verdict
    #: The verdict in one sentence.
    summary: str
    started_at: AwareDatetime
    ended_at: AwareDatetime
    sla: Sla
    load: Load
    clauses: tuple[ClauseResult, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    results: Results
    offered: OfferedLoad
    acceptance: Acceptance | None
    #: Why there is no acceptance record, if there is none.
    acceptance_problem: str
    speedup: Speedup | None
    outputs: Outputs | None
    lateness: HarnessLateness
    errors: tuple[ErrorGroup, ...]
    requests: tuple[RequestRow, ...]
    phases: tuple[Phase, ...]
    environment: Environment

    @property
    def exit_status(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return EXIT_STATUS[self.verdict]
