"""Reports of smoke runs: JSON, JUnit, Markdown, one HTML page, and the terminal."""

from smoke.report.model import SCHEMA, Report
from smoke.report.store import Paths, load, to_json, write_all

__all__ = ["SCHEMA", "Paths", "Report", "load", "to_json", "write_all"]
