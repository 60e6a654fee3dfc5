"""Ray's autoscaler with fake nodes, and our Serve application under load: what happens when.

Runs with Ray's own interpreter, and only as the first process of a PID namespace: everything that
Ray starts ends with it, and ``ray stop``, which kills by name, finds nothing else to kill.

    unshare --fork --pid --mount-proc --kill-child PYTHON scale.py --config FILE --out FILE

The config (JSON) has ``serve`` (Serve's configuration, as in the RayService), ``node`` (what a
worker offers), ``min`` and ``max`` (workers), ``clients`` (how many ask at once), ``python_path``.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

#: What Ray's fake provider takes for its head: node ids are hexadecimal.
HEAD_ID = "f" * 51 + "00000"
#: Ray asks for one since 2.5x; the operator makes one for each cluster (authOptions).
TOKEN = secrets.token_hex(32)
SERVE_PORT = 8000
DASHBOARD_PORT = 8265
BODY = json.dumps({"model": "toy", "prompt": "x", "max_tokens": 8, "stream": True})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if os.getpid() > 5:
        sys.exit("run this as the first process of a PID namespace: ray stop kills by name")
    config = json.loads(given.config.read_text())
    story = Story(given.out)
    start_ray(config, given.out.parent)

    import ray

    ray.init("auto", log_to_driver=False, logging_level="ERROR")
    story.watch(ray)
    story.note("ray is up")
    deploy(config["serve"])
    few, many = config["min"], config["max"]
    story.wait(lambda: story.now == (few, few), "the fewest replicas are up", limit_s=90)
    story.first["stream"] = ask_once()
    story.wait(lambda: story.now_metrics() == few, "metrics of all replicas", limit_s=30)
    story.first["metrics"] = get("/metrics")
    story.first["lost"] = lose_an_engine(story, few)
    with load(config["clients"]) as counts:
        story.note("load begins")
        story.wait(lambda: story.now == (many, many), "all nodes are in use", limit_s=90)
        time.sleep(3)
        story.first["answered"], story.first["failed"] = counts
    story.note("load ends")
    story.wait(lambda: story.now == (few, few), "back to the fewest", limit_s=120)
    story.wait(lambda: toy_workers() == few, "no engine is left on nodes that went", limit_s=20)
    story.end()


def start_ray(config: dict[str, Any], folder: Path) -> None:
    """The head, with Ray's fake node provider: its nodes are processes on this machine."""
    autoscaling = {
        "cluster_name": "specrack",
        "max_workers": config["max"],
        "provider": {
            "type": "fake_multinode",
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
            "launch_multiple": True,
            "head_node_id": HEAD_ID,
        },
        "available_node_types": {
            "ray.head.default": {"resources": {}, "node_config": {}, "max_workers": 0},
            "gpu": {
                "resources": config["node"],
                "node_config": {},
                "min_workers": config["min"],
                "max_workers": config["max"],
            },
        },
        "head_node_type": "ray.head.default",
        "upscaling_speed": 1000.0,
        "idle_timeout_minutes": config["idle_timeout_s"] / 60,
        "auth": {}, "docker": {}, "initialization_commands": [], "setup_commands": [],
        "head_setup_commands": [], "worker_setup_commands": [], "head_start_ray_commands": [],
        "worker_start_ray_commands": [], "file_mounts": {}, "cluster_synced_files": [],
        "file_mounts_sync_continuously": False, "rsync_exclude": [], "rsync_filter": [],
    }  # fmt: skip
    path = folder.resolve() / "autoscaling.json"
    path.write_text(json.dumps(autoscaling))
    os.environ.update(
        {
            "PYTHONPATH": config["python_path"],
            "HOME": config["ray_folder"],
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RAY_FAKE_CLUSTER": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "AUTOSCALER_UPDATE_INTERVAL_S": "1",
            "RAY_TMPDIR": config["ray_folder"],
            "RAY_enable_autoscaler_v2": "1",
            "RAY_CLOUD_INSTANCE_ID": HEAD_ID,
            "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            # Fewer processes to start on each of five nodes.
            "RAY_ENABLE_WORKER_PREFETCH": "0",
        }
    )
    # Only now: Ray reads its settings when it is imported.
    give_fake_provider_its_defaults(autoscaling)
    subprocess.run(
        ["ray", "start", "--head", "--num-cpus=0", f"--autoscaling-config={path}",
         "--object-store-memory=80000000", f"--dashboard-port={DASHBOARD_PORT}",
         "--temp-dir", config["ray_folder"], "--disable-usage-stats"],
        check=True, stdout=sys.stderr,
    )  # fmt: skip


def give_fake_provider_its_defaults(autoscaling: dict[str, Any]) -> None:
    """Ray reads defaults of the fake provider from a file that its wheel leaves out. The
    environment is this test's own, so the file is put there; JSON is YAML."""
    import ray

    path = Path(ray.__file__).parent / "autoscaler/_private/fake_multi_node/example.yaml"
    if not path.exists():
        path.write_text(json.dumps(autoscaling | {"available_node_types": {}}))


def deploy(serve: dict[str, Any]) -> None:
    """As the KubeRay operator does: the configuration goes to the dashboard."""
    deadline = time.monotonic() + 60
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", DASHBOARD_PORT, timeout=30)
        with contextlib.closing(connection):
            try:
                connection.request(
                    "PUT", "/api/serve/applications/", json.dumps(serve),
                    {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
                )  # fmt: skip
                answer = connection.getresponse()
                text = answer.read().decode()
            except OSError as error:
                answer, text = None, str(error)
        if answer is not None and answer.status == 200:
            return
        if time.monotonic() > deadline:
            sys.exit(f"Serve did not take the configuration: {text}")
        time.sleep(1)


class Story:
    """Looks twice a second at nodes and replicas, and keeps what changed when."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._began = time.monotonic()
        self._told: list[dict[str, Any]] = []
        self.first: dict[str, Any] = {}
        self.now = (0, 0)
        self.pids: dict[str, int] = {}
        self._peak_mib = 0.0

    def watch(self, ray: Any) -> None:
        threading.Thread(target=self._look, args=(ray,), daemon=True).start()

    def _look(self, ray: Any) -> None:
        from ray import serve

        while True:
            nodes = sum(
                bool(node["Alive"] and node["Resources"].get("GPU")) for node in ray.nodes()
            )
            replicas = 0
            with contextlib.suppress(Exception):
                for application in serve.status().applications.values():
                    engine = application.deployments.get("Engine")
                    replicas += engine.replica_states.get("RUNNING", 0) if engine else 0
            if (nodes, replicas) != self.now:
                self.now = (nodes, replicas)
                self._told.append({"s": self._elapsed(), "nodes": nodes, "replicas": replicas})
            self._peak_mib = max(self._peak_mib, used_mib())
            time.sleep(0.5)

    def now_metrics(self) -> int:
        return get("/metrics").count("toy_requests_total{")

    def note(self, what: str) -> None:
        self._told.append({"s": self._elapsed(), "what": what})
        self._write(ended=False)

    def wait(self, until: Callable[[], bool], what: str, *, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not until():
            if time.monotonic() > deadline:
                self.note(f"NOT within {limit_s:.0f} s: {what}; now {self.now}")
                sys.exit(1)
            time.sleep(0.5)
        self.note(what)

    def end(self) -> None:
        self._write(ended=True)

    def _elapsed(self) -> float:
        return round(time.monotonic() - self._began, 1)

    def _write(self, *, ended: bool) -> None:
        self._out.write_text(
            json.dumps(
                {"ended": ended, "peak_mib": self._peak_mib, "told": self._told} | self.first,
                indent=1,
            )
        )


def used_mib() -> float:
    """Memory of all processes of this namespace; what they share is counted once each."""
    total = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss - getattr(process.memory_info(), "shared", 0)
    return round(total / 2**20, 1)


def get(path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", SERVE_PORT, timeout=10)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return ""


def ask_once() -> dict[str, Any]:
    """One completion: when its first byte came, when its last, and the text."""
    connection = http.client.HTTPConnection("127.0.0.1", SERVE_PORT, timeout=30)
    began = time.monotonic()
    with contextlib.closing(connection):
        connection.request("POST", "/v1/completions", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        first = answer.read(1)
        first_s = time.monotonic() - began
        text = (first + answer.read()).decode()
    return {
        "status": answer.status,
        "type": answer.getheader("Content-Type"),
        "first_byte_s": round(first_s, 3),
        "all_s": round(time.monotonic() - began, 3),
        "text": text,
    }


def toys(marker: str = "toy_engine.py") -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if any(marker in word for word in words) and "shepherd.py" not in " ".join(words):
                found.append(process)
    return found


def toy_workers() -> int:
    return len(toys("# toy worker"))


def lose_an_engine(story: Story, few: int) -> dict[str, Any]:
    """Kill one engine: its replica must be replaced, and its other process must go too."""
    before = {process.pid for process in toys()}
    victim = toys()[0]
    victim.kill()
    began = time.monotonic()

    def replaced() -> bool:
        now = {process.pid for process in toys()}
        return len(now) == few and len(now - before) == 1 and toy_workers() == few

    story.wait(replaced, "a dead engine's replica is replaced", limit_s=60)
    story.wait(lambda: story.now == (few, few), "as many as before", limit_s=60)
    return {"engines_before": len(before), "replaced_after_s": round(time.monotonic() - began, 1)}


class load:  # noqa: N801 - used as a function: with load(...)
    """As many clients as said, each asking again as soon as it has its answer."""

    def __init__(self, clients: int) -> None:
        self._stop = threading.Event()
        self.counts = [0, 0]
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]

    def __enter__(self) -> list[int]:
        for thread in self._threads:
            thread.start()
        return self.counts

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                good = ask_once()["status"] == 200
            except (OSError, http.client.HTTPException):
                good = False
            self.counts[0 if good else 1] += 1
            if not good:
                time.sleep(0.2)


if __name__ == "__main__":
    main()
