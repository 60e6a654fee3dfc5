"""Machines are reached through Session Manager: by ssh, and by a forwarded port.

A real ssh client and a real sshd, joined by the stand-in for AWS of ``session_manager.py``.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.aws import session, tunnel
from infra.aws.faults import AwsError
from infra.aws.ssh_key import SshFolder
from infra.aws.tunnel import forwarded, ssh_options
from infra.errors import EndpointError, ToolError
from infra.process import is_alive, start_time
from tests.unit.aws.session_manager import TOKEN, Plugin, SessionManager

INSTANCE, REGION = "i-0123456789abcdef0", "us-east-1"
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="no OpenSSH server on this machine"
)
needs_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="no ssh-keygen on this machine"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Echo:
    """A TCP server that answers each line in capitals."""

    def __enter__(self) -> Echo:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    @staticmethod
    def _answer(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data.upper())


def spoken(port: int, words: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(words)
        return connection.recv(65536)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    made = Plugin(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{made.folder}{os.pathsep}{os.environ['PATH']}")
    return made


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as made:
        yield made


@pytest.fixture
def manager(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionManager]:
    with SessionManager(echo.address) as made:
        monkeypatch.setenv(session.ENDPOINT, made.url)
        yield made


def test_a_forwarded_port_carries_bytes_both_ways(manager: SessionManager, plugin: Plugin) -> None:
    with forwarded(INSTANCE, region=REGION, port=8000) as port:
        assert spoken(port, b"good morning") == b"GOOD MORNING"
        assert spoken(port, b"again") == b"AGAIN"
    name, request = manager.calls[0]
    assert name == "StartSession"
    assert request == {
        "Target": INSTANCE,
        "DocumentName": "AWS-StartPortForwardingSession",
        "Parameters": {"portNumber": ["8000"]},
    }


def test_the_session_is_closed_at_the_end_and_the_plugin_is_gone(
    manager: SessionManager, plugin: Plugin
) -> None:
    with forwarded(INSTANCE, region=REGION, port=8000) as port:
        [one] = plugin.started
        started = start_time(one["pid"])
        assert started is not None
    assert not is_alive(one["pid"], started)
    assert manager.calls[-1] == ("TerminateSession", {"SessionId": "ann-1"})
    with pytest.raises(OSError):
        spoken(port, b"anybody?")


def test_a_fault_inside_closes_the_session_too(manager: SessionManager, plugin: Plugin) -> None:
    with pytest.raises(ZeroDivisionError), forwarded(INSTANCE, region=REGION, port=8000):
        raise ZeroDivisionError
    assert manager.names()[-1] == "TerminateSession"


def test_the_local_port_may_be_chosen(manager: SessionManager, plugin: Plugin) -> None:
    wanted = free_port()
    with forwarded(INSTANCE, region=REGION, port=8000, local_port=wanted) as port:
        assert port == wanted
        assert spoken(wanted, b"here") == b"HERE"


def test_a_local_port_that_is_taken_is_one_clear_line(
    manager: SessionManager, plugin: Plugin
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(EndpointError, match="port 8000 of i-0123456789abcdef0 could not be"),
            forwarded(INSTANCE, region=REGION, port=8000, local_port=port),
        ):
            pass
    assert manager.names()[-1] == "TerminateSession"


def test_the_token_is_in_no_argument(manager: SessionManager, plugin: Plugin) -> None:
    with forwarded(INSTANCE, region=REGION, port=8000):
        [one] = plugin.started
        arguments = one["argv"]
        seen = Path(f"/proc/{one['pid']}/cmdline")
        if seen.exists():
            assert TOKEN not in seen.read_text()
    assert TOKEN not in "".join(arguments)
    assert arguments[:4] == ["AWS_SSM_START_SESSION_RESPONSE", REGION, "StartSession", ""]
    assert arguments[5] == manager.url


def test_a_session_does_not_show_its_token() -> None:
    made = tunnel.Session("ann-1", REGION, "http://x", {}, {"TokenValue": TOKEN})
    assert TOKEN not in f"{made!r} {made}"


def test_without_the_plugin_nothing_is_opened(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(ToolError, match="session-manager-plugin is not installed"),
        forwarded(INSTANCE, region=REGION, port=8000),
    ):
        pass
    assert manager.calls == []


@pytest.mark.parametrize("version", ["1.2.497.0", "1.1.61.0", "", "unknown"])
def test_a_plugin_that_wants_the_token_as_an_argument_is_refused(
    manager: SessionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    old = Plugin(tmp_path / "old", version)
    monkeypatch.setenv("PATH", f"{old.folder}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ToolError, match=r"is too old \(install 1\.2\.536\.0\)"):
        tunnel.require_plugin()


def test_a_machine_that_is_not_connected_yet_says_so(
    manager: SessionManager, plugin: Plugin
) -> None:
    manager.refuse = "TargetNotConnected"
    with (
        pytest.raises(EndpointError, match="is not connected to Session Manager"),
        forwarded(INSTANCE, region=REGION, port=8000),
    ):
        pass
    assert plugin.started == []


def test_a_session_that_is_not_allowed_says_which_action(
    manager: SessionManager, plugin: Plugin
) -> None:
    manager.refuse = "AccessDeniedException"
    with (
        pytest.raises(AwsError, match="may not ssm:StartSession"),
        forwarded(INSTANCE, region=REGION, port=8000),
    ):
        pass


def test_the_command_forwards_until_it_is_stopped(manager: SessionManager, plugin: Plugin) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "infra.aws.tunnel", "forward", INSTANCE, "--region", REGION,
         "--port", "8000"],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
        assert line.endswith(f"is port 8000 of {INSTANCE}\n")
        port = int(line.split()[0].partition(":")[2])
        assert spoken(port, b"hello") == b"HELLO"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert manager.names()[-1] == "TerminateSession"


def test_a_killed_command_takes_its_plugin_along(manager: SessionManager, plugin: Plugin) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "infra.aws.tunnel", "forward", INSTANCE, "--region", REGION,
         "--port", "8000"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
        [one] = plugin.started
        started = start_time(one["pid"])
        assert started is not None
        process.kill()
        process.wait(10)
    deadline = time.monotonic() + 5
    while is_alive(one["pid"], started) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(one["pid"], started)


def test_waiting_ends_when_all_machines_are_connected(manager: SessionManager) -> None:
    manager.connected = [[], [INSTANCE], [INSTANCE, "i-0bbbbbbbbbbbbbbbb"]]
    tunnel.wait_connected(
        [INSTANCE, "i-0bbbbbbbbbbbbbbbb"], region=REGION, timeout_s=20, poll_s=0.01
    )
    assert manager.names().count("DescribeInstanceInformation") == 3


def test_waiting_ends_in_time_and_names_who_is_missing(manager: SessionManager) -> None:
    manager.connected = [[INSTANCE]]
    with pytest.raises(EndpointError, match="after 0 s: i-0bbbbbbbbbbbbbbbb"):
        tunnel.wait_connected(
            [INSTANCE, "i-0bbbbbbbbbbbbbbbb"], region=REGION, timeout_s=0.1, poll_s=0.01
        )


# --- ssh -----------------------------------------------------------------------------------------


class Sshd:
    """A real sshd on loopback, which accepts the keys in ``authorized``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.port = folder, free_port()
        self.authorized = folder / "authorized_keys"
        self.authorized.write_text("")
        self._process: subprocess.Popen[bytes] | None = None
        self.new_host_key()

    def new_host_key(self) -> None:
        key = self.folder / "host_key"
        for old in (key, self.folder / "host_key.pub"):
            old.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)

    def start(self) -> None:
        configuration = self.folder / "sshd_config"
        configuration.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.authorized}\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"PidFile {self.folder}/pid\nPermitRootLogin prohibit-password\nLogLevel ERROR\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        assert SSHD is not None
        self._process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(configuration)], stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            time.sleep(0.02)
        raise AssertionError("sshd did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(5)


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    made = Sshd(tmp_path / "sshd")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def aws_side(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionManager]:
    with SessionManager(f"127.0.0.1:{sshd.port}") as made:
        made.on_key = lambda user, key: sshd.authorized.write_text(key)
        monkeypatch.setenv(session.ENDPOINT, made.url)
        yield made


def ssh(folder: Path, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    options = ssh_options(INSTANCE, region=REGION, user=getpass.getuser(), folder=SshFolder(folder))
    return subprocess.run(
        ["ssh", "-F", "/dev/null", *options, INSTANCE, *command],
        input=given,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@needs_sshd
def test_ssh_reaches_a_machine_without_an_open_port(
    aws_side: SessionManager, plugin: Plugin, tmp_path: Path
) -> None:
    folder = tmp_path / "a blank" / "ssh"
    result = ssh(folder, "cat; echo done", given="over there\n" * 1000)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "over there\n" * 1000 + "done\n"
    assert aws_side.names() == ["SendSSHPublicKey", "StartSession"]
    key, started = aws_side.calls[0][1], aws_side.calls[1][1]
    assert key["InstanceId"] == INSTANCE
    assert key["SSHPublicKey"].startswith("ssh-ed25519 ")
    assert started["DocumentName"] == "AWS-StartSSHSession"
    assert started["Parameters"] == {"portNumber": ["22"]}
    assert TOKEN not in "".join(plugin.started[0]["argv"])
    assert "PRIVATE" not in str(aws_side.calls)


@needs_sshd
def test_the_host_key_of_the_first_time_must_stay(
    aws_side: SessionManager, plugin: Plugin, sshd: Sshd, tmp_path: Path
) -> None:
    folder = tmp_path / "ssh"
    assert ssh(folder, "true").returncode == 0
    assert INSTANCE in (folder / "known_hosts").read_text()
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    result = ssh(folder, "true")
    assert result.returncode == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in result.stderr


@needs_sshd
def test_a_key_that_was_not_shown_opens_nothing(
    aws_side: SessionManager, plugin: Plugin, tmp_path: Path
) -> None:
    aws_side.on_key = lambda user, key: None
    result = ssh(tmp_path / "ssh", "true")
    assert result.returncode == 255
    assert "Permission denied" in result.stderr


@needs_sshd
def test_a_machine_that_is_not_connected_is_told_by_ssh(
    aws_side: SessionManager, plugin: Plugin, tmp_path: Path
) -> None:
    aws_side.refuse = "TargetNotConnected"
    result = ssh(tmp_path / "ssh", "true")
    assert result.returncode == 255
    assert f"error: {INSTANCE} is not connected to Session Manager" in result.stderr
    assert "Traceback" not in result.stderr


@needs_sshd
@pytest.mark.e2e
def test_ansible_goes_the_same_way(
    aws_side: SessionManager, plugin: Plugin, tmp_path: Path
) -> None:
    variables = tunnel.ansible_variables(
        INSTANCE, region=REGION, user=getpass.getuser(), folder=SshFolder(tmp_path / "ssh")
    )
    variables["ansible_python_interpreter"] = sys.executable
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": {"server": variables}}}))
    result = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible"),
            "-i",
            str(inventory),
            "server",
            "-m",
            "ping",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ
        # No connection that stays behind.
        | {"ANSIBLE_HOME": str(tmp_path / "ansible"), "ANSIBLE_SSH_ARGS": "-o ControlMaster=no"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert '"ping": "pong"' in result.stdout


@needs_keygen
def test_the_private_key_is_for_its_owner_alone_and_made_once(tmp_path: Path) -> None:
    folder = SshFolder(tmp_path / "ssh")
    first = folder.public_key()
    assert folder.public_key() == first
    assert folder.key.stat().st_mode & 0o777 == 0o600
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert "PRIVATE KEY" in folder.key.read_text()
    assert first.startswith("ssh-ed25519 ")


@needs_keygen
def test_many_connections_at_once_make_one_key(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(lambda _: SshFolder(tmp_path / "ssh").public_key(), range(4)))
    assert len(made) == 1


@needs_keygen
def test_half_a_pair_is_made_anew(tmp_path: Path) -> None:
    folder = SshFolder(tmp_path / "ssh")
    folder.public_key()
    folder.key.unlink()
    again = folder.public_key()
    checked = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(folder.key)], capture_output=True, text=True, check=True
    )
    assert checked.stdout.split()[:2] == again.split()[:2]
