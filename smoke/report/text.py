"""Words and figures for people, and the taming of text that comes from outside."""

from __future__ import annotations

from smoke.report.model import ClauseResult, Value

#: Words for the verdicts, the same in every report.
VERDICT_WORD = {"pass": "PASS", "fail": "FAIL", "inconclusive": "INCONCLUSIVE"}

_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, limit: int = 500) -> str:
    """``text`` on one line, fit for any report and terminal.

    What an endpoint sends is hostile input: control characters, escape sequences, halves of
    surrogate pairs, characters that turn the direction of writing. All of these are written as
    escapes; what is longer than ``limit`` characters is cut.
    """
    cut = text[:limit]
    shown = "".join(char if char.isprintable() else _escaped(char) for char in cut)
    return shown + "…" if len(text) > limit else shown


def number(value: Value, *, digits: int = 3) -> str:
    """A figure with ``digits`` significant digits; thousands are whole."""
    if value is None:
        return "-"
    if value == "infinity":
        return "∞"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.{digits}g}'):.10g}"


def with_unit(value: Value, unit: str) -> str:
    """A clause's value: ``12.3 ms``, ``1.2x``, ``0.4%`` (no unit: a share)."""
    if value is None:
        return "-"
    if unit == "":
        return "∞" if value == "infinity" else f"{number(value * 100)}%"
    if unit == "x":
        return f"{number(value)}x"
    return f"{number(value)} {unit}"


def limit_of(clause: ClauseResult) -> str:
    """The clause's limit with its direction."""
    if clause.limit is None:
        return "identical"
    sign = "≥" if clause.name.endswith("_min") else "≤"
    return f"{sign} {with_unit(clause.limit, clause.unit)}"


def measured_of(clause: ClauseResult) -> str:
    """What was measured: for outputs, how many of how many are equal."""
    if clause.unit == "equal":
        return "-" if not isinstance(clause.measured, float) else (
            f"{clause.measured:.0f} of {clause.n}"
        )  # fmt: skip
    return with_unit(clause.measured, clause.unit)


def bounds_of(clause: ClauseResult) -> str:
    """The 95% bounds: ``11.2 .. 14.0``; ``exact`` for what is counted."""
    if clause.lower is None and clause.upper is None:
        return "exact" if clause.measured is not None else "-"
    scale = 100.0 if clause.unit == "" else 1.0

    def one(value: Value) -> str:
        return number(value * scale if isinstance(value, float) else value)

    percent = "%" if clause.unit == "" else ""
    return f"{one(clause.lower)} .. {one(clause.upper)}{percent}"


def plural(count: int, noun: str) -> str:
    """``1 request``, ``2 requests``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _escaped(char: str) -> str:
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
