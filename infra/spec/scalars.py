"""Plain YAML 1.2 scalars (the core schema), and nothing but them.

Own rules on purpose: ruamel's resolver also takes 1_000 for a number and 2026-01-01 for a date,
and its constructors follow tags. Here ``yes`` is text, ``1_000`` is text, a date is text.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

#: Digits of the longest number that is read as one.
MAX_DIGITS = 40


def parse_plain(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError, in the user's words, for a trap."""
    if text in _WORDS:
        return _WORDS[text]
    number: type[int] | type[float] | None = None
    if _INT.fullmatch(text):
        digits = text.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0":
            raise ValueError(f"must not begin with a 0: write {digits.lstrip('0') or '0'}, "
                             "or put it in quotes if text is meant")  # fmt: skip
        number = int
    elif _FLOAT.fullmatch(text):
        number = float
    elif not (_OCTAL.fullmatch(text) or _HEX.fullmatch(text)):
        return text
    if len(text) > MAX_DIGITS:
        raise ValueError(f"is a number of more than {MAX_DIGITS} digits")
    return number(text) if number else int(text, 0)
