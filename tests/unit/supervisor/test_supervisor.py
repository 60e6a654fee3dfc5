"""The supervisor with real processes: start, crash, hang, stop, kill."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from infra.process import start_time
from infra.serving.plan import LaunchPlan
from infra.supervisor import health
from infra.supervisor.state import SupervisorState, read_state

MakePlan = Callable[..., LaunchPlan]


def apply(folder: Path, plan: LaunchPlan) -> subprocess.CompletedProcess[str]:
    """As the role does it: in a process of its own that ends while the servers go on."""
    path = folder.parent / "plan.json"
    path.write_text(plan.model_dump_json())
    return subprocess.run(
        [sys.executable, "-m", "infra.supervisor", "apply", "--dir", str(folder), "--plan", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def applied(folder: Path, plan: LaunchPlan) -> SupervisorState:
    done = apply(folder, plan)
    assert done.returncode == 0, done.stderr
    state = read_state(folder)
    assert state is not None
    return state


def wait_for(check: Callable[[], bool], *, limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Is there such a process, and not only its record waiting to be collected?"""
    return start_time(pid) is not None


def state_of(folder: Path) -> SupervisorState:
    state = read_state(folder)
    assert state is not None
    return state


def test_servers_of_a_plan_run_and_answer_after_apply(folder: Path, make_plan: MakePlan) -> None:
    state = applied(folder, make_plan(roles=("speculative", "baseline")))
    assert [service.condition for service in state.services] == ["healthy", "healthy"]
    assert len({service.port for service in state.services}) == 2
    for service in state.services:
        assert service.port is not None
        assert health.answers(service.port, "/health")


def test_a_second_apply_of_the_same_plan_changes_nothing(folder: Path, make_plan: MakePlan) -> None:
    before = applied(folder, make_plan())
    again = apply(folder, make_plan())
    assert json.loads(again.stdout)["changed"] is False
    assert state_of(folder).services[0].pid == before.services[0].pid


def test_a_changed_plan_replaces_the_servers_on_the_same_port(
    folder: Path, make_plan: MakePlan
) -> None:
    before = applied(folder, make_plan())
    after = applied(folder, make_plan(ready_timeout_s=21.0))
    assert after.services[0].pid != before.services[0].pid
    assert after.services[0].port == before.services[0].port
    assert not runs(before.pid)


def test_a_killed_server_is_back_on_its_port_and_the_restart_is_told(
    folder: Path, make_plan: MakePlan
) -> None:
    before = applied(folder, make_plan())
    service = before.services[0]
    assert service.pid is not None
    os.kill(service.pid, signal.SIGKILL)
    wait_for(lambda: state_of(folder).services[0].restarts == 1 and state_of(folder).healthy)
    after = state_of(folder).services[0]
    assert after.port == service.port
    assert after.pid != service.pid
    assert after.last_restart is not None
    assert after.last_restart.reason == "killed by signal SIGKILL"


def test_servers_die_with_a_killed_supervisor_and_apply_brings_them_back(
    folder: Path, make_plan: MakePlan
) -> None:
    before = applied(folder, make_plan(mode="stubborn"))
    service = before.services[0]
    assert service.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    wait_for(lambda: not state_of(folder).alive)
    after = applied(folder, make_plan(mode="stubborn"))
    # This one ignores the polite signal, so the next supervisor had to remove it.
    assert not runs(service.pid)
    assert after.healthy
    assert after.services[0].port == service.port


def test_stop_leaves_no_process_and_no_port_even_of_a_stubborn_server(
    folder: Path, make_plan: MakePlan
) -> None:
    state = applied(folder, make_plan(mode="stubborn"))
    service = state.services[0]
    assert service.pid is not None
    assert service.port is not None
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", "infra.supervisor", "stop", "--dir", str(folder)], check=True
        )
    assert not runs(service.pid)
    assert not runs(state.pid)
    assert not health.answers(service.port, "/health")


def test_bad_input_of_a_server_is_its_own_line_with_exit_status_2_and_nothing_runs(
    folder: Path, make_plan: MakePlan
) -> None:
    done = apply(folder, make_plan(mode="bad-input"))
    assert done.returncode == 2
    assert "speculative server: models/none.gguf: no such file" in done.stderr
    assert "Traceback" not in done.stderr
    assert not state_of(folder).alive


def test_a_server_that_always_crashes_is_given_up(folder: Path, make_plan: MakePlan) -> None:
    done = apply(folder, make_plan(mode="crash"))
    assert done.returncode == 2
    assert "exit status 7: boom" in done.stderr
    assert not state_of(folder).alive


def test_a_server_that_never_becomes_healthy_is_given_up(folder: Path, make_plan: MakePlan) -> None:
    done = apply(folder, make_plan(mode="loading", ready_timeout_s=0.3))
    assert done.returncode == 2
    assert "not healthy" in done.stderr


def test_a_taken_port_is_named_with_its_holder(folder: Path, make_plan: MakePlan) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done = apply(folder, make_plan(port=port))
    assert done.returncode == 2
    assert f"port {port} is taken" in done.stderr
    assert f"process {os.getpid()}" in done.stderr
    assert "serving.port" in done.stderr


def test_concurrent_applies_end_with_one_supervisor(folder: Path, make_plan: MakePlan) -> None:
    path = folder.parent / "plan.json"
    path.write_text(make_plan().model_dump_json())
    command = [
        sys.executable, "-m", "infra.supervisor", "apply", "--dir", str(folder), "--plan", str(path)
    ]  # fmt: skip
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    changed = [json.loads(run.communicate(timeout=60)[0])["changed"] for run in runs]
    assert sorted(changed) == [False, False, True]
    supervisors = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(folder) in (process.info["cmdline"] or []) and "serve" in process.info["cmdline"]
    ]
    assert len(supervisors) == 1


@pytest.mark.parametrize("moment_s", [0.0, 0.05, 0.15, 0.4])
def test_an_apply_killed_at_any_moment_can_be_run_again(
    folder: Path, make_plan: MakePlan, moment_s: float
) -> None:
    path = folder.parent / "plan.json"
    path.write_text(make_plan().model_dump_json())
    process = subprocess.Popen(
        [sys.executable, "-m", "infra.supervisor", "apply", "--dir", folder, "--plan", path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.3 + moment_s)
    process.kill()
    process.wait()
    state = applied(folder, make_plan())
    assert state.healthy
