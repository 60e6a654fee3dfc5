"""A project of its own for each test module: the shipped one, linked, with its own state."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Project:
    """A Specrack project in a folder with a blank in its path."""

    root: Path

    def run(
        self, *command: str, env: dict[str, str] | None = None, timeout_s: float = 500
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the project's environment as a user would."""
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SPECRACK_", "TF_"))
        }
        return subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.root,
            env=clean | (env or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def decide(self, *command: str, timeout_s: float = 500) -> subprocess.CompletedProcess[str]:
        """``run`` until the verdict is pass or fail. On a machine that others use as well a run
        may rightly be inconclusive (the load generator itself was late); not for ever."""
        for _ in range(2):
            done = self.run(*command, timeout_s=timeout_s)
            if done.returncode != 3:
                return done
        return self.run(*command, timeout_s=timeout_s)

    def edit(self, deployment: str, old: str, new: str) -> None:
        path = self.root / "deployments" / f"{deployment}.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def processes(self) -> list[psutil.Process]:
        """Living processes that have this project in their command line or as their folder."""
        found = []
        for process in psutil.process_iter():
            try:
                words = " ".join([process.cwd(), *process.cmdline()])
            except psutil.Error:
                continue
            if str(self.root) in words and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    root = tmp_path_factory.mktemp("a blank") / "project"
    root.mkdir()
    for name in ("node_modules", "playbooks", "models", "cdktf.json"):
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "deployments", root / "deployments")
    made = Project(root)
    yield made
    for name in sorted(path.stem for path in (root / "deployments").glob("*.yaml")):
        made.run("python", "-m", "infra", "release", f"{name}-local")
    assert made.processes() == []
