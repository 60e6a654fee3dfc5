"""`cdktf deploy local` and what a user does next: real Terraform, Ansible, engine, load."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from infra.supervisor.state import SupervisorState, read_state
from tests.e2e.conftest import Project

pytestmark = pytest.mark.e2e


def state_of(project: Project, stack_key: str = "local-local") -> SupervisorState:
    state = read_state(project.root / ".specrack" / stack_key / "run")
    assert state is not None
    return state


def last_report(project: Project) -> dict[str, Any]:
    last = json.loads((project.root / ".specrack/local-local/last-smoke.json").read_text())
    report: dict[str, Any] = json.loads((Path(last["folder"]) / "report.json").read_text())
    return report


def test_deploy_passes_and_its_last_line_is_the_path_of_the_report(project: Project) -> None:
    done = project.decide("cdktf", "deploy", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.strip().splitlines()
    assert lines[-2].startswith("local: PASS")
    assert lines[-1].endswith("report.html")
    assert Path(lines[-1]).is_file()
    for name in ("report.json", "report.md", "junit.xml"):
        assert (Path(lines[-1]).parent / name).is_file()
    state = state_of(project)
    assert state.healthy
    assert [service.role for service in state.services] == ["speculative", "baseline"]


def test_a_second_deploy_touches_only_the_smoke_step(project: Project) -> None:
    before = [service.pid for service in state_of(project).services]
    done = project.decide("cdktf", "deploy", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 to add, 0 to change, 1 to destroy" in done.stdout
    assert [service.pid for service in state_of(project).services] == before


def test_the_verdict_can_be_asked_for_again_without_a_deploy(project: Project) -> None:
    done = project.decide("specrack", "smoke", "local", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["verdict"] == "pass"


def test_status_says_what_runs_and_how_it_did(project: Project) -> None:
    done = project.run("specrack", "status", "local", "--json")
    assert done.returncode == 0, done.stderr
    (status,) = json.loads(done.stdout)["deployments"]
    assert status["condition"] == "healthy"
    assert status["deployed"] is True
    assert status["last_smoke"]["verdict"] == "pass"
    table = project.run("specrack", "status", "local").stdout
    assert "speculative" in table
    assert "healthy" in table


def test_a_missed_sla_fails_the_deploy_names_clause_and_bound_and_leaves_the_server_up(
    project: Project,
) -> None:
    before = state_of(project).services[0].pid
    project.edit("local", "ttft_p95_ms: 1000", "ttft_p95_ms: 0.01")
    try:
        done = project.decide("cdktf", "deploy", "local")
    finally:
        project.edit("local", "ttft_p95_ms: 0.01", "ttft_p95_ms: 1000")
    assert done.returncode == 1
    lines = done.stdout.strip().splitlines()
    assert lines[-2].startswith("local: FAIL")
    assert "ttft_p95_ms" in lines[-2]
    assert "0.01" in lines[-2]
    assert lines[-1].endswith("report.html")
    state = state_of(project)
    assert state.healthy
    assert state.services[0].pid == before
    again = project.decide("cdktf", "deploy", "local")
    assert again.returncode == 0, again.stdout


def test_a_killed_server_is_back_within_five_seconds_and_status_tells(project: Project) -> None:
    service = state_of(project).services[0]
    assert service.pid is not None
    os.kill(service.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while not (state_of(project).healthy and state_of(project).services[0].restarts > 0):
        assert time.monotonic() < deadline, "not back after 5 s"
        time.sleep(0.05)
    assert state_of(project).services[0].port == service.port
    told = project.run("specrack", "status", "local", "--json")
    (status,) = json.loads(told.stdout)["deployments"]
    assert status["services"][0]["restarts"] == 1
    assert "SIGKILL" in status["services"][0]["last_restart"]["reason"]


def test_a_deploy_after_a_reboot_brings_the_servers_back(project: Project) -> None:
    os.kill(state_of(project).pid, signal.SIGKILL)
    done = project.decide("cdktf", "deploy", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert state_of(project).healthy


def test_a_draft_that_collapses_is_caught_with_the_reason(project: Project) -> None:
    project.edit("local", "draft_tokens: 4}", "draft_tokens: 4, synthetic_acceptance_length: 1.05}")
    try:
        done = project.decide("cdktf", "deploy", "local")
    finally:
        project.edit(
            "local", "draft_tokens: 4, synthetic_acceptance_length: 1.05}", "draft_tokens: 4}"
        )
    assert done.returncode == 1, done.stdout
    assert "mean_acceptance_length_min" in done.stdout
    clauses = {clause["name"]: clause for clause in last_report(project)["clauses"]}
    assert clauses["speculation.mean_acceptance_length_min"]["verdict"] == "fail"


def test_a_taken_port_is_one_line_and_exit_status_2(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        project.edit("local", "engine: llamacpp", f"engine: llamacpp\n  port: {port}")
        try:
            done = project.decide("cdktf", "deploy", "local")
        finally:
            project.edit("local", f"engine: llamacpp\n  port: {port}", "engine: llamacpp")
    assert done.returncode == 2, done.stdout
    assert f"port {port} is taken" in done.stdout.strip().splitlines()[-1]
    assert "Traceback" not in done.stdout + done.stderr


def test_destroy_leaves_no_process_and_no_port(project: Project) -> None:
    assert project.decide("cdktf", "deploy", "local").returncode == 0
    ports = [service.port for service in state_of(project).services]
    done = project.run("cdktf", "destroy", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.processes() == []
    for port in ports:
        assert port is not None
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
    twice = project.run("cdktf", "destroy", "local")
    assert twice.returncode == 0, twice.stdout + twice.stderr
    allowed = {
        ".specrack", "cdktf.out", "node_modules", "playbooks", "models", "cdktf.json", "deployments"
    }  # fmt: skip
    assert {path.name for path in project.root.iterdir()} <= allowed
