"""Pydantic's errors in the user's words: what is wrong and what would be right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from infra.spec import model as schema
from infra.spec.model import (
    BROKEN_RULES,
    NAME_PATTERN,
    NOT_A_NETWORK,
    RESERVED_TAG,
    SITE_PATTERN,
    UNPRINTABLE,
    Deployment,
)
from infra.spec.words import did_you_mean, nearest, shown, shown_number

Path = tuple[str, ...]

#: What a text must look like, by the pattern that it did not match.
_PATTERNS = {
    NAME_PATTERN: "lower-case letters, digits and hyphens, beginning with a letter, "
    "40 characters at most",
    SITE_PATTERN: "local, aws/<region> (such as aws/us-east-1) or rack/<name>",
    schema.SCHEDULE_PATTERN: "weekdays or daily with two hours, such as weekdays 08-20 or "
    "daily 06-24 Europe/Vienna",
    schema.RESERVATION_PATTERN: "the id of a capacity reservation, such as cr-0123456789abcdef0",
    schema.ZONE_PATTERN: "an availability zone, such as us-east-1a",
    schema.VPC_PATTERN: "the id of a VPC, such as vpc-0123456789abcdef0",
    schema.SUBNET_PATTERN: "the id of a subnet, such as subnet-0123456789abcdef0",
    schema.MAIL_PATTERN: "a mail address",
    schema.BUCKET_PATTERN: "the name of an S3 bucket: 3 to 63 lower-case letters, digits, dots "
    "and hyphens",
    schema.PREFIX_PATTERN: "a prefix that ends with a slash, such as llama/",
    schema.HUB_ARN_PATTERN: "the whole ARN of one secret in Secrets Manager, without wildcards",
}


def faults(error: ValidationError) -> list[tuple[Path, Path, str]]:
    """(where to show it, what it is about, sentence) for each error.

    The two paths differ for a misspelt key: it is shown at the wrong spelling and is about the
    right one. Broken rules are left out: the loader applies the rules itself.
    """
    found = []
    for detail in error.errors(include_url=False):
        path = tuple(str(part) for part in detail["loc"])
        # Pydantic adds "[key]" where the key of a free mapping, not its value, is at fault.
        if len(path) > 2 and path[-1] == "[key]" and not fields_at(path[:-2]):
            path = path[:-1]
        kind = detail["type"]
        if kind == BROKEN_RULES:
            continue
        about = path
        if kind == "extra_forbidden":
            meant = nearest(path[-1], fields_at(path[:-1]))
            about = (*path[:-1], meant) if meant else path
        found.append((path, about, sentence(detail, path)))
    return found


def sentence(detail: ErrorDetails, path: Path) -> str:
    """One error in words."""
    value = detail["input"]
    if isinstance(value, float) and not math.isfinite(value) and detail["type"] in _LIMITS:
        return f"must be a finite number, got {value}"
    say = SENTENCES.get(detail["type"])
    if say is None:  # a type that the schema cannot raise today; still one line
        return " ".join(detail["msg"].split())
    return say(detail.get("ctx", {}), value, path)


def fields_at(path: Path) -> tuple[str, ...]:
    """The keys that the schema knows in the mapping at ``path``; none for free keys."""
    model: type[BaseModel] | None = Deployment
    for key in path:
        field = model.model_fields.get(key) if model else None
        model = None if field is None else _model_in(field.annotation)
    return tuple(model.model_fields) if model else ()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _elsewhere(key: str, model: type[BaseModel] = Deployment, prefix: str = "") -> str | None:
    """The dotted key of a field called ``key`` anywhere in the schema."""
    for name, field in model.model_fields.items():
        if name == key and prefix:
            return prefix + name
        below = _model_in(field.annotation)
        found = _elsewhere(key, below, f"{prefix}{name}.") if below else None
        if found:
            return found
    return None


Ctx = Mapping[str, Any]


def _unknown_key(_: Ctx, __: Any, path: Path) -> str:
    key, known = path[-1], fields_at(path[:-1])
    if nearest(key, known) is None:
        place = _elsewhere(key)
        if place:
            return f"unknown key, did you mean {place}?"
    return f"unknown key, {did_you_mean(key, known)}"


def _limit(words: str, name: str) -> Callable[[Ctx, Any, Path], str]:
    def say(ctx: Ctx, value: Any, _: Path) -> str:
        return f"must be {words} {shown_number(ctx[name])}, got {shown_number(value)}"

    return say


def _choice(ctx: Ctx, value: Any, _: Path) -> str:
    options = re.findall(r"'([^']*)'", ctx["expected"])
    said = f"must be one of {', '.join(options)}; got {shown(value)}"
    meant = nearest(value, options) if isinstance(value, str) else None
    return f"{said}, did you mean {meant}?" if meant else said


def _mapping(_: Ctx, value: Any, path: Path) -> str:
    known = fields_at(path)
    inside = ", ".join(known) if known else "names and texts"
    return f"must be a mapping ({inside}), got {shown(value)}"


def _number(_: Ctx, value: Any, __: Path) -> str:
    hint = ""
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9][0-9_,]*(\.[0-9]+)?", value):
        hint = f"; write {re.sub('[_,]', '', value)}"
    return f"must be a number, got {shown(value)}{hint}"


def _whole(_: Ctx, value: Any, __: Path) -> str:
    if isinstance(value, float):
        return f"must be a whole number, got {value}"
    return _number(_, value, __).replace("a number", "a whole number", 1)


def _text(_: Ctx, value: Any, __: Path) -> str:
    hint = "; put it in quotes" if isinstance(value, int | float) else ""
    return f"must be text, got {shown(value)}{hint}"


def _pattern(ctx: Ctx, value: Any, _: Path) -> str:
    return f"must be {_PATTERNS[ctx['pattern']]}; got {shown(value)}"


_LIMITS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number")

#: Every type of error that the schema can raise, with its sentence.
SENTENCES: dict[str, Callable[[Ctx, Any, Path], str]] = {
    "missing": lambda _, __, ___: "is missing; it is required",
    "extra_forbidden": _unknown_key,
    "model_type": _mapping,
    "dict_type": _mapping,
    "string_type": _text,
    "string_too_short": lambda _, __, ___: "must not be empty",
    "string_too_long": lambda ctx, value, _: (
        f"must have at most {ctx['max_length']} characters, got {len(value)}"
    ),
    "string_pattern_mismatch": _pattern,
    "literal_error": _choice,
    "int_type": _whole,
    "float_type": _number,
    "is_instance_of": _number,
    "finite_number": lambda _, value, __: f"must be a finite number, got {float(value)}",
    "greater_than": _limit("greater than", "gt"),
    "greater_than_equal": _limit("at least", "ge"),
    "less_than": _limit("less than", "lt"),
    "less_than_equal": _limit("at most", "le"),
    "too_long": lambda ctx, value, _: (
        f"must have at most {ctx['max_length']} entries, got {len(value)}"
    ),
    UNPRINTABLE: lambda _, value, __: (
        f"must not hold control characters, nor begin or end with a blank; got {shown(value)}"
    ),
    "tuple_type": lambda _, value, __: f"must be a list, got {shown(value)}",
    NOT_A_NETWORK: lambda ctx, value, _: f"{ctx['why']}; got {shown(value)}",
    RESERVED_TAG: lambda _, __, ___: "must not begin with aws: (kept by AWS)",
}
