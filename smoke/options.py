"""What to measure and how: the target and the knobs of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from infra.errors import InputError
from smoke.request import Kind
from smoke.schedule import Arrival
from smoke.transport import Timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The endpoint. ``url`` is the address below which ``/v1`` lies."""

    url: str
    #: The name in requests; None asks ``/v1/models``.
    model: str | None = None
    #: ``vllm``, ``llamacpp``, ...; None asks ``/v1/models`` (``owned_by``).
    engine: str | None = None
    #: The same model with speculation off, for A/B; None leaves A/B out.
    baseline_url: str | None = None
    #: Prometheus metrics; None means ``<url>/metrics``.
    metrics_url: str | None = None
    #: Where the baseline counts; nothing is read from it so far.
    baseline_metrics_url: str | None = None
    #: What reports call it.
    name: str = "endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The knobs. Raises InputError for a value that cannot be meant."""

    #: Longest time over which requests are sent in the main run; as long again for the baseline
    #: and for the comparison of outputs.
    max_seconds: float = 60.0
    #: Requests before the first look at the verdict; None takes what the clauses need.
    min_requests: int | None = None
    seed: int = 1
    #: Endpoint of the main run and of the baseline under load; outputs are compared on
    #: completions, because a chat template is one more thing that may differ.
    kind: Kind = "chat"
    arrival: Arrival = "poisson"
    #: Requests a second; None derives them from the sessions and their think time.
    rate_rps: float | None = None
    #: A safety limit: requests that would exceed it are not sent, and the report says so.
    #: None means four a session, at least 256.
    max_in_flight: int | None = None
    ignore_eos: bool = True
    #: A user's prompts (JSON lines), sent as they are; None takes the shipped ones.
    prompts_file: Path | None = None
    #: Pairs for the comparison of outputs.
    output_pairs: int = 16
    #: Requests to the baseline before the first look at the speed-up.
    baseline_requests: int = 64
    timeouts: Timeouts = field(default_factory=Timeouts)
    #: The command that repeats this run, for the report; None writes the ``python -m smoke`` one.
    repeat_command: str | None = None

    def __post_init__(self) -> None:
        timeouts = self.timeouts
        positive = {
            "max_seconds": self.max_seconds,
            "min_requests": self.min_requests,
            "rate_rps": self.rate_rps,
            "max_in_flight": self.max_in_flight,
            "output_pairs": self.output_pairs,
            "baseline_requests": self.baseline_requests,
            "connect timeout": timeouts.connect_s,
            "first-byte timeout": timeouts.first_byte_s,
            "stall timeout": timeouts.stall_s,
            "total timeout": timeouts.total_s,
        }
        for name, value in positive.items():
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InputError(f"{name} must be above 0, not {value}")
