"""What a preflight says: rows with one verdict and one remedy each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from infra.errors import EXIT_BAD_INPUT, EXIT_INCONCLUSIVE, EXIT_OK

#: ``skipped``: not looked at, which decides nothing.
Verdict = Literal["ok", "warn", "no", "unknown", "skipped"]


@dataclass(frozen=True, slots=True)
class Row:
    """``found``: what is there, one line. ``remedy``: what to do about it, or empty."""

    subject: str
    verdict: Verdict
    found: str
    remedy: str = ""


def ok(subject: str, found: str) -> Row:
    return Row(subject, "ok", found)


def warn(subject: str, found: str, remedy: str = "") -> Row:
    return Row(subject, "warn", found, remedy)


def no(subject: str, found: str, remedy: str) -> Row:
    return Row(subject, "no", found, remedy)


def unknown(subject: str, found: str, remedy: str) -> Row:
    return Row(subject, "unknown", found, remedy)


def skipped(subject: str, found: str) -> Row:
    return Row(subject, "skipped", found)


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of a preflight. ``online``: was the account asked?"""

    deployment: str
    online: bool
    rows: tuple[Row, ...]

    @property
    def refused(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict == "no")

    @property
    def undecided(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict == "unknown")

    @property
    def exit_status(self) -> int:
        """2 when a row says no, else 3 when one could not be decided, else 0."""
        if self.refused:
            return EXIT_BAD_INPUT
        return EXIT_INCONCLUSIVE if self.undecided else EXIT_OK

    @property
    def verdict(self) -> str:
        """In a word: ``refused``, ``undecided`` or ``good``."""
        return {EXIT_BAD_INPUT: "refused", EXIT_INCONCLUSIVE: "undecided"}.get(
            self.exit_status, "good"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "deployment": self.deployment,
            "online": self.online,
            "verdict": self.verdict,
            "exit_status": self.exit_status,
            "rows": [asdict(row) for row in self.rows],
        }


def listed(names: Sequence[str], *, most: int = 6) -> str:
    """``a, b, c and 3 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
