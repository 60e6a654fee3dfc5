"""Writing a report and reading it back."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from infra.errors import InputError
from smoke.report import html, junit, markdown
from smoke.report.model import SCHEMA, Report


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the four forms of a report lie."""

    json: Path
    junit: Path
    markdown: Path
    html: Path


def write_all(report: Report, directory: Path) -> Paths:
    """Write all forms below ``directory``, made if missing; each file appears whole or not at all.

    Raises InputError when the directory cannot be written to.
    """
    paths = Paths(
        json=directory / "report.json",
        junit=directory / "junit.xml",
        markdown=directory / "report.md",
        html=directory / "report.html",
    )
    # Rendered before anything is written: a fault in one form must not leave a mix of runs.
    contents = {
        paths.junit: junit.render(report),
        paths.markdown: markdown.render(report),
        paths.html: html.render(report),
        paths.json: to_json(report),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            _write(path, content)
    except OSError as error:
        raise InputError(
            f"{directory}: the report cannot be written: {error.strerror}",
            do="choose another directory, or make this one writable",
        ) from None
    return paths


def to_json(report: Report) -> str:
    """The report as JSON, schema ``specrack.smoke/1``."""
    return report.model_dump_json(by_alias=True, indent=1) + "\n"


def load(path: Path) -> Report:
    """Read ``report.json``. Raises InputError when it is missing or not a report of ours."""
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a smoke report: not UTF-8 text") from None
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a smoke report: not JSON ({error})") from None
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        found = f"schema {str(schema)[:60]!r}" if schema is not None else "no schema"
        raise InputError(f"{path}: not a smoke report: {found}, expected {SCHEMA!r}")
    try:
        return Report.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path}: damaged smoke report: {place}: {first['msg']}",
            do="run the smoke again",
        ) from None


def _write(path: Path, content: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
