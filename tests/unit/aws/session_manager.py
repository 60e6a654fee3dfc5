"""Session Manager on this machine: AWS's side as a small server, and a plugin of the same manners.

The plugin takes its arguments and its environment as AWS's does (aws/session-manager-plugin,
session.go) and prints the same lines, but connects over TCP instead of AWS's web socket: the
``StreamUrl`` that StartSession answers says where.
"""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOKEN = "a-token-that-nobody-may-see"

_PLUGIN = """#!{python}
import json, os, select, signal, socket, sys, threading

VERSION, LOG = {version!r}, {log!r}
if sys.argv[1:] == ["--version"]:
    print(VERSION)
    sys.exit(0)
name, region, operation, profile, request, endpoint = sys.argv[1:]
assert name.startswith("AWS_SSM_START_SESSION_RESPONSE") and operation == "StartSession"
response = json.loads(os.environ.pop(name))
request = json.loads(request)
note = {{"argv": sys.argv[1:], "session": response["SessionId"], "pid": os.getpid()}}
with open(LOG, "a") as log:
    log.write(json.dumps(note) + "\\n")
host, port = response["StreamUrl"].removeprefix("tcp://").split(":")
assert response["TokenValue"] == {token!r}

def copy(read, write, done):
    while data := read():
        write(data)
    done()

def join(sock, read, write, done):
    threading.Thread(target=copy, args=(read, sock.sendall, lambda: sock.shutdown(1)),
                     daemon=True).start()
    copy(lambda: sock.recv(65536), write, done)

print(f"\\nStarting session with SessionId: {{response['SessionId']}}", flush=True)
if request["DocumentName"] == "AWS-StartSSHSession":
    sock = socket.create_connection((host, int(port)))
    join(sock, lambda: os.read(0, 65536), lambda data: os.write(1, data), lambda: None)
    sys.exit(0)

def interrupted(*_):
    print("Terminate signal received, exiting.", flush=True)
    os._exit(0)

signal.signal(signal.SIGINT, interrupted)
wanted = request["Parameters"].get("localPortNumber", ["0"])[0]
listener = socket.socket()
try:
    listener.bind((os.environ["SSM_PLUGIN_LOCAL_HOST"], int(wanted)))
except OSError as error:
    print(f"Cannot perform start session: listen tcp: {{error}}")
    sys.exit(0)
listener.listen()
print(f"Port {{listener.getsockname()[1]}} opened for sessionId {{response['SessionId']}}.", end="")
print("\\nWaiting for connections...", flush=True)
while True:
    one, _ = listener.accept()
    sock = socket.create_connection((host, int(port)))
    threading.Thread(target=join, args=(sock, lambda one=one: one.recv(65536), one.sendall,
                                        one.close), daemon=True).start()
"""


class SessionManager(http.server.ThreadingHTTPServer):
    """AWS's side. ``connect``: where sessions lead, ``host:port``. ``on_key``: is handed each key
    that is shown. ``refuse``: an error code to answer StartSession with."""

    daemon_threads = True

    def __init__(self, connect: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.connect = connect
        self.on_key: Callable[[str, str], None] = lambda user, key: None
        self.refuse = ""
        #: Who is connected, each time that is asked; the last answer stays.
        self.connected: list[list[str]] = [[]]
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def __enter__(self) -> SessionManager:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: SessionManager

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        request = json.loads(self.rfile.read(length) or "{}")
        name = self.headers["X-Amz-Target"].partition(".")[2]
        self.server.calls.append((name, request))
        status, answer = 200, self._answer(name, request)
        if name == "StartSession" and self.server.refuse:
            status, answer = 400, {"__type": self.server.refuse, "message": "no"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        if name == "SendSSHPublicKey":
            self.server.on_key(request["InstanceOSUser"], request["SSHPublicKey"])
            return {"RequestId": "r", "Success": True}
        if name == "StartSession":
            number = self.server.names().count("StartSession")
            return {
                "SessionId": f"ann-{number}",
                "TokenValue": TOKEN,
                "StreamUrl": f"tcp://{self.server.connect}",
            }
        if name == "DescribeInstanceInformation":
            number = self.server.names().count(name)
            who = self.server.connected[min(number, len(self.server.connected)) - 1]
            return {
                "InstanceInformationList": [
                    {"InstanceId": one, "PingStatus": "Online"} for one in who
                ]
            }
        return {"SessionId": request.get("SessionId", "")}

    def log_message(self, *_: Any) -> None:
        pass


class Plugin:
    """A plugin in a folder of its own. ``started``: what it was started with, each time."""

    def __init__(self, folder: Path, version: str = "1.2.764.0") -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._log = folder / "started.jsonl"
        path = folder / "session-manager-plugin"
        path.write_text(
            _PLUGIN.format(python=sys.executable, version=version, log=str(self._log), token=TOKEN),
            encoding="utf-8",
        )
        path.chmod(0o755)

    @property
    def started(self) -> list[dict[str, Any]]:
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]
