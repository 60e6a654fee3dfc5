"""What a run found out, before it is a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from infra.spec.model import Load, Sla
from smoke import request, speculation, verdict
from smoke.lateness import Lateness, lateness_of
from smoke.options import Options, Target
from smoke.preflight import Served
from smoke.sample import Sample


@dataclass(slots=True)
class Measured:
    """Everything that a run found out; reports are made from it."""

    target: Target
    sla: Sla
    load: Load
    options: Options
    started_at: datetime
    served: Served
    rate_rps: float = 0.0
    service_time_s: float = 0.0
    prompts_are_users: bool = False
    main: list[Sample] = field(default_factory=list)
    scheduled: int = 0
    capped: int = 0
    start_ns: int = 0
    looks: int = 0
    lateness: Lateness = field(default_factory=lambda: lateness_of([], []))
    reading: speculation.Reading = field(default_factory=lambda: speculation.Reading(None))
    load_ab: speculation.LoadCompared | None = None
    outputs: speculation.OutputsCompared | None = None
    outputs_kind: request.Kind = "completions"
    phases: list[tuple[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended_at: datetime | None = None

    @property
    def evidence(self) -> verdict.Evidence:
        return verdict.Evidence(self.main, self.scheduled, self.lateness)

    def clauses(self) -> list[verdict.Clause]:
        found = verdict.load_clauses(self.sla, self.evidence)
        if self.sla.speculation is not None:
            found += speculation.clauses(
                self.sla.speculation, reading=self.reading, load=self.load_ab, outputs=self.outputs
            )
        return found
