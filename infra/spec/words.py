"""Values and keys as they are shown in messages: short, on one line, without control characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_PLAIN_KEY = re.compile(r"[\w<*-][\w /@:<*-]{0,59}")


def shown_text(text: str) -> str:
    """``text`` in quotes, with control characters as escapes, cut to 60 characters."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def one_line(text: str) -> str:
    """``text`` with control characters, line breaks and the like as escapes."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def shown(value: Any) -> str:
    """A value with its kind, for "must be ..., got <this>"."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {shown_text(value)}"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return shown_number(value)


def shown_number(value: Any) -> str:
    """A number as a person writes it: 400 and not 400.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value)
    return text if len(text) <= 45 else f"{text[:42]}..."


def dotted(path: Iterable[str]) -> str:
    """A path of keys as ``a.b``; keys that are no plain words are quoted."""
    return ".".join(key if _PLAIN_KEY.fullmatch(key) else shown_text(key) for key in path)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, or None."""
    import difflib  # only where something is wrong: it takes a few milliseconds to import

    folded = {name.lower(): name for name in known}
    # What is long enough to be no typing error is not compared: the comparison is quadratic.
    close = difflib.get_close_matches(word[:80].lower(), folded, n=1, cutoff=0.6)
    if close:
        return folded[close[0]]
    begun = [name for name in folded if len(word) >= 3 and name.startswith(word.lower())]
    return folded[begun[0]] if len(begun) == 1 else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean x?``, or ``known are a, b`` when nothing is near."""
    names = list(known)
    meant = nearest(word, names)
    return f"did you mean {meant}?" if meant else f"known are {', '.join(names) or 'none'}"
