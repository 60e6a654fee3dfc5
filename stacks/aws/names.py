"""Names of classes: ``aws_vpc`` -> ``Vpc``, data source ``aws_vpc`` -> ``DataVpc``."""

from __future__ import annotations


def camel(text: str) -> str:
    return "".join(part.capitalize() for part in text.split("_"))


def class_of(kind: str, type_: str) -> str:
    """The class for a type. ``kind``: ``resource`` or ``data``."""
    base = camel(type_.removeprefix("aws_"))
    return f"Data{base}" if kind == "data" else base


def block_class(owner: str, block: str) -> str:
    """The class for a block inside the class ``owner``."""
    return f"{owner}{camel(block)}"
