"""Are the arguments of a resource ones that the provider takes? Pure; nothing is synthesized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.spec.words import nearest
from stacks.aws.schema import Shape, Type
from stacks.aws.values import Block, Ref, is_expression


def faults(shape: Shape, given: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """What is wrong with the arguments ``given``, each with its place below ``where``."""
    known = shape.arguments
    for key in given:
        if key in known:
            continue
        if key in shape.attributes:
            yield f"{where}{key}: is chosen by AWS and cannot be given"
            continue
        meant = nearest(key, known)
        hint = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
        yield f"{where}{key}: unknown argument, {hint}"
    for key, (type_, flags) in shape.attributes.items():
        if key not in given:
            if "r" in flags:
                yield f"{where}{key}: is missing; it is required"
        elif flags != "c":
            yield from _wrong_type(type_, given[key], f"{where}{key}")
    for key, (_, least, most, inner) in shape.blocks.items():
        yield from _block_faults(key, (least, most, inner), given, where)


def _block_faults(
    key: str, bounds: tuple[int, int, Shape], given: Mapping[str, Any], where: str
) -> Iterator[str]:
    least, most, inner = bounds
    value = given.get(key)
    entries: Sequence[Any] = [] if value is None else [value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        entries = value
    if len(entries) < least:
        yield f"{where}{key}: is missing; it is required"
    if most and len(entries) > most:
        yield f"{where}{key}: at most {most}, got {len(entries)}"
    for number, entry in enumerate(entries):
        place = f"{where}{key}" if len(entries) == 1 else f"{where}{key}[{number}]"
        if isinstance(entry, Block):
            yield from faults(inner, entry.given, f"{place}.")
        else:
            yield f"{place}: must be a block, got {_shown(entry)}"


def _wrong_type(type_: Type, value: Any, where: str) -> Iterator[str]:
    if isinstance(value, Ref):
        if not _converts(value.type, type_):
            yield f"{where}: must be {_words(type_)}; {value.what} is {_words(value.type)}"
        return
    if isinstance(value, str) and is_expression(value):
        return  # looked at when the whole stack is there
    match type_:
        case "string":
            if not isinstance(value, str):
                yield f"{where}: must be text, got {_shown(value)}"
        case "bool":
            if not isinstance(value, bool):
                yield f"{where}: must be true or false, got {_shown(value)}"
        case "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield f"{where}: must be a number, got {_shown(value)}"
        case ["list" | "set", inner]:
            if isinstance(value, str) or not isinstance(value, Sequence):
                yield f"{where}: must be a list, got {_shown(value)}"
                return
            for number, entry in enumerate(value):
                yield from _wrong_type(inner, entry, f"{where}[{number}]")
        case ["map", inner]:
            if not isinstance(value, Mapping):
                yield f"{where}: must be a mapping, got {_shown(value)}"
                return
            for key, entry in value.items():
                yield from _wrong_type(inner, entry, f"{where}.{key}")
        case ["object", fields]:
            yield from _wrong_object(fields, value, where)


def _wrong_object(fields: Mapping[str, Type], value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{where}: must be a mapping, got {_shown(value)}"
        return
    for key, entry in value.items():
        if key in fields:
            yield from _wrong_type(fields[key], entry, f"{where}.{key}")
        else:
            meant = nearest(key, list(fields))
            hint = f", did you mean {meant}?" if meant else ""
            yield f"{where}.{key}: unknown field{hint}"


_PRIMITIVE = ("string", "number", "bool")


def _converts(have: Type, want: Type) -> bool:
    """Would Terraform take a value of type ``have`` where ``want`` is asked for?"""
    if have is None or want is None or have == want or "dynamic" in (have, want):
        return True
    if isinstance(have, str) and isinstance(want, str):
        # Primitives convert through text; true and "3" are told apart only at apply.
        return "string" in (have, want) and have in _PRIMITIVE and want in _PRIMITIVE
    if isinstance(have, list) and isinstance(want, list):
        alike = {have[0], want[0]} <= {"list", "set"} or have[0] == want[0]
        return alike and (want[0] == "object" or _converts(have[1], want[1]))
    return False


def _words(type_: Type) -> str:
    match type_:
        case "string":
            return "text"
        case "bool":
            return "true or false"
        case ["list" | "set" | "map" as kind, inner]:
            return f"a {kind} of {_words(inner)}"
        case ["object", _]:
            return "an object"
    return f"a {type_}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, Block | Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    return repr(value)
