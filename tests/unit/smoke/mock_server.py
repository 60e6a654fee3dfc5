"""An OpenAI-compatible server that behaves as badly as a test wants, in a thread of its own.

A script is a list of steps: bytes are written, a number is slept (seconds), ``CLOSE`` ends the
connection, ``RESET`` cuts it with RST, ``HANG`` says nothing until the client goes away.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

CLOSE, RESET, HANG = "close", "reset", "hang"
Step = bytes | float | str
Script = list[Step]

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: mock\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def chat(self) -> bool:
        return self.path.endswith("/chat/completions")

    @property
    def prompt(self) -> str:
        text = self.body["messages"][0]["content"] if self.chat else self.body["prompt"]
        assert isinstance(text, str)
        return text


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(content: object) -> bytes:
    data = content if isinstance(content, str) else json.dumps(content)
    return chunked(f"data: {data}\n\n".encode())


def token(text: str, *, chat: bool) -> bytes:
    choice: dict[str, Any] = {"index": 0, "finish_reason": None}
    choice |= {"delta": {"content": text}} if chat else {"text": text}
    return event({"choices": [choice]})


def finish(
    *, chat: bool, usage: dict[str, int] | None = None, reason: str | None = "length"
) -> bytes:
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
    choice |= {"delta": {}} if chat else {"text": ""}
    content: dict[str, Any] = {"choices": [choice]}
    if usage is not None:
        content["usage"] = usage
    return event(content)


def plain(status: str, body: str, *headers: str, kind: str = "application/json") -> Script:
    """A whole reply with a body."""
    data = body.encode()
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(data)}",
        *headers,
    ]
    return ["\r\n".join([*lines, "", ""]).encode() + data]


def good(asked: Asked, *, text: str = "", gap_s: float = 0.0) -> Script:
    """A well-behaved stream of ``max_tokens`` tokens; the text depends on the prompt alone."""
    tokens = asked.body["max_tokens"]
    words = text or f"answer to {len(asked.prompt)}"
    steps: Script = [STREAM_HEAD]
    for number in range(tokens):
        steps.append(token(f"{words} {number} " if number == 0 else f"{number} ", chat=asked.chat))
        if gap_s:
            steps.append(gap_s)
    usage = {"completion_tokens": tokens, "prompt_tokens": 7}
    steps += [finish(chat=asked.chat, usage=usage), event("[DONE]") + LAST_CHUNK]
    return steps


class MockServer:
    """Serves until the ``with`` block ends. ``asked`` holds the completion requests in order."""

    def __init__(
        self,
        script: Callable[[Asked], Script] = good,
        *,
        metrics: Callable[[], str] | None = None,
        models: tuple[str, ...] = ("tiny",),
        owned_by: str = "llamacpp",
        other: Callable[[Asked], Script | None] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._script, self._metrics, self._tls = script, metrics, tls
        self._models, self._owned_by, self._other = models, owned_by, other
        self.asked: list[Asked] = []
        self.connections = 0
        self.url = ""
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._take, "127.0.0.1", 0, ssl=self._tls)
        port = server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:  # of tasks that were cancelled before they began, too
            writer.transport.abort()
        await server.wait_closed()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        task = asyncio.create_task(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read(reader)) is not None:
                if not await self._reply(asked, reader, writer):
                    break
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _reply(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        for step in self._steps(asked):
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif step == HANG:
                await reader.read()
                return False
            else:
                if step == RESET:
                    linger = struct.pack("ii", 1, 0)
                    sock = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return False
        return True

    def _steps(self, asked: Asked) -> Script:
        if self._other is not None and (steps := self._other(asked)) is not None:
            return steps
        if asked.path == "/health":
            return plain("200 OK", '{"status":"ok"}')
        if asked.path == "/v1/models":
            entries = [{"id": name, "owned_by": self._owned_by} for name in self._models]
            return plain("200 OK", json.dumps({"data": entries}), "Server: mock")
        if asked.path == "/metrics" and self._metrics is not None:
            return plain("200 OK", self._metrics(), kind="text/plain")
        if asked.method == "POST":
            self.asked.append(asked)
            return self._script(asked)
        return plain("404 Not Found", '{"error":{"message":"File Not Found"}}')


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        first_byte = await reader.readexactly(1)
        if first_byte == b"\x16":  # the first byte of a TLS handshake, on a plain port
            return None
        head = (first_byte + await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    length = int(headers.get("content-length", "0"))
    body = json.loads(await reader.readexactly(length)) if length else {}
    return Asked(method, path, headers, body)
