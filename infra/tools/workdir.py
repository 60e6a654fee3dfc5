"""Terraform commands on a stack's state, outside of cdktf: a folder of our own for each stack."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import ToolError
from infra.files import write_atomic
from infra.process import die_with_parent
from infra.tools.states import Store, block
from infra.tools.terraform import Terraform

ENDPOINT = "SPECRACK_AWS_ENDPOINT"
#: Seconds. A command on a state is done in a few; a slow registry is what takes longer.
LIMIT_S = 600.0
_DROPPED = ("TF_CLI_ARGS", "TF_CLI_ARGS_init", "TF_WORKSPACE", "TF_DATA_DIR")


@dataclass(frozen=True, slots=True)
class Workdir:
    """A folder in which Terraform finds the stack's state."""

    folder: Path
    command: tuple[str, ...]
    env: Mapping[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command; nobody can be asked anything. Raises ToolError when it hangs."""
        try:
            return subprocess.run(
                [*self.command, *arguments],
                cwd=self.folder,
                env=dict(self.env),
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
                preexec_fn=lambda: die_with_parent(2),
            )
        except subprocess.TimeoutExpired:
            raise ToolError(
                f"terraform {arguments[0]} did not end within {LIMIT_S:.0f} s",
                do="check the network, then run the same command again",
            ) from None

    def init(self) -> str:
        """Prepare it. Returns what went wrong, or an empty text."""
        done = self.run("init", "-input=false", "-no-color", "-reconfigure")
        return "" if done.returncode == 0 else reason(done)

    def push(self, path: Path) -> str:
        """``terraform state push``, which compares lineage and serial and takes the lock."""
        done = self.run("state", "push", str(path))
        return "" if done.returncode == 0 else reason(done)


def prepare(
    store: Store,
    terraform: Terraform,
    env: Mapping[str, str],
    *,
    stack: Mapping[str, object] | None = None,
) -> Workdir:
    """Write the folder: a backend alone, or the synthesized ``stack``. Raises InputError."""
    folder = store.paths.base / "terraform"
    content = stack or {
        "terraform": {"backend": block(store.backend, store.paths, env.get(ENDPOINT))}
    }
    for old in folder.glob("*.tf.json"):
        old.unlink()
    write_atomic(folder / "main.tf.json", json.dumps(content, indent=2) + "\n")
    clean = {key: value for key, value in env.items() if key not in _DROPPED}
    clean |= {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
    command: Sequence[str] = [str(terraform.path)]
    if terraform.is_library:
        import sys

        command = [sys.executable, "-m", "infra.tools.terraform"]
        clean.pop("SPECRACK_RUN", None)
    # Terraform says so at every call when it names a file that is not there.
    if not Path(clean.get("TF_CLI_CONFIG_FILE", os.devnull)).exists():
        del clean["TF_CLI_CONFIG_FILE"]
    return Workdir(folder, tuple(command), clean)


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """What Terraform said, in one line."""
    text = done.stderr or done.stdout
    lines = [line.strip("╷│╵ \n") for line in text.splitlines()]
    lines = [line for line in lines if line]
    start = next((i for i, line in enumerate(lines) if line.startswith("Error:")), 0)
    said = " ".join(lines[start : start + 4])
    return said[:400] or f"exit status {done.returncode}"
