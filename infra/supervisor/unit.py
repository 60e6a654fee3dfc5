"""One supervised service: start, look, restart, stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from infra.process import die_with_parent, kill_group, start_time
from infra.serving.plan import Service
from infra.supervisor import health, ports
from infra.supervisor.backoff import MAX_FIRST_STARTS, Backoff
from infra.supervisor.state import Restart, ServiceState, utc_now

#: Between health checks of a service that is well.
CHECK_EVERY_S = 2.0
#: A service that does not answer this many checks in a row is killed and started again.
UNANSWERED_CHECKS = 5
#: A log beyond this size is put aside (one old one is kept) at the next start.
LOG_LIMIT_BYTES = 20_000_000
#: Exit status by which our engines say that starting again cannot help.
EXIT_BAD_INPUT = 2

#: What a server inherits from our environment; anything else (keys!) stays out.
INHERITED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE",
)  # fmt: skip


class Unit:
    """A service of the launch plan and the process that runs it."""

    def __init__(
        self, service: Service, folder: Path, *, python: str, preferred_port: int | None
    ) -> None:
        self.service = service
        self.folder = folder / service.role
        self.python = python
        self.state = ServiceState(
            role=service.role,
            condition="waiting",
            port=service.port or preferred_port,
            log=str(self.folder / "server.log"),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff()
        self._start_at = time.monotonic()
        self._started_at = 0.0
        self._healthy_at: float | None = None
        self._ever_healthy = False
        self._next_check = 0.0
        self._unanswered = 0
        self._log_offset = 0

    def tick(self, taken: frozenset[int]) -> bool:
        """Do what is due. True when the state changed and should be written."""
        now = time.monotonic()
        if self.state.condition in ("failed", "stopped"):
            return False
        if self._process is None:
            if now < self._start_at:
                return False
            self._start(taken)
            return True
        exit_code = self._process.poll()
        if exit_code is not None:
            self._crashed(exit_code)
            return True
        return self._check(now)

    def stop(self) -> None:
        """Ask to stop, wait, then kill; nothing of the service's process group is left."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.service.stop_timeout_s)
            kill_group(process.pid)
            process.wait()
        if self.state.condition != "failed":
            self.state.condition = "stopped"
        self.state.pid = self.state.started = self.state.healthy_since = None

    def _start(self, taken: frozenset[int]) -> None:
        service, state = self.service, self.state
        if service.port is not None and not ports.is_free(service.port):
            held_by = ports.owner(service.port)
            self._fail(
                f"port {service.port} is taken" + (f" by {held_by}" if held_by else "")
                + "; free it, or remove serving.port from the deployment to have one chosen"
            )  # fmt: skip
            return
        state.port = service.port or ports.choose(state.port, taken=taken)
        self.folder.mkdir(parents=True, exist_ok=True)
        values = {"@PORT@": str(state.port), "@DIR@": str(self.folder), "@PYTHON@": self.python}
        for file in service.files:
            path = self.folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=int(file.mode, 8))
            path.write_text(fill(file.content, values), encoding="utf-8")
        log = Path(state.log)
        if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
            os.replace(log, log.with_suffix(".log.1"))  # noqa: PTH105
        with log.open("ab") as stream:
            stream.write(f"--- specrack: start at {utc_now().isoformat()}\n".encode())
            stream.flush()
            self._log_offset = stream.tell()
            try:
                self._process = subprocess.Popen(
                    [fill(part, values) for part in service.command],
                    cwd=self.folder,
                    env=environment(service.env, values),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    # Safe: this process has one thread. The kernel stops the server if we die.
                    preexec_fn=die_with_parent,
                )
            except OSError as error:
                self._fail(f"cannot start {service.command[0]}: {error.strerror}")
                return
        self._started_at = time.monotonic()
        self._healthy_at = None
        self._next_check = self._started_at
        self._unanswered = 0
        state.pid = self._process.pid
        state.started = start_time(self._process.pid)
        state.condition = "starting"
        state.reason = ""

    def _check(self, now: float) -> bool:
        assert self.state.port is not None
        if now < self._next_check:
            return False
        well = health.answers(self.state.port, self.service.health_path)
        if self.state.condition == "starting":
            if well:
                return self._became_healthy(now)
            self._next_check = now + 0.1
            if now - self._started_at > self.service.ready_timeout_s:
                self._restart(f"not healthy {self.service.ready_timeout_s:.0f} s after its start")
                return True
            return False
        self._next_check = now + CHECK_EVERY_S
        if well:
            self._unanswered = 0
            return self._became_healthy(now) if self.state.condition == "unhealthy" else False
        self._unanswered += 1
        if self._unanswered >= UNANSWERED_CHECKS:
            self._restart(f"did not answer {self.service.health_path} {UNANSWERED_CHECKS} times")
        elif self.state.condition == "healthy":
            self.state.condition = "unhealthy"
            self.state.reason = f"does not answer {self.service.health_path}"
        else:
            return False
        return True

    def _became_healthy(self, now: float) -> bool:
        self.state.condition = "healthy"
        self.state.reason = ""
        if self._healthy_at is None:
            self._healthy_at = now
            self.state.healthy_since = utc_now()
        self._ever_healthy = True
        self._next_check = now + CHECK_EVERY_S
        return True

    def _restart(self, reason: str) -> None:
        """Kill what hangs, then treat it like a crash."""
        assert self._process is not None
        kill_group(self._process.pid)
        self._process.wait()
        self._plan_restart(reason)

    def _crashed(self, exit_code: int) -> None:
        assert self._process is not None
        kill_group(self._process.pid)
        last_words = self.last_words()
        how = (
            f"killed by signal {signal.Signals(-exit_code).name}"
            if exit_code < 0
            else f"exit status {exit_code}"
        )
        reason = f"{how}: {last_words}" if last_words and exit_code > 0 else how
        port_lost = (
            self.service.port is None
            and self.state.port is not None
            and not ports.is_free(self.state.port)
        )
        if exit_code == EXIT_BAD_INPUT and not port_lost and not self._ever_healthy:
            self._fail(last_words or how)
        else:
            self._plan_restart(reason)

    def _plan_restart(self, reason: str) -> None:
        healthy_for_s = 0.0 if self._healthy_at is None else time.monotonic() - self._healthy_at
        self._process = None
        self._backoff = self._backoff.after_crash(healthy_for_s=healthy_for_s)
        if not self._ever_healthy and self._backoff.in_a_row >= MAX_FIRST_STARTS:
            self._fail(reason)
            return
        self._start_at = time.monotonic() + self._backoff.wait_s
        state = self.state
        state.condition = "waiting"
        state.reason = reason
        state.restarts += 1
        state.last_restart = Restart(at=utc_now(), reason=reason)
        state.pid = state.started = state.healthy_since = None

    def _fail(self, reason: str) -> None:
        self._process = None
        self.state.condition = "failed"
        self.state.reason = reason
        self.state.pid = self.state.started = self.state.healthy_since = None

    def last_words(self) -> str:
        """The last line that the service wrote since its last start; one line, shortened."""
        try:
            with Path(self.state.log).open("rb") as stream:
                stream.seek(self._log_offset)
                text = stream.read()[-20_000:].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:500] if lines else ""


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with the launch plan's placeholders replaced."""
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def environment(own: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service: a few of our variables, then its own."""
    inherited = {key: os.environ[key] for key in INHERITED if key in os.environ}
    return inherited | {key: fill(value, values) for key, value in own.items()}
