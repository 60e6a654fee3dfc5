"""A server small enough to be started many times: /health, and ways to misbehave."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.serving.plan import LaunchPlan, PlanFile, Role, Service

SERVER = """
import http.server, os, signal, sys
port, mode = int(sys.argv[1]), open("mode").read().strip()
if mode == "bad-input":
    print("models/none.gguf: no such file", file=sys.stderr)
    sys.exit(2)
if mode == "crash":
    print("boom", file=sys.stderr)
    sys.exit(7)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if mode == "loading" else 200)
        self.end_headers()

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""

MakePlan = Callable[..., LaunchPlan]


@pytest.fixture
def make_plan() -> MakePlan:
    def make(
        *,
        mode: str = "good",
        port: int | None = None,
        roles: tuple[Role, ...] = ("speculative",),
        ready_timeout_s: float = 20.0,
    ) -> LaunchPlan:
        return LaunchPlan(
            deployment="toy",
            engine="llamacpp",
            engine_version="0",
            served_model="toy",
            services=tuple(
                Service(
                    role=role,
                    command=("@PYTHON@", "@DIR@/server.py", "@PORT@"),
                    files=(
                        PlanFile(path="server.py", content=SERVER),
                        PlanFile(path="mode", content=mode),
                    ),
                    port=port,
                    ready_timeout_s=ready_timeout_s,
                    stop_timeout_s=1.0,
                )
                for role in roles
            ),
        )

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    run = tmp_path / "a blank" / "run"
    run.mkdir(parents=True)
    yield run
    subprocess.run(
        [sys.executable, "-m", "infra.supervisor", "stop", "--dir", str(run)], check=True
    )
