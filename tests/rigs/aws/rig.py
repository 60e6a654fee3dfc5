"""Start the server as a process, talk to it, and count what is there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
REGION = "us-east-1"
ACCOUNT = "123456789012"
#: How long a server may take to start; 2 s on a quiet machine.
START_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class AwsRig:
    """A running server. ``env`` is what makes Specrack, Terraform and boto3 go there."""

    port: int
    log_path: Path
    process: subprocess.Popen[bytes]
    region: str = REGION

    @classmethod
    def start(cls, folder: Path, *, port: int | None = None) -> AwsRig:
        """Start one; its log is in ``folder``. Raises RuntimeError when it does not come up."""
        port = port or free_port()
        log = folder / f"aws-{port}.jsonl"
        output = (folder / f"aws-{port}.out").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.rigs.aws.server", f"--port={port}", f"--log={log}"],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        output.close()
        rig = cls(port, log, process)
        deadline = time.monotonic() + START_S
        while True:
            try:
                rig.control("health")
                return rig
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (folder / f"aws-{port}.out").read_text(errors="replace")[-2000:]
                    rig.stop()
                    raise RuntimeError(f"the AWS rig did not start: {said}") from None
                time.sleep(0.05)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        return {
            "SPECRACK_AWS_ENDPOINT": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Nothing of the person who runs the tests.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str, *, region: str | None = None) -> Any:
        """A boto3 client, on its own session: nothing of the environment is used."""
        import boto3
        from botocore.config import Config

        session = boto3.session.Session(
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name=region or self.region,
        )
        return session.client(
            service,
            endpoint_url=self.url,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def control(self, what: str, body: Any = None) -> None:
        request = urllib.request.Request(
            f"{self.url}/_rig/{what}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    def set(self, **settings: Any) -> None:
        """What the account has; see ``extension/settings.py``."""
        self.control("settings", settings)

    def faults(self, *faults: dict[str, Any]) -> None:
        """Replace the list of faults; see ``server.Fault``. None: no more faults."""
        self.control("faults", list(faults))

    def reset(self) -> None:
        """Forget all resources, settings and faults."""
        self.control("reset", {})

    def calls(self) -> list[dict[str, Any]]:
        """The log of all calls so far."""
        text = self.log_path.read_text() if self.log_path.exists() else ""
        # The last line may be half written.
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def wait_for_fault(self, *, timeout_s: float, after: int = 0) -> bool:
        """Wait until a fault of ours begins (past the first ``after`` lines of the log)."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if any("fault" in one for one in self.calls()[after:]):
                return True
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
