"""No content of a file gives anything but a deployment or problems with places in it."""

from __future__ import annotations

import io
import json
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from ruamel.yaml import YAML

from infra.spec.check import check
from infra.spec.explain import SENTENCES
from infra.spec.loader import Reading, read_text
from infra.spec.model import BROKEN_RULES, Deployment
from infra.spec.text import UnreadableError, decode
from tests.unit.spec.projects import GOOD, as_yaml_values, valid_data


def dump(value: Any, *, as_json: bool = False) -> str:
    if as_json:  # JSON is YAML, with quotes everywhere
        return json.dumps(value, ensure_ascii=False, default=str)
    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_unicode = True
    yaml.default_flow_style = False
    yaml.dump(value, stream)
    return stream.getvalue()


def reading(text: str) -> Reading:
    """Read ``text``; whatever comes, it is a deployment or problems on single lines of it."""
    try:
        clean = decode(text.encode("utf-8", "surrogatepass"))
    except UnreadableError:
        return Reading(None, ())
    found = read_text(clean, place="deployments/chat.yaml", stem="chat")
    assert (found.deployment is None) == bool(found.problems)
    lines = len(clean.splitlines())
    for problem in found.problems:
        assert problem.line is None or 1 <= problem.line <= lines
        assert str(problem).isprintable()
        assert len(str(problem)) < 1000
        assert "Input should" not in problem.what
    return found


SIGNS = r"""&a *a !t !!str ? : - , { } [ ] ' " | > % @ ` # ~ <<"""
ODDITIES = ("\t", "  ", "\n", "---\n", "...\n", "0x", "1_0", ".inf", "\u00e9", "\u2028", "\ud800")
_pieces = st.sampled_from([*GOOD.splitlines(keepends=True), *SIGNS.split(), *ODDITIES])


@given(st.lists(_pieces | st.text(max_size=5), max_size=30).map("".join))
@settings(max_examples=200)
def test_any_text_gives_a_deployment_or_problems(text: str) -> None:
    reading(text)


@given(st.data())
@settings(max_examples=200)
def test_a_good_file_with_a_piece_put_in_or_cut_out_gives_a_deployment_or_problems(
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(start + 12, len(GOOD))))
    reading(GOOD[:start] + data.draw(_pieces | st.just("")) + GOOD[end:])


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates().map(str)
    | st.sampled_from(["vllm", "none", "local", "aws/us-east-1", "identical", 10**400, -(10**400)])
)
_keys = st.text(max_size=8)
_anything = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def nearly_valid(draw: st.DrawFn) -> Any:
    """A good deployment with values, keys or whole mappings put in its place."""
    data = draw(valid_data())
    for _ in range(draw(st.integers(1, 4))):
        at = data
        while True:
            key = draw(st.sampled_from([*at, "ttft_p95", "draft"]))
            if isinstance(at.get(key), dict) and at[key] and draw(st.booleans()):
                at = at[key]
                continue
            at[key] = draw(_anything)
            break
    return data


@given(nearly_valid() | _anything, st.booleans())
@settings(max_examples=150)
def test_any_structure_gives_a_deployment_or_problems_in_our_words(
    value: Any, as_json: bool
) -> None:
    reading(dump(value, as_json=as_json))
    try:
        Deployment.model_validate(value)
    except ValidationError as error:
        kinds = {fault["type"] for fault in error.errors()}
        assert kinds <= {*SENTENCES, BROKEN_RULES}


@given(valid_data())
@settings(max_examples=60)
def test_a_good_deployment_survives_being_written_and_read(data: dict[str, Any]) -> None:
    deployment = Deployment.model_validate(data)
    again = as_yaml_values(deployment.model_dump(exclude_none=True))
    for text in (dump(data), dump(again), dump(data, as_json=True)):
        found = read_text(text, place="x", stem=deployment.name)
        assert found.problems == ()
        assert found.deployment == deployment


@given(valid_data())
@settings(max_examples=20)
def test_the_loader_and_the_check_of_a_finished_deployment_agree(data: dict[str, Any]) -> None:
    data["tier"] = "scaled"
    deployment = Deployment.model_validate(data)
    found = read_text(dump(data), place="x", stem=deployment.name)
    document = found.document
    assert document is not None
    problems = check(
        deployment, path="x", line_of=lambda key: document.line_of(tuple(key.split(".")))
    )
    assert sorted(map(str, problems)) == sorted(map(str, found.problems))


def test_reading_is_not_slowed_by_hostile_text() -> None:
    begin = time.process_time()
    for text in (
        "a: " + "{" * 200_000,
        "- " * 60_000,
        "x" * 250_000,
        "k: v\n" * 20_000,
        "'" * 1001,
    ):
        reading(text)
    assert time.process_time() - begin < 15
