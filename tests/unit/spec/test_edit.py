"""Changing one key leaves the rest of the file alone."""

from __future__ import annotations

import os
import stat
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.errors import DeploymentError, InputError
from infra.spec import edit
from infra.spec.edit import set_value
from infra.spec.loader import load
from infra.spec.model import Deployment
from tests.unit.spec.projects import GOOD, project, replaced


def chat(root: Path, content: str | bytes = GOOD) -> Path:
    return project(root, chat=content) / "deployments" / "chat.yaml"


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("sla.ttft_p95_ms", 350, "ttft_p95_ms: 400", "ttft_p95_ms: 350"),
        ("sla.ttft_p95_ms", 350.5, "ttft_p95_ms: 400", "ttft_p95_ms: 350.5"),
        ("load.sessions", 12, "sessions: 20", "sessions: 12"),
        ("site", "aws/eu-west-2", "aws/us-east-1", "aws/eu-west-2"),
        ("model.target", "a b/c", "meta-llama/Llama-3.1-8B-Instruct  #", "a b/c  #"),
        ("model.target", "a: b #c", "meta-llama/Llama-3.1-8B-Instruct  #", '"a: b #c"  #'),
        ("tags.cost_center", "43", '"42"', '"43"'),
        ("tags.team", "007", "search", '"007"'),
        ("tags.team", "yes", "search", "yes"),
        ("tags.team", "null", "search", '"null"'),
        ("tags.team", "-", "search", '"-"'),
        ("budget.usd_per_month", Decimal("0.10"), "3500", "0.10"),
        ("budget", {"usd_per_month": 1}, "{usd_per_month: 3500}", "{usd_per_month: 1}"),
        ("budget", None, "{usd_per_month: 3500}", "null"),
        ("serving.port", 8000, "draft_tokens: 5}}", "draft_tokens: 5}, port: 8000}"),
        ("sla.tpot_p95_ms", 30, "{speedup_min: 1.2}\n", "{speedup_min: 1.2}\n  tpot_p95_ms: 30\n"),
        ("sla.speculation.output", "any", "1.2}", "1.2, output: any}"),
        ("tags.owner", "ann", '"42"}', '"42", owner: ann}'),
    ],
)
def test_one_value_changes_and_nothing_else(
    tmp_path: Path, key: str, value: Any, old: str, new: str
) -> None:
    path = chat(tmp_path)
    set_value(path, key, value)
    assert path.read_text() == replaced((old, new))
    load(path, root=tmp_path)


def test_a_missing_mapping_is_made_at_the_end(tmp_path: Path) -> None:
    without = replaced(
        ("budget: {usd_per_month: 3500}\n", ""), ("  speculation: {speedup_min: 1.2}\n", "")
    )
    path = chat(tmp_path, without.rstrip("\n"))
    set_value(path, "budget.usd_per_month", 9)
    set_value(path, "sla.speculation.speedup_min", 1.5)
    assert path.read_text() == (
        without.replace("400\n", "400\n  speculation: {speedup_min: 1.5}\n")
        + "budget: {usd_per_month: 9}\n"
    )  # fmt: skip


def test_an_empty_value_is_filled_in(tmp_path: Path) -> None:
    path = chat(tmp_path, replaced(("budget: {usd_per_month: 3500}", "budget:   # later")))
    set_value(path, "budget.usd_per_month", 7)
    assert "budget: {usd_per_month: 7}   # later\ntags:" in path.read_text()


def test_windows_line_ends_the_byte_order_mark_and_the_mode_stay(tmp_path: Path) -> None:
    path = chat(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    set_value(path, "sla.tpot_p95_ms", 30)
    content = path.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf# What")
    assert content.count(b"\r\n") == content.count(b"\n") == GOOD.count("\n") + 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_key_with_a_dot_is_given_as_a_sequence(tmp_path: Path) -> None:
    path = chat(tmp_path, replaced(("team:", "a.b:")))
    set_value(path, ["tags", "a.b"], "x")
    assert "a.b: x" in path.read_text()


def test_a_link_stays_a_link_and_its_file_is_edited(tmp_path: Path) -> None:
    path = chat(tmp_path)
    real = tmp_path / "real.yaml"
    path.rename(real)
    path.symlink_to(real)
    set_value(path, "load.sessions", 3)
    assert path.is_symlink()
    assert "sessions: 3" in real.read_text()


def test_a_result_that_would_not_be_good_is_refused_with_lines_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    path = chat(tmp_path)
    for key, value, told in (
        ("load.sessions", -1, "deployments/chat.yaml:10: load.sessions: must be greater than 0"),
        ("load.sesions", 1, "load.sesions: unknown key, did you mean sessions?"),
        ("name", "other", "name: must be 'chat' like the file's name"),
        ("tier", "scald", "unknown tier 'scald', did you mean scaled?"),
        ("model.target", "a\x00b", "must not hold control characters"),
        ("site.region", 1, "site: is no mapping, so it has no key region"),
        ("tags", ["a"], "tags: must be a mapping"),
    ):
        with pytest.raises(DeploymentError, match=r"^deployments/chat\.yaml:") as caught:
            set_value(path, key, value)
        assert told in str(caught.value)
    assert path.read_text() == GOOD


def test_what_cannot_be_edited_without_loss_is_refused(tmp_path: Path) -> None:
    multi_line = replaced(("{usd_per_month: 3500}", "{usd_per_month: 3500,  # most\n  }"))
    for content, key, value, told in (
        (GOOD, "model", {"target": "x"}, "is a mapping of several lines"),
        (multi_line, "budget", {"usd_per_month": 1}, "without changing something else"),
        (replaced(("team: search, ", "")), "tags.", "x", "no dotted key"),
        (GOOD, "tags.team", object(), "cannot hold a object"),
        (GOOD, "sla.ttft_p95_ms", float("nan"), "nan is no finite number"),
    ):
        path = chat(tmp_path, content)
        with pytest.raises(InputError, match=told):
            set_value(path, key, value)
        assert path.read_text() == content


def test_an_edit_can_repair_a_file_but_not_one_that_is_no_yaml(tmp_path: Path) -> None:
    path = chat(tmp_path, replaced(("sessions: 20", "sessions: 0")))
    set_value(path, "load.sessions", 20)
    assert path.read_text() == GOOD
    path = chat(tmp_path, "{")
    with pytest.raises(DeploymentError, match="not valid YAML"):
        set_value(path, "load.sessions", 20)


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = chat(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="is read-only"):
        set_value(path, "load.sessions", 2)


def test_a_crash_while_writing_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chat(tmp_path)

    def crash(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        set_value(path, "load.sessions", 2)
    assert path.read_text() == GOOD
    assert [entry.name for entry in path.parent.iterdir()] == ["chat.yaml"]


def test_the_same_value_again_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chat(tmp_path)
    monkeypatch.setattr(edit, "write_atomic", None)
    set_value(path, "load.sessions", 20)


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """The good file with comments, blank lines and other spellings in many places."""
    lines = []
    for line in GOOD.splitlines():
        if draw(st.booleans()):
            lines.append(
                " " * draw(st.integers(0, 4)) + "# " + draw(st.sampled_from(["a: b", "é '\"", "{"]))
            )
        if draw(st.integers(0, 4)) == 0:
            lines.append("")
        tail = "" if "#" in line else draw(st.sampled_from(["", " # why", "   #x: y"]))
        lines.append(line + tail)
    begin = draw(st.sampled_from(["", "---\n"]))
    end = draw(st.sampled_from(["", "\n", "\n# end\n", "\n...\n"]))
    return begin + "\n".join(lines) + end


CHANGES = [
    ("load.sessions", 7),
    ("sla.tpot_p95_ms", 1.5),
    ("tags.x", "y"),
    ("budget.usd_per_month", 1),
    ("model.draft", "a'\"#b"),
    ("sla.speculation.speedup_min", 2),
    ("serving.port", 99),
]


@given(layouts(), st.sampled_from(CHANGES))
@settings(max_examples=60)
def test_comments_and_all_other_lines_survive_in_any_layout(
    tmp_path_factory: pytest.TempPathFactory, text: str, change: tuple[str, Any]
) -> None:
    key, value = change
    path = chat(tmp_path_factory.mktemp("edit"), text)
    before = load(path, root=path.parent.parent)
    set_value(path, key, value)
    after = load(path, root=path.parent.parent)
    assert read(after, key) == value
    assert set_back(after, before, key) == before
    old, new = text.splitlines(), path.read_text().splitlines()
    assert len(new) - len(old) in (0, 1)
    kept = [line for line in new if line in old]
    assert len(kept) >= len(old) - 1
    assert path.read_text().count("# ") >= text.count("# ")


def read(deployment: Deployment, key: str) -> Any:
    value: Any = deployment
    for part in key.split("."):
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return value


def set_back(after: Deployment, before: Deployment, key: str) -> Deployment:
    """``after`` with the top-level part that ``key`` is in as it was before."""
    top = key.split(".")[0]
    return after.model_copy(update={top: getattr(before, top)})
