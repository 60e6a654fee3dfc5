"""``python -m smoke``: exit statuses, clear lines, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from smoke import cli
from tests.unit.smoke import mock_server as mock
from tests.unit.smoke.mock_server import MockServer

QUICK = ["--rate-rps", "150", "--min-requests", "60", "--max-seconds", "3", "--output-tokens", "3",
         "--sessions", "2", "--sla-error-rate-max", "0.2"]  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status = cli.main(arguments)
    except SystemExit as ended:  # argparse's own way out
        status = int(ended.code or 0)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
    return status, captured.out, captured.err


def test_a_pass_exits_0_with_a_table_and_the_path_of_the_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with MockServer() as server:
        status, out, err = run(
            capsys, "--url", server.url, "--sla-e2e-p95-ms", "9000", *QUICK, "--out", str(tmp_path)
        )
    assert status == 0
    assert "PASS" in out
    assert out.splitlines()[-1] == f"report: {tmp_path / 'report.html'}"
    assert "Measuring under load" in err


def test_a_fail_exits_1_and_json_is_all_that_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with MockServer(lambda asked: [0.1, *mock.good(asked)]) as server:
        status, out, _ = run(
            capsys, "--url", server.url, "--sla-ttft-p95-ms", "0.001", *QUICK, "--json"
        )
    assert status == 1
    assert json.loads(out)["verdict"] == "fail"


def test_an_endpoint_that_is_down_exits_3_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with MockServer() as server:
        pass
    status, out, err = run(capsys, "--url", server.url, "--sla-ttft-p95-ms", "100")
    assert (status, out) == (3, "")
    assert err.splitlines()[-1].startswith("error: endpoint http://127.0.0.1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--url"),
        (["--url", "http://h"], "--sla-ttft-p95-ms"),
        (["--url", "http://h", "--sla-ttft-p95-ms", "-4"], "--sla-ttft-p95-ms"),
        (["--url", "http://h", "--sla-ttft-p95-ms", "x"], "--sla-ttft-p95-ms"),
        (["--url", "http://h", "--sla-ttft-p95-ms", "nan"], "--sla-ttft-p95-ms"),
        (["--url", "http://h", "--sla-ttft-p95-ms", "4", "--sessions", "0"], "--sessions"),
        (["--url", "http://h", "--sla-ttft-p95-ms", "4", "--max-seconds", "0"], "max_seconds"),
        (["--url", "nonsense", "--sla-ttft-p95-ms", "4"], "http://"),
        (["--url", "http://u:p@h", "--sla-ttft-p95-ms", "4"], "SPECRACK_API_KEY"),
        (["--url", "http://127.0.0.1:1", "--sla-ttft-p95-ms", "4", "--prompts", "/no/file"],
         "/no/file"),
    ],
)  # fmt: skip
def test_bad_input_exits_2_with_a_clear_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_a_fault_of_ours_is_a_sentence_and_exits_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("smoke.run", broken)
    status, _, err = run(capsys, "--url", "http://h", "--sla-ttft-p95-ms", "4")
    assert status == 3
    assert "error: the harness failed: ZeroDivisionError: by zero" in err


def test_help_has_examples() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "smoke", "--help"], capture_output=True, text=True, check=True
    )
    assert "examples:" in done.stdout
    assert "exit status: 0" in done.stdout
