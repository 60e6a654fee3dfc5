"""The engine of a launch plan, as a child process of a Serve replica."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .shepherd import LOG_NAME

SHEPHERD = Path(__file__).with_name("shepherd.py")
HEALTH_TIMEOUT_S = 5.0
#: Between looking whether the engine is ready.
POLL_S = 0.5
#: What of the log goes into the message about an engine that did not come up.
TAIL_LINES, TAIL_BYTES = 15, 4000


class EngineError(RuntimeError):
    """The engine did not come up, or is gone. One message, with the end of its log."""


class Engine:
    """One service of a launch plan, running in ``folder`` on a port of its own.

    ``service`` is the plan's own JSON (``infra.serving.plan.Service``). ``python`` stands for
    ``@PYTHON@`` in it.
    """

    def __init__(self, service: Mapping[str, Any], folder: Path, *, python: str = "") -> None:
        self._service = service
        self._folder = folder
        self.port = service.get("port") or free_port()
        self._values = {
            "@PORT@": str(self.port),
            "@DIR@": str(folder),
            "@PYTHON@": python or sys.executable,
        }
        self._shepherd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def metrics_path(self) -> str:
        return str(self._service.get("metrics_path", "/metrics"))

    def start(self) -> None:
        """Write the service's files and start it; returns at once."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for file in self._service.get("files", ()):
            path = self._folder / file["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._fill(file["content"]), encoding="utf-8")
            path.chmod(int(file.get("mode", "0600"), 8))
        wanted = {
            "command": [self._fill(word) for word in self._service["command"]],
            "env": environment_of_engine(os.environ)
            | {key: self._fill(value) for key, value in self._service.get("env", {}).items()},
            "folder": str(self._folder),
            "stop_timeout_s": self._service.get("stop_timeout_s", 10.0),
        }
        self._shepherd = subprocess.Popen(
            [sys.executable, str(SHEPHERD)], stdin=subprocess.PIPE, start_new_session=True
        )
        assert self._shepherd.stdin is not None
        self._shepherd.stdin.write(json.dumps(wanted).encode() + b"\n")
        self._shepherd.stdin.flush()

    def wait_until_ready(self) -> None:
        """Returns when the engine answers its health path. Raises EngineError, and leaves nothing
        running, when it ends first or takes longer than the plan grants."""
        limit_s = float(self._service.get("ready_timeout_s", 60.0))
        deadline = time.monotonic() + limit_s
        while not self.answers():
            if not self.alive:
                raise EngineError(f"the engine ended with status {self._status}{self._tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise EngineError(f"the engine is not ready after {limit_s:.0f} s{self._tail()}")
            time.sleep(POLL_S)

    @property
    def alive(self) -> bool:
        return self._shepherd is not None and self._shepherd.poll() is None

    def answers(self, timeout_s: float = HEALTH_TIMEOUT_S) -> bool:
        """Does the health path answer with 200?"""
        path = str(self._service.get("health_path", "/health"))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                return connection.getresponse().status == http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False

    def check(self) -> None:
        """Raises EngineError when the engine is gone or does not answer."""
        if not self.alive:
            raise EngineError(f"the engine ended with status {self._status}{self._tail()}")
        if not self.answers():
            raise EngineError(f"the engine does not answer its health path{self._tail()}")

    def stop(self) -> None:
        """Stop the engine and wait until it and all that it started are gone."""
        if self._shepherd is None:
            return
        assert self._shepherd.stdin is not None
        with contextlib.suppress(OSError):
            self._shepherd.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._shepherd.wait(float(self._service.get("stop_timeout_s", 10.0)) + 15.0)

    @property
    def _status(self) -> int | None:
        return self._shepherd.returncode if self._shepherd is not None else None

    def _fill(self, text: str) -> str:
        for placeholder, value in self._values.items():
            text = text.replace(placeholder, value)
        return text

    def _tail(self) -> str:
        try:
            with (self._folder / LOG_NAME).open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - TAIL_BYTES))
                lines = log.read().decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
        except OSError:
            return ""
        return "; its last words:\n" + "\n".join(lines) if lines else ""


def environment_of_engine(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of the image: Ray's packages stand beside the engine's, in a folder of their
    own, and must not be found in place of the engine's own versions."""
    kept = {key: value for key, value in ours.items() if key not in ("PYTHONPATH", "BASH_ENV")}
    if path := kept.pop("SPECRACK_ENGINE_PATH", ""):
        kept["PATH"] = path
    return kept


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def service_of(plan: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """The service of ``plan`` with this role. Raises EngineError."""
    for service in plan["services"]:
        if service["role"] == role:
            found: Mapping[str, Any] = service
            return found
    raise EngineError(f"the launch plan has no service with role {role}")
