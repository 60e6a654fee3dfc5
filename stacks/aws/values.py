"""Values in stacks: references to attributes, and nested blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from infra.errors import UnsupportedError
from infra.spec.words import nearest
from stacks.aws.schema import Type

_EXPRESSION = re.compile(r"\$\{|%\{")


class UnknownAttributeError(UnsupportedError, AttributeError):
    """A reference to an attribute that does not exist. An AttributeError, so that ``hasattr``
    works as anywhere in Python."""


def is_expression(text: str) -> bool:
    """Will Terraform (or cdktf's token resolver) put something else in place of ``text``?"""
    return bool(_EXPRESSION.search(text))


class Ref(str):
    """``${aws_vpc.network.id}``: a value known at apply, with its type.

    A text, so that it can stand inside other texts.
    """

    __slots__ = ("expression", "type", "what")
    expression: str
    type: Type
    what: str

    def __new__(cls, expression: str, type_: Type) -> Ref:
        made = super().__new__(cls, "${" + expression + "}")
        made.expression = expression
        made.type = type_
        made.what = expression
        return made

    def item(self, index: int) -> Ref:
        """An entry of a list. Raises UnknownAttributeError for what is no list."""
        match self.type:
            case ["list" | "set", inner]:
                # Terraform indexes no sets.
                base = f"tolist({self.expression})" if self.type[0] == "set" else self.expression
                return Ref(f"{base}[{index}]", inner)
        raise UnknownAttributeError(f"{self.expression} is no list")

    def field(self, name: str) -> Ref:
        """A field of an object. Raises UnknownAttributeError for one that it has not."""
        match self.type:
            case ["object", fields] if name in fields:
                return Ref(f"{self.expression}.{name}", fields[name])
            case ["object", fields]:
                raise no_such(self.expression, name, list(fields))
        raise UnknownAttributeError(f"{self.expression} is no object")


def no_such(where: str, name: str, known: Sequence[str]) -> UnknownAttributeError:
    """The error for a reference to an attribute that does not exist."""
    meant = nearest(name, known)
    hint = f"did you mean {meant}?" if meant else f"it has {', '.join(sorted(known))}"
    return UnknownAttributeError(f"{where} has no attribute {name}, {hint}")


class Block:
    """A nested block. Its arguments are checked with the resource that it is given to."""

    def __init__(self, **given: Any) -> None:
        # A word of Python's own is written with an underscore: ``and_``.
        self.given = {
            key.removesuffix("_"): value for key, value in given.items() if value is not None
        }

    def plain(self) -> dict[str, Any]:
        return {key: plain(value) for key, value in self.given.items()}


def plain(value: Any) -> Any:
    """Blocks, mappings and sequences as dicts and lists."""
    if isinstance(value, Block):
        return value.plain()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(below) for key, below in value.items()}
    if isinstance(value, Sequence):
        return [plain(below) for below in value]
    return value
