"""One configure run: a fresh private folder, Ansible, events kept as JSON lines."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from infra.configure.events import Failure, Tally
from infra.errors import ConfigureError
from infra.files import write_atomic
from infra.inventory import Inventory
from infra.paths import StatePaths, engines_folder
from infra.serving.plan import LaunchPlan

KEPT_RUNS = 10
#: A task that takes longer than this says so, and again after every such span.
HEARTBEAT_S = 15.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    ok: bool
    changed: int
    failures: tuple[Failure, ...]
    folder: Path

    @property
    def exit_status(self) -> int:
        """0 good; 2 when a command said that its input was bad; else 1."""
        if self.ok:
            return 0
        return 2 if any(failure.rc == 2 for failure in self.failures) else 1


def configure(inventory: Inventory, plan: LaunchPlan, *, paths: StatePaths, say: Say) -> Result:
    """Run ``playbooks/site.yml`` on the inventory's hosts. Raises ConfigureError when Ansible
    itself does not run; a failing task is a Result."""
    folder = new_folder(paths.configure)
    write_atomic(folder / "launch-plan.json", plan.model_dump_json(indent=2) + "\n")
    tally = Tally()
    with (folder / "events.jsonl").open("w", encoding="utf-8") as events, heartbeat(tally, say):
        outcome = _run_ansible(inventory, plan, paths, folder, tally, events, say)
    if outcome not in ("successful", "failed"):
        raise ConfigureError(f"Ansible ended with status {outcome}", do=f"look into {folder}")
    if outcome == "failed" and not tally.failures:
        raise ConfigureError(
            f"Ansible failed before any task: {first_error(folder)}",
            do=f"its output is below {folder / 'artifacts'}",
        )
    return Result(outcome == "successful", tally.changed, tuple(tally.failures), folder)


def _run_ansible(
    inventory: Inventory,
    plan: LaunchPlan,
    paths: StatePaths,
    folder: Path,
    tally: Tally,
    events: TextIO,
    say: Say,
) -> str:
    # Slow to import (0.3 s), and needed here alone.
    import ansible_runner

    def on_event(event: dict[str, Any]) -> bool:
        kept = {key: event.get(key) for key in ("created", "event", "stdout", "event_data")}
        events.write(json.dumps(kept, default=str) + "\n")
        events.flush()
        line = tally.add(event)
        if line:
            say(line)
        return False

    playbooks = paths.root / "playbooks"
    run = ansible_runner.run(
        private_data_dir=str(folder),
        project_dir=str(playbooks),
        playbook="site.yml",
        inventory=ansible_inventory(inventory),
        extravars=variables(plan, paths, folder),
        envvars=environment(folder, playbooks),
        event_handler=on_event,
        quiet=True,
        suppress_env_files=True,
    )
    return str(run.status)


def new_folder(parent: Path) -> Path:
    """A folder for this run alone: Ansible's private data must never be used twice (options of
    one run would leak into the next). Old ones are removed, the newest kept."""
    parent.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = parent / f"{stamp}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    for old in sorted(path for path in parent.iterdir() if path.is_dir())[:-KEPT_RUNS]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def ansible_inventory(inventory: Inventory) -> dict[str, Any]:
    """Ansible's own form of the inventory."""
    hosts: dict[str, Any] = {}
    for host in inventory.hosts:
        hosts[host.name] = {"ansible_connection": host.connection}
        if host.connection == "local":
            hosts[host.name]["ansible_python_interpreter"] = sys.executable
        else:
            hosts[host.name]["ansible_host"] = host.address
    return {"all": {"hosts": hosts}}


def variables(plan: LaunchPlan, paths: StatePaths, folder: Path) -> dict[str, Any]:
    """What the roles are told. The launch plan goes as a file, so that nothing in it is ever
    taken for a template."""
    return {
        "specrack_engine": plan.engine,
        "specrack_engine_version": plan.engine_version,
        "specrack_plan_file": str(folder / "launch-plan.json"),
        "specrack_run_folder": str(paths.run),
        "specrack_engines_folder": str(engines_folder(paths.root)),
        "specrack_requirements": list(plan.requirements),
        "specrack_remove_after_install": list(plan.remove_after_install),
        "specrack_python": sys.executable,
        "specrack_service_manager": "supervisor",
    }


def environment(folder: Path, playbooks: Path) -> Mapping[str, str]:
    """Ansible's settings. All that it would keep in a home folder goes into the private one."""
    return {
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_REMOTE_TMP": str(folder / "tmp"),
        "ANSIBLE_ROLES_PATH": str(playbooks / "roles"),
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        # The roles start our own modules.
        "PYTHONPATH": str(playbooks.parent),
    }


def first_error(folder: Path) -> str:
    """The first line of Ansible's output that looks like the reason, for a run without tasks."""
    for path in sorted((folder / "artifacts").glob("*/stdout")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        marked = [line for line in lines if "ERROR" in line or "error" in line]
        for line in marked or lines:
            if line.strip():
                return line.strip()
    return "it printed nothing"


class heartbeat:  # noqa: N801 - used as a function: with heartbeat(...)
    """Tells of a long task while it runs, so that a wait is never silent."""

    def __init__(self, tally: Tally, say: Say) -> None:
        self._tally = tally
        self._say = say
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="heartbeat", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        task, since = "", time.monotonic()
        told = 0
        while not self._done.wait(0.5):
            if self._tally.current_task != task:
                task, since, told = self._tally.current_task, time.monotonic(), 0
            spans = int((time.monotonic() - since) // HEARTBEAT_S)
            if task and spans > told:
                told = spans
                self._say(f"...  {task}  still running after {time.monotonic() - since:.0f} s")
