"""What Ansible reports, read: pure functions and a small tally, no I/O.

ansible-runner hands over one dictionary an event. Those that matter here: a task starts
(``playbook_on_task_start``), and a host's result for it (``runner_on_ok``, ``_failed``,
``_unreachable``, ``_skipped``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]

RESULTS = {
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
    "runner_on_skipped": "skipped",
}


#: Actions whose success is no news.
QUIET_ACTIONS = ("include_role", "include_tasks", "assert", "validate_argument_spec")


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that failed on a host, as a person wants to read it."""

    host: str
    task: str
    place: str
    message: str
    stderr: str
    #: The exit status of the command that failed, where there was one.
    rc: int | None

    def block(self) -> str:
        """Several lines: where, what, and what the command itself said."""
        rows = [("host", self.host), ("task", self.task), ("file", self.place)]
        rows += [("says", self.message)] if self.message else []
        lines = [f"  {name:<7}{value}" for name, value in rows if value]
        for number, text in enumerate(self.stderr.splitlines()[-12:]):
            lines.append(f"  {'stderr' if number == 0 else '':<7}{text}")
        return "\n".join(["configure failed", *lines])


@dataclass(slots=True)
class Tally:
    """What happened so far, host by host."""

    changed: int = 0
    ok: int = 0
    failures: list[Failure] = field(default_factory=list)
    current_task: str = ""

    def add(self, event: Event) -> str | None:
        """Take one event in. A line for the person watching, or None when it is not worth one."""
        kind = str(event.get("event", ""))
        data: Mapping[str, Any] = event.get("event_data") or {}
        if kind == "playbook_on_task_start":
            self.current_task = task_name(data)
            return None
        result = RESULTS.get(kind)
        if result is None or result == "skipped":
            return None
        host = str(data.get("host", ""))
        if result in ("failed", "unreachable"):
            if data.get("ignore_errors"):
                return None
            self.failures.append(failure_of(data))
            return f"{host}  {result}  {task_name(data)}"
        changed = bool((data.get("res") or {}).get("changed"))
        self.changed += changed
        self.ok += not changed
        if str(data.get("task_action", "")).endswith(QUIET_ACTIONS):
            return None
        duration_s = float(data.get("duration") or 0.0)
        return f"{host}  {'changed' if changed else 'ok'}  {task_name(data)}  ({duration_s:.1f} s)"


def task_name(data: Mapping[str, Any]) -> str:
    """``role : task``, without what Ansible puts around it."""
    role, task = str(data.get("role") or ""), str(data.get("task") or "")
    return f"{role}: {task}" if role and not task.startswith(f"{role} :") else task


def failure_of(data: Mapping[str, Any]) -> Failure:
    """The readable form of a failed or unreachable result."""
    result: Mapping[str, Any] = data.get("res") or {}
    # A loop hides what went wrong in the item that failed.
    items = result.get("results")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and item.get("failed"):
            result = item
            break
    rc = result.get("rc")
    stderr = str(result.get("stderr") or result.get("module_stderr") or "")
    if not stderr and rc not in (None, 0):
        stderr = str(result.get("stdout") or result.get("module_stdout") or "")
    return Failure(
        host=str(data.get("host", "")),
        task=task_name(data),
        place=str(data.get("task_path", "")),
        message=str(result.get("msg") or "").strip(),
        stderr=stderr.strip(),
        rc=rc if isinstance(rc, int) else None,
    )
