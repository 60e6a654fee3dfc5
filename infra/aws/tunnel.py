"""Ways to a machine that nobody can connect to from outside: Session Manager carries them.

::

    python -m infra.aws.tunnel ssh i-... --region R --user ubuntu --folder .specrack/KEY/ssh
    python -m infra.aws.tunnel forward i-... --region R --port 8000 [--local-port 18000]

The first is a ``ProxyCommand`` for ssh: it shows the public key to the machine, opens a session and
becomes AWS's ``session-manager-plugin``, which connects its own stdin and stdout. The second makes
a port of the machine a port of this one until it is interrupted. What the plugin needs to know
(a token among it) goes by environment, never by argument.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.aws.faults import AwsError, telling
from infra.aws.session import client
from infra.aws.ssh_key import SshFolder
from infra.errors import EndpointError, SpecrackError, ToolError
from infra.process import die_with_parent

PLUGIN = "session-manager-plugin"
#: The plugin reads what StartSession answered from the variable that its first argument names, if
#: the name begins like this (aws/session-manager-plugin, session.go).
RESPONSE = "AWS_SSM_START_SESSION_RESPONSE"
#: The first release that reads it from there (its release notes, 2023-12-04). The AWS CLI asks for
#: more than 1.2.497.0; older ones want the token as an argument, for all to see.
PLUGIN_SINCE = (1, 2, 536, 0)
SSH, FORWARD = "AWS-StartSSHSession", "AWS-StartPortForwardingSession"
SSH_PORT = 22
#: Seconds until a forwarded port must be open.
OPEN_S = 30.0
_NOT_CONNECTED = (
    "wait a minute; else check its role (AmazonSSMManagedInstanceCore) and its way out on port 443"
)
_OPENED = re.compile(r"Port (\d+) opened")
_PYTHON_PATH = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Session:
    """An open session. ``response``: what the plugin needs; holds a token, so it is not shown."""

    id: str
    region: str
    endpoint: str
    request: Mapping[str, Any]
    response: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Session({self.id})"

    def command(self) -> list[str]:
        """The plugin's arguments, in its order: where the response is, region, operation, profile,
        the request, the endpoint."""
        profile = os.environ.get("AWS_PROFILE", "")
        return [
            PLUGIN,
            RESPONSE,
            self.region,
            "StartSession",
            profile,
            json.dumps(self.request),
            self.endpoint,
        ]

    def environment(self) -> dict[str, str]:
        """This process's, and what the plugin needs."""
        return {
            **os.environ,
            RESPONSE: json.dumps(self.response),
            # Else it listens on whatever "localhost" is.
            "SSM_PLUGIN_LOCAL_HOST": "127.0.0.1",
        }


def ssh_options(instance: str, *, region: str, user: str, folder: SshFolder) -> list[str]:
    """Options with which ``ssh`` (and Ansible) reach ``instance`` through Session Manager.

    The machine's host key is taken on trust the first time, over a channel that AWS vouches for,
    and must be the same from then on. Quoted for ssh, which runs a ProxyCommand through a shell.
    """
    command = [
        sys.executable,
        "-m",
        "infra.aws.tunnel",
        "ssh",
        instance,
        "--region",
        region,
        "--user",
        user,
        "--folder",
        str(folder.path),
    ]
    # ssh reads % as the start of a placeholder.
    proxy = shlex.join(["env", f"PYTHONPATH={_PYTHON_PATH}", *command]).replace("%", "%%")
    options = {
        "ProxyCommand": proxy,
        "User": user,
        "IdentityFile": f'"{folder.key}"',
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f'"{folder.known_hosts}"',
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": instance,
        "StrictHostKeyChecking": "accept-new",
        "PasswordAuthentication": "no",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "4",
    }
    return [part for name, value in options.items() for part in ("-o", f"{name}={value}")]


def ansible_variables(
    instance: str, *, region: str, user: str, folder: SshFolder
) -> dict[str, str]:
    """Variables of a host in an Ansible inventory, for the same way."""
    return {
        "ansible_connection": "ssh",
        "ansible_host": instance,
        "ansible_user": user,
        "ansible_ssh_common_args": shlex.join(
            ssh_options(instance, region=region, user=user, folder=folder)
        ),
    }


def wait_connected(
    instances: Sequence[str], *, region: str, timeout_s: float, poll_s: float = 5.0
) -> None:
    """Return when all ``instances`` are connected to Session Manager.

    A new machine needs a minute or two. Raises EndpointError, naming those that are not, after
    ``timeout_s`` seconds; AwsError when AWS cannot be asked.
    """
    ssm = client("ssm", region)
    deadline = time.monotonic() + timeout_s
    while True:
        missing = sorted(set(instances) - _connected(ssm, instances, region))
        if not missing:
            return
        if time.monotonic() >= deadline:
            raise EndpointError(
                f"not connected to Session Manager after {timeout_s:.0f} s: {', '.join(missing)}",
                do=_NOT_CONNECTED,
            )
        time.sleep(min(poll_s, max(0.0, deadline - time.monotonic())))


def _connected(ssm: Any, instances: Sequence[str], region: str) -> set[str]:
    with telling("ssm", region, doing="asking which machines are connected"):
        pages = ssm.get_paginator("describe_instance_information").paginate(
            Filters=[{"Key": "InstanceIds", "Values": list(instances)}]
        )
        return {
            str(entry["InstanceId"])
            for page in pages
            for entry in page["InstanceInformationList"]
            if entry.get("PingStatus") == "Online"
        }


def require_plugin() -> None:
    """Raise ToolError when the plugin is missing, or would want a token as an argument."""
    if shutil.which(PLUGIN) is None:
        raise ToolError(
            f"{PLUGIN} is not installed; machines on AWS are reached through it",
            do="install AWS's Session Manager plugin (docs.aws.amazon.com, systems-manager)",
        )
    try:
        text = subprocess.run(
            [PLUGIN, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{PLUGIN} does not run: {error}", do="install it anew") from None
    numbers = tuple(int(part) for part in text.split(".") if part.isdigit())
    if numbers < PLUGIN_SINCE:
        since = ".".join(str(part) for part in PLUGIN_SINCE)
        raise ToolError(
            f"{PLUGIN} {text or 'of unknown version'} is too old", do=f"install {since}"
        )


def show_key(instance: str, *, region: str, user: str, public_key: str) -> None:
    """Let ``user`` of the machine accept the key for the next 60 seconds. Raises AwsError."""
    with telling("ec2-instance-connect", region, doing=f"showing the key to {instance}"):
        client("ec2-instance-connect", region).send_ssh_public_key(
            InstanceId=instance, InstanceOSUser=user, SSHPublicKey=public_key
        )


def start(
    instance: str, *, region: str, document: str, parameters: Mapping[str, Sequence[str]]
) -> Session:
    """Open a session. Raises AwsError; a machine that is not there yet says so."""
    ssm = client("ssm", region)
    request = {
        "Target": instance,
        "DocumentName": document,
        "Parameters": {name: list(values) for name, values in parameters.items()},
    }
    try:
        with telling("ssm", region, doing=f"opening a session to {instance}"):
            answer = ssm.start_session(**request)
    except AwsError as error:
        if error.fault.code == "TargetNotConnected":
            raise EndpointError(
                f"{instance} is not connected to Session Manager (yet)",
                do=_NOT_CONNECTED,
            ) from None
        raise
    return Session(
        id=str(answer["SessionId"]),
        region=region,
        endpoint=str(ssm.meta.endpoint_url),
        request=request,
        response={key: str(answer[key]) for key in ("SessionId", "TokenValue", "StreamUrl")},
    )


def end(session: Session) -> None:
    """Close a session; one that is closed already is fine."""
    with contextlib.suppress(AwsError), telling("ssm", session.region):
        client("ssm", session.region, attempts=1, read_s=5.0).terminate_session(
            SessionId=session.id
        )


def become_ssh(instance: str, *, region: str, user: str, folder: SshFolder) -> None:
    """Show the key, open a session and turn into the plugin: does not return."""
    require_plugin()
    show_key(instance, region=region, user=user, public_key=folder.public_key())
    session = start(
        instance, region=region, document=SSH, parameters={"portNumber": [str(SSH_PORT)]}
    )
    _become(session)


def _become(session: Session) -> None:
    try:
        os.execvpe(PLUGIN, session.command(), session.environment())  # noqa: S606
    except OSError as error:
        end(session)
        raise ToolError(f"{PLUGIN} does not run: {error}", do="install it anew") from None


@contextlib.contextmanager
def forwarded(
    instance: str, *, region: str, port: int, local_port: int | None = None
) -> Iterator[int]:
    """A port of the machine as a port of 127.0.0.1, which is yielded, as long as this lasts.

    ``local_port``: which; a free one when left out. Raises ToolError, AwsError, and EndpointError
    when the port does not open.
    """
    require_plugin()
    parameters = {"portNumber": [str(port)]}
    if local_port is not None:
        parameters["localPortNumber"] = [str(local_port)]
    session = start(instance, region=region, document=FORWARD, parameters=parameters)
    process: subprocess.Popen[str] | None = None
    try:
        process = subprocess.Popen(
            session.command(),
            env=session.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # An interrupt at the terminal is ours to pass on, after what runs inside is done.
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        yield _opened(process, instance, port)
    finally:
        if process is not None:
            _stop(process)
        end(session)


def _opened(process: subprocess.Popen[str], instance: str, port: int) -> int:
    """The local port that the plugin says it has opened. It goes on printing: read on."""
    assert process.stdout is not None
    stream = process.stdout
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in stream:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, name="tunnel output", daemon=True).start()
    said: list[str] = []
    deadline = time.monotonic() + OPEN_S
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            line = None
        if line is None:
            last = next((text for text in reversed(said) if text), "it said nothing")
            raise EndpointError(
                f"port {port} of {instance} could not be forwarded: {last}",
                do="is the local port free, and does the machine listen?",
            )
        said.append(" ".join(line.split()))
        found = _OPENED.search(line)
        if found:
            return int(found[1])


def _stop(process: subprocess.Popen[str]) -> None:
    """The plugin closes its session on an interrupt, not on a termination."""
    for sig, wait_s in ((signal.SIGINT, 3.0), (signal.SIGKILL, 3.0)):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
    if process.stdout is not None:
        process.stdout.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m infra.aws.tunnel``."""
    parser = argparse.ArgumentParser(prog="python -m infra.aws.tunnel", allow_abbrev=False)
    kinds = parser.add_subparsers(dest="kind", required=True)
    ssh = kinds.add_parser("ssh", help="a ProxyCommand for ssh")
    ssh.add_argument("instance")
    ssh.add_argument("--region", required=True)
    ssh.add_argument("--user", required=True)
    ssh.add_argument("--folder", required=True, type=Path)
    forward = kinds.add_parser("forward", help="a port of the machine as a local port")
    forward.add_argument("instance")
    forward.add_argument("--region", required=True)
    forward.add_argument("--port", required=True, type=int)
    forward.add_argument("--local-port", type=int)
    asked = parser.parse_args(arguments)
    try:
        if asked.kind == "ssh":
            folder = SshFolder(asked.folder)
            become_ssh(asked.instance, region=asked.region, user=asked.user, folder=folder)
            return 0
        with (
            contextlib.suppress(KeyboardInterrupt),
            forwarded(
                asked.instance,
                region=asked.region,
                port=asked.port,
                local_port=asked.local_port,
            ) as local,
        ):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            print(f"127.0.0.1:{local} is port {asked.port} of {asked.instance}", flush=True)
            signal.pause()
    except SpecrackError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
