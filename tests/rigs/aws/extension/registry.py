"""Operations that are added to moto, each checked against botocore's model of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.core.utils import camelcase_to_underscores, get_service_model

Parameters = dict[str, Any]
Handler = Callable[[Any, Parameters], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of ours: the service's name in botocore, and the operation's."""

    service: str
    name: str
    handler: Handler


#: All of them, for the test that walks through them.
OPERATIONS: dict[tuple[str, str], Operation] = {}


def operation(service: str, name: str) -> Callable[[Handler], Handler]:
    """Declare a handler ``(response, parameters) -> output`` of an operation.

    ``parameters`` are parsed, and the output is written, by botocore's model.
    """

    def declare(handler: Handler) -> Handler:
        OPERATIONS[service, name] = Operation(service, name, handler)
        return handler

    return declare


def attach(response_class: type[BaseResponse], service: str) -> None:
    """Give moto's class of answers for ``service`` all declared operations of it."""
    for one in OPERATIONS.values():
        if one.service == service:
            setattr(response_class, camelcase_to_underscores(one.name), _method(one))


def _method(one: Operation) -> Callable[[Any], ActionResult]:
    @functools.wraps(one.handler)
    def method(response: Any) -> ActionResult:
        if not response.automated_parameter_parsing:
            response.parse_parameters(response.normalized_request)
        output = one.handler(response, response.params)
        shape = get_service_model(one.service).operation_model(one.name).output_shape
        check(output or None, shape)
        return EmptyResult() if shape is None else ActionResult(output)

    method.__name__ = camelcase_to_underscores(one.name)
    return method


def check(value: Any, shape: Any, where: str = "") -> None:
    """Raise AssertionError when ``value`` holds what the output ``shape`` does not have."""
    if value is None:
        return
    if shape is None:
        raise AssertionError(f"{where or 'output'}: the operation has no output, got {value}")
    kind = shape.type_name
    if kind == "structure":
        assert isinstance(value, dict), f"{where}: {value!r} is no structure ({shape.name})"
        for key, member in value.items():
            assert key in shape.members, f"{where}.{key}: not a member of {shape.name}"
            check(member, shape.members[key], f"{where}.{key}")
    elif kind == "list":
        assert isinstance(value, list | tuple), f"{where}: {value!r} is no list ({shape.name})"
        for number, member in enumerate(value):
            check(member, shape.member, f"{where}[{number}]")
    elif kind == "map":
        assert isinstance(value, dict), f"{where}: {value!r} is no map ({shape.name})"
        for member in value.values():
            check(member, shape.value, f"{where}.*")
    elif kind == "string":
        assert isinstance(value, str), f"{where}: {value!r} is no string ({shape.name})"
        allowed = getattr(shape, "enum", None)
        assert not allowed or value in allowed, f"{where}: {value!r} is none of {allowed}"
    elif kind in ("integer", "long"):
        assert isinstance(value, int), f"{where}: {value!r} is no whole number ({shape.name})"
    elif kind == "boolean":
        assert isinstance(value, bool), f"{where}: {value!r} is not true or false ({shape.name})"


def store(backend: Any, name: str) -> dict[Any, Any]:
    """A place for objects of ours in a backend of moto: as separate by account and region as
    everything else, and gone with a reset."""
    return backend.__dict__.setdefault(f"rig_{name}", {})  # type: ignore[no-any-return]
