"""Server-sent events and the OpenAI stream in them, decoded once a reply is complete.

Kept apart from the transport so that nothing is parsed between two timestamps. The time of a
token is the time of the read that completed its event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from smoke.connection import Reply
from smoke.outcome import Outcome, of_status

#: Where the count of output tokens comes from. ``chunks`` is a guess from below: under speculation
#: one chunk carries several tokens.
CountSource = Literal["usage", "timings", "chunks"]

_MESSAGE_CHARS = 500


@dataclass(slots=True)
class Decoded:
    """One reply, understood. Times in nanoseconds of the harness's clock."""

    outcome: Outcome
    message: str = ""
    text: str = ""
    #: Times of the chunks that carried text, in order.
    chunk_ns: list[int] = field(default_factory=list)
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    count_source: CountSource = "chunks"
    finish_reason: str | None = None


def events(pieces: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The data of each event with the time of the read that completed it.

    Follows the HTML standard's event-stream format: lines end in CR, LF or CRLF; comments and
    other fields are skipped; several data lines join with LF. More tolerant in one point: an event
    at the very end needs no blank line after it.
    """
    data: list[bytes] = []
    rest = b""
    held: list[bytes] = []
    at_ns = 0
    first = True
    for at_ns, piece in pieces:
        if not first and b"\n" not in piece and b"\r" not in piece and not rest.endswith(b"\r"):
            held.append(piece)  # joined once: one huge event must not cost its square
            continue
        block = b"".join((rest, *held, piece))
        held.clear()
        if first:
            if len(block) < 3 and b"\xef\xbb\xbf".startswith(block):
                rest = block
                continue
            block, first = block.removeprefix(b"\xef\xbb\xbf"), False
        lines = block.splitlines(keepends=True)
        # A line without an end may go on in the next read, and a CR may be half of a CRLF.
        rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            content = line.rstrip(b"\r\n")
            if content:
                _take_field(content, data)
            elif data:
                yield at_ns, b"\n".join(data)
                data.clear()
    for line in b"".join((rest, *held)).splitlines():
        if line:
            _take_field(line, data)
    if data:
        yield at_ns, b"\n".join(data)


def _take_field(line: bytes, data: list[bytes]) -> None:
    name, _, value = line.partition(b":")
    if name == b"data":
        data.append(value.removeprefix(b" "))


def decode(reply: Reply) -> Decoded:
    """Understand ``reply``. Never raises: what cannot be understood is an outcome."""
    if reply.outcome not in (Outcome.OK, Outcome.TRUNCATED) or not reply.status:
        return Decoded(reply.outcome, reply.message)
    outcome = of_status(reply.status)
    if outcome is not Outcome.OK:
        return Decoded(outcome, http_message(reply))
    content_type = reply.headers.get("content-type", "")
    if "event-stream" not in content_type.lower():
        return Decoded(
            Outcome.BROKEN_SSE,
            f"a stream was asked for and {content_type or 'no content type'} came",
        )
    decoded = Decoded(Outcome.OK)
    texts: list[str] = []
    done = False
    for at_ns, data in events(reply.pieces):
        if data.strip() == b"[DONE]":
            done = True
            break
        chunk = _json_object(data)
        if chunk is None:
            snippet = data[:120].decode(errors="replace")
            return Decoded(Outcome.BROKEN_SSE, f"an event is not a JSON object: {snippet}")
        if (problem := _error_in(chunk)) is not None:
            return Decoded(Outcome.ENGINE_ERROR, problem)
        piece = _take_chunk(chunk, decoded)
        if piece:
            texts.append(piece)
            decoded.chunk_ns.append(at_ns)
    decoded.text = "".join(texts)
    if not done and decoded.finish_reason is None:
        why = reply.message or "the stream ended without [DONE] or a finish_reason"
        decoded.outcome, decoded.message = Outcome.TRUNCATED, why
    elif not decoded.chunk_ns:
        decoded.outcome, decoded.message = Outcome.NO_TOKENS, "the reply holds no token"
    if decoded.output_tokens is None or decoded.output_tokens < 1:
        decoded.output_tokens, decoded.count_source = len(decoded.chunk_ns), "chunks"
    return decoded


def http_message(reply: Reply) -> str:
    """What a server says about its refusal: the engine's own message where there is one."""
    body = reply.body()[: 64 * 1024]
    parsed = _json_object(body)
    said = (_error_in(parsed) if parsed is not None else None) or body[:_MESSAGE_CHARS].decode(
        errors="replace"
    )
    extra = ""
    if "retry-after" in reply.headers:
        extra = f" (Retry-After: {reply.headers['retry-after']})"
    if reply.status // 100 == 3 and "location" in reply.headers:
        extra = f" (to {reply.headers['location']}; give that URL)"
    return f"HTTP {reply.status}{extra}: {said}".rstrip(": ")


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _error_in(chunk: dict[str, Any]) -> str | None:
    """The message of an error object, as OpenAI, vLLM and llama.cpp shape it."""
    error = chunk.get("error")
    if error is None and chunk.get("object") == "error":
        error = chunk
    if error is None:
        detail = chunk.get("detail") or (chunk.get("message") if "choices" not in chunk else None)
        return str(detail)[:_MESSAGE_CHARS] if detail else None
    if isinstance(error, dict):
        error = error.get("message", error)
    return str(error)[:_MESSAGE_CHARS]


def _take_chunk(chunk: dict[str, Any], into: Decoded) -> str:
    """Read counts and finish_reason from ``chunk``; returns the text it carries."""
    usage = chunk.get("usage")
    if isinstance(usage, dict):
        tokens = _count(usage.get("completion_tokens"))
        if tokens is not None:
            into.output_tokens, into.count_source = tokens, "usage"
        prompt = _count(usage.get("prompt_tokens"))
        into.prompt_tokens = prompt if prompt is not None else into.prompt_tokens
    timings = chunk.get("timings")
    if isinstance(timings, dict) and into.count_source != "usage":
        tokens = _count(timings.get("predicted_n"))
        if tokens is not None:
            into.output_tokens, into.count_source = tokens, "timings"
    choices = chunk.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return ""
    choice = choices[0]
    reason = choice.get("finish_reason")
    if isinstance(reason, str):
        into.finish_reason = reason
    delta = choice.get("delta")
    if isinstance(delta, dict):  # chat; models that think send that part under other names
        parts = (delta.get(key) for key in ("reasoning_content", "reasoning", "content"))
        return "".join(part for part in parts if isinstance(part, str))
    text = choice.get("text")
    return text if isinstance(text, str) else ""


def _count(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < 10**9 else None  # type: ignore[operator,return-value]
