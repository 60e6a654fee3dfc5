"""Reports: whole, escaped, readable by machines, and the same when read back."""

from __future__ import annotations

import json
import math
import re
import shlex
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from infra.errors import InputError
from infra.serving.acceptance import AcceptanceRecord
from infra.spec.model import Load, Sla, SpeculationSla
from smoke import report as reports
from smoke import speculation
from smoke.lateness import lateness_of
from smoke.measured import Measured
from smoke.options import Options, Target
from smoke.outcome import Outcome
from smoke.preflight import Served
from smoke.report import html, junit, markdown, svg, terminal
from smoke.report.build import build
from smoke.report.text import number, printable
from smoke.sample import Sample
from tests.unit.smoke.samples import sample

#: What a hostile endpoint may put wherever it is quoted.
HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\ud800\u202e|`*[x](http://evil)&amp;\"'\n# @all"


def measured(*, hostile: str = "text", samples: list[Sample] | None = None) -> Measured:
    """A run with something in every part of the report."""
    found = Measured(
        target=Target(url="http://host:8000", baseline_url="http://host:8001", name="chat"),
        sla=Sla(
            ttft_p95_ms=400,
            tpot_p95_ms=40,
            e2e_p95_ms=1500,
            error_rate_max=0.02,
            speculation=SpeculationSla(
                speedup_min=0.3, mean_acceptance_length_min=2.0, output="identical"
            ),
        ),
        load=Load(sessions=8, prompt_tokens=64, output_tokens=10, think_s=0.5),
        options=Options(),
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        served=Served(model=hostile, engine="llamacpp", server=hostile),
    )
    found.ended_at = datetime(2026, 1, 2, 3, 4, 25, tzinfo=UTC)
    found.rate_rps, found.service_time_s = 15.0, 0.03
    if samples is None:
        samples = [
            sample(n, ttft_ms=20 + n % 40, e2e_ms=90 + n % 60, at_ms=66.0 * n) for n in range(160)
        ]
        samples[7] = sample(7, outcome=Outcome.HTTP_5XX, message=hostile, at_ms=66.0 * 7)
    found.main, found.scheduled, found.looks = samples, len(samples), 2
    found.start_ns = samples[0].intended_ns if samples else 0
    found.lateness = lateness_of([0.2, 0.3], [100_000, 300_000])
    found.reading = speculation.Reading(AcceptanceRecord(900, 3600, 1500, (700, 400, 250, 150)))
    found.load_ab = speculation.compare_load(
        samples, [sample(n, e2e_ms=70) for n in range(60)], scheduled=60, seed=1
    )
    found.outputs = speculation.compare_outputs(
        [(sample(0, text=hostile), sample(0, text=hostile + "x")), (sample(1), sample(1))]
    )
    found.notes.append(hostile)
    found.phases.append(("load", 10.0))
    return found


def empty() -> Measured:
    """A run in which nothing succeeded and nothing was compared."""
    bad = [sample(n, outcome=Outcome.CONNECT_REFUSED, message="no") for n in range(5)]
    found = measured(samples=bad)
    found.reading = speculation.Reading(None, "no metrics")
    found.load_ab = found.outputs = None
    return found


def test_json_reads_back_equal() -> None:
    for found in (measured(), measured(hostile=HOSTILE), empty()):
        report = build(found)
        text = reports.to_json(report)
        assert json.loads(text)["schema"] == "specrack.smoke/1"
        assert reports.Report.model_validate_json(text) == report


def test_latencies_without_an_end_are_written_as_infinity() -> None:
    report = build(empty())
    clause = json.loads(reports.to_json(report))["clauses"][0]
    assert clause["measured"] == "infinity"
    assert report.verdict == "fail"
    assert report.exit_status == 1


def test_write_all_writes_four_whole_files_and_load_reads_them(tmp_path: Path) -> None:
    report = build(measured(hostile=HOSTILE))
    folder = tmp_path / "a" / "b c"
    paths = reports.write_all(report, folder)
    assert {path.name for path in folder.iterdir()} == {
        "report.json", "junit.xml", "report.md", "report.html",
    }  # fmt: skip
    assert reports.load(paths.json) == report
    # Once more over the old ones.
    reports.write_all(report, folder)
    assert len(list(folder.iterdir())) == 4


def test_a_directory_that_can_not_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        reports.write_all(build(measured()), tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no schema"),
        (b'{"schema": "specrack.smoke/9"}', "specrack.smoke/9"),
        (b'{"schema": "specrack.smoke/1"}', "damaged smoke report: name"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        reports.load(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_report_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        reports.load(tmp_path / "none.json")


def test_junit_has_a_case_a_clause_and_parses() -> None:
    report = build(measured(hostile=HOSTILE))
    root = ET.fromstring(junit.render(report))
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [clause.name for clause in report.clauses]
    failing = {case.get("name") for case in cases if case.find("failure") is not None}
    assert failing == {one.name for one in report.clauses if one.verdict == "fail"}
    undecided = {case.get("name") for case in cases if case.find("error") is not None}
    assert undecided == {one.name for one in report.clauses if one.verdict == "inconclusive"}
    assert suite.get("failures") == str(len(failing))
    assert suite.get("errors") == str(len(undecided))
    assert failing
    assert undecided


class _Page(HTMLParser):
    """Collects tags, attributes and text; knows which tags must be closed."""

    VOID = frozenset({"meta", "br", "rect", "circle", "path"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def page_of(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("hostile", ["plain", HOSTILE])
def test_the_page_is_well_formed_self_contained_and_runs_nothing(hostile: str) -> None:
    text = html.render(build(measured(hostile=hostile)))
    page = page_of(text)
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "href"]
    assert "url(" not in text
    assert "@import" not in text
    text.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)


def test_hostile_words_are_shown_as_they_are_spelled() -> None:
    page = page_of(html.render(build(measured(hostile=HOSTILE))))
    assert "<script>alert(1)</script>\\x1b[31m\\x00\\ud800\\u202e" in page.words


def test_the_page_has_every_part() -> None:
    page = page_of(html.render(build(measured())))
    assert page.tags.count("svg") == 6
    for words in (
        "FAIL", "ttft_p95_ms", "The SLA, clause by clause", "Acceptance per position",
        "Speed-up under this load", "Outputs compared", "Errors", "http_5xx",
        "Can the measurement be trusted?", "python -m smoke --url http://host:8000",
        "2026-01-02 03:04:05 UTC",
    ):  # fmt: skip
        assert words in page.words


def test_a_run_in_which_nothing_worked_has_a_page_too() -> None:
    page = page_of(html.render(build(empty())))
    assert "No request succeeded." in page.words
    assert "connect_refused" in page.words


def test_markdown_holds_no_markup_of_the_endpoint() -> None:
    text = markdown.render(build(measured(hostile=HOSTILE)))
    assert "<script" not in text.replace("\\<script", "")
    assert not re.search(r"(?<!\\)\[x\]", text)
    assert "@all" not in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    clauses = [re.split(r"(?<!\\)\|", line) for line in table[: len(build(measured()).clauses) + 1]]
    assert {len(cells) for cells in clauses} == {9}


@pytest.mark.parametrize("make", [measured, empty])
def test_the_terminal_report_fits_100_columns_without_control_characters(make: object) -> None:
    found = measured(hostile=HOSTILE) if make is measured else empty()
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    with console.file:
        console.print(terminal.render(build(found)))
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "FAIL" in text
    assert "mean_acceptance_length_min" in text


def test_the_command_repeats_the_run_and_quotes_what_needs_it() -> None:
    found = measured()
    found.target = Target(url="http://host:8000", name="it's a name")
    words = shlex.split(build(found).environment.repeat_command)
    assert words[:5] == ["python", "-m", "smoke", "--url", "http://host:8000"]
    assert words[words.index("--name") + 1] == "it's a name"
    assert words[words.index("--sla-ttft-p95-ms") + 1] == "400"
    assert words[words.index("--sla-output") + 1] == "identical"


def test_a_command_given_by_the_caller_is_taken() -> None:
    found = measured()
    found.options = Options(repeat_command="specrack smoke chat")
    assert build(found).environment.repeat_command == "specrack smoke chat"


def test_goodput_counts_requests_that_met_all_limits_together() -> None:
    samples = [sample(n, ttft_ms=500 if n < 40 else 10, at_ms=100.0 * n) for n in range(100)]
    report = build(measured(samples=samples))
    assert report.results.goodput_per_s == pytest.approx(0.6 * report.results.requests_per_s)


def test_token_counts_that_are_guesses_are_warned_of() -> None:
    samples = [sample(n, count_source="chunks") for n in range(100)]
    report = build(measured(samples=samples))
    assert report.results.token_counts_from == "chunks"
    assert any("chunks were counted" in warning for warning in report.warnings)


def test_short_outputs_are_warned_of() -> None:
    samples = [sample(n, tokens=5) for n in range(100)]
    assert any("5 tokens on average" in one for one in build(measured(samples=samples)).warnings)


@given(st.text())
def test_printable_text_is_one_line_that_any_encoder_takes(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown, limit=10_000) == shown
    shown.encode()


@given(st.text(st.characters(), max_size=60))
def test_no_text_breaks_a_form(text: str) -> None:
    report = build(measured(hostile=text, samples=[sample(0, outcome=Outcome.RESET, message=text)]))
    page_of(html.render(report))
    ET.fromstring(junit.render(report))
    markdown.render(report).encode()
    assert reports.Report.model_validate_json(reports.to_json(report)) == report


@given(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_axes_keep_their_values_inside_and_have_ticks(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b) * 1.5
    for axis in (svg.Axis(0, high, 10, 90), svg.Axis(low, high, 10, 90, log=True)):
        assert 10 <= axis.at(a) <= 90
        assert len(axis.ticks()) < 100
        assert all(10 <= axis.at(tick) <= 90 for tick in axis.ticks())


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=50), st.floats(1e-4, 1e6))
def test_plots_hold_only_finite_coordinates(values: list[float], limit: float) -> None:
    drawn = svg.cdf(
        values, total=len(values) + 1, title="T", limit=limit, p95=(None, values[0], None)
    )
    drawn += svg.timeline([(float(n), v) for n, v in enumerate(values)], limit=limit, title="T")
    drawn += svg.bars([min(1.0, v / 1e5) for v in values], title="T")
    drawn += svg.interval(values[0] + 0.1, None, limit, limit=limit, title="T")
    ET.fromstring(f"<x>{drawn}</x>")
    assert "nan" not in drawn
    assert "inf" not in drawn


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), ("infinity", "∞"), (0.0, "0"), (12.3456, "12.3"), (999.96, "1000"),
     (1234.5, "1,234"), (0.000123456, "0.000123"), (40, "40")],
)  # fmt: skip
def test_figures_are_written_with_three_digits(value: object, shown: str) -> None:
    assert number(value) == shown  # type: ignore[arg-type]


def test_bounds_without_an_end_are_finite_in_no_form() -> None:
    report = build(empty())
    assert all(clause.measured != math.inf for clause in report.clauses)
    assert "∞" in html.render(report)
