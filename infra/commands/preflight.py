"""The preflight of ``specrack plan``: asking, and its table for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from infra.aws.need import Pinned
    from infra.aws.rows import Report, Row
    from infra.spec.model import Deployment

_STYLE = {"ok": "green", "warn": "yellow", "no": "bold red", "unknown": "bold yellow"}
_SHOWN = {"skipped": "-"}


def report_for(
    deployment: Deployment, *, offline: bool, pinned: Pinned | None = None, surge: int = 0
) -> Report | None:
    """The preflight of a deployment; None where there is no account to ask (site not AWS).

    ``offline``: only what needs no account. ``surge``: machines that come beside the others during
    an upgrade. Raises InputError and UnsupportedError for a fleet that cannot be.
    """
    if not deployment.site.startswith("aws/"):
        return None
    from infra.aws.need import need_of
    from infra.fleet import resolve

    need = need_of(deployment, resolve(deployment), pinned=pinned, surge=surge)
    if offline:
        from infra.aws.offline import report

        return report(need)
    from infra.aws.preflight import run

    return run(need)


def render(report: Report, console: Console) -> None:
    """Print the table and its verdict."""
    console.print(Group(table(report), Text(), summary(report)))


def table(report: Report) -> Table:
    """A row a subject: verdict, what was found, and below it what to do."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    made.add_column("preflight", no_wrap=True)
    made.add_column("verdict", no_wrap=True)
    made.add_column("found, and what to do", overflow="fold", ratio=1)
    for row in report.rows:
        made.add_row(
            row.subject,
            Text(_SHOWN.get(row.verdict, row.verdict), style=_STYLE.get(row.verdict, "")),
            _found(row),
        )
    return made


def _found(row: Row) -> Text:
    text = Text(row.found, style="dim" if row.verdict == "skipped" else "")
    if row.remedy:
        text.append(f"\ndo: {row.remedy}", style="bold" if row.verdict == "no" else "")
    return text


def summary(report: Report) -> Text:
    """The verdict over all, one line."""
    if report.refused:
        names = ", ".join(row.subject for row in report.refused)
        return Text(f"preflight: refused ({names}); nothing was started", style="bold red")
    if report.undecided:
        names = ", ".join(row.subject for row in report.undecided)
        return Text(f"preflight: undecided ({names})", style="bold yellow")
    if not report.online:
        return Text("preflight: good as far as it goes without an account")
    return Text("preflight: good", style="green")
