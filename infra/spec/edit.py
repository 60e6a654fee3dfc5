"""Changing one key of a deployment file: comments, quotes, line ends and layout stay as they are.

The new value is written into the text at the place that the parsed node gives, and the result is
read again before anything is written: it must be a good deployment, differ from the old one in
that key alone, and hold the same comments. So a layout that we misjudge is refused, never spoilt.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from infra.errors import DeploymentError, InputError, Problem
from infra.files import write_atomic
from infra.spec.loader import Reading, read_text, relative
from infra.spec.scalars import parse_plain
from infra.spec.text import UnreadableError, decode, read_bytes
from infra.spec.tree import Branch, Document, Leaf, Node, parse
from infra.spec.words import dotted

Value = str | int | float | bool | Decimal | Mapping[str, Any] | Sequence[Any] | None

#: Text that YAML reads as itself without quotes.
_BARE = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./@+ -]*[A-Za-z0-9_./@+-])?")


def set_value(
    path: Path, key: str | Sequence[str], value: Value, *, root: Path | None = None
) -> None:
    """Set one key of the deployment file ``path``, and nothing else in it.

    ``key`` is dotted (``sla.speculation.speedup_min``), or a sequence where a key holds a dot;
    mappings above it that are missing are made. The file is replaced at once (temporary file,
    flush, rename) and keeps its mode; it is left alone when nothing changes.

    Raises DeploymentError when the result would not be a good deployment, with the lines of the
    new text, and InputError when the file cannot be read, written or edited without loss.
    """
    root = root or path.parent.parent
    place = relative(path, root)
    keys = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
    if not keys or not all(keys):
        raise InputError(
            f"{dotted(keys) or 'an empty key'} is no dotted key, such as load.sessions"
        )
    target = path.resolve()  # behind a symbolic link, the file itself is replaced
    try:
        content = read_bytes(target)
        old = decode(content)
    except UnreadableError as error:
        raise DeploymentError([Problem(place, error.fault.line, "", error.fault.what)]) from None
    document = parse(old)
    if document.faults or not isinstance(document.root, Branch):
        raise DeploymentError(read_text(old, place=place, stem=path.stem).problems)
    new = _edited(document, keys, value, place)
    _refuse_loss(document, read_text(new, place=place, stem=path.stem), keys, value, place)
    if new == old:
        return
    _write(target, new, marked=content.startswith(b"\xef\xbb\xbf"), place=place)


def _write(target: Path, text: str, *, marked: bool, place: str) -> None:
    if not os.access(target, os.W_OK):
        raise InputError(f"{place}: is read-only", do="make it writable, or edit a copy")
    mode = target.stat().st_mode & 0o7777
    write_atomic(target, ("\ufeff" if marked else "") + text, mode=mode)


def _edited(document: Document, keys: tuple[str, ...], value: Value, place: str) -> str:
    text = document.text
    node = document.root
    assert node is not None
    for depth, key in enumerate(keys):
        if not isinstance(node, Branch) or node.is_list:
            if isinstance(node, Leaf) and node.value is None and depth:
                return _replace(document, node, _nested(keys[depth:], value), place, keys)
            above = dotted(keys[:depth])
            raise DeploymentError(
                [Problem(place, node.line, above, f"is no mapping, so it has no key {key}")]
            )
        below = node.items.get(key)
        if below is None:
            return _insert(text, node, key, _nested(keys[depth + 1 :], value), place)
        node = below
    return _replace(document, node, value, place, keys)


def _nested(keys: Sequence[str], value: Value) -> Value:
    for key in reversed(keys):
        value = {key: value}
    return value


def _replace(
    document: Document, node: Node, value: Value, place: str, keys: tuple[str, ...]
) -> str:
    text = document.text
    if isinstance(node, Branch) and not node.flow and node.start != node.end:
        raise InputError(
            f"{place}:{node.line}: {dotted(keys)}: is a mapping of several lines",
            do="set the keys in it one by one, or edit the file by hand",
        )
    style = node.style if isinstance(node, Leaf) else None
    if style in ("|", ">"):
        raise InputError(f"{place}:{node.line}: {dotted(keys)}: is a block of text",
                         do="edit the file by hand")  # fmt: skip
    new = render(value, quote=style)
    if node.start == node.end:  # nothing was written after the colon
        before = text[: node.start]
        new = new if before.endswith((" ", "\n")) else f" {new}"
    return text[: node.start] + new + text[node.end :]


def _insert(text: str, parent: Branch, key: str, value: Value, place: str) -> str:
    entry = f"{render(key)}: {render(value)}"
    last = list(parent.items.values())[-1] if parent.items else None
    if parent.flow:
        if last is None:
            return f"{text[: parent.start + 1]}{entry}{text[parent.start + 1 :]}"
        at = _end(last)
        return f"{text[:at]}, {entry}{text[at:]}"
    if last is None:
        raise InputError(f"{place}:{parent.line}: cannot add {key} here", do="edit it by hand")
    # After the line on which the last value ends, and its comment.
    at = text.find("\n", max(_end(last) - 1, 0))
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = " " * parent.column + entry
    if at < 0:
        return f"{text}{newline}{indented}{newline}"
    return f"{text[: at + 1]}{indented}{newline}{text[at + 1 :]}"


def _end(node: Node) -> int:
    """Where the text of a value ends. ruamel ends block mappings after the comments below them."""
    while isinstance(node, Branch) and not node.flow and node.items:
        node = list(node.items.values())[-1]
    return node.end


def render(value: Value, *, quote: str | None = None) -> str:
    """``value`` as YAML on one line. ``quote``: the quotes that a text had before.

    Raises InputError for what a deployment file cannot hold.
    """
    if isinstance(value, str):
        return _render_text(value, quote)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        inside = (f"{render(str(key))}: {render(below)}" for key, below in value.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(render(below) for below in value) + "]"
    if isinstance(value, int | float | Decimal):
        if not math.isfinite(value):
            raise InputError(f"{value} is no finite number")
        return format(value, "f") if isinstance(value, Decimal) else repr(value)
    raise InputError(f"a deployment file cannot hold a {type(value).__name__}")


def _render_text(value: str, quote: str | None) -> str:
    simple = value.isprintable()
    if quote == "'" and simple:
        return "'" + value.replace("'", "''") + "'"
    if quote is None and _BARE.fullmatch(value) and _reads_as_itself(value):
        return value
    return json.dumps(value, ensure_ascii=not simple)


def _reads_as_itself(value: str) -> bool:
    try:
        return parse_plain(value) == value
    except ValueError:
        return False


def _refuse_loss(
    old: Document, new: Reading, keys: tuple[str, ...], value: Value, place: str
) -> None:
    if new.deployment is None:
        raise DeploymentError(new.problems)
    document = new.document
    assert document is not None
    expected = old.data()
    at = expected
    for key in keys[:-1]:
        if not isinstance(at.get(key), dict):
            at[key] = {}
        at = at[key]
    at[keys[-1]] = parse(f"- {render(value)}").data()[0]
    if document.data() != expected or _comments(document) != _comments(old):
        raise InputError(
            f"{place}: cannot set {dotted(keys)} without changing something else",
            do="edit the file by hand",
        )


def _comments(document: Document) -> list[str]:
    """The comments of a document, in their order: all ``#`` outside of scalars."""
    text = document.text
    spans = sorted(_leaf_spans(document.root))
    found: list[str] = []
    at = 0
    while (at := text.find("#", at)) >= 0:
        inside = next((end for start, end in spans if start <= at < end), None)
        if inside is not None:
            at = inside
            continue
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        found.append(text[at:stop].rstrip())
        at = stop
    return found


def _leaf_spans(node: Node | None) -> list[tuple[int, int]]:
    if isinstance(node, Branch):
        return [span for below in node.items.values() for span in _leaf_spans(below)]
    return [(node.start, node.end)] if node is not None else []
