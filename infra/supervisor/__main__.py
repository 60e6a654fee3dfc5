"""``python -m infra.supervisor apply|stop|serve``: used by the roles; people use ``specrack``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from infra.errors import SpecrackError
from infra.serving.plan import LaunchPlan
from infra.supervisor import control, serve


def main(argv: list[str] | None = None) -> int:
    """Returns an exit status; errors are one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m infra.supervisor", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("apply", "stop", "serve"):
        command = commands.add_parser(name)
        command.add_argument("--dir", type=Path, required=True, help="the run folder")
        if name == "apply":
            command.add_argument("--plan", type=Path, required=True, help="launch plan, JSON")
            command.add_argument("--python", default=sys.executable, help="the engine's Python")
    options = parser.parse_args(argv)
    folder = options.dir.resolve()
    try:
        if options.command == "serve":
            return serve.serve(folder)
        if options.command == "stop":
            print(json.dumps({"changed": control.stop(folder)}))
            return 0
        plan = LaunchPlan.model_validate_json(options.plan.read_text(encoding="utf-8"))
        applied = control.apply(
            folder,
            plan,
            python=options.python,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
        print(
            json.dumps(
                {
                    "changed": applied.changed,
                    "services": {s.role: s.url for s in applied.state.services},
                }
            )
        )
        return 0
    except SpecrackError as error:
        print(str(error), file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
