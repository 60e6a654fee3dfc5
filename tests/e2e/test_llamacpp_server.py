"""The real llama.cpp child process, started as its launch plan says, with the tiny pair."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import gguf
import numpy as np
import pytest

from infra.serving.acceptance import AcceptanceRecord
from infra.serving.adapters import Node, adapter
from infra.serving.plan import Service
from infra.spec.model import Deployment

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PROMPTS = (
    "def __init__(self",
    "import os\nclass",
    "    def read(self, n",
    "# Return the\n",
    "for k",
)


def plan(**changes: Any) -> list[Service]:
    """The services of a deployment of the tiny pair, the baseline included."""
    content: dict[str, Any] = {
        "name": "tiny",
        "tier": "local",
        "site": "local",
        "model": {
            "target": "models/tiny/target.gguf",
            "draft": "models/tiny/draft.gguf",
            "max_model_len": 512,
        },
        "serving": {
            "engine": "llamacpp",
            "speculation": {"method": "draft_model", "draft_tokens": 4},
        },
        "load": {"sessions": 4, "prompt_tokens": 128, "output_tokens": 64},
        "sla": {"ttft_p95_ms": 400},
    }
    for key, value in changes.items():
        *parents, last = key.split(".")
        place = content
        for parent in parents:
            place = place[parent]
        place[last] = value
    node = Node(kind="cpu", gpus=0, threads=1, root=str(ROOT))
    deployment = Deployment.model_validate(content)
    return list(adapter("llamacpp").launch_plan(deployment, node, baseline=True).services)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A started child process."""

    process: subprocess.Popen[str]
    port: int
    folder: Path

    @property
    def stdout(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def wait_until_listening(self) -> dict[str, Any]:
        line = self.stdout.readline()
        assert line, self.stderr
        event: dict[str, Any] = json.loads(line)
        return event

    def get(self, path: str) -> tuple[int, str]:
        return self._request("GET", path)

    def complete(self, prompt: str, *, tokens: int = 64) -> str:
        body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        status, answer = self._request("POST", "/v1/completions", json.dumps(body))
        assert status == 200, answer
        text: str = json.loads(answer)["choices"][0]["text"]
        return text

    def acceptance(self) -> AcceptanceRecord | None:
        status, text = self.get("/metrics")
        assert status == 200
        return adapter("llamacpp").acceptance(text)

    def _request(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


class Starter:
    """Starts services as a host would, and leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Server] = []

    def start(self, service: Service, *, port: int | None = None) -> Server:
        folder = self._folder / f"{len(self._started)}-{service.role}"
        folder.mkdir()
        values = {
            "@PORT@": str(port or free_port()),
            "@DIR@": str(folder),
            "@PYTHON@": sys.executable,
        }
        for file in service.files:
            (folder / file.path).write_text(fill(file.content, values))
        with (folder / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                [fill(word, values) for word in service.command],
                env=os.environ | service.env | {"PYTHONPATH": str(ROOT)},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        server = Server(process, int(values["@PORT@"]), folder)
        self._started.append(server)
        return server

    def stop_all(self) -> None:
        for server in self._started:
            server.process.kill()
            server.process.wait()
            server.stdout.close()


def fill(text: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    made = Starter(tmp_path)
    yield made
    made.stop_all()


def refusal(server: Server) -> str:
    """The one line by which a server says why it will not start; its exit status must be 2."""
    assert server.process.wait(timeout=20) == 2, server.stderr
    return server.stderr.strip().splitlines()[-1]


def test_the_pair_is_served_and_its_speculation_counted(starter: Starter) -> None:
    speculative, baseline = (starter.start(service) for service in plan())
    event = speculative.wait_until_listening()
    assert event["url"] == f"http://127.0.0.1:{speculative.port}"
    assert event["method"] == "draft_model"
    assert baseline.wait_until_listening()["method"] == "none"
    assert speculative.get("/health") == (200, '{"status":"ok"}')
    assert '"id":"tiny"' in speculative.get("/v1/models")[1]
    assert speculative.acceptance() is None  # nothing was drafted so far

    outputs = [[server.complete(p) for p in PROMPTS] for server in (speculative, baseline)]
    assert outputs[0] == outputs[1]
    assert all(outputs[0])

    record = speculative.acceptance()
    assert record is not None
    assert record.draft_tokens <= 4 * record.drafts
    assert len(record.accepted_per_position) == 4
    assert sum(record.accepted_per_position) == record.accepted_tokens
    assert record.acceptance_rate is not None
    assert 0.3 < record.acceptance_rate < 0.9
    assert record.mean_acceptance_length is not None
    assert 2 < record.mean_acceptance_length < 5
    assert baseline.acceptance() is None


def test_the_server_listens_on_the_loopback_address_alone(starter: Starter) -> None:
    server = starter.start(plan()[0])
    server.wait_until_listening()
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    place = f":{server.port:04X} "
    local = [line.split()[1] for line in listening.splitlines() if place in line.split()[1] + " "]
    assert local
    assert {address.split(":")[0] for address in local} == {"0100007F"}


def test_ngram_speculates_without_a_draft(starter: Starter) -> None:
    server = starter.start(plan(**{"serving.speculation.method": "ngram"})[0])
    server.wait_until_listening()
    for prompt in PROMPTS:
        server.complete(prompt, tokens=128)  # the model repeats itself before long
    record = server.acceptance()
    assert record is not None
    assert 0 < record.draft_tokens <= 4 * record.drafts
    assert record.accepted_tokens > 0


@pytest.mark.parametrize(("asked", "low", "high"), [(1.0, 1.0, 1.05), (4.0, 3.2, 4.5)])
def test_acceptance_can_be_pretended(
    starter: Starter, asked: float, low: float, high: float
) -> None:
    server = starter.start(plan(**{"serving.speculation.synthetic_acceptance_length": asked})[0])
    server.wait_until_listening()
    for prompt in PROMPTS:
        server.complete(prompt)
    record = server.acceptance()
    assert record is not None
    assert record.mean_acceptance_length is not None
    assert low <= record.mean_acceptance_length <= high


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_soon_when_asked_even_in_mid_request(
    starter: Starter, how: signal.Signals
) -> None:
    server = starter.start(plan()[0])
    server.wait_until_listening()
    body = json.dumps({"prompt": "def f(", "max_tokens": 400, "stream": True, "ignore_eos": True})
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(
            f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            f"Content-Type: application/json\r\n\r\n{body}".encode()
        )
        client.recv(100)
        asked_at = time.monotonic()
        server.process.send_signal(how)
        assert server.process.wait(timeout=10) == 0
        assert time.monotonic() - asked_at < 2
    assert server.stderr.endswith("llamacpp-server: stopped\n")


def test_it_does_not_outlive_its_parent(starter: Starter, tmp_path: Path) -> None:
    service = plan()[0]
    (tmp_path / "server.json").write_text(service.files[0].content)
    command = [
        fill(word, {"@PORT@": str(free_port()), "@DIR@": str(tmp_path), "@PYTHON@": sys.executable})
        for word in service.command
    ]
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n"
            "child.stdout.readline(); print(child.pid, flush=True); time.sleep(60)",
            *command,
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, 0)  # it is there
        parent.kill()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and not is_zombie(child):
        assert time.monotonic() < deadline, "the server outlived its parent"
        time.sleep(0.02)


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_a_second_server_does_not_share_a_port(starter: Starter) -> None:
    first = starter.start(plan()[0])
    first.wait_until_listening()
    line = refusal(starter.start(plan()[0], port=first.port))
    assert line == (
        f"llamacpp-server: port {first.port} on 127.0.0.1: Address already in use"
        " (free it or choose another one)"
    )
    assert first.get("/health")[0] == 200


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model.target": "nope.gguf"}, f"model file {ROOT}/nope.gguf: No such file or directory"),
        ({"model.draft": "nope.gguf"}, f"draft file {ROOT}/nope.gguf: No such file or directory"),
        (
            {"model.target": "./pyproject.toml"},
            f"model file {ROOT}/pyproject.toml: it is not a GGUF file"
            " (it does not begin with GGUF)",
        ),
        ({"model.target": "models/tiny"}, f"model file {ROOT}/models/tiny: Is a directory"),
    ],
)
def test_a_wrong_model_file_is_one_clear_line(
    starter: Starter, changes: dict[str, str], says: str
) -> None:
    assert refusal(starter.start(plan(**changes)[0])) == f"llamacpp-server: {says}"


def gguf_with(path: Path, tokens: list[str]) -> Path:
    """A GGUF file with a vocabulary and nothing that could be served."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_draft_with_another_vocabulary_is_one_clear_line(
    starter: Starter, tmp_path: Path
) -> None:
    draft = gguf_with(tmp_path / "other.gguf", [f"token{i}" for i in range(500)])
    line = refusal(starter.start(plan(**{"model.draft": str(draft)})[0]))
    assert "has another vocabulary" in line
    assert "the draft has 500 tokens, the target 1024" in line


def test_a_model_that_llamacpp_cannot_load_is_said_to_be_one(
    starter: Starter, tmp_path: Path
) -> None:
    model = gguf_with(tmp_path / "empty.gguf", ["a", "b"])
    line = refusal(
        starter.start(
            plan(**{"model.target": str(model), "serving.speculation.method": "ngram"})[0]
        )
    )
    assert line == (
        f"llamacpp-server: llama.cpp could not load {model} (the log lines above say why)"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "server.json: model: Field required"),
        ("[", "server.json: : Invalid JSON"),
        ('{"model": "m", "threds": 1}', "server.json: alias: Field required"),
        (None, "server.json: No such file or directory"),
    ],
)
def test_a_wrong_configuration_is_one_clear_line(
    tmp_path: Path, content: str | None, says: str
) -> None:
    path = tmp_path / "server.json"
    if content is not None:
        path.write_text(content)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "infra.serving.llamacpp_server"),
            *("--config", path, "--port", str(free_port())),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert says in line
