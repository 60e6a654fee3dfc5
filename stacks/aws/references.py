"""Texts that refer to resources: does each name one that is there, with that attribute?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.spec.words import nearest
from stacks.aws.rules import Part
from stacks.aws.schema import DATA, RESOURCE, known, shape_of

_REFERENCE = re.compile(
    r"(?<![\w.])(?P<data>data\.)?(?P<type>aws_[a-z0-9_]+)\.(?P<name>[\w-]+)(?:\.(?P<attribute>\w+))?"
)
_INTERPOLATION = re.compile(r"\$\{([^}]*)\}")


def dangling(parts: Sequence[Part]) -> Iterator[str]:
    """References of ``parts`` that lead nowhere."""
    there = {part.address for part in parts}
    for part in parts:
        for place, text in texts(part.arguments):
            for expression in _INTERPOLATION.findall(text):
                for found in _REFERENCE.finditer(expression):
                    fault = _fault(found, there)
                    if fault:
                        yield f"{part.address}: {place}: {fault}"


def _fault(found: re.Match[str], there: set[str]) -> str | None:
    kind = DATA if found["data"] else RESOURCE
    address = f"{found['data'] or ''}{found['type']}.{found['name']}"
    if address not in there:
        meant = nearest(address, there)
        return f"refers to {address}, which is not in the stack" + (
            f"; did you mean {meant}?" if meant else ""
        )
    attribute = found["attribute"]
    if attribute and found["type"] in known(kind):
        shape = shape_of(kind, found["type"])
        if shape.output(attribute) is None:
            meant = nearest(attribute, shape.names)
            return f"{address} has no attribute {attribute}" + (
                f"; did you mean {meant}?" if meant else ""
            )
    return None


def texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """All texts in ``value``, each with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from texts(below, f"{place}.{key}" if place else str(key))
    elif isinstance(value, Sequence):
        for number, below in enumerate(value):
            yield from texts(below, f"{place}[{number}]")
