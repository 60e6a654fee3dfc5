"""Event streams: whatever the cuts between reads, and whatever the server sends."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke.connection import Reply
from smoke.outcome import Outcome
from smoke.sse import decode, events


def reply_of(*pieces: str | bytes, status: int = 200, kind: str = "text/event-stream") -> Reply:
    raw = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return Reply(
        status=status,
        headers={"content-type": kind},
        pieces=[(number + 1, piece) for number, piece in enumerate(raw)],
    )


def chunk(text: str, **more: object) -> str:
    choice = {"index": 0, "text": text, "finish_reason": more.pop("finish_reason", None)}
    return f"data: {json.dumps({'choices': [choice], **more})}\n\n"


def test_events_are_stamped_with_the_read_that_completed_them() -> None:
    found = list(events([(10, b"data: a\n"), (20, b"\ndata: b\n\nda"), (30, b"ta: c\n\n")]))
    assert found == [(20, b"a"), (20, b"b"), (30, b"c")]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_of_the_standard_is_taken(newline: bytes) -> None:
    stream = newline.join([b": comment", b"event: x", b"data: one", b"data: two", b"", b"data:3"])
    found = [data for _, data in events([(1, stream + newline + newline)])]
    assert found == [b"one\ntwo", b"3"]


@given(st.data())
def test_cuts_between_reads_change_nothing(data: st.DataObject) -> None:
    newline = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    lines = [b"\xef\xbb\xbf: hi", b"data: {1}", b"", b"data: 2", b"data: x", b"", b"", b"data: end"]
    stream = newline.join([*lines, b"", b""])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    edges = [0, *cuts, len(stream)]
    pieces = [(i, stream[a:b]) for i, (a, b) in enumerate(itertools.pairwise(edges))]
    assert [found for _, found in events(pieces)] == [b"{1}", b"2\nx", b"end"]


def test_tokens_come_from_usage_before_timings_before_chunks() -> None:
    usage = {"completion_tokens": 9, "prompt_tokens": 4}
    end = chunk("", finish_reason="length", usage=usage, timings={"predicted_n": 8})
    decoded = decode(reply_of(chunk("ab"), chunk("c"), end, "data: [DONE]\n\n"))
    assert (decoded.outcome, decoded.text) == (Outcome.OK, "abc")
    assert (decoded.output_tokens, decoded.count_source, decoded.prompt_tokens) == (9, "usage", 4)
    assert decoded.chunk_ns == [1, 2]

    end = chunk("", finish_reason="length", timings={"predicted_n": 8})
    decoded = decode(reply_of(chunk("ab"), chunk("c"), end))
    assert (decoded.output_tokens, decoded.count_source) == (8, "timings")

    decoded = decode(reply_of(chunk("ab"), chunk("c"), "data: [DONE]\n\n"))
    assert (decoded.output_tokens, decoded.count_source) == (2, "chunks")


@pytest.mark.parametrize("count", [-1, True, "12", 1.5, None, 10**12, 0])
def test_a_count_that_cannot_be_meant_is_not_believed(count: object) -> None:
    decoded = decode(reply_of(chunk("a", usage={"completion_tokens": count}), "data: [DONE]\n\n"))
    assert (decoded.output_tokens, decoded.count_source) == (1, "chunks")


def test_chat_deltas_and_thinking_are_text() -> None:
    deltas: list[dict[str, object]] = [
        {"role": "assistant", "content": None},
        {"reasoning_content": "hm "},
        {"content": "yes"},
    ]
    pieces = [f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in deltas]
    decoded = decode(reply_of(*pieces, "data: [DONE]\n\n"))
    assert decoded.text == "hm yes"
    assert decoded.chunk_ns == [2, 3]


@pytest.mark.parametrize(
    ("pieces", "outcome", "words"),
    [
        (["data: {broken\n\n"], Outcome.BROKEN_SSE, "{broken"),
        (["data: [1]\n\n"], Outcome.BROKEN_SSE, "not a JSON object"),
        (["data: " + "[" * 100_000 + "\n\n"], Outcome.BROKEN_SSE, "not a JSON object"),
        ([chunk("a"), 'data: {"error": {"message": "out of memory"}}\n\n'],
         Outcome.ENGINE_ERROR, "out of memory"),
        ([chunk("a")], Outcome.TRUNCATED, "[DONE]"),
        ([], Outcome.TRUNCATED, "[DONE]"),
        (["data: [DONE]\n\n"], Outcome.NO_TOKENS, "no token"),
        (["data: {}\n\n", 'data: {"choices": [null]}\n\n', 'data: {"choices": 3}\n\n'],
         Outcome.TRUNCATED, "[DONE]"),
    ],
)  # fmt: skip
def test_a_bad_stream_is_an_outcome(pieces: list[str], outcome: Outcome, words: str) -> None:
    decoded = decode(reply_of(*pieces))
    assert decoded.outcome is outcome
    assert words in decoded.message


def test_a_reply_that_is_no_stream_says_what_it_is() -> None:
    decoded = decode(reply_of('{"choices": []}', kind="application/json"))
    assert decoded.outcome is Outcome.BROKEN_SSE
    assert "application/json" in decoded.message


@pytest.mark.parametrize(
    ("status", "body", "outcome", "words"),
    [
        (500, '{"error": {"message": "boom"}}', Outcome.HTTP_5XX, "HTTP 500: boom"),
        (404, '{"object": "error", "message": "no model x"}', Outcome.HTTP_4XX, "no model x"),
        (422, '{"detail": "bad field"}', Outcome.HTTP_4XX, "bad field"),
        (503, "<html>busy</html>", Outcome.HTTP_5XX, "<html>busy</html>"),
        (302, "", Outcome.HTTP_3XX, "HTTP 302"),
    ],
)
def test_refusals_carry_the_engines_words(
    status: int, body: str, outcome: Outcome, words: str
) -> None:
    decoded = decode(reply_of(body, status=status, kind="application/json"))
    assert decoded.outcome is outcome
    assert words in decoded.message


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_no_bytes_make_the_decoder_raise(pieces: list[bytes]) -> None:
    assert isinstance(decode(reply_of(*pieces)).outcome, Outcome)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "text", "content", "usage", "error", "timings", "index",
                 "completion_tokens", "predicted_n", "finish_reason", "message", "object"]
            ),
            inner,
            max_size=4,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_no_json_makes_the_decoder_raise(content: object) -> None:
    stream = f"data: {json.dumps(content)}\n\n"
    assert isinstance(decode(reply_of(stream, stream)).outcome, Outcome)
