"""What an earlier run may have left behind, looked at before Terraform may change anything.

In this order, for each stack: a Terraform that still works is waited for; a state that could not
be written is pushed; a lock is shown with its owner; objects that no state knows are found and
taken over. Nothing is broken silently.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra import adoption, state_backend
from infra.files import read_json
from infra.paths import StatePaths
from infra.spec.model import Deployment
from infra.state_lock import Lock, Owner
from infra.tools import errored, journal, steps, workdir
from infra.tools.errored import StateError
from infra.tools.states import Store
from infra.tools.terraform import Terraform

Say = Callable[[str], None]
#: How long a Terraform of a killed run may take to let go of its state: it finishes the calls
#: that are under way, and AWS may be slow with them.
LEFTOVER_S = 600.0
POLL_S = 0.5
SYNTH_S = 300.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """Looks after one stack before a deploy or destroy of it."""

    deployment: Deployment
    root: Path
    env: Mapping[str, str]
    terraform: Terraform
    command: str
    say: Say

    @property
    def paths(self) -> StatePaths:
        return StatePaths(self.root, self.deployment.stack_key)

    @property
    def on_aws(self) -> bool:
        return self.deployment.site.startswith("aws/")

    @property
    def region(self) -> str:
        return self.deployment.site.partition("/")[2]

    def store(self) -> Store:
        backend = state_backend.read(self.root) if self.on_aws else state_backend.LOCAL
        return Store(backend, self.paths)

    def prepare(self) -> None:
        """All of it. Raises StateError, InputError, AwsError."""
        self.wait_for_leftovers()
        store = self.store()
        self.look_at_lock(store)
        errored.put_back(store, lambda path: self._push(store, path), self.say)
        adoption.clear(self.paths)
        entry = journal.read(self.paths.base)
        if entry is not None and self.on_aws:
            self.take_over(store, entry)

    # --- processes and locks --------------------------------------------------------------------

    def wait_for_leftovers(self, limit_s: float = LEFTOVER_S) -> None:
        """Wait for a Terraform of an earlier run that still works on the stack."""
        name = self.deployment.name
        deadline = time.monotonic() + limit_s
        told = False
        while running := steps.still_running(self.root, name):
            step = running[0]
            for one in running:
                steps.interrupt(one)
            if not told:
                told = True
                self.say(
                    f"{name}: terraform {step.action} of an earlier run (process "
                    f"{step.terraform_pid}) is still at work; waiting for it to write its state"
                )
            if time.monotonic() > deadline:
                raise StateError(
                    f"{name}: terraform {step.action} of an earlier run (process "
                    f"{step.terraform_pid}) did not end within {limit_s:.0f} s",
                    do="see what it waits for; to lose its state: kill -9 "
                    f"{step.terraform_pid}, then run the same command again",
                )
            time.sleep(POLL_S)

    def look_at_lock(self, store: Store) -> None:
        """Raise StateError, with owner and age, when somebody has locked the state."""
        found = store.lock()
        if found is not None:
            what = f"{self.deployment.name}: {describe(*found)}"
            raise StateError(what, do=remedy(self.deployment.name, *found))

    # --- states that could not be written -------------------------------------------------------

    def _push(self, store: Store, path: Path) -> str:
        folder = workdir.prepare(store, self.terraform, self.env)
        return folder.init() or folder.push(path)

    # --- objects that no state knows ------------------------------------------------------------

    def take_over(self, store: Store, entry: journal.Entry) -> None:
        """Find what an earlier run made and no state knows; hand it to the synth, or, before a
        destroy, to Terraform. Raises StateError, AwsError."""
        from infra.aws import adopt

        name = self.deployment.name
        why = f" ({entry.why})" if entry.why else ""
        self.say(
            f"{name}: the last run, {entry.command} of "
            f"{datetime.fromtimestamp(entry.began, UTC):%Y-%m-%d %H:%M} UTC, did not end well"
            f"{why}; looking in the account for what it made"
        )
        stack = self._synthesized()
        state = store.read()
        found = adopt.find(
            stack,
            state.content if state else None,
            region=self.region,
            stack_key=self.deployment.stack_key,
            since=entry.since_utc,
            say=self.say,
        )
        for line in found.strangers:
            self.say(f"{name}: {line}")
        if not found.objects:
            known = len(state.resources) if state else 0
            self.say(f"{name}: nothing found that the state ({known} resources) does not know")
            return
        listed = ", ".join(f"{one.address} {one.import_id}" for one in found.objects)
        count = len(found.objects)
        self.say(
            f"{name}: found {count} object{'s' if count > 1 else ''} of an earlier deploy that was "
            f"cut off: {listed}; taking {'them' if count > 1 else 'it'} over"
        )
        ids = {one.address: one.import_id for one in found.objects}
        if self.command == "deploy":
            adoption.write(self.paths, ids)
        else:
            self._import(store, stack, ids)

    def _synthesized(self) -> dict[str, Any]:
        """The stack as Terraform JSON, synthesized apart from ``cdktf.out``."""
        outdir = self.paths.base / "synth"
        env = {**self.env, "SPECRACK_DEPLOYMENTS": self.deployment.name}
        env["CDKTF_OUTDIR"] = str(outdir)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "stacks"],
                cwd=self.root,
                env=env,
                capture_output=True,
                text=True,
                check=False,
                timeout=SYNTH_S,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise StateError(f"{self.deployment.name}: the synth did not end") from None
        content = read_json(outdir / "stacks" / self.deployment.name / "cdk.tf.json")
        if done.returncode != 0 or not isinstance(content, dict):
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
            raise StateError(f"{self.deployment.name}: cannot synthesize: {last[0]}")
        return content

    def _import(self, store: Store, stack: Mapping[str, Any], ids: Mapping[str, str]) -> None:
        """Before a destroy, which passes over ``import`` blocks: one by one into the state."""
        kept = {key: value for key, value in stack.items() if key != "import"}
        folder = workdir.prepare(store, self.terraform, self.env, stack=kept)
        if why_not := folder.init():
            raise StateError(f"{self.deployment.name}: terraform init: {why_not}")
        for address, import_id in ids.items():
            done = folder.run("import", "-input=false", "-no-color", address, import_id)
            if done.returncode != 0:
                self.say(
                    f"{self.deployment.name}: {address} {import_id} could not be taken over and "
                    f"will be left: {workdir.reason(done)}"
                )


def describe(lock: Lock, owner: Owner, pid: int | None) -> str:
    """Who holds a lock, for what, since when, and whether that process lives."""
    alive = {
        "alive": f"process {pid} of this machine, which is at work" if pid else "it is at work",
        "dead": "on this machine, where no such process is left",
        "elsewhere": "on another machine",
    }[owner]
    age = lock.age(datetime.now(UTC))
    return (
        f"the state is locked by {lock.who} for {lock.operation}, since {lock.since()} ({age}); "
        f"{alive}"
    )


def remedy(name: str, lock: Lock, owner: Owner, pid: int | None) -> str:
    """What to do about a lock."""
    if owner == "alive":
        return "wait for it, or stop it with Ctrl-C" + (f" or kill -INT {pid}" if pid else "")
    unlock = f"specrack backend unlock {name} --lock-id {lock.id or 'ID'}"
    if owner == "dead":
        return f"remove the lock: {unlock}; then run the same command again"
    return f"ask {lock.who}; when nothing runs there any more: {unlock}"
