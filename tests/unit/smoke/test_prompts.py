"""Prompts: text, reproducible, of about the promised length."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.errors import InputError
from smoke.prompts import CHARS_PER_TOKEN, Prompt, PromptSet, from_file, shipped


def test_the_shipped_prompts_are_many_and_different() -> None:
    prompts = shipped()
    assert len(prompts) == 64
    assert len({prompt.text for prompt in prompts}) == 64
    assert {prompt.kind for prompt in prompts} == {"code", "chat", "summarise"}


@pytest.mark.parametrize("tokens", [16, 64, 1000])
def test_prompts_have_the_promised_length_and_do_not_repeat(tokens: int) -> None:
    chosen = PromptSet(shipped(), tokens=tokens, seed=1)
    texts = [chosen.text(number) for number in range(200)]
    assert {len(text) for text in texts} == {round(tokens * CHARS_PER_TOKEN)}
    assert len(set(texts)) == len(texts)


def test_a_prompt_keeps_its_end_when_it_is_lengthened_or_cut() -> None:
    only = [Prompt("chat", "first question?"), Prompt("chat", "second question?")]
    for tokens in (4, 100):
        chosen = PromptSet(only, tokens=tokens, seed=1)
        assert {chosen.text(0)[-6:], chosen.text(1)[-6:]} == {"stion?"}


def test_the_series_depends_on_the_seed_alone() -> None:
    def series(seed: int) -> list[str]:
        chosen = PromptSet(shipped(), tokens=64, seed=seed)
        return [chosen.text(number) for number in range(100)]

    assert series(4) == series(4)
    assert series(4) != series(5)


def test_a_users_file_is_sent_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "a\u2028b"}\n\n"plain"\n{"text": "t"}\n', encoding="utf-8")
    chosen = PromptSet(from_file(path), tokens=None, seed=1)
    assert sorted(chosen.text(number) for number in range(3)) == ["a\u2028b", "plain", "t"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'"ok"\n{"prompt": \n', ":2: not JSON"),
        (b'{"prompt": 5}\n', ":1: no prompt"),
        (b"3\n", ":1: no prompt"),
        (b'"  "\n', ":1: no prompt"),
        (b'"\\ud800"\n', ":1: the prompt holds half"),
        (b"\n \n", "holds no prompt"),
        (b"\xff\n", "is not UTF-8"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        from_file(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        from_file(tmp_path / "none.jsonl")
