"""Before anything is measured: is the endpoint up, what does it serve, what does it count?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from infra.errors import EndpointError, InputError, SpecrackError
from infra.serving.acceptance import AcceptanceRecord
from smoke.connection import Reply
from smoke.endpoint import API_KEY_VARIABLE, Url
from smoke.outcome import MEANING, Outcome
from smoke.sse import http_message
from smoke.transport import Client

#: Metrics text of the endpoint's engine -> record; None: not speculating; raises EndpointError.
AcceptanceReader = Callable[[str], AcceptanceRecord | None]

_KNOWN_ENGINES = ("vllm", "llamacpp")


@dataclass(frozen=True, slots=True)
class Served:
    """What answers at an endpoint."""

    model: str
    engine: str | None
    #: The ``Server`` header, for the report.
    server: str


async def check(
    client: Client,
    base: Url,
    *,
    model: str | None,
    engine: str | None,
    what: str,
    fallback: str | None = None,
) -> Served:
    """Ask ``/health`` and ``/v1/models``. Raises EndpointError, or InputError when the model must
    be chosen; ``what`` names the endpoint in messages. ``model`` is taken as given; without one
    the only served model is, or ``fallback`` where that leaves a doubt."""
    health = await client.get(base.below("/health"))
    _must_answer(health, base, what)
    if health.status == 503:
        raise EndpointError(
            f"{what} {base} is not ready: {http_message(health)}",
            do="wait until its model is loaded, then try again",
        )
    models = await client.get(base.below("/v1/models"))
    _must_answer(models, base, what)
    if models.status in (401, 403):
        raise EndpointError(
            f"{what} {base} refuses us: {http_message(models)}",
            do=f"put its key into the environment variable {API_KEY_VARIABLE}",
        )
    entries = _models_of(models)
    if model is None and len(entries) != 1 and fallback is not None:
        model = fallback
    if model is None:
        if not entries:
            raise EndpointError(
                f"{what} {base} does not list its models at /v1/models (HTTP {models.status})",
                do="name the model with --model; the URL must be the one below which /v1 lies",
            )
        if len(entries) > 1:
            names = ", ".join(sorted(str(entry["id"]) for entry in entries)[:10])
            raise InputError(f"{what} {base} serves several models: {names}", do="choose: --model")
        model = str(entries[0]["id"])
    owners = {str(entry.get("owned_by")) for entry in entries}
    guess = next((name for name in _KNOWN_ENGINES if name in owners), None)
    server = models.headers.get("server") or health.headers.get("server", "")
    return Served(model=model, engine=engine or guess, server=server)


async def read_counters(
    client: Client, url: Url, reader: AcceptanceReader
) -> tuple[AcceptanceRecord | None, str]:
    """The acceptance record of ``url`` now, and the problem in words when there is none to read.

    Missing metrics are no reason to stop: latencies can be judged without them.
    """
    reply = await client.get(url)
    if reply.outcome is not Outcome.OK:
        return None, f"metrics at {url}: {reply.message or MEANING[reply.outcome]}"
    if reply.status != 200:
        return None, f"no metrics at {url} (HTTP {reply.status})"
    try:
        return reader(reply.body().decode(errors="replace")), ""
    except SpecrackError as error:
        return None, f"metrics at {url}: {error.message}"


def _must_answer(reply: Reply, base: Url, what: str) -> None:
    if reply.outcome is Outcome.OK:
        return
    remedies = {
        Outcome.TLS: "check the certificate, or the scheme of the URL",
        Outcome.DNS: "check the host's name",
        Outcome.PROTOCOL: "check scheme and port: does an HTTP server listen there?",
    }
    raise EndpointError(
        f"{what} {base} cannot be measured: {reply.message or MEANING[reply.outcome]}",
        do=remedies.get(reply.outcome, "is it up? check the URL and the server's log"),
    )


def _models_of(reply: Reply) -> list[dict[str, Any]]:
    try:
        content = json.loads(reply.body())
    except (ValueError, RecursionError):
        return []
    entries = content.get("data") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, dict) and entry.get("id")]
