"""Catalogue files -> rows, strictly; each fault names the file and the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import InputError

T = TypeVar("T", bound=BaseModel)


def read_yaml(path: Path) -> Any:
    """The content of a catalogue file. Raises InputError."""
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: the catalogue has no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    except YAMLError as error:
        raise InputError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None


def row(kind: type[T], value: Any, *, path: Path, where: str = "") -> T:
    """``value`` as a row of ``kind``. Raises InputError with all of its faults on one line."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'row'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        place = f"{path}: {where}: " if where else f"{path}: "
        raise InputError(f"{place}{faults}") from None


def rows(kind: type[T], path: Path) -> list[T]:
    """A file that is a list of rows. Raises InputError."""
    content = read_yaml(path)
    if not isinstance(content, list):
        raise InputError(f"{path}: must be a list of rows")
    return [
        row(kind, value, path=path, where=f"row {number}{_name(value)}")
        for number, value in enumerate(content, start=1)
    ]


def named(kind: type[T], path: Path) -> dict[str, T]:
    """A file that is a list of rows with unlike names. Raises InputError."""
    found: dict[str, T] = {}
    for entry in rows(kind, path):
        name = str(getattr(entry, "name"))  # noqa: B009 - T is not known to have a name
        if name in found:
            raise InputError(f"{path}: two rows are called {name}")
        found[name] = entry
    return found


def _name(value: Any) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return f" ({name})" if isinstance(name, str) else ""
