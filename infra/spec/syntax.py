"""YAML syntax errors in the user's words."""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError

from infra.spec.text import Fault

#: Part of what ruamel says -> what we say. ``{start}``: the line where the construct began.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"'\\t' that cannot start", "a tab is used for indentation; use blanks"),
    (r"mapping values are not allowed", "a second ': ' in one line; put the text in quotes"),
    (r"unexpected end of stream", "a quote opened on line {start} is never closed"),
    (r"could not find expected ':'", "a key without ': ' after it"),
    (r"expected ',' or '}'", "the {{ of line {start} is not closed, or a comma is missing"),
    (r"expected ',' or '\]'", "the [ of line {start} is not closed, or a comma is missing"),
    (r"expected <block end>", "the indentation does not fit the lines above"),
    (r"cannot start any token", "a character that needs quotes: {found}"),
    (r"undefined alias", "an alias (*...); write the value out"),
    (r"unknown escape character|expected escape sequence", "an unknown \\ escape in a quoted text"),
    (r"<document start>", "text before or after the document that does not belong there"),
    (r"tag handle|parsing a tag|scanning a (?:tag|directive)", "a YAML tag or directive"),
)  # fmt: skip


def explain(error: MarkedYAMLError, *, last_line: int) -> Fault:
    """The fault that a syntax error is, on a line up to ``last_line``."""
    said = f"{error.context or ''} {error.problem or ''}"
    mark = error.problem_mark or error.context_mark
    line = min(mark.line + 1, last_line) if mark else last_line
    start = error.context_mark.line + 1 if error.context_mark else line
    found = re.search(r"found character (\S+)", said)
    for pattern, words in _WORDS:
        if re.search(pattern, said):
            what = words.format(start=start, found=found[1] if found else "")
            break
    else:
        what = _one_line(error.problem or error.context or "unreadable")
    return Fault(line, (), f"is not valid YAML: {what}")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
