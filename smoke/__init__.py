"""Specrack's smoke harness: is the endpoint as fast as promised, and how sure are we?

report = smoke.run(Target(url=...), sla, load, Options(), acceptance_reader)
smoke.report.write_all(report, Path("out"))
sys.exit(report.exit_status)
"""

from smoke import report
from smoke.api import run
from smoke.options import Options, Target
from smoke.preflight import AcceptanceReader
from smoke.progress import Progress, silent
from smoke.report.model import Report
from smoke.transport import Timeouts

__all__ = [
    "AcceptanceReader",
    "Options",
    "Progress",
    "Report",
    "Target",
    "Timeouts",
    "report",
    "run",
    "silent",
]
