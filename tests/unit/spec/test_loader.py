"""Deployment files: what a user reads when one is wrong."""

# ruff: noqa: E501 - a table of cases is read across

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from infra.errors import DeploymentError, InputError
from infra.spec.loader import load, load_all, names
from tests.unit.spec.projects import GOOD, project, replaced

ROOT = Path(__file__).parents[3]


def problems(root: Path, content: str | bytes, name: str = "chat") -> list[str]:
    """The lines that a user sees, without the file's path."""
    project(root, **{name: content})
    with pytest.raises(DeploymentError) as caught:
        load(root / "deployments" / f"{name}.yaml", root=root)
    prefix = f"deployments/{name}.yaml"
    lines = str(caught.value).splitlines()
    assert all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix).lstrip(":") for line in lines]


def test_the_example_of_the_design_loads(tmp_path: Path) -> None:
    (deployment,) = load_all(project(tmp_path, chat=GOOD))
    assert deployment.stack_key == "chat-prototype"
    assert deployment.tags == {"team": "search", "cost_center": "42"}
    assert str(deployment.budget.usd_per_month if deployment.budget else None) == "3500"


def test_the_deployments_that_come_with_the_project_are_good() -> None:
    assert [deployment.name for deployment in load_all(ROOT)] == names(ROOT)


def test_a_misspelt_key_is_told_with_its_line_and_the_right_spelling_and_only_once(
    tmp_path: Path,
) -> None:
    told = problems(tmp_path, replaced(("ttft_p95_ms", "ttft_p95"), ("target:", "traget:")))
    assert told == [
        "6: model.traget: unknown key, did you mean target?",
        "13: sla.ttft_p95: unknown key, did you mean ttft_p95_ms?",
    ]


def test_a_key_that_looks_like_pydantics_own_mark_is_told_like_any_other(tmp_path: Path) -> None:
    told = problems(tmp_path, replaced(("budget:", '"[key]":'), ("search", "7")))
    assert [line.split(",")[0] for line in told] == [
        "15: '[key]': unknown key",
        "16: tags.team: must be text",
    ]


def test_a_key_in_the_wrong_mapping_is_told_its_place(tmp_path: Path) -> None:
    told = problems(tmp_path, replaced(("  speculation: {", "  draft_tokens: 3\n  speculation: {")))
    assert told == ["14: sla.draft_tokens: unknown key, did you mean serving.speculation.draft_tokens?"]  # fmt: skip


CASES: dict[str, tuple[tuple[str, str], str]] = {
    "a limit": (("sessions: 20", "sessions: -5"), "10: load.sessions: must be greater than 0, got -5"),
    "an upper limit": (("draft_tokens: 5", "draft_tokens: 500"), "9: serving.speculation.draft_tokens: must be at most 64, got 500"),
    "an open limit": (("  ttft_p95_ms: 400", "  ttft_p95_ms: 400\n  error_rate_max: 1"), "14: sla.error_rate_max: must be less than 1, got 1"),
    "a lower limit": (("{speedup_min: 1.2}", "{mean_acceptance_length_min: 0.5}"), "14: sla.speculation.mean_acceptance_length_min: must be at least 1, got 0.5"),
    "a quoted number": (("ttft_p95_ms: 400", "ttft_p95_ms: '400'"), "13: sla.ttft_p95_ms: must be a number, got the text '400'; write 400"),
    "grouped digits": (("3500", "3_500"), "15: budget.usd_per_month: must be a number, got the text '3_500'; write 3500"),
    "a yes": (("think_s: 10", "think_s: yes"), "10: load.think_s: must be a number, got the text 'yes'"),
    "a true": (("think_s: 10", "think_s: true"), "10: load.think_s: must be a number, got true"),
    "a fraction": (("sessions: 20", "sessions: 2.5"), "10: load.sessions: must be a whole number, got 2.5"),
    "a date": (("sessions: 20", "sessions: 2026-01-01"), "10: load.sessions: must be a whole number, got the text '2026-01-01'"),
    "nothing": (("sessions: 20", "sessions: ~"), "10: load.sessions: must be a whole number, got nothing"),
    "not a number": (("ttft_p95_ms: 400", "ttft_p95_ms: .nan"), "13: sla.ttft_p95_ms: must be a finite number, got nan"),
    "infinity": (("think_s: 10", "think_s: .inf"), "10: load.think_s: must be a finite number, got inf"),
    "infinite money": (("3500", "-.inf"), "15: budget.usd_per_month: must be a finite number, got -inf"),
    "a huge number": (("sessions: 20", f"sessions: {'9' * 5000}"), "10: load.sessions: is a number of more than 40 digits"),
    "a large number": (("think_s: 10", "think_s: 1e300"), "10: load.think_s: must be at most 1000000000, got 1e+300"),
    "a leading zero": (("sessions: 20", "sessions: 020"), "10: load.sessions: must not begin with a 0: write 20, or put it in quotes if text is meant"),
    "an unquoted tag": (('"42"', "42"), "16: tags.cost_center: must be text, got 42; put it in quotes"),
    "a tag kept by AWS": (("team:", "aws:team:"), "16: tags.aws:team: must not begin with aws: (kept by AWS)"),
    "an enum": (("engine: vllm", "engine: vlm"), "9: serving.engine: must be one of vllm, trtllm, llamacpp; got the text 'vlm', did you mean vllm?"),
    "a site": (("aws/us-east-1", "aws"), "4: site: must be local, aws/<region> (such as aws/us-east-1) or rack/<name>; got the text 'aws'"),
    "a name": (("name: chat", "name: Chat"), "2: name: must be lower-case letters, digits and hyphens, beginning with a letter, 40 characters at most; got the text 'Chat'"),
    "another name": (("name: chat", "name: chat2"), "2: name: must be 'chat' like the file's name, got 'chat2'"),
    "an empty text": (("target: meta-llama/Llama-3.1-8B-Instruct", 'target: ""'), "6: model.target: must not be empty"),
    "a long text": (("target: meta-llama/Llama-3.1-8B-Instruct", f"target: {'x' * 301}"), "6: model.target: must have at most 300 characters, got 301"),
    "a control character": (("target: meta-llama/Llama-3.1-8B-Instruct", r'target: "a\0b"'), r"6: model.target: must not hold control characters, nor begin or end with a blank; got the text 'a\x00b'"),
    "text for a mapping": (("budget: {usd_per_month: 3500}", "budget: 3500"), "15: budget: must be a mapping (usd_per_month), got 3500"),
    "a list for a mapping": (('{team: search, cost_center: "42"}', "[a]"), "16: tags: must be a mapping (names and texts), got a list"),
    "a missing key": (("sessions: 20, ", ""), "10: load.sessions: is missing; it is required"),
    "a missing mapping": (("budget: {usd_per_month: 3500}", "budget: {}"), "15: budget.usd_per_month: is missing; it is required"),
    "an unknown key": (("budget:", "zzz:"), "15: zzz: unknown key, known are name, tier, site, env, model, serving, load, sla, budget, fleet, aws, tags"),
    "too many tags": (("team: search", ", ".join(f"t{n}: x" for n in range(41))), "16: tags: must have at most 40 entries, got 42"),
    "a draft that is missing": (("  draft: meta-llama/Llama-3.2-1B-Instruct\n", ""), "5: model.draft: is missing; speculation method draft_model needs it"),
    "tokens that are missing": ((", draft_tokens: 5", ""), "9: serving.speculation.draft_tokens: is missing; method draft_model needs it (how many a step, e.g. 4)"),
    "tokens without a method": (("method: draft_model", "method: none"), "9: serving.speculation.draft_tokens: has no meaning with method none; remove it"),
    "a load too long": (("max_model_len: 8192", "max_model_len: 1000"), "10: load: prompt_tokens + output_tokens is 1280, more than model.max_model_len 1000"),
    "no promise": (("  ttft_p95_ms: 400\n", ""), "11: sla: must give at least one of ttft_p95_ms, tpot_p95_ms, e2e_p95_ms"),
    "an unknown tier": (("tier: prototype", "tier: prototyp"), "3: tier: unknown tier 'prototyp', did you mean prototype? known are enterprise, local, prototype, scaled"),
    "a site of another tier": (("site: aws/us-east-1", "site: rack/a"), "4: site: tier prototype wants aws/<region>, got 'rack/a'"),
    "an engine of another tier": (("engine: vllm", "engine: llamacpp"), "9: serving.engine: tier prototype offers vllm, trtllm; got llamacpp"),
    "a key given twice": (("budget:", "site:"), "15: site: is given twice, first on line 4"),
    "an anchor": (("{team: search", "&t {team: search"), "16: tags: has an anchor (&t); aliases are not supported"),
    "an alias": (("team: search", "team: *t"), "16: tags.team: is an alias (*t); write the value out"),
    "a merge key": (("team: search", "<<: {team: search}"), "16: tags.<<: is a merge key; write the values out"),
    "a Python object": (("team: search", "team: !!python/object:os.system x"), "16: tags.team: has a YAML tag (!...); write the plain value"),
    "a key that is a number": (("team:", "1:"), "16: tags.1: is no text; put the key in quotes"),
    "a key that is a list": (("team:", "? [a]\n :"), "16: tags: holds a key that is no plain text"),
    "a tab": (("  ttft_p95_ms", "\tttft_p95_ms"), "13: is not valid YAML: a tab is used for indentation; use blanks"),
    "an open brace": (("5}}", "5}"), "10: is not valid YAML: the { of line 9 is not closed, or a comma is missing"),
    "an open quote": (('"42"', '"42'), "16: is not valid YAML: a quote opened on line 16 is never closed"),
    "two colons": (("tier: prototype", "tier: a: b"), "3: is not valid YAML: a second ': ' in one line; put the text in quotes"),
    "bad indentation": (("  draft:", " draft:"), "7: is not valid YAML: the indentation does not fit the lines above"),
    "an old YAML version": (("# What people chat with.", "%YAML 1.1\n---"), "2: asks for another YAML version; only YAML 1.2 is read"),
    "two documents": (("budget:", "---\nbudget:"), "15: holds more than one YAML document (---); keep one"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_one_line_with_place_and_remedy(case: str, tmp_path: Path) -> None:
    change, line = CASES[case]
    if case == "no promise":
        told = problems(tmp_path, replaced(change))
    elif case == "tokens without a method":
        told = problems(tmp_path, replaced(change, ("  speculation: {speedup_min: 1.2}\n", "")))
    else:
        told = problems(tmp_path, replaced(change))
    assert told == [line]


WHOLE_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", " is empty; it must hold a deployment (name: ..., tier: ...)"),
    "blank": (b" \n\n", " is empty; it must hold a deployment (name: ..., tier: ...)"),
    "comments": (b"# later\n", " must hold a mapping (name: ..., tier: ...), got nothing"),
    "a document of nothing": (
        b"---\n",
        "1: must hold a mapping (name: ..., tier: ...), got nothing",
    ),
    "a list": (b"- name: chat\n", "1: must hold a mapping (name: ..., tier: ...), got a list"),
    "a word": (b"chat\n", "1: must hold a mapping (name: ..., tier: ...), got the text 'chat'"),
    "latin-1": (b"name: chat\ntier: caf\xe9\n", "2: is not UTF-8 text"),
    "UTF-16": ("name: chat".encode("utf-16"), "1: is not UTF-8 text"),
    "a NUL": (b"name: chat\nt\0: x\n", "2: holds the control character U+0000"),
    "an escape": (b"name: \x1b[31mchat\n", "1: holds the control character U+001B"),
    "a line separator": ("a: b\nc: \u2028d\n".encode(), "2: holds the control character U+2028"),
    "old Mac line ends": (b"name: chat\rtier: local\r", "1: holds the control character U+000D"),
    "deep lists": (b"a: " + b"[" * 100_000, "1: is nested deeper than 32 levels"),
    "deep mappings": (b"{a: " * 50_000, "1: is nested deeper than 32 levels"),
    "large": (b"#" * 300_000, " is larger than 256 KiB; no deployment file is"),
}


@pytest.mark.parametrize("case", WHOLE_FILES)
def test_a_file_that_is_none_is_refused_with_one_line(case: str, tmp_path: Path) -> None:
    content, line = WHOLE_FILES[case]
    assert problems(tmp_path, content) == [line]


def test_an_alias_of_itself_and_a_bomb_of_aliases_end_at_once(tmp_path: Path) -> None:
    assert "is an alias" in "\n".join(problems(tmp_path, "a: &a [*a]\n"))
    bomb = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [{'*a, ' * 9}*a]\n" for n in range(20))
    assert len(problems(tmp_path, bomb)) > 20


def test_missing_folders_directories_and_pipes_are_told_as_what_they_are(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "deployments" / "folder.yaml").mkdir()
    os.mkfifo(root / "deployments" / "pipe.yaml")
    for name, what in (
        ("folder", "is a folder, not a file"),
        ("pipe", "is not a regular file"),
        ("gone", "there is no such file"),
        ("nul\0", "is no valid file name"),
        ("x" * 300, "cannot be read: File name too long"),
    ):
        with pytest.raises(DeploymentError, match=what):
            load(root / "deployments" / f"{name}.yaml", root=root)


def test_an_unreadable_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path, chat=GOOD)

    def refuse(*_: object) -> None:  # root, as whom tests may run, is refused nothing
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DeploymentError, match=r"chat\.yaml: cannot be read: Permission denied"):
        load_all(root)


def test_all_faults_of_all_files_come_at_once_in_the_order_of_files_and_lines(
    tmp_path: Path,
) -> None:
    bad = replaced(
        ("max_model_len: 8192", "max_model_len: 1000"),
        ("3500", "x"),
        ("tier: prototype", "tier: x"),
    )
    root = project(tmp_path, chat=bad, arm="name: arm", good=replaced(("name: chat", "name: good")))
    with pytest.raises(DeploymentError) as caught:
        load_all(root)
    places = [(problem.path, problem.line, problem.key) for problem in caught.value.problems]
    assert places[:2] == [("deployments/arm.yaml", 1, "load"), ("deployments/arm.yaml", 1, "model")]
    assert places[-3:] == [
        ("deployments/chat.yaml", 3, "tier"),
        ("deployments/chat.yaml", 10, "load"),
        ("deployments/chat.yaml", 15, "budget.usd_per_month"),
    ]


def test_an_unknown_name_names_the_nearest_and_lists_the_others(tmp_path: Path) -> None:
    root = project(tmp_path, chat=GOOD, code="x")
    with pytest.raises(InputError) as caught:
        load_all(root, ["caht", "../../etc/passwd"])
    first, second = str(caught.value).splitlines()
    assert first == "deployments/: no deployment 'caht', did you mean chat? There are: chat, code"
    assert second == "deployments/: no deployment '../../etc/passwd', known are chat, code"


def test_only_the_named_files_are_read_each_once(tmp_path: Path) -> None:
    root = project(tmp_path, chat=GOOD, broken="{")
    assert [deployment.name for deployment in load_all(root, ["chat", "chat"])] == ["chat"]


def test_a_project_without_deployments_says_where_they_belong(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder deployments/ in .*deployments/<name>\.yaml"):
        load_all(tmp_path)
    with pytest.raises(InputError, match="holds no deployment"):
        load_all(project(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be read: Not a directory"):
        names(tmp_path / "file")


def test_a_file_with_the_other_ending_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    root = project(tmp_path, chat=GOOD)
    (root / "deployments" / "code.yml").touch()
    with pytest.raises(DeploymentError, match=r"code\.yml: is not read; rename it to code\.yaml"):
        load_all(root)
    assert load_all(root, ["chat"])


def test_hidden_files_are_an_editors_and_not_read(tmp_path: Path) -> None:
    root = project(tmp_path, chat=GOOD)
    (root / "deployments" / ".chat.yaml").write_text("{")
    assert names(root) == ["chat"]


def test_a_byte_order_mark_and_windows_line_ends_are_good(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert load_all(project(tmp_path, chat=content))[0].name == "chat"


def test_hexadecimal_octal_and_exponents_are_numbers_and_dates_are_text(tmp_path: Path) -> None:
    content = replaced(
        ("sessions: 20", "sessions: 0x14"), ("think_s: 10", "think_s: 1e1"), ("search", "2026-01-01")
    )  # fmt: skip
    (deployment,) = load_all(project(tmp_path, chat=content))
    assert (deployment.load.sessions, deployment.load.think_s) == (20, 10.0)
    assert deployment.tags["team"] == "2026-01-01"


def test_problems_of_a_file_outside_the_project_name_its_own_path(tmp_path: Path) -> None:
    outside = project(tmp_path / "a", chat="x") / "deployments" / "chat.yaml"
    with pytest.raises(DeploymentError, match=str(outside)):
        load(outside, root=tmp_path / "b")
