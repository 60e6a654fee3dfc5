"""The HTTP client against servers that misbehave: every failure is a typed outcome."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from infra.errors import InputError
from smoke import drive, request
from smoke.clock import MonotonicClock
from smoke.connection import MAX_BODY_BYTES, Reply
from smoke.endpoint import auth_headers, base_url, refuse_proxy
from smoke.outcome import Outcome
from smoke.sample import Sample
from smoke.transport import Client, Timeouts
from tests.unit.smoke import mock_server as mock
from tests.unit.smoke.mock_server import Asked, MockServer, Script

_T = TypeVar("_T")

QUICK = Timeouts(connect_s=2, first_byte_s=0.3, stall_s=0.3, total_s=5)


def talk(
    url: str,
    conversation: Callable[[Client], Awaitable[_T]],
    *,
    timeouts: Timeouts = QUICK,
    tls: ssl.SSLContext | None = None,
) -> _T:
    """Run ``conversation`` with a client on uvloop, as the harness does."""

    async def main() -> _T:
        origin = base_url(url).origin
        clock = MonotonicClock()
        async with Client(origin, clock=clock, timeouts=timeouts, tls_context=tls) as client:
            return await conversation(client)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def ask(url: str, *, count: int = 1, timeouts: Timeouts = QUICK) -> list[Sample]:
    """``count`` completion requests one after the other."""

    async def conversation(client: Client) -> list[Sample]:
        def body(number: int) -> bytes:
            return request.body("completions", f"p{number}", model="m", max_tokens=4, seed=1)

        target = base_url(url).below("/v1/completions")
        sender = drive.Sender(client, target, MonotonicClock(), body)
        return [await sender.ask(number, index=number) for number in range(count)]

    return talk(url, conversation, timeouts=timeouts)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port


def test_a_good_stream_is_timed_in_order_and_counted() -> None:
    with MockServer(lambda asked: mock.good(asked, gap_s=0.01)) as server:
        (sample,) = ask(server.url)
    assert sample.ok
    assert sample.output_tokens == 4
    assert len(sample.chunk_ns) == 4
    assert sample.intended_ns <= sample.sent_ns < sample.chunk_ns[0]
    assert list(sample.chunk_ns) == sorted(sample.chunk_ns)
    assert sample.chunk_ns[-1] <= sample.end_ns
    assert sample.tpot_ms is not None
    # Three sleeps of 10 ms lie between the first and the last token.
    assert sample.tpot_ms >= 9.5


def test_a_connection_is_kept_and_used_again() -> None:
    with MockServer() as server:
        samples = ask(server.url, count=5)
        assert all(sample.ok for sample in samples)
        assert server.connections == 1
    assert samples[0].connect_ns > 0
    assert samples[1].connect_ns == 0


def test_a_connection_closed_while_idle_is_replaced_without_an_error() -> None:
    """The server says keep-alive and closes all the same, as servers do after their time-out."""
    with MockServer(lambda asked: [*mock.good(asked), mock.CLOSE]) as server:
        samples = ask(server.url, count=5)
        assert [sample.outcome for sample in samples] == [Outcome.OK] * 5
        assert server.connections == 5


def _no_usage(asked: Asked) -> Script:
    done = mock.finish(chat=asked.chat) + mock.event("[DONE]") + mock.LAST_CHUNK
    return [mock.STREAM_HEAD, mock.token("a", chat=False), mock.token("b", chat=False), done]


def _first_token() -> bytes:
    return mock.STREAM_HEAD + mock.token("a", chat=False)


HUGE = "x" * (3 << 20)

MISBEHAVIOUR: list[tuple[str, Script, Outcome, str]] = [
    ("silent", [mock.HANG], Outcome.TIMEOUT_FIRST_BYTE, "no reply within 0.3 s"),
    ("stalls", [_first_token(), mock.HANG], Outcome.STALLED, "silent for 0.3 s"),
    ("stalls in head", [b"HTTP/1.1 200 OK\r\nA:", mock.HANG], Outcome.STALLED, "silent"),
    ("closes in mid-stream", [_first_token(), mock.CLOSE], Outcome.TRUNCATED, "closed"),
    ("resets", [_first_token(), 0.05, mock.RESET], Outcome.RESET, "cut"),
    ("closes at once", [mock.CLOSE], Outcome.RESET, "cut"),
    ("no [DONE]", [_first_token() + mock.LAST_CHUNK], Outcome.TRUNCATED, "[DONE]"),
    ("broken JSON", [_first_token() + mock.event("{nope") + mock.LAST_CHUNK],
     Outcome.BROKEN_SSE, "{nope"),
    ("500", mock.plain("500 Internal Server Error", '{"error":{"message":"oom"}}'),
     Outcome.HTTP_5XX, "HTTP 500: oom"),
    ("503", mock.plain("503 Service Unavailable", "loading"), Outcome.HTTP_5XX, "503: loading"),
    ("429", mock.plain("429 Too Many Requests", '{"error":"slow down"}', "Retry-After: 7"),
     Outcome.HTTP_4XX, "Retry-After: 7): slow down"),
    ("redirect", mock.plain("307 Temporary Redirect", "", "Location: http://x/"),
     Outcome.HTTP_3XX, "http://x/"),
    ("not HTTP", [b"SSH-2.0-OpenSSH\r\n", mock.HANG], Outcome.PROTOCOL, "not HTTP"),
    ("gzip", [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"],
     Outcome.PROTOCOL, "gzip"),
    ("endless head", [b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, mock.HANG],
     Outcome.PROTOCOL, "headers"),
    ("bad chunk", [mock.STREAM_HEAD + b"zz\r\n", mock.HANG], Outcome.PROTOCOL, "not HTTP"),
    ("JSON, no stream", mock.plain("200 OK", '{"choices":[]}'), Outcome.BROKEN_SSE, "application"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "outcome", "words"),
    [case[1:] for case in MISBEHAVIOUR],
    ids=[case[0] for case in MISBEHAVIOUR],
)
def test_misbehaviour_is_a_typed_outcome(script: Script, outcome: Outcome, words: str) -> None:
    with MockServer(lambda _: script) as server:
        (sample,) = ask(server.url)
    assert sample.outcome is outcome
    assert words in sample.message
    assert sample.ttft_ms == sample.e2e_ms == float("inf")


def test_a_failure_does_not_poison_the_next_request() -> None:
    scripts = iter([case[1] for case in MISBEHAVIOUR])
    turn = 0

    def script(asked: Asked) -> Script:
        nonlocal turn
        turn += 1
        return mock.good(asked) if turn % 2 else next(scripts)

    with MockServer(script) as server:
        samples = ask(server.url, count=2 * len(MISBEHAVIOUR))
    # Only a server that closes a kept connection before any byte of its reply is asked again.
    asked_again = sum(case[0] == "closes at once" for case in MISBEHAVIOUR)
    assert sum(sample.ok for sample in samples) == len(MISBEHAVIOUR) + asked_again
    assert asked_again == 1


def test_a_drip_of_bytes_ends_at_the_total_timeout() -> None:
    drip: Script = [_first_token()]
    for _ in range(100):
        drip += [mock.chunked(b": still here\n"), 0.05]
    with MockServer(lambda _: drip) as server:
        (sample,) = ask(server.url, timeouts=Timeouts(stall_s=0.3, total_s=0.6))
    assert sample.outcome is Outcome.TIMEOUT_TOTAL


def test_a_huge_event_is_taken_and_an_endless_one_is_not() -> None:
    def script(asked: Asked) -> Script:
        if asked.prompt == "p0":
            done = mock.event("[DONE]") + mock.LAST_CHUNK
            return [mock.STREAM_HEAD + mock.token(HUGE, chat=False) + done]
        piece = mock.chunked(b"x" * (4 << 20))
        return [mock.STREAM_HEAD, *([piece] * (2 + (MAX_BODY_BYTES >> 22))), mock.HANG]

    with MockServer(script) as server:
        fine, endless = ask(server.url, count=2, timeouts=Timeouts())
    assert fine.ok
    assert len(fine.text) == len(HUGE)
    assert endless.outcome is Outcome.PROTOCOL
    assert "64 MiB" in endless.message


def test_without_token_counts_chunks_are_counted_and_said_so() -> None:
    with MockServer(_no_usage) as server:
        (sample,) = ask(server.url)
    assert (sample.output_tokens, sample.count_source) == (2, "chunks")


def test_http_1_0_without_a_length_ends_with_the_connection() -> None:
    def script(_: Asked) -> Script:
        head = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        stream = b'data: {"choices": [{"text": "a", "finish_reason": "stop"}]}\n\n'
        return [head + stream, mock.CLOSE]

    with MockServer(script) as server:
        samples = ask(server.url, count=2)
        assert server.connections == 2
    assert all(sample.ok for sample in samples)


def test_a_port_where_nothing_listens_is_refused() -> None:
    (sample,) = ask(f"http://127.0.0.1:{closed_port()}")
    assert sample.outcome is Outcome.CONNECT_REFUSED
    assert "nothing listens" in sample.message


def test_a_name_that_does_not_resolve_is_a_dns_failure() -> None:
    (sample,) = ask("http://no-such-host.invalid:1")
    assert sample.outcome is Outcome.DNS
    assert "no-such-host.invalid" in sample.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=local",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    both = folder / "both.pem"
    both.write_text(key.read_text() + cert.read_text())
    return both


def _server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_tls_works_with_a_trusted_certificate(certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=str(certificate))

    async def conversation(client: Client) -> Reply:
        return await client.get(base_url(server.url).below("/health"))

    with MockServer(tls=_server_tls(certificate)) as server:
        reply = talk(server.url, conversation, tls=trust)
    assert (reply.outcome, reply.status) == (Outcome.OK, 200)


def test_an_untrusted_certificate_is_refused(certificate: Path) -> None:
    with MockServer(tls=_server_tls(certificate)) as server:
        (sample,) = ask(server.url)
    assert sample.outcome is Outcome.TLS
    assert "self-signed" in sample.message or "self signed" in sample.message


def test_https_to_a_plain_server_is_a_tls_failure() -> None:
    with MockServer() as server:
        (sample,) = ask(server.url.replace("http://", "https://"))
    assert sample.outcome is Outcome.TLS


def test_cancelling_drops_the_connection() -> None:
    """Nothing is left open: an unclosed transport would be a warning, and those are errors."""

    async def conversation(client: Client) -> None:
        pending = asyncio.create_task(client.get(base_url(server.url).below("/hang")))
        await asyncio.sleep(0.1)
        pending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pending

    def other(asked: Asked) -> Script | None:
        return [mock.HANG] if asked.path == "/hang" else None

    with MockServer(other=other) as server:
        talk(server.url, conversation, timeouts=Timeouts())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:8000", "http://"),
        ("ftp://x", "http://"),
        ("http://", "no host"),
        ("http://user:secret@host", "SPECRACK_API_KEY"),
        ("http://host/?key=secret", "query"),
        ("http://host:99999", "not a URL"),
        ("http://[::1", "not a URL"),
        ("http://host\r\nX: y", "control"),
        ("http://" + "a" * 70 + ".example", "no valid host"),
        ("", "http://"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_clear_line_without_secrets(url: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        base_url(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_v1_at_the_end_of_a_url_is_taken_off() -> None:
    assert str(base_url("https://host/prefix/v1/")) == "https://host/prefix"
    assert str(base_url("http://[::1]:80")) == "http://[::1]"


def test_a_proxy_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    with pytest.raises(InputError, match="http_proxy"):
        refuse_proxy(base_url("http://gpu1:8000"))
    # Loopback is never proxied, and no_proxy is heard.
    refuse_proxy(base_url("http://127.0.0.1:8000"))
    refuse_proxy(base_url("http://localhost:8000"))
    monkeypatch.setenv("no_proxy", "gpu1")
    refuse_proxy(base_url("http://gpu1:8000"))


def test_the_key_comes_from_the_environment_only() -> None:
    assert auth_headers({}) == ()
    assert auth_headers({"SPECRACK_API_KEY": " k1 "}) == (("Authorization", "Bearer k1"),)
    with pytest.raises(InputError) as caught:
        auth_headers({"SPECRACK_API_KEY": "a\nInjected: b"})
    assert "Injected" not in str(caught.value)
