"""Where a project keeps its state. Everything that Specrack writes is below ``.specrack/``.

::

    .specrack/<deployment>-<tier>/
        terraform.tfstate     what Terraform knows
        run/                  the supervised servers: state, logs, files of the launch plan
        configure/            a folder a run: Ansible's private data, events as JSON lines
        reports/              a folder a smoke run
    .specrack/engines/        environments of engines that need their own (vLLM)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from infra.errors import InputError

MARKER = "cdktf.json"


def find_root(start: Path | None = None) -> Path:
    """The project's root: ``SPECRACK_ROOT``, else the nearest folder upwards with a cdktf.json.

    Raises InputError when there is none.
    """
    named = os.environ.get("SPECRACK_ROOT")
    if named:
        if not (Path(named) / MARKER).is_file():
            raise InputError(f"SPECRACK_ROOT={named}: no {MARKER} there")
        return Path(named).resolve()
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / MARKER).is_file():
            return folder
    raise InputError(f"no {MARKER} in {here} or above it", do="run this inside a Specrack project")


@dataclass(frozen=True, slots=True)
class StatePaths:
    """The places that belong to one stack (``<deployment>-<tier>``)."""

    root: Path
    stack_key: str

    @property
    def base(self) -> Path:
        return self.root / ".specrack" / self.stack_key

    @property
    def terraform_state(self) -> Path:
        return self.base / "terraform.tfstate"

    @property
    def run(self) -> Path:
        return self.base / "run"

    @property
    def configure(self) -> Path:
        return self.base / "configure"

    @property
    def configured(self) -> Path:
        """What the last configure run left: trigger, epoch, endpoints."""
        return self.base / "configured.json"

    @property
    def reports(self) -> Path:
        return self.base / "reports"

    @property
    def last_smoke(self) -> Path:
        """The last smoke run: verdict, exit status, report folder, id of the deploy."""
        return self.base / "last-smoke.json"


def engines_folder(root: Path) -> Path:
    """Where environments of engines live."""
    return root / ".specrack" / "engines"
