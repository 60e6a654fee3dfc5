"""The engine as a child process: real processes, a server that answers and workers of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from infra.kubernetes.app import shepherd
from infra.kubernetes.app.engine import (
    Engine,
    EngineError,
    environment_of_engine,
    free_port,
    service_of,
)

TOY = Path(__file__).parents[2] / "rigs" / "ray" / "toy_engine.py"
Make = Callable[..., Engine]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Engine] = []

    def build(*command: str, **changes: Any) -> Engine:
        service = {
            "role": "speculative",
            "command": command or ("@PYTHON@", str(TOY), "@PORT@"),
            "ready_timeout_s": 10,
            "stop_timeout_s": 1,
            **changes,
        }
        made.append(Engine(service, tmp_path / "a blank" / str(len(made))))
        return made[-1]

    yield build
    for engine in made:
        engine.stop()
    assert below(os.getpid(), "toy") == []


def below(process: int, marker: str) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process).children(recursive=True):
        try:
            if any(marker in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def wait_for(what: Callable[[], bool], limit_s: float = 5.0) -> None:
    deadline = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_engine_comes_up_answers_and_leaves_nothing(make: Make) -> None:
    engine = make()
    engine.start()
    engine.wait_until_ready()
    engine.check()
    workers = below(os.getpid(), "toy worker")
    assert len(workers) == 1
    engine.stop()
    assert not engine.alive
    assert not workers[0].is_running()
    with pytest.raises(EngineError, match="the engine ended"):
        engine.check()


def test_a_killed_engine_is_noticed_and_its_worker_goes_too(make: Make) -> None:
    engine = make()
    engine.start()
    engine.wait_until_ready()
    (process,) = below(os.getpid(), "toy_engine.py")
    workers = below(os.getpid(), "toy worker")
    process.kill()
    wait_for(lambda: not engine.alive)
    with pytest.raises(EngineError, match="ended with status 137"):
        engine.check()
    wait_for(lambda: not any(worker.is_running() for worker in workers))


def test_when_the_replica_is_killed_the_engine_does_not_stay(tmp_path: Path) -> None:
    """kill -9 of the process that holds the engine, as Ray does with a replica."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from infra.kubernetes.app.engine import Engine\n"
        f"engine = Engine({{'command': [sys.executable, {str(TOY)!r}, '@PORT@'],"
        f" 'stop_timeout_s': 1}}, Path({str(tmp_path)!r}))\n"
        "engine.start(); engine.wait_until_ready(); print('ready', flush=True); time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    left = psutil.Process(holder.pid).children(recursive=True)
    assert len(left) == 3  # shepherd, engine, the engine's worker
    holder.kill()
    holder.wait()
    holder.stdout.close()
    wait_for(lambda: not any(process.is_running() for process in left))


def test_an_engine_that_ends_says_why(make: Make) -> None:
    engine = make("@PYTHON@", "-c", "import sys; print('no CUDA device'); sys.exit(3)")
    engine.start()
    with pytest.raises(EngineError, match=r"status 3; its last words:\nno CUDA device"):
        engine.wait_until_ready()


def test_a_program_that_is_not_there_is_named(make: Make) -> None:
    engine = make("trtllm-serve-that-is-not-there")
    engine.start()
    with pytest.raises(EngineError, match="trtllm-serve-that-is-not-there: No such file"):
        engine.wait_until_ready()


def test_an_engine_that_is_never_ready_is_stopped(make: Make) -> None:
    engine = make("sleep", "60", ready_timeout_s=0.2)
    engine.start()
    with pytest.raises(EngineError, match="not ready after 0 s"):
        engine.wait_until_ready()
    assert not engine.alive


def test_an_engine_that_will_not_stop_is_killed(make: Make) -> None:
    deaf = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        " print('deaf', flush=True); time.sleep(60)  # toy"
    )
    engine = make("@PYTHON@", "-c", deaf, stop_timeout_s=0.2)
    engine.start()
    wait_for(lambda: below(os.getpid(), "# toy") != [])
    began = time.monotonic()
    engine.stop()
    assert time.monotonic() - began < 5
    assert not engine.alive


def test_files_and_placeholders_are_filled_in(make: Make, tmp_path: Path) -> None:
    engine = make(
        "@PYTHON@", "-c",
        "import json, os, sys; json.dump([sys.argv[1:], os.environ['WHERE']], open('out', 'w'))",
        "@DIR@/options.yaml", "@PORT@",
        files=[{"path": "options.yaml", "content": "port: @PORT@\n", "mode": "0600"}],
        env={"WHERE": "@DIR@"},
    )  # fmt: skip
    engine.start()
    folder = tmp_path / "a blank" / "0"
    wait_for(lambda: (folder / "out").exists() and (folder / "out").read_text() != "")
    (options, port), where = json.loads((folder / "out").read_text())
    assert (options, port, where) == (f"{folder}/options.yaml", str(engine.port), str(folder))
    assert (folder / "options.yaml").read_text() == f"port: {engine.port}\n"
    assert (folder / "options.yaml").stat().st_mode & 0o777 == 0o600


def test_the_engine_sees_the_images_packages_and_not_rays() -> None:
    ours = {
        "PATH": "/opt/specrack/ray/bin:/usr/bin",
        "SPECRACK_ENGINE_PATH": "/usr/bin",
        "PYTHONPATH": "/opt/specrack/ray",
        "BASH_ENV": "/etc/x",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    assert environment_of_engine(ours) == {"PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert environment_of_engine({"PATH": "/bin"}) == {"PATH": "/bin"}


def test_a_long_log_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shepherd, "LOG_LIMIT_BYTES", 100_000)
    source = tmp_path / "source"
    source.write_bytes(b"x" * 250_000)
    with source.open("rb") as stream:
        shepherd.keep_log(stream, tmp_path / "engine.log")
    kept = sum(path.stat().st_size for path in tmp_path.glob("engine.log*"))
    assert kept < 250_000
    assert (tmp_path / "engine.log.1").exists()


def test_the_plans_service_is_found_by_its_role() -> None:
    plan = {"services": [{"role": "speculative"}, {"role": "baseline", "port": 1}]}
    assert service_of(plan, "baseline") == {"role": "baseline", "port": 1}
    with pytest.raises(EngineError, match="no service with role other"):
        service_of(plan, "other")


def test_a_free_port_is_free() -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free_port()))
