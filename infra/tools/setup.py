"""``python -m infra.tools.setup``: the part of ``make setup`` that looks at the machine.

``locks`` prints the lock files of packages that stand in for programs missing on PATH
(and for libgomp, where the system has none);
``shims`` writes ``cdktf`` and ``specrack-terraform`` next to this interpreter;
``npm ARGS...`` runs npm of the Node.js that was chosen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from infra.errors import SpecrackError, ToolError
from infra.serving import openmp
from infra.tools import node, terraform

SHIMS = {"cdktf": "infra.tools.cdktf", "specrack-terraform": "infra.tools.terraform"}

# Found through its own folder, so that a moved or blank-ridden path is no trouble.
SHIM = """#!/bin/sh
# Written by `make setup`.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)
exec "$here/python" -m {module} "$@"
"""


def missing_locks() -> list[str]:
    """Lock files for what PATH lacks. Node without npm counts as missing."""
    wanted = []
    found, _ = node.from_path()
    if found is None or found.npm is None:
        wanted.append("requirements-node.lock")
    if terraform.from_path()[0] is None and not os.environ.get(terraform.OVERRIDE):
        wanted.append("requirements-terraform.lock")
    if not openmp.system_has_it():
        wanted.append("requirements-openmp.lock")
    return wanted


def write_shims(folder: Path) -> None:
    for name, module in SHIMS.items():
        path = folder / name
        path.write_text(SHIM.format(module=module), encoding="utf-8")
        path.chmod(0o755)


def npm(arguments: list[str]) -> int:
    """Run npm with the chosen Node.js. Raises ToolError when there is no npm."""
    found = node.find()
    if found.npm is None:
        found = node.from_wheel() or found
    if found.npm is None:
        raise ToolError("npm not found beside node", do=f"pip install {node.WHEEL}")
    env = node.quiet(dict(os.environ), found)
    # npm caches its compiled scripts, else below /tmp.
    env["NODE_COMPILE_CACHE"] = str(Path.cwd() / ".specrack" / "cache" / "node")
    return subprocess.run([*found.npm, *arguments], env=env, check=False).returncode


def main(argv: list[str]) -> int:
    """Returns an exit status."""
    try:
        match argv:
            case ["locks"]:
                print("\n".join(missing_locks()))
                return 0
            case ["shims"]:
                write_shims(Path(sys.executable).parent)
                return 0
            case ["npm", *arguments]:
                return npm(arguments)
    except SpecrackError as error:
        print(f"specrack: {error}", file=sys.stderr)
        return error.exit_status
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
