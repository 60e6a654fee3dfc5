"""Remove a lock that nobody holds any more: by its id, and never that of a living process."""

from __future__ import annotations

import time
from pathlib import Path

from infra import state_backend, state_lock
from infra.errors import InputError
from infra.paths import StatePaths
from infra.spec.model import Deployment
from infra.state_lock import Lock
from infra.tools import journal, steps
from infra.tools.errored import StateError
from infra.tools.recovery import describe, remedy
from infra.tools.states import Store


def store_of(root: Path, deployment: Deployment) -> Store:
    """Where the deployment's state is. Raises InputError."""
    on_aws = deployment.site.startswith("aws/")
    backend = state_backend.read(root) if on_aws else state_backend.LOCAL
    return Store(backend, StatePaths(root, deployment.stack_key))


def shown(root: Path, deployment: Deployment) -> str:
    """The lock on a deployment's state, in words. Raises InputError, AwsError."""
    held = store_of(root, deployment).lock()
    return f"{describe(*held)}; lock id {held[0].id}" if held else "the state is not locked"


def unlock(root: Path, deployment: Deployment, lock_id: str) -> Lock:
    """Remove the lock with that id. Returns it.

    Raises StateError when its owner is at work, InputError when there is no such lock, AwsError.
    """
    name = deployment.name
    store = store_of(root, deployment)
    if running := steps.still_running(root, name):
        raise StateError(
            f"{name}: terraform {running[0].action} (process {running[0].terraform_pid}) is at "
            "work on the state",
            do="wait for it, or stop it with Ctrl-C",
        )
    held = store.lock()
    if held is None:
        stale = state_lock.info_path(store.paths.terraform_state)
        if store.backend.kind == "local" and stale.exists():
            return _remove_stale(name, stale, lock_id)
        raise InputError(f"{name}: the state is not locked", do="nothing to do")
    if held[1] == "alive":
        raise StateError(f"{name}: {describe(*held)}", do=remedy(name, *held))
    from infra.aws import backend

    lock = backend.remove_lock(store.backend, store.paths.stack_key, lock_id)
    began = lock.created.timestamp() if lock.created else time.time()
    journal.mark(store.paths.base, since=began, why=f"its lock was removed ({lock.who})")
    return lock


def _remove_stale(name: str, path: Path, lock_id: str) -> Lock:
    """The description of a lock whose process is gone: it locks nothing, but may confuse."""
    lock = state_lock.parse(path.read_text(encoding="utf-8", errors="replace"), str(path))
    if lock is None or lock.id != lock_id:
        raise InputError(f"{name}: the state is not locked by {lock_id}", do="nothing to do")
    path.unlink()
    return lock
