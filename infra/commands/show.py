"""How commands speak: tables and bars for a person, JSON for a program, one line for an error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console, RenderableType

from infra.errors import DeploymentError, SpecrackError


def console(*, stderr: bool = False) -> Console:
    """A console that keeps tables readable where the width is unknown (logs, pipes)."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made = Console(stderr=stderr, highlight=False, width=100)
    return made


def plain(renderable: RenderableType) -> str:
    """``renderable`` as text of at most 100 columns, without colours."""
    made = Console(width=100, highlight=False, no_color=True, force_terminal=False)
    with made.capture() as captured:
        made.print(renderable)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def as_json(value: Any) -> None:
    """``value`` on stdout, indented."""
    print(json.dumps(value, indent=2, sort_keys=True, default=str))


def error(problem: SpecrackError, *, json_output: bool = False) -> None:
    """One clear line a fault on stderr; with ``--json`` an object on stdout as well."""
    if json_output:
        as_json(error_json(problem))
    for line in problem.lines:
        print(f"error: {line}", file=sys.stderr)


def error_json(problem: SpecrackError) -> dict[str, Any]:
    """The machine form of an error."""
    value: dict[str, Any] = {
        "error": problem.code,
        "message": problem.message,
        "do": problem.do,
        "exit_status": problem.exit_status,
    }
    if isinstance(problem, DeploymentError):
        value["problems"] = [
            {"path": fault.path, "line": fault.line, "key": fault.key, "what": fault.what}
            for fault in problem.problems
        ]
    return value
