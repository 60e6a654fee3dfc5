"""A streaming HTTP/1.1 client for measuring: keep-alive pool, TLS, four time-outs, typed outcomes.

``Client.exchange`` never raises for what a server or a network does: every failure becomes the
``outcome`` of the reply. Cancelling it drops the connection.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from dataclasses import dataclass

from smoke.clock import NS_PER_S, Clock
from smoke.connection import Connection, Reply
from smoke.endpoint import Origin, Url
from smoke.outcome import Outcome

USER_AGENT = "specrack-smoke/1"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds after which an exchange is given up."""

    #: To make a connection, TLS included.
    connect_s: float = 5.0
    #: From the request's last byte written to the reply's first byte.
    first_byte_s: float = 30.0
    #: Between two reads of a reply.
    stall_s: float = 15.0
    #: For the whole exchange.
    total_s: float = 120.0


class Client:
    """Connections to one origin. Use as an async context manager: it closes what it opened."""

    def __init__(
        self,
        origin: Origin,
        *,
        clock: Clock,
        timeouts: Timeouts,
        headers: tuple[tuple[str, str], ...] = (),
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """``headers`` go with every request. ``tls_context`` defaults to the system's trust."""
        self._origin = origin
        self._clock = clock
        self._timeouts = timeouts
        self._headers = headers
        self._tls = (tls_context or ssl.create_default_context()) if origin.tls else None
        self._addresses: list[str] = []
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        #: The time-out of each exchange in progress, by the identity of its reply.
        self._watches: dict[int, asyncio.TimerHandle] = {}

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        connections = list(self._all)
        for connection in connections:
            connection.abort()
        self._idle.clear()
        self._all.clear()
        if connections:  # wait until the sockets are closed, so that nothing leaks past the run
            await asyncio.wait([one.closed for one in connections], timeout=2)

    async def get(self, url: Url) -> Reply:
        """GET ``url``."""
        return await self.exchange(self._head("GET", url, length=None))

    def post_bytes(self, url: Url, body: bytes) -> bytes:
        """The bytes of a POST of JSON to ``url``, ready for ``exchange``."""
        return self._head("POST", url, length=len(body)) + body

    async def exchange(self, request: bytes) -> Reply:
        """Send ``request`` and wait for the whole reply."""
        reply = Reply(started_ns=self._clock.now_ns())
        while True:
            connection = self._take_idle()
            reused = connection is not None
            if connection is None:
                connection = await self._connect(reply)
            if connection is None:
                reply.end_ns = self._clock.now_ns()
                return reply
            await self._carry(connection, request, reply)
            stale = reused and reply.outcome is Outcome.RESET and not reply.first_byte_ns
            if not stale:
                return reply
            # The server closed a kept connection just as we wrote to it: no byte of a reply came,
            # so asking again on a new one is safe (RFC 9112, section 9.3.1).
            reply = Reply(started_ns=reply.started_ns)

    async def _carry(self, connection: Connection, request: bytes, reply: Reply) -> None:
        done = connection.begin(request, reply)
        first_s = min(self._timeouts.first_byte_s, self._timeouts.total_s)
        self._watches[id(reply)] = asyncio.get_running_loop().call_later(
            first_s, self._watch, connection, reply
        )
        try:
            await done
        finally:
            self._watches.pop(id(reply)).cancel()
            self._put_back(connection, reply)

    def _watch(self, connection: Connection, reply: Reply) -> None:
        """Give up when a time-out has passed, else look again when the next one may have.

        One timer an exchange, set again only when it fires: nothing to do per read.
        """
        now_ns = self._clock.now_ns()
        limits = self._timeouts
        silent_s = (now_ns - connection.last_read_ns) / NS_PER_S
        total_left_s = limits.total_s - (now_ns - reply.sent_ns) / NS_PER_S
        if not reply.first_byte_ns:
            left_s = limits.first_byte_s - silent_s
            late = Outcome.TIMEOUT_FIRST_BYTE, f"no reply within {limits.first_byte_s:g} s"
        else:
            left_s = limits.stall_s - silent_s
            late = Outcome.STALLED, f"silent for {limits.stall_s:g} s in mid-reply"
        if left_s <= 0:
            connection.fail(*late)
        elif total_left_s <= 0:
            connection.fail(Outcome.TIMEOUT_TOTAL, f"not complete within {limits.total_s:g} s")
        elif id(reply) in self._watches:
            self._watches[id(reply)] = asyncio.get_running_loop().call_later(
                max(0.001, min(left_s, total_left_s)), self._watch, connection, reply
            )

    # ---- connections

    def _take_idle(self) -> Connection | None:
        now_ns = self._clock.now_ns()
        while self._idle:
            connection = self._idle.pop()
            limit_ns = connection.keep_alive_ns
            fresh = limit_ns is None or now_ns - connection.idle_since_ns < limit_ns
            if connection.reusable and fresh:
                return connection
            connection.abort()
        return None

    def _put_back(self, connection: Connection, reply: Reply) -> None:
        if not connection.reusable:
            connection.abort()
            return
        connection.idle_since_ns = self._clock.now_ns()
        connection.keep_alive_ns = _keep_alive_ns(reply.headers.get("keep-alive", ""))
        self._idle.append(connection)

    async def _connect(self, reply: Reply) -> Connection | None:
        """A new connection, or None with the failure written into ``reply``."""
        start_ns = self._clock.now_ns()
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                connection = await self._open()
        except TimeoutError:
            reply.fail(
                Outcome.TIMEOUT_CONNECT,
                f"no connection to {self._origin} within {self._timeouts.connect_s:g} s",
            )
        except socket.gaierror as error:
            reply.fail(Outcome.DNS, f"{self._origin.host}: {error.strerror or error}")
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or str(error)
            reply.fail(Outcome.TLS, f"{self._origin}: {reason}")
        except ConnectionRefusedError:
            reply.fail(Outcome.CONNECT_REFUSED, f"nothing listens at {self._origin}")
        except ConnectionError as error:
            kind = Outcome.TLS if self._tls is not None else Outcome.CONNECT_FAILED
            reply.fail(kind, f"{self._origin}: {error or 'connection cut in the handshake'}")
        except OSError as error:
            reply.fail(Outcome.CONNECT_FAILED, f"{self._origin}: {error.strerror or error}")
        else:
            reply.connect_ns += self._clock.now_ns() - start_ns
            self._all.add(connection)
            connection.closed.add_done_callback(lambda _: self._all.discard(connection))
            return connection
        return None

    async def _open(self) -> Connection:
        """Try the host's addresses in turn; the one that answered is tried first from then on."""
        loop = asyncio.get_running_loop()
        if not self._addresses:
            found = await loop.getaddrinfo(
                self._origin.host, self._origin.port, type=socket.SOCK_STREAM
            )
            self._addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        problem: OSError | None = None
        for address in tuple(self._addresses):
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(self._clock.now_ns),
                    address,
                    self._origin.port,
                    ssl=self._tls,
                    server_hostname=self._origin.host if self._tls is not None else None,
                )
            except OSError as error:
                problem = problem or error
                continue
            if self._addresses[0] != address:
                self._addresses.remove(address)
                self._addresses.insert(0, address)
            return connection
        raise problem or OSError(f"{self._origin.host} has no address")

    def _head(self, method: str, url: Url, *, length: int | None) -> bytes:
        lines = [
            f"{method} {url.path or '/'} HTTP/1.1",
            f"Host: {self._origin.host_header}",
            f"User-Agent: {USER_AGENT}",
            "Accept-Encoding: identity",
            *(f"{name}: {value}" for name, value in self._headers),
        ]
        if length is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _keep_alive_ns(header: str) -> int | None:
    """How long an idle connection may be used again, from ``Keep-Alive: timeout=5``; a second
    less than the server says, so that we do not write to one that it is closing."""
    found = re.search(r"timeout=(\d{1,6})", header)
    return max(0, int(found.group(1)) - 1) * NS_PER_S if found else None
