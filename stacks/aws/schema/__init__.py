"""The schema of the types in use, as ``make aws-bindings`` wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

COMMON = Path(__file__).parent / "common.json"
RESOURCE, DATA, PROVIDER = "resource", "data", "provider"

#: A type as Terraform writes it: "string", ["list", "string"], ["object", {...}].
Type = Any


@dataclass(frozen=True, slots=True)
class Shape:
    """A resource type, or a nested block.

    ``attributes``: name -> (type, flags), with flags of ``r`` required, ``o`` optional,
    ``c`` computed. ``blocks``: name -> (mode, least, most or 0, shape).
    """

    attributes: dict[str, tuple[Type, str]]
    blocks: dict[str, tuple[str, int, int, Shape]]

    @property
    def arguments(self) -> list[str]:
        """All names that may be given."""
        return [
            *(name for name, (_, flags) in self.attributes.items() if flags != "c"),
            *self.blocks,
        ]

    def output(self, name: str) -> Type | None:
        """The type of an attribute, blocks included; None where there is none."""
        if name in self.attributes:
            return self.attributes[name][0]
        if name in self.blocks:
            mode, _, _, shape = self.blocks[name]
            inner = ["object", {key: shape.output(key) for key in shape.names}]
            return inner if mode == "single" else [mode, inner]
        return None

    @property
    def names(self) -> list[str]:
        """All names that may be read."""
        return [*self.attributes, *self.blocks]


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(COMMON.read_text(encoding="utf-8"))
    return content


def known(kind: str) -> list[str]:
    """The types of a kind (``resource``, ``data``)."""
    return list(_content()[kind])


@cache
def shape_of(kind: str, name: str) -> Shape:
    """The shape of a type. Raises KeyError for one that ``types.txt`` does not name."""
    return _shape(_content()[kind][name])


def _shape(raw: dict[str, Any]) -> Shape:
    return Shape(
        attributes={key: (type_, flags) for key, (type_, flags) in raw["a"].items()},
        blocks={
            key: (mode, least, most, _shape(inner))
            for key, (mode, least, most, inner) in raw.get("b", {}).items()
        },
    )
