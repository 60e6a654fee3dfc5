"""How checks ask AWS: named calls, faults as AwsError, one answer for all who ask the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from infra.aws import session
from infra.aws.faults import telling

T = TypeVar("T")
MakeClient = Callable[[str, str], Any]
#: More pages than any account that a person looks after; a server that never ends is cut off.
MOST_PAGES = 200


class Aws:
    """One account in one region, for one run of preflight. May be shared by threads.

    ``make_client``: (service, region) -> boto3 client; ``infra.aws.session.client`` by default.
    """

    def __init__(self, region: str, *, make_client: MakeClient | None = None) -> None:
        self.region = region
        self._make_client: MakeClient = make_client or session.client
        self._clients: dict[tuple[str, str], Any] = {}
        self._answers: dict[str, _Answer] = {}
        self._lock = threading.Lock()
        #: The calls that were made, as IAM writes them: ``ec2:DescribeImages``.
        self.asked: set[str] = set()

    def client(self, service: str, region: str | None = None) -> Any:
        """A client, made once. Raises AwsError."""
        key = (service, region or self.region)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._make_client(*key)
            return self._clients[key]

    def call(self, service: str, operation: str, region: str | None = None, **request: Any) -> Any:
        """The answer of one call (``describe_images``). Raises AwsError."""
        where = region or self.region
        client = self.client(service, where)
        self._note(service, client, operation)
        with telling(service, where):
            return getattr(client, operation)(**request)

    def pages(self, service: str, operation: str, key: str, **request: Any) -> Iterator[Any]:
        """The entries below ``key`` of all pages. Raises AwsError."""
        client = self.client(service)
        self._note(service, client, operation)
        with telling(service, self.region):
            pages = client.get_paginator(operation).paginate(**request)
            for number, page in enumerate(pages):
                if number >= MOST_PAGES:
                    return
                yield from page.get(key) or ()

    def once(self, name: str, make: Callable[[], T]) -> T:
        """``make()``, once: a second asker waits for the first one's answer, or its error."""
        with self._lock:
            answer = self._answers.setdefault(name, _Answer())
        value: T = answer.get(make)
        return value

    def _note(self, service: str, client: Any, operation: str) -> None:
        name = client.meta.method_to_api_mapping[operation]
        with self._lock:
            self.asked.add(f"{_PREFIXES.get(service, service)}:{_ACTIONS.get(name, name)}")


#: Where IAM's word for a service or a call is another than the API's.
_PREFIXES = {"service-quotas": "servicequotas"}
_ACTIONS = {"HeadBucket": "ListBucket", "ListObjectsV2": "ListBucket"}


class _Answer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: Exception | None = None
        self._made = False

    def get(self, make: Callable[[], Any]) -> Any:
        with self._lock:
            if not self._made:
                try:
                    self._value = make()
                except Exception as error:
                    self._error = error
                self._made = True
        if self._error is not None:
            raise self._error
        return self._value
