"""JUnit XML: one test case a clause, for CI systems."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from smoke.report.model import ClauseResult, Report
from smoke.report.text import bounds_of, limit_of, measured_of

# Everything outside XML 1.0's Char production, which no escape can carry.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """The report as JUnit XML. An inconclusive clause is an error, so that CI does not pass."""
    clauses = report.clauses
    suite = ET.Element(
        "testsuite",
        name=_legal(f"specrack smoke {report.name}"),
        tests=str(len(clauses)),
        failures=str(sum(one.verdict == "fail" for one in clauses)),
        errors=str(sum(one.verdict == "inconclusive" for one in clauses)),
        skipped="0",
        time=f"{(report.ended_at - report.started_at).total_seconds():.3f}",
        timestamp=report.started_at.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    for clause in clauses:
        _case(suite, report, clause)
    output = ET.SubElement(suite, "system-out")
    output.text = _legal("\n".join([report.summary, *report.warnings, *report.notes]))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _case(suite: ET.Element, report: Report, clause: ClauseResult) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_legal(f"smoke.{report.name}"),
        name=_legal(clause.name),
        time="0",
    )
    if clause.verdict == "pass":
        return
    tag = "failure" if clause.verdict == "fail" else "error"
    problem = ET.SubElement(case, tag, type=clause.verdict, message=_legal(clause.reason))
    problem.text = _legal(
        f"limit {limit_of(clause)}, measured {measured_of(clause)}, "
        f"95% bounds {bounds_of(clause)}, n {clause.n}"
    )


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
