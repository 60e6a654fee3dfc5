"""Move a stack's state from this machine into the bucket that ``cdktf.json`` names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from infra import state_backend
from infra.errors import InputError
from infra.files import locked
from infra.paths import StatePaths
from infra.tools import errored, mirror, terraform, workdir
from infra.tools.errored import StateError
from infra.tools.recovery import describe, remedy
from infra.tools.states import State, Store

Push = Callable[[Path], str]


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the state is now, and where the old file went."""

    place: str
    serial: int
    resources: int
    backup: Path


def move(root: Path, name: str, stack_key: str, env: Mapping[str, str]) -> Moved:
    """Move the state of ``stack_key``. Safe to run again at any point.

    Raises InputError when there is nothing to move or another state is there already, StateError
    for a lock or when Terraform refuses.
    """
    backend = state_backend.read(root)
    if backend.kind != "s3":
        raise InputError(
            f"{name}: {state_backend.PLACE} names no bucket to move the state to",
            do="specrack backend init --bucket BUCKET --region REGION",
        )
    paths = StatePaths(root, stack_key)
    with locked(paths.base / "deploy.lock", wait_s=5, what="a deploy or destroy"):
        here, there = Store(state_backend.LOCAL, paths), Store(backend, paths)
        if errored.pending(paths) is not None:
            raise StateError(
                f"{name}: a state that Terraform could not write waits in "
                f"{paths.base / errored.FILE}",
                do=f"run cdktf deploy {name} with the old backend first, which pushes it",
            )
        for store in (here, there):
            held = store.lock()
            if held is not None:
                raise StateError(f"{name}: {describe(*held)}", do=remedy(name, *held))
        state = here.read()
        if state is None:
            raise InputError(f"{name}: there is no state on this machine", do="nothing to move")

        def push(path: Path) -> str:
            folder = workdir.prepare(there, _terraform(), _with_providers(root, env))
            return folder.init() or folder.push(path)

        return _move(name, state, there, push)


def _move(name: str, state: State, there: Store, push: Push) -> Moved:
    paths = there.paths
    current = there.read()
    if current is None or (current.lineage, current.serial) != (state.lineage, state.serial):
        why_not = refusal(current, state) or push(paths.terraform_state)
        if why_not:
            raise StateError(
                f"{name}: the state cannot be moved to {there.place}: {why_not}",
                do="compare the two states; nothing was changed",
            )
        current = there.read()
    if current is None or current.lineage != state.lineage or current.serial < state.serial:
        raise StateError(
            f"{name}: the state is not in {there.place} as it should be",
            do="run the same command again; the one on this machine is untouched",
        )
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    backup = paths.terraform_state.with_name(f"terraform.tfstate.moved-{stamp}")
    paths.terraform_state.replace(backup)
    return Moved(there.place, current.serial, len(current.resources), backup)


def refusal(current: State | None, state: State) -> str:
    """Why ``state`` may not take the place of ``current``; empty when it may."""
    if current is None or (not current.resources and current.lineage == state.lineage):
        return ""
    if current.lineage != state.lineage:
        return "there is the state of something else (another lineage)"
    if current.serial > state.serial:
        return f"the state there is newer (serial {current.serial}, here {state.serial})"
    return ""


def _terraform() -> terraform.Terraform:
    return terraform.find(override=os.environ.get(terraform.OVERRIDE))


def _with_providers(root: Path, env: Mapping[str, str]) -> dict[str, str]:
    """``terraform init`` installs the providers that a state names."""
    choice = mirror.choose(env, mirror.cache_folder(root), ("hashicorp/aws",))
    return {**env, **choice.env}
