"""The acceptance record: one normal form for what all engines count about drafts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AcceptanceRecord:
    """Counters of speculation, since the engine started or between two readings.

    ``drafts``: steps in which a draft was verified. ``draft_tokens``: tokens proposed.
    ``accepted_tokens``: of these, kept. ``accepted_per_position[i]``: drafts of which position i
    (from 0) was kept; empty where the engine does not count by position.
    """

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: tuple[int, ...] = ()

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over drafted tokens; None when nothing was drafted."""
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens per step: 1 + sum(accepted at position i) / drafts; None without drafts.

        The sum over positions is ``accepted_tokens``, which also holds where positions are missing.
        """
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def per_position_rate(self) -> tuple[float, ...]:
        """Share of drafts of which position i was kept."""
        if not self.drafts:
            return ()
        return tuple(count / self.drafts for count in self.accepted_per_position)

    def since(self, before: AcceptanceRecord | None) -> AcceptanceRecord:
        """What was counted after ``before``. A counter that fell means that the engine was
        restarted in between: then everything counted since that restart is the answer."""
        if before is None or self._fell_below(before):
            return self
        width = max(len(self.accepted_per_position), len(before.accepted_per_position))
        ours = self.accepted_per_position + (0,) * (width - len(self.accepted_per_position))
        theirs = before.accepted_per_position + (0,) * (width - len(before.accepted_per_position))
        return AcceptanceRecord(
            drafts=self.drafts - before.drafts,
            draft_tokens=self.draft_tokens - before.draft_tokens,
            accepted_tokens=self.accepted_tokens - before.accepted_tokens,
            accepted_per_position=tuple(a - b for a, b in zip(ours, theirs, strict=True)),
        )

    def _fell_below(self, before: AcceptanceRecord) -> bool:
        return (
            self.drafts < before.drafts
            or self.draft_tokens < before.draft_tokens
            or self.accepted_tokens < before.accepted_tokens
        )
