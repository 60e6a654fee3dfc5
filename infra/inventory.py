"""The inventory: what the hosts layer of a stack hands to the configure layer, as JSON.

For a cloud tier the addresses are Terraform's to know; here they are plain strings, so that the
same JSON can hold Terraform references until the apply.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from infra.errors import InputError

VARIABLE = "SPECRACK_INVENTORY"


class Host(BaseModel):
    """One machine to configure."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    connection: Literal["local", "ssh"]
    address: str = ""


class Inventory(BaseModel):
    """The hosts of one stack and the reason to configure them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deployment: str
    stack_key: str
    hosts: tuple[Host, ...]
    #: Hash over hosts, launch plan and playbooks: changes exactly when there is work.
    trigger: str
    #: Counts how often the servers of a ``local`` deployment were found gone (a reboot, a kill).
    epoch: int = 0

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def from_environment() -> Inventory:
    """The inventory that the stack put into the environment. Raises InputError."""
    text = os.environ.get(VARIABLE)
    if not text:
        raise InputError(
            f"{VARIABLE} is not set", do="this command is run by the stack: cdktf deploy NAME"
        )
    try:
        return Inventory.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{VARIABLE}: {where}: {first['msg']}") from error


def trigger_of(*, hosts: tuple[Host, ...], plan_digest: str, playbooks: str, epoch: int) -> str:
    """SHA-256, hex, over everything that makes configuring necessary again."""
    content = json.dumps(
        {
            "hosts": [host.model_dump(mode="json") for host in hosts],
            "plan": plan_digest,
            "playbooks": playbooks,
            "epoch": epoch,
        },
        sort_keys=True,
    )
    return hashlib.sha256(content.encode()).hexdigest()


def digest_of_folder(folder: Path) -> str:
    """SHA-256, hex, over the names and contents of all files below ``folder``."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith((".pyc", ".retry")):
            total.update(path.relative_to(folder).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
