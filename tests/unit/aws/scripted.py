"""AWS by script: real boto3 clients whose answers botocore's Stubber gives.

Requests and answers are checked against botocore's own model of each call, so that neither a
misspelt parameter nor an answer that AWS could not give passes. One client a call, so that checks
may ask in any order and from several threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import boto3
from botocore.stub import Stubber

from infra.aws.ask import Aws

_SESSION = boto3.session.Session(
    aws_access_key_id="AKIAEXAMPLE",
    aws_secret_access_key="not-a-secret",
    region_name="us-east-1",
)
_lock = threading.RLock()
#: Making a client costs 40 ms: those that a test is done with serve the next one.
_idle: dict[str, list[Any]] = {}
_used: list[tuple[str, Any, Any, Stubber]] = []


def release() -> None:
    """Take the scripts off all clients; called after each test."""
    with _lock:
        for key, client, listen, stubber in _used:
            stubber.deactivate()
            client.meta.events.unregister("provide-client-params", listen)
            _idle.setdefault(key, []).append(client)
        _used.clear()


class Error:
    """An error that AWS answers with."""

    def __init__(self, code: str, message: str = "", status: int = 400) -> None:
        self.code, self.message, self.status = code, message, status


Answer = Mapping[str, Any] | Error
Script = Mapping[str, Answer | Sequence[Answer]]


def scripted(script: Script, region: str = "us-east-1") -> ScriptedAws:
    """An account that answers ``{"ec2.describe_images": answer, ...}``.

    A list is answered in order; a single answer as often as it is asked. What is not in the script
    must not be asked.
    """
    services: dict[tuple[str, str], _Service] = {}
    requests: list[tuple[str, str, dict[str, Any]]] = []

    def make_client(service: str, where: str) -> Any:
        key = (service, where)
        if key not in services:
            services[key] = _Service(service, where, script, requests)
        return services[key]

    return ScriptedAws(region, make_client=make_client, requests=requests)


class ScriptedAws(Aws):
    """``requests``: (call, region, parameters), in the order in which they were made."""

    def __init__(self, region: str, *, make_client: Any, requests: Any) -> None:
        super().__init__(region, make_client=make_client)
        self.requests: list[tuple[str, str, dict[str, Any]]] = requests


class _Service:
    def __init__(self, service: str, region: str, script: Script, requests: Any) -> None:
        self._service, self._region, self._script = service, region, script
        self._requests = requests
        self._clients: dict[str, Any] = {}

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._for(operation), operation)

    def get_paginator(self, operation: str) -> Any:
        return self._for(operation).get_paginator(operation)

    @property
    def meta(self) -> Any:
        return _plain(self._service).meta

    def _for(self, operation: str) -> Any:
        with _lock:
            if operation not in self._clients:
                self._clients[operation] = self._make(operation)
            return self._clients[operation]

    def _make(self, operation: str) -> Any:
        name = f"{self._service}.{operation}"
        if name not in self._script:
            raise AssertionError(f"{name} is not in the script")
        key = f"{self._service} {self._region}"
        idle = _idle.get(key)
        client = idle.pop() if idle else _new(self._service, self._region)

        def listen(params: dict[str, Any], **_: Any) -> None:
            self._requests.append((name, self._region, params))

        client.meta.events.register("provide-client-params", listen)
        stubber = Stubber(client)
        answers = self._script[name]
        for answer in answers if isinstance(answers, list) else [answers] * 8:
            if isinstance(answer, Error):
                stubber.add_client_error(
                    operation,
                    service_error_code=answer.code,
                    service_message=answer.message,
                    http_status_code=answer.status,
                )
            else:
                stubber.add_response(operation, dict(answer))
        stubber.activate()
        _used.append((key, client, listen, stubber))
        return client


def _new(service: str, region: str) -> Any:
    return _SESSION.client(service, region_name=region)


@functools.cache
def _plain(service: str) -> Any:
    return _new(service, "us-east-1")
