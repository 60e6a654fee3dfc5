"""How a step of a deploy ended, told to the ``cdktf`` launcher through a file.

cdktf itself knows only 0 and 1, and says 0 even when Terraform was killed half-way.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from infra.files import read_json, write_json

#: Names one run of ``cdktf``; set by the launcher, inherited by the steps.
DEPLOY_ID = "SPECRACK_DEPLOY_ID"
FILE = "outcome.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The last step that ended: ``configure`` or ``smoke``, its exit status, its last words, the
    verdict table as plain text, the path of the report."""

    deploy_id: str
    step: str
    exit_status: int
    message: str
    report: str = ""
    table: str = ""


def record(
    base: Path, *, step: str, exit_status: int, message: str, report: str = "", table: str = ""
) -> None:
    """Write the outcome of ``step`` below ``base`` (a stack's state folder)."""
    deploy_id = os.environ.get(DEPLOY_ID, "")
    outcome = Outcome(deploy_id, step, exit_status, message, report, table)
    write_json(base / FILE, asdict(outcome))


def read(base: Path, deploy_id: str) -> Outcome | None:
    """What the run ``deploy_id`` recorded below ``base``, or None."""
    data: Any = read_json(base / FILE)
    try:
        outcome = Outcome(**data)
    except TypeError:
        return None
    return outcome if outcome.deploy_id == deploy_id else None
