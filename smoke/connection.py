"""One HTTP/1.1 connection: bytes in, timestamped body pieces out.

The parser is httptools (llhttp). Each read is stamped before anything looks at it. Nothing here
decodes the body: that is done once the reply is complete (``smoke.sse``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools

from smoke.outcome import Outcome

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Reply:
    """What came back for one request. All times in nanoseconds of the harness's clock."""

    outcome: Outcome = Outcome.OK
    message: str = ""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    #: Body pieces with the time of the read that brought them.
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    started_ns: int = 0
    sent_ns: int = 0
    first_byte_ns: int = 0
    end_ns: int = 0
    #: Time spent on making a connection; 0 when one was kept alive.
    connect_ns: int = 0

    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    def fail(self, outcome: Outcome, message: str) -> None:
        self.outcome, self.message = outcome, message


class Connection(asyncio.Protocol):
    """Carries one exchange at a time; ``reusable`` says whether it may carry another."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._transport: asyncio.Transport | None = None
        self._reply: Reply | None = None
        self._done: asyncio.Future[None] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._read_ns = 0
        self._head_bytes = 0
        self._body_bytes = 0
        self._in_body = False
        self._complete = False
        self._delimited = False
        self._keep_alive = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost = False
        self.last_read_ns = 0
        self.idle_since_ns = 0
        self.keep_alive_ns: int | None = None

    # ---- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport, so there is nothing to check.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read_ns = self.last_read_ns = self._now_ns()
        reply, parser = self._reply, self._parser
        if reply is None or parser is None or self._complete:
            self.abort()  # bytes that nobody asked for: the connection cannot be trusted again
            return
        if not reply.first_byte_ns:
            reply.first_byte_ns = self._read_ns
        if not self._in_body:
            self._head_bytes += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(Outcome.PROTOCOL, "the server switched to another protocol")
        except httptools.HttpParserError as error:
            if not self._complete:
                self._finish(Outcome.PROTOCOL, f"not HTTP/1.1: {error}")
        if not self._in_body and self._head_bytes > MAX_HEAD_BYTES:
            self._finish(Outcome.PROTOCOL, f"more than {MAX_HEAD_BYTES} bytes of headers")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if not self.closed.done():
            self.closed.set_result(None)
        reply = self._reply
        if reply is None or self._complete:
            return
        if reply.first_byte_ns and self._in_body and not self._delimited and exc is None:
            self._finish(Outcome.OK, "")  # HTTP/1.0 style: the end of the connection ends the body
        elif self._in_body and exc is None:
            self._finish(Outcome.TRUNCATED, "the connection was closed in mid-reply")
        else:
            why = f": {exc}" if exc is not None else " by the server"
            self._finish(Outcome.RESET, f"the connection was cut{why}")

    # ---- httptools' side

    def on_message_begin(self) -> None:
        self._delimited = False

    def on_header(self, name: bytes, value: bytes) -> None:
        assert self._reply is not None
        self._reply.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        assert self._reply is not None
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:  # 100 Continue and the like: the real reply follows
            self._reply.headers.clear()
            return
        self._reply.status = status
        headers = self._reply.headers
        self._delimited = "content-length" in headers or "transfer-encoding" in headers
        self._in_body = True
        if headers.get("content-encoding", "identity") != "identity":
            self._finish(
                Outcome.PROTOCOL,
                f"compressed ({headers['content-encoding']}) although identity was asked for",
            )

    def on_body(self, body: bytes) -> None:
        if self._reply is None or self._complete:
            return
        self._body_bytes += len(body)
        if self._body_bytes > MAX_BODY_BYTES:
            self._finish(Outcome.PROTOCOL, f"more than {MAX_BODY_BYTES >> 20} MiB in one reply")
            return
        self._reply.pieces.append((self._read_ns, body))

    def on_message_complete(self) -> None:
        if self._in_body and not self._complete and self._parser is not None:
            self._keep_alive = bool(self._parser.should_keep_alive())  # it forgets right after
            self._finish(Outcome.OK, "")

    # ---- our side

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow the last."""
        if self.lost or self._transport is None or self._transport.is_closing():
            return False
        if self._parser is None:
            return True
        reply = self._reply
        whole = self._complete and reply is not None and reply.outcome is Outcome.OK
        return whole and self._delimited and self._keep_alive

    def begin(self, request: bytes, reply: Reply) -> asyncio.Future[None]:
        """Write ``request``; the future is done when ``reply`` is complete or has failed."""
        assert self._transport is not None
        self._done = asyncio.get_running_loop().create_future()
        self._reply = reply
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = self._body_bytes = 0
        self._in_body = self._complete = self._delimited = self._keep_alive = False
        if self.lost:
            self._finish(Outcome.RESET, "the connection was cut by the server")
            return self._done
        reply.sent_ns = self.last_read_ns = self._now_ns()
        self._transport.write(request)
        return self._done

    def fail(self, outcome: Outcome, message: str) -> None:
        """End the exchange in progress with a failure, as a time-out does."""
        if self._reply is not None and not self._complete:
            self._finish(outcome, message)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _finish(self, outcome: Outcome, message: str) -> None:
        assert self._reply is not None
        self._complete = True
        reply = self._reply
        reply.end_ns = self._read_ns if outcome is Outcome.OK else self._now_ns()
        if outcome is not Outcome.OK:
            reply.fail(outcome, message)
        if self._done is not None and not self._done.done():
            self._done.set_result(None)
        if outcome is not Outcome.OK:
            self.abort()
