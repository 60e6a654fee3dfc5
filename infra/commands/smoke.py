"""``specrack smoke`` and the smoke step of a deploy; ``specrack report``."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.commands import show
from infra.deploy import STEP_WAIT_S, step
from infra.endpoints import Endpoint, wait_for_endpoint
from infra.errors import InputError
from infra.files import locked, read_json, write_json
from infra.paths import StatePaths
from infra.serving.adapters import adapter
from infra.spec.model import Deployment
from infra.tools import outcome

if TYPE_CHECKING:
    import smoke
    from smoke.report.model import ClauseResult

KEPT_REPORTS = 20
#: The measured phase may extend itself up to this long before it is called inconclusive.
MAX_SECONDS = 60.0


def run_smoke(
    deployment: Deployment,
    *,
    root: Path,
    max_seconds: float | None,
    seed: int,
    as_step: bool,
    json_output: bool,
) -> int:
    """Measure, write the reports, say the verdict. Returns the exit status 0, 1 or 3.

    Raises EndpointError when there is nothing to measure.
    """
    # The harness brings an event loop and statistics; other commands do without.
    import smoke
    from smoke import report as reports
    from smoke.progress import for_terminal
    from smoke.report import terminal

    paths = StatePaths(root, deployment.stack_key)
    with one_at_a_time(paths, as_step=as_step):
        endpoint = wait_for_endpoint(deployment, paths)
        options = smoke.Options(
            seed=seed,
            max_seconds=max_seconds or MAX_SECONDS,
            repeat_command=f"specrack smoke {deployment.name} --seed {seed}",
        )
        report = smoke.run(
            target_of(deployment, endpoint),
            deployment.sla,
            deployment.load,
            options,
            adapter(deployment.serving.engine).acceptance,
            for_terminal(quiet=json_output),
        )
        folder = new_report_folder(paths.reports)
        written = reports.write_all(report, folder)
        remember(paths, report, folder)
        if as_step:
            outcome.record(
                paths.base,
                step="smoke",
                exit_status=report.exit_status,
                message=headline(report),
                report=str(written.html),
                table=show.plain(terminal.render(report)),
            )
            # cdktf wraps what a step prints at some 70 columns; the launcher prints the table
            # once more, whole, when all is done.
            for clause in report.clauses:
                print(f"{clause.verdict:<13}{clause_line(clause)}")
        elif json_output:
            print(written.json.read_text(encoding="utf-8"))
        else:
            show.console().print(terminal.render(report))
            print(written.html)
        sys.stdout.flush()
        return report.exit_status


def headline(report: smoke.Report) -> str:
    """The verdict in a line that names the clauses behind it, measured, bound and limit."""
    if report.verdict == "pass":
        return f"PASS: {report.summary}"
    behind = [clause for clause in report.clauses if clause.verdict == report.verdict]
    return f"{report.verdict.upper()}: " + "; ".join(clause_line(clause) for clause in behind)


def clause_line(clause: ClauseResult) -> str:
    """``ttft_p95_ms 41 ms (95%: 38 .. 45), limit <= 400 ms``."""
    from smoke.report import text

    bounds = text.bounds_of(clause)
    shown = f" ({bounds})" if bounds in ("exact", "-") else f" (95%: {bounds})"
    return f"{clause.name} {text.measured_of(clause)}{shown}, limit {text.limit_of(clause)}"


def one_at_a_time(paths: StatePaths, *, as_step: bool) -> contextlib.AbstractContextManager[None]:
    """Two runs at once would measure each other."""
    if as_step:
        return step(paths.base, "smoke")
    return locked(paths.base / "step.lock", wait_s=STEP_WAIT_S, what="a configure or smoke step")


def target_of(deployment: Deployment, endpoint: Endpoint) -> smoke.Target:
    """The endpoint in the harness's own words."""
    import smoke

    return smoke.Target(
        url=endpoint.url,
        model=deployment.name,
        engine=deployment.serving.engine,
        baseline_url=endpoint.baseline_url,
        metrics_url=endpoint.metrics_url,
        baseline_metrics_url=endpoint.baseline_metrics_url,
        name=deployment.name,
    )


def new_report_folder(parent: Path) -> Path:
    """A folder for this run; the oldest ones go."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = parent / f"{stamp}-{os.getpid()}"
    if parent.is_dir():
        for old in sorted(path for path in parent.iterdir() if path.is_dir())[: -KEPT_REPORTS + 1]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def remember(paths: StatePaths, report: Any, folder: Path) -> None:
    """What ``specrack status`` tells of the last run."""
    write_json(
        paths.last_smoke,
        {
            "at": datetime.now(UTC).isoformat(),
            "verdict": report.verdict,
            "summary": report.summary,
            "exit_status": report.exit_status,
            "folder": str(folder),
        },
    )


def last_report(deployment: Deployment, *, root: Path) -> tuple[Any, Path]:
    """The last report and its folder. Raises InputError when there is none."""
    from smoke import report as reports

    paths = StatePaths(root, deployment.stack_key)
    last = read_json(paths.last_smoke)
    folder = Path(last["folder"]) if isinstance(last, dict) and "folder" in last else None
    if folder is None or not (folder / "report.json").is_file():
        raise InputError(
            f"no smoke run of {deployment.name} yet", do=f"run: specrack smoke {deployment.name}"
        )
    return reports.load(folder / "report.json"), folder
