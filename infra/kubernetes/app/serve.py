"""Ray Serve in front of the engine: one replica a node, each with an engine of its own.

Needs Ray and what its ``serve`` extra brings (aiohttp, starlette), nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp  # type: ignore[import-not-found,unused-ignore]
import ray  # type: ignore[import-not-found,unused-ignore]
from ray import serve
from starlette.requests import Request  # type: ignore[import-not-found,unused-ignore]
from starlette.responses import (  # type: ignore[import-not-found,unused-ignore]
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)

from .engine import HEALTH_TIMEOUT_S, Engine, EngineError, service_of
from .metrics import merged

#: Names of the two deployments in Serve's configuration.
ENGINE, ROSTER = "Engine", "Roster"

#: Belong to one connection, not to the message (RFC 9110, section 7.6.1), or are set anew.
_NOT_PASSED_ON = frozenset(
    {
        "connection", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip

#: A replica that was not heard of for so long is gone.
ROSTER_FORGETS_S = 60.0
_METRICS_TIMEOUT_S = 5.0


class Roster:
    """Where the metrics of each replica's engine are. Replicas say so again with every health
    check, so nothing is lost with this one."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[str, float]] = {}

    def here(self, replica: str, url: str) -> None:
        self._heard[replica] = (url, time.monotonic())

    def gone(self, replica: str) -> None:
        self._heard.pop(replica, None)

    def urls(self) -> dict[str, str]:
        since = time.monotonic() - ROSTER_FORGETS_S
        self._heard = {name: entry for name, entry in self._heard.items() if entry[1] > since}
        return {name: url for name, (url, _) in sorted(self._heard.items())}


class EngineReplica:
    """Starts the engine, passes requests on to it, and is as healthy as it."""

    def __init__(self, plan_file: str, role: str, folder: str, python: str, roster: Any) -> None:
        plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
        self._id = serve.get_replica_context().replica_id.unique_id
        self._roster = roster
        self._session: aiohttp.ClientSession | None = None
        self._page: asyncio.Server | None = None
        self._page_url = ""
        parent = Path(folder or tempfile.gettempdir())
        self._engine = Engine(service_of(plan, role), parent / f"{role}-{self._id}", python=python)
        self._engine.start()
        try:
            self._engine.wait_until_ready()
        except BaseException:
            self._engine.stop()
            raise

    async def __call__(self, request: Request) -> Response:
        path = request.url.path
        if path == "/metrics":
            return PlainTextResponse(await self._all_metrics())
        if path != "/health" and not path.startswith("/v1/"):
            return _error(404, f"{path} is not served; /v1/..., /health and /metrics are")
        return await self._pass_on(request)

    async def check_health(self) -> None:
        """Called by Serve. Raises when the engine is gone: Serve then replaces this replica."""
        await asyncio.get_running_loop().run_in_executor(None, self._engine.check)
        if self._page is None:
            await self._serve_own_metrics()
        with contextlib.suppress(Exception):
            # The roster may be about to be restarted; the next check says it again.
            await self._roster.here.remote(self._id, self._page_url)

    def __del__(self) -> None:
        # Serve calls it once the replica has answered its last request.
        engine = getattr(self, "_engine", None)
        if engine is not None:
            engine.stop()

    async def _pass_on(self, request: Request) -> Response:
        target = f"{self._engine.url}{request.url.path}"
        if request.url.query:
            target = f"{target}?{request.url.query}"
        try:
            answer = await self._client().request(
                request.method,
                target,
                data=await request.body(),
                headers=_passed_on(request.headers),
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            return _error(502, f"the engine did not answer: {type(error).__name__}")
        return StreamingResponse(
            _chunks(answer), status_code=answer.status, headers=_passed_on(answer.headers)
        )

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # How many at once is Serve's business (max_ongoing_requests), and a completion
                # may take as long as it takes.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
            )
        return self._session

    async def _all_metrics(self) -> str:
        urls = {self._id: ""}
        with contextlib.suppress(Exception):
            urls |= await self._roster.urls.remote()
        urls.pop(self._id)
        pages = await asyncio.gather(
            self._own_metrics(), *(self._fetch(url) for url in urls.values())
        )
        named = zip([self._id, *urls], pages, strict=True)
        return merged(dict(sorted((name, page) for name, page in named if page)))

    async def _own_metrics(self) -> str:
        return await self._fetch(f"{self._engine.url}{self._engine.metrics_path}")

    async def _fetch(self, url: str) -> str:
        limit = aiohttp.ClientTimeout(total=_METRICS_TIMEOUT_S)
        try:
            async with self._client().get(url, timeout=limit) as answer:
                # trtllm-serve redirects to its own metrics with a slash at the end.
                return str(await answer.text()) if answer.status == 200 else ""
        except (aiohttp.ClientError, OSError, TimeoutError):
            return ""

    async def _serve_own_metrics(self) -> None:
        """A page of this replica's metrics for the others, on a free port of this node."""
        self._page = await asyncio.start_server(self._answer_with_metrics, "0.0.0.0", 0)  # noqa: S104
        port = self._page.sockets[0].getsockname()[1]
        self._page_url = f"http://{ray.util.get_node_ip_address()}:{port}/metrics"

    async def _answer_with_metrics(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEALTH_TIMEOUT_S)
            page = (await self._own_metrics()).encode()
            head = (
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + page)
            await writer.drain()
        writer.close()


async def _chunks(answer: Any) -> AsyncIterator[bytes]:
    """What the engine sends, as it comes. When the client leaves, so do we: the engine sees its
    connection close and stops decoding for nobody."""
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON}


def _error(status: int, message: str) -> Response:
    """In the form of the OpenAI API."""
    return JSONResponse(
        {"error": {"message": message, "type": "specrack", "code": status}}, status_code=status
    )


def build(args: Mapping[str, str]) -> Any:
    """The Serve application. ``args``: ``plan`` (the launch plan's file), and optionally ``role``,
    ``folder`` (below which each engine gets a folder) and ``python``. Raises EngineError."""
    if not args.get("plan"):
        raise EngineError("the argument plan is missing: the file with the launch plan")
    roster = serve.deployment(name=ROSTER, num_replicas=1, ray_actor_options={"num_cpus": 0})(
        Roster
    )
    return serve.deployment(name=ENGINE)(EngineReplica).bind(
        args["plan"],
        args.get("role", "speculative"),
        args.get("folder", ""),
        args.get("python", ""),
        roster.bind(),
    )
