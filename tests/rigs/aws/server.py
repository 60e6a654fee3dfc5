"""``python -m tests.rigs.aws.server --port N --log FILE``: moto's server with the extension.

Ends with the process that started it. One call at a time goes through moto, which keeps its
state in plain dictionaries; delays happen outside of that lock. ``/_rig/...`` is for tests:

- ``GET  /_rig/health``
- ``POST /_rig/settings``  what the account has (extension/settings.py)
- ``POST /_rig/faults``    a list of faults, which replaces the one before; see ``Fault``
- ``POST /_rig/reset``     forget everything

The log has a JSON line a call: when, service, action, status, milliseconds, and the bodies when
it was answered with an error.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

StartResponse = Callable[..., Any]
RESET = "/_rig/reset"


@dataclass
class Fault:
    """What to do to calls of ``service`` ``action`` (``*``: any).

    It begins with call number ``nth`` (1: the first after the fault was set) and holds for
    ``count`` calls. ``delay_s`` waits; ``status`` answers with an error of ``code`` instead, or,
    with ``when: after``, does what was asked and then delays or loses the answer: what a client
    that dies in between leaves behind.
    """

    service: str
    action: str = "*"
    nth: int = 1
    count: int = 1
    delay_s: float = 0.0
    status: int = 0
    code: str = "InternalError"
    message: str = "a fault that the test asked for"
    when: str = "before"
    seen: int = field(default=0, init=False)

    def hits(self, service: str, action: str) -> bool:
        """Count the call; is it one of those?"""
        if self.service not in ("*", service) or self.action not in ("*", action):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.count


@dataclass(frozen=True)
class Reply:
    """An answer, whole."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes

    def send(self, start: StartResponse) -> Iterable[bytes]:
        headers = [(k, v) for k, v in self.headers if k.lower() != "content-length"]
        if not self.status.startswith(("204", "304")):
            headers.append(("Content-Length", str(len(self.body))))
        start(self.status, headers)
        return [self.body]


def signed_for(environ: dict[str, Any]) -> str:
    """The service in the signature: ``ec2``, ``s3``, ``eks``..."""
    parts = environ.get("HTTP_AUTHORIZATION", "").split("/")
    return parts[3] if len(parts) >= 5 else ""


def action_of(environ: dict[str, Any], service: str, body: bytes) -> str:
    """The operation's name, or method and path where only S3 itself could tell."""
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return str(target).split(".")[-1]
    if b"Action=" in body[:4000]:
        found = parse_qs(body.decode("utf-8", "replace")).get("Action")
        if found:
            return found[0]
    query = environ.get("QUERY_STRING", "")
    if "Action=" in query:
        return parse_qs(query)["Action"][0]
    if service in ("eks", "scheduler"):
        from moto.core.request import Request
        from moto.core.routing import NotFound, get_service_router

        try:
            return str(get_service_router(service).match(Request(environ))[0].name)
        except (NotFound, NotImplementedError):
            pass
    return f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}" + (
        f"?{query}" if query else ""
    )


def error_reply(service: str, fault: Fault) -> Reply:
    """An error in the format of the service's protocol."""
    code, message = fault.code, fault.message
    if service == "ec2":
        text = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error>"
            "</Errors><RequestID>rig</RequestID></Response>"
        )
        kind = "text/xml"
    elif service == "s3":
        text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        kind = "application/xml"
    elif service in ("iam", "sts", "autoscaling", "monitoring", "elasticloadbalancing"):
        text = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>"
            f"<Message>{message}</Message></Error><RequestId>rig</RequestId></ErrorResponse>"
        )
        kind = "text/xml"
    else:
        text = json.dumps({"__type": code, "message": message, "Message": message})
        kind = "application/x-amz-json-1.1"
    return Reply(
        f"{fault.status} Error",
        [("Content-Type", kind), ("x-amzn-ErrorType", code), ("x-amzn-RequestId", "rig")],
        text.encode(),
    )


class Rig:
    """The WSGI application."""

    def __init__(self, log_path: str) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self.moto = DomainDispatcherApplication(create_backend_app)
        self.log = open(log_path, "a", buffering=1, encoding="utf-8")  # noqa: PTH123, SIM115
        self.faults: list[Fault] = []
        self.lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        path = environ.get("PATH_INFO", "")
        if path.startswith("/_rig/"):
            return self.control(path, body).send(start)
        service = signed_for(environ)
        action = action_of(environ, service, body)
        environ["wsgi.input"] = io.BytesIO(body)
        began = time.time()
        reply = self.answer(environ, service, action)
        line: dict[str, Any] = {
            "at": round(began, 3),
            "service": service,
            "action": action,
            "status": int(reply.status.split()[0]),
            "ms": round((time.time() - began) * 1000),
        }
        if line["status"] >= 400:
            line["request"] = body[:600].decode("utf-8", "replace")
            line["answer"] = reply.body[-1500:].decode("utf-8", "replace")
        self.log.write(json.dumps(line) + "\n")
        return reply.send(start)

    def answer(self, environ: dict[str, Any], service: str, action: str) -> Reply:
        with self.lock:
            hit = next((one for one in self.faults if one.hits(service, action)), None)
        if hit and hit.when == "before":
            self.note(hit, service, action)
            time.sleep(hit.delay_s)
            if hit.status:
                return error_reply(service, hit)
        reply = self.ask(environ, service)
        if hit and hit.when == "after":
            self.note(hit, service, action)
            time.sleep(hit.delay_s)
            if hit.status:
                return error_reply(service, hit)
        return reply

    def note(self, hit: Fault, service: str, action: str) -> None:
        """Tell in the log that a fault begins: a test waits for this moment."""
        line = {"at": round(time.time(), 3), "service": service, "action": action}
        self.log.write(json.dumps({**line, "fault": hit.when, "status": 0, "ms": 0}) + "\n")

    def ask(self, environ: dict[str, Any], service: str) -> Reply:
        """moto's answer, or that of a service that it does not have."""
        head: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
            head["status"], head["headers"] = status, headers

        with self.lock:
            try:
                if service == "pricing":
                    return self.pricing(environ)
                body = b"".join(self.moto(environ, start))
                return Reply(head["status"], head["headers"], body)
            except Exception:
                # Seen by the test in the log, and by the client as a fault of the server.
                text = traceback.format_exc()
                return Reply("501 Rig", [("Content-Type", "text/plain")], text.encode())

    @staticmethod
    def pricing(environ: dict[str, Any]) -> Reply:
        from moto.moto_server.werkzeug_app import BackendRequest

        from tests.rigs.aws.extension.pricing import PricingResponse

        status, headers, body = PricingResponse.dispatch(BackendRequest(environ))
        data = body.encode() if isinstance(body, str) else body
        kept = [(key, str(value)) for key, value in headers.items() if key != "status"]
        return Reply(f"{status} Done", kept, data)

    def control(self, path: str, body: bytes) -> Reply:
        from tests.rigs.aws.extension import settings

        wanted = json.loads(body) if body else None
        if path == "/_rig/settings":
            settings.put(wanted)
        elif path == "/_rig/faults":
            with self.lock:
                self.faults = [Fault(**one) for one in wanted]
        elif path == RESET:
            from moto.moto_api._internal.models import moto_api_backend

            with self.lock:
                self.faults = []
                settings.reset()
                moto_api_backend.reset()
        elif path != "/_rig/health":
            return Reply("404 No", [], b"")
        return Reply("200 OK", [("Content-Type", "application/json")], b"{}")


def main() -> int:
    parser = argparse.ArgumentParser(description="An AWS to test against.")
    # No default: a client that meets the wrong server believes that everything was deleted.
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", required=True)
    options = parser.parse_args()
    os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"

    from werkzeug.serving import WSGIRequestHandler, run_simple

    from infra.process import stop_when_orphaned
    from tests.rigs.aws import extension

    extension.install()
    stop_when_orphaned()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    # A Ctrl-C is for the test that runs us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    class Handler(WSGIRequestHandler):
        """Quiet, and keeps connections: Terraform makes hundreds of calls."""

        protocol_version = "HTTP/1.1"

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            pass

    run_simple("127.0.0.1", options.port, Rig(options.log), threaded=True, request_handler=Handler)
    return 0


if __name__ == "__main__":
    sys.exit(main())
