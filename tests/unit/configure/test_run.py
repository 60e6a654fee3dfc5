"""A configure run with the real Ansible, the real roles and toy servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.configure.run import Result, configure
from infra.inventory import Host, Inventory
from infra.paths import StatePaths
from infra.serving.plan import LaunchPlan
from infra.supervisor import control
from infra.supervisor.state import read_state

MakePlan = Callable[..., LaunchPlan]
PROJECT = Path(__file__).parents[3]
INVENTORY = Inventory(
    deployment="toy",
    stack_key="toy-local",
    hosts=(Host(name="localhost", connection="local"),),
    trigger="0",
)


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[StatePaths]:
    root = tmp_path / "a blank"
    root.mkdir()
    (root / "playbooks").symlink_to(PROJECT / "playbooks")
    made = StatePaths(root, "toy-local")
    yield made
    control.stop(made.run)


def run(plan: LaunchPlan, paths: StatePaths) -> tuple[Result, list[str]]:
    said: list[str] = []
    return configure(INVENTORY, plan, paths=paths, say=said.append), said


def test_configure_starts_the_servers_tells_what_it_does_and_keeps_events(
    paths: StatePaths, make_plan: MakePlan
) -> None:
    result, said = run(make_plan(), paths)
    assert result.ok
    state = read_state(paths.run)
    assert state is not None
    assert state.healthy
    assert any("changed" in line and "Start the servers" in line for line in said)
    events = (result.folder / "events.jsonl").read_text().splitlines()
    kinds = {json.loads(line)["event"] for line in events}
    assert {"playbook_on_task_start", "runner_on_ok", "playbook_on_stats"} <= kinds

    again, _ = run(make_plan(), paths)
    assert again.ok
    assert again.folder != result.folder
    after = read_state(paths.run)
    assert after is not None
    assert after.services[0].pid == state.services[0].pid

    broken, _ = run(make_plan(mode="bad-input"), paths)
    assert not broken.ok
    assert broken.exit_status == 2
    assert "models/none.gguf: no such file" in broken.failures[0].block()
    stopped = read_state(paths.run)
    assert stopped is not None
    assert not stopped.alive


def test_a_template_in_the_plan_reaches_the_server_as_it_is(
    paths: StatePaths, make_plan: MakePlan
) -> None:
    plan = make_plan()
    service = plan.services[0]
    file = service.files[1].model_copy(update={"path": "chat.jinja", "content": "{{ messages }}"})
    plan = plan.model_copy(
        update={"services": (service.model_copy(update={"files": (*service.files, file)}),)}
    )
    result, _ = run(plan, paths)
    assert result.ok, result.failures
    assert (paths.run / "speculative" / "chat.jinja").read_text() == "{{ messages }}"
