"""What `python -m stacks` synthesizes, with both CDK packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from infra.tools import node

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the shipped deployments, in a folder with a blank in its name."""
    root = tmp_path / "a blank"
    root.mkdir()
    for name in ("playbooks", "models", "cdktf.json"):
        (root / name).symlink_to(PROJECT / name)
    shutil.copytree(PROJECT / "deployments", root / "deployments")
    return root


def synth(root: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SPECRACK_")}
    return subprocess.run(
        [sys.executable, "-m", "stacks"],
        cwd=root,
        env=node.quiet(clean, node.find()) | env,
        capture_output=True,
        text=True,
        check=False,
    )


def without_metadata(value: Any) -> Any:
    """Terraform JSON without the CDK's own notes (``//``)."""
    if isinstance(value, dict):
        return {key: without_metadata(inner) for key, inner in value.items() if key != "//"}
    if isinstance(value, list):
        return [without_metadata(inner) for inner in value]
    return value


def synthesized(root: Path, name: str) -> Any:
    path = root / "cdktf.out" / "stacks" / name / "cdk.tf.json"
    return without_metadata(json.loads(path.read_text()))


def test_the_local_stack_is_the_deploy_graph(project: Path, snapshot: SnapshotAssertion) -> None:
    done = synth(project, SPECRACK_DEPLOYMENTS="local")
    assert done.returncode == 0, done.stderr
    stack = synthesized(project, "local")
    trigger = stack["resource"]["terraform_data"]["configure"]["triggers_replace"]["content"]
    # The hash is over the playbooks and this machine's thread count: not for a snapshot.
    text = json.dumps(stack, indent=2, sort_keys=True)
    assert text.replace(str(project), "<root>").replace(trigger, "<trigger>") == snapshot


def test_cdktf_and_cdktn_synthesize_the_same_terraform(project: Path) -> None:
    found = {}
    for engine in ("cdktf", "cdktn"):
        done = synth(project, SPECRACK_CDK=engine)
        assert done.returncode == 0, done.stderr
        stacks = sorted(path.name for path in (project / "cdktf.out" / "stacks").iterdir())
        assert stacks == sorted(path.stem for path in (project / "deployments").glob("*.yaml"))
        found[engine] = {name: synthesized(project, name) for name in stacks}
    assert found["cdktf"] == found["cdktn"]


def test_only_the_named_deployments_are_synthesized(project: Path) -> None:
    assert synth(project, SPECRACK_DEPLOYMENTS="local").returncode == 0
    assert [path.name for path in (project / "cdktf.out" / "stacks").iterdir()] == ["local"]


def test_a_faulty_file_is_reported_and_nothing_is_synthesized(project: Path) -> None:
    path = project / "deployments" / "local.yaml"
    path.write_text(path.read_text().replace("ttft_p95_ms:", "ttft_p95:"))
    done = synth(project)
    assert done.returncode == 2
    assert "sla.ttft_p95: unknown key, did you mean ttft_p95_ms?" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "cdktf.out").exists()


def test_an_unknown_cdk_package_is_one_line(project: Path) -> None:
    done = synth(project, SPECRACK_CDK="cdk8s")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "specrack: SPECRACK_CDK=cdk8s: unknown (use one of cdktf, cdktn)"
    )


def test_the_trigger_changes_with_playbooks_and_plan_and_with_nothing_else(project: Path) -> None:
    def trigger() -> str:
        assert synth(project, SPECRACK_DEPLOYMENTS="local").returncode == 0
        stack = synthesized(project, "local")
        return str(stack["resource"]["terraform_data"]["configure"]["triggers_replace"]["content"])

    first = trigger()
    assert trigger() == first
    deployment = project / "deployments" / "local.yaml"
    text = deployment.read_text()
    deployment.write_text(text.replace("ttft_p95_ms: 1000", "ttft_p95_ms: 1001"))
    assert trigger() == first, "an SLA is no reason to configure again"
    deployment.write_text(text.replace("draft_tokens: 4", "draft_tokens: 3"))
    changed = trigger()
    assert changed != first
    (project / "playbooks").unlink()
    shutil.copytree(PROJECT / "playbooks", project / "playbooks")
    (project / "playbooks" / "site.yml").write_text("# changed\n")
    assert trigger() not in (first, changed)


def test_a_stale_backend_pointer_is_dropped_and_a_good_one_kept(project: Path) -> None:
    folder = project / "cdktf.out" / "stacks" / "local" / ".terraform"
    folder.mkdir(parents=True)
    pointer = folder / "terraform.tfstate"
    good = project / ".specrack" / "local-local" / "terraform.tfstate"
    pointer.write_text(
        json.dumps({"backend": {"type": "local", "config": {"path": str(good)}}}, indent=2)
    )
    assert synth(project, SPECRACK_DEPLOYMENTS="local").returncode == 0
    assert pointer.exists()
    pointer.write_text(
        json.dumps({"backend": {"type": "local", "config": {"path": "/elsewhere"}}}, indent=2)
    )
    assert synth(project, SPECRACK_DEPLOYMENTS="local").returncode == 0
    assert not pointer.exists()
