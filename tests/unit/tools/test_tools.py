"""Finding Node and Terraform, and what is said when they are missing or too old."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.errors import ToolError
from infra.serving import openmp
from infra.tools import node, outcome, setup, terraform, versions


def fake(folder: Path, name: str, prints: str, *, status: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{prints}'\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v20.11.1", (20, 11, 1)),
        ("Terraform v1.11.4\non linux_amd64", (1, 11, 4)),
        ("OpenTofu v1.9.0-beta2", (1, 9, 0)),
        ("no number here", None),
    ],
)
def test_versions_are_read_as_programs_print_them(
    text: str, version: versions.Version | None
) -> None:
    assert versions.parse(text) == version


@given(st.lists(st.integers(0, 999), min_size=2, max_size=4).map(tuple))
def test_a_shown_version_is_read_back(version: versions.Version) -> None:
    assert versions.parse(versions.show(version)) == version


def test_terraform_from_path_is_taken_when_new_enough(tmp_path: Path) -> None:
    program = fake(tmp_path / "a blank", "terraform", "Terraform v1.6.0")
    found = terraform.find(path=str(program.parent))
    assert found.path == program
    assert found.version == (1, 6, 0)


def test_opentofu_stands_in_for_a_terraform_that_is_too_old(tmp_path: Path) -> None:
    fake(tmp_path, "terraform", "Terraform v1.5.7")
    program = fake(tmp_path, "tofu", "OpenTofu v1.8.2")
    assert terraform.find(path=str(tmp_path)).path == program


def test_an_old_terraform_alone_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake(tmp_path, "terraform", "Terraform v1.5.7")
    monkeypatch.setattr(terraform, "library", lambda: None)
    with pytest.raises(ToolError) as error:
        terraform.find(path=str(tmp_path))
    assert f"{program} is 1.5.7" in str(error.value)
    assert "make setup" in str(error.value)
    assert error.value.exit_status == 2


@pytest.mark.parametrize(
    ("prints", "status", "said"),
    [("Terraform v1.5.7", 0, "too old: 1.5.7"), ("", 3, "does not run")],
)
def test_a_useless_override_is_refused_by_name(
    tmp_path: Path, prints: str, status: int, said: str
) -> None:
    program = fake(tmp_path, "terraform", prints, status=status)
    with pytest.raises(ToolError, match="SPECRACK_TERRAFORM=") as error:
        terraform.find(override=str(program))
    assert said in str(error.value)


def test_an_override_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no such program"):
        terraform.find(override=str(tmp_path / "nothing"))


def test_a_missing_node_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "from_wheel", lambda: None)
    with pytest.raises(ToolError) as error:
        node.find(path=str(tmp_path))
    assert str(error.value).startswith("Node.js >= 20.9 not found: no node on PATH")
    assert "\n" not in str(error.value)


def test_an_old_node_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, "node", "v18.19.0")
    monkeypatch.setattr(node, "from_wheel", lambda: None)
    with pytest.raises(ToolError, match=r"is 18\.19\.0"):
        node.find(path=str(program.parent))


def test_setup_asks_for_packages_in_place_of_what_path_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(terraform.OVERRIDE, raising=False)
    monkeypatch.setattr(openmp, "system_has_it", lambda: True)
    assert setup.missing_locks() == ["requirements-node.lock", "requirements-terraform.lock"]
    fake(tmp_path, "tofu", "OpenTofu v1.8.2")
    fake(tmp_path, "node", "v22.20.0")
    # Debian's package of Node has no npm: it would not do.
    assert setup.missing_locks() == ["requirements-node.lock"]
    fake(tmp_path, "npm", "10")
    assert setup.missing_locks() == []
    monkeypatch.setattr(openmp, "system_has_it", lambda: False)
    assert setup.missing_locks() == ["requirements-openmp.lock"]


def test_locks_exist_and_hold_the_versions_that_messages_name() -> None:
    root = Path(__file__).parents[3]
    assert node.WHEEL in (root / "requirements-node.lock").read_text()
    assert terraform.WHEEL in (root / "requirements-terraform.lock").read_text()


def test_shims_run_their_module_from_a_path_with_a_blank(tmp_path: Path) -> None:
    folder = tmp_path / "a blank" / "bin"
    folder.mkdir(parents=True)
    setup.write_shims(folder)
    fake(folder, "python", "called")
    done = subprocess.run(
        ["cdktf", "deploy"],
        env={"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "called\n"


def test_the_launcher_becomes_terraform_and_passes_arguments(tmp_path: Path) -> None:
    program = tmp_path / "terraform"
    program.write_text('#!/bin/sh\necho "$@"\nexit 5\n')
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "infra.tools.terraform", "apply", "-x=a b"],
        env={**os.environ, terraform.OVERRIDE: str(program)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("apply -x=a b\n", 5)


def test_an_outcome_is_read_back_by_its_own_deploy_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(outcome.DEPLOY_ID, "one")
    outcome.record(tmp_path, step="smoke", exit_status=3, message="inconclusive", report="r.html")
    found = outcome.read(tmp_path, "one")
    assert found is not None
    assert (found.exit_status, found.report) == (3, "r.html")
    assert outcome.read(tmp_path, "two") is None


def test_a_damaged_outcome_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / outcome.FILE).write_text('{"deploy_id": "one"')
    assert outcome.read(tmp_path, "one") is None
