"""Classes for the types of ``types.txt``, made on first use; signatures in ``resources.pyi``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from infra.spec.words import nearest
from stacks.aws.core import Block, DataSource, Resource
from stacks.aws.names import block_class, class_of
from stacks.aws.schema import DATA, RESOURCE, Shape, known, shape_of


@lru_cache(maxsize=1)
def _types() -> dict[str, tuple[str, str]]:
    return {
        class_of(kind, type_): (kind, type_) for kind in (RESOURCE, DATA) for type_ in known(kind)
    }


def _blocks(owner: str, shape: Shape) -> dict[str, None]:
    names: dict[str, None] = {}
    for key, (_, _, _, inner) in shape.blocks.items():
        name = block_class(owner, key)
        names |= {name: None} | _blocks(name, inner)
    return names


def _is_block(name: str) -> bool:
    owners = [owner for owner in _types() if name.startswith(owner) and name != owner]
    return any(name in _blocks(owner, shape_of(*_types()[owner])) for owner in owners)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    made: type
    if name in _types():
        kind, type_ = _types()[name]
        base = Resource if kind == RESOURCE else DataSource
        made = type(
            name, (base,), {"TYPE": type_, "__module__": __name__, "__doc__": f"``{type_}``."}
        )
    elif _is_block(name):
        made = type(name, (Block,), {"__module__": __name__})
    else:
        meant = nearest(name, list(_types()))
        hint = f", did you mean {meant}?" if meant else "; add it to stacks/aws/types.txt"
        raise AttributeError(f"{__name__} has no class {name}{hint}")
    globals()[name] = made
    return made
