"""An engine's outside without a model: health, completions that stream slowly, counters.

``python toy_engine.py PORT``. Starts a process of its own that never ends, as engines do for each
GPU, so that a test can see whether anything is left behind.
"""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
import time

CHUNKS, GAP_S = 8, 0.15
_lock = threading.Lock()
_served = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(b"ok")
        elif self.path == "/metrics":
            self._answer(f"# TYPE toy_requests counter\ntoy_requests_total {_served}\n".encode())
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        global _served
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(CHUNKS):
            text = f"data: {json.dumps({'choices': [{'text': f'{number} '}]})}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            self.wfile.flush()
            time.sleep(GAP_S)
        self.wfile.write(b"0\r\n\r\n")
        with _lock:
            _served += 1

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)  # toy worker"])
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
