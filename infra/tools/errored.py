"""``errored.tfstate``: what Terraform writes where it works when it cannot write its state.

It is the only record of what was made. It is below ``cdktf.out``, and cdktf's synth removes the
folders of stacks that it does not synthesize: so the launcher takes it away before any synth, into
``.specrack/<stack>/errored.tfstate``, and pushes it before anything is applied again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.errors import ConfigureError, SpecrackError
from infra.files import read_json, write_atomic
from infra.paths import StatePaths
from infra.tools import states
from infra.tools.states import State, Store

FILE = "errored.tfstate"
_S3_KEY = re.compile(r"specrack/(.+)\.tfstate")


class StateError(SpecrackError):
    """A state is locked, or could not be brought back. Nothing was changed."""

    code = "state"
    exit_status = ConfigureError.exit_status


@dataclass(frozen=True, slots=True)
class Rescued:
    """A state that Terraform could not put in its place, and where it is now."""

    stack_key: str
    path: Path


def key_of(folder: Path) -> str | None:
    """The stack's key, from the backend in the synthesized ``cdk.tf.json`` of its folder."""
    data: Any = read_json(folder / "cdk.tf.json")
    try:
        backend = data["terraform"]["backend"]
        if "local" in backend:
            return Path(backend["local"]["path"]).parent.name
        found = _S3_KEY.fullmatch(backend["s3"]["key"])
        return found[1] if found else None
    except (TypeError, KeyError):
        return None


def rescue(root: Path, outdir: Path) -> list[Rescued]:
    """Move every ``errored.tfstate`` below ``outdir`` to where no synth removes it.

    Raises StateError when it cannot be copied (a full disk): then nothing may go on.
    """
    rescued = []
    for path in sorted((outdir / "stacks").glob(f"*/{FILE}")):
        key = key_of(path.parent) or f"unknown-{path.parent.name}"
        target = StatePaths(root, key).base / FILE
        try:
            text = path.read_text(encoding="utf-8")
            if target.exists() and target.read_text(encoding="utf-8") != text:
                target.replace(target.with_name(f"{FILE}.{_stamp()}"))
            write_atomic(target, text)
        except (OSError, SpecrackError) as error:
            raise StateError(
                f"{path}: this is the only record of what was made, and it cannot be copied to "
                f"{target.parent}: {error}",
                do="make room, then run the same command again",
            ) from None
        path.unlink()
        rescued.append(Rescued(key, target))
    return rescued


def pending(paths: StatePaths) -> Path | None:
    """The state that waits to be pushed, or None."""
    path = paths.base / FILE
    return path if path.exists() else None


def put_back(store: Store, push: Callable[[Path], str], say: Callable[[str], None]) -> bool:
    """Push the stack's rescued state, when there is one. A copy stays beside it.

    ``push`` runs ``terraform state push`` and returns what it said when it refused, else an empty
    text. Returns True when something was pushed. Raises StateError when it may not be.
    """
    path = pending(store.paths)
    if path is None:
        return False
    name = store.paths.stack_key
    text = path.read_text(encoding="utf-8")
    try:
        errored = states.parse(text, str(path))
    except SpecrackError:
        # Cut off by the same full disk. There is nothing in it that could be pushed.
        path.replace(path.with_name(f"{FILE}.damaged-{_stamp()}"))
        say(f"{name}: {path} was never finished; what it told is looked for in the account")
        return False
    current = store.read()
    if current is not None and json.dumps(current.content, sort_keys=True) == json.dumps(
        errored.content, sort_keys=True
    ):
        path.replace(path.with_name(f"{FILE}.pushed-{_stamp()}"))
        return False
    why_not = refusal(current, errored) or push(path)
    if why_not:
        raise StateError(
            f"{name}: Terraform could not write its state at the end of an earlier run; it is in "
            f"{path} (serial {errored.serial}) and cannot be pushed to {store.place}: {why_not}",
            do="compare the two; push the right one with terraform state push, then remove the "
            "other file",
        )
    copy = path.with_name(f"{FILE}.pushed-{_stamp()}")
    shutil.copyfile(path, copy)
    path.unlink()
    say(
        f"{name}: an earlier run could not write its state; it was kept in {FILE} and is pushed "
        f"now (serial {errored.serial}, {len(errored.resources)} resources); copy: {copy}"
    )
    return True


def refusal(current: State | None, errored: State) -> str:
    """Why ``errored`` may not replace ``current``; empty when it may."""
    if current is None:
        return ""
    if current.lineage != errored.lineage:
        return "that is the state of something else (another lineage)"
    if current.serial >= errored.serial:
        return f"that state is as new or newer (serial {current.serial})"
    return ""


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
