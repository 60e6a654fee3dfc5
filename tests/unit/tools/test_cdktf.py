"""The `cdktf` launcher: what it understands, what it believes, what it asks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from infra.errors import InputError
from infra.files import locked, write_json
from infra.paths import StatePaths
from infra.spec.model import Deployment
from infra.tools import cdktf, node, outcome, terraform

PROJECT = Path(__file__).parents[3]
NODE = node.Node(Path("/opt/a blank/bin"), (22, 20, 0), "PATH")
TERRAFORM = terraform.Terraform(Path("/opt/terraform"), (1, 11), "PATH")


@pytest.fixture
def local() -> Deployment:
    text = (PROJECT / "deployments" / "local.yaml").read_text()
    return Deployment.model_validate(YAML(typ="safe").load(text))


@pytest.mark.parametrize(
    ("line", "command", "stacks"),
    [
        ("deploy chat", "deploy", ("chat",)),
        ("deploy --auto-approve chat local", "deploy", ("chat", "local")),
        ("--app x deploy -o out chat --parallelism 3", "deploy", ("chat",)),
        ("deploy --var a=b chat --outputs-file=x", "deploy", ("chat",)),
        ("diff", "diff", ()),
        ("--version", "", ()),
    ],
)
def test_stacks_are_told_from_options(line: str, command: str, stacks: tuple[str, ...]) -> None:
    call = cdktf.parse(line.split())
    assert (call.command, call.stacks) == (command, stacks)
    assert call.arguments == tuple(line.split())


@pytest.mark.parametrize("command", ["deploy", "destroy"])
def test_a_local_deploy_asks_for_no_approval_and_any_other_does(
    local: Deployment, command: str
) -> None:
    call = cdktf.parse([command, "local"])
    assert cdktf.approve(call, [local]).arguments[-1] == "--auto-approve"
    aws = local.model_copy(update={"site": "aws/us-east-1"})
    assert "--auto-approve" not in cdktf.approve(call, [local, aws]).arguments
    assert "--auto-approve" not in cdktf.approve(cdktf.parse(["diff"]), [local]).arguments


@dataclasses.dataclass
class Case:
    said: str
    cdktf_status: int
    recorded: tuple[str, int] | None
    believed: int


@pytest.mark.parametrize(
    "case",
    [
        Case("a pass", 0, ("smoke", 0), 0),
        Case("a missed SLA", 1, ("smoke", 1), 1),
        Case("an undecided verdict", 1, ("smoke", 3), 3),
        Case("bad input found on the host", 1, ("configure", 2), 2),
        Case("Terraform killed in configure, cdktf says 0", 0, None, 1),
        Case("Terraform killed before smoke, cdktf says 0", 0, ("configure", 0), 1),
        Case("Terraform itself failed", 1, None, 1),
    ],
    ids=lambda case: case.said,
)
def test_a_deploy_is_believed_only_by_what_its_steps_recorded(
    local: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    base = StatePaths(tmp_path, local.stack_key).base
    if case.recorded:
        monkeypatch.setenv(outcome.DEPLOY_ID, "this")
        step, status = case.recorded
        outcome.record(base, step=step, exit_status=status, message="said")
    call = cdktf.parse(["deploy", "local"])
    assert cdktf.verdict(call, tmp_path, [local], case.cdktf_status, "this") == case.believed


def test_the_outcome_of_an_earlier_deploy_is_not_taken_for_this_one(
    local: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(outcome.DEPLOY_ID, "earlier")
    base = StatePaths(tmp_path, local.stack_key).base
    outcome.record(base, step="smoke", exit_status=0, message="said")
    assert cdktf.verdict(cdktf.parse(["deploy"]), tmp_path, [local], 0, "this") == 1


@pytest.mark.parametrize(
    ("resources", "cdktf_status", "believed"), [([], 0, 0), ([{}], 0, 1), ([], 1, 1)]
)
def test_a_destroy_is_believed_only_when_nothing_is_left_in_the_state(
    local: Deployment,
    tmp_path: Path,
    resources: list[dict[str, str]],
    cdktf_status: int,
    believed: int,
) -> None:
    state = {"lineage": "3f6c", "serial": 3, "resources": resources}
    write_json(StatePaths(tmp_path, local.stack_key).terraform_state, state)
    call = cdktf.parse(["destroy", "local"])
    assert cdktf.verdict(call, tmp_path, [local], cdktf_status, "this") == believed


def test_the_report_is_the_last_line(
    local: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(outcome.DEPLOY_ID, "this")
    base = StatePaths(tmp_path, local.stack_key).base
    outcome.record(base, step="smoke", exit_status=0, message="PASS", report="/r/report.html")
    cdktf.verdict(cdktf.parse(["deploy"]), tmp_path, [local], 0, "this")
    assert capsys.readouterr().out == "local: PASS\n/r/report.html\n"


def test_terraform_is_called_by_name_and_waits_for_a_lock_that_is_being_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CLI_ARGS_apply", "-compact-warnings")
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(tmp_path / "missing"))
    env = cdktf.environment(tmp_path, NODE, TERRAFORM)
    assert env["TERRAFORM_BINARY_NAME"] == "specrack-terraform"
    assert env["SPECRACK_TERRAFORM"] == "/opt/terraform"
    assert env["TF_CLI_ARGS_apply"].startswith("-compact-warnings -lock-timeout=20s")
    assert "TF_CLI_CONFIG_FILE" not in env
    assert env["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] == "22"


def test_a_lock_timeout_of_the_users_own_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CLI_ARGS_apply", "-lock-timeout=5m")
    env = cdktf.environment(tmp_path, NODE, TERRAFORM)
    assert "20s" not in env["TF_CLI_ARGS_apply"]


def test_a_second_deploy_at_the_same_time_is_refused_with_the_process_that_holds_it(
    tmp_path: Path,
) -> None:
    with (
        locked(tmp_path / "lock", wait_s=0, what="a deploy"),
        pytest.raises(InputError, match=r"a deploy is already going on .*\(process \d+\)"),
        locked(tmp_path / "lock", wait_s=0.2, what="a deploy"),
    ):
        pass
    with locked(tmp_path / "lock", wait_s=0, what="a deploy"):
        pass


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(InputError, match="cannot write here"):
        write_json(blocker / "state.json", {})
