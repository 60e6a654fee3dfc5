"""Clients against real servers on this machine: retries, time-outs, where they go."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from infra.aws import session
from infra.aws.faults import AwsError, telling
from infra.aws.session import client

THROTTLED = b"""<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code>
<Message>Rate exceeded</Message></Error></ErrorResponse>"""
IDENTITY = b"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/ann</Arn><UserId>A</UserId>
<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"""


class Server(http.server.ThreadingHTTPServer):
    """Answers every POST with ``answers`` in turn; the last one for ever. None: never."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, bytes] | None] = [(200, IDENTITY)]
        self.seen: list[Any] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(self.headers)
        number = min(len(self.server.seen), len(self.server.answers)) - 1
        answer = self.server.answers[number]
        if answer is None:
            self.server.over.wait(20)
            return
        status, body = answer
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    monkeypatch.setenv(session.ENDPOINT, made.url)
    yield made
    made.over.set()
    made.shutdown()
    thread.join()
    made.server_close()


def identity(**more: Any) -> dict[str, Any]:
    with telling("sts", "us-east-1"):
        answer: dict[str, Any] = client("sts", "us-east-1", **more).get_caller_identity()
        return answer


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait on a clock that jumps; how often they try stays the same."""
    from botocore import endpoint
    from botocore.retries import bucket

    jumped = [0.0]

    def jump(*arguments: Any) -> None:
        jumped[0] += arguments[-1]

    monkeypatch.setattr(endpoint.time, "sleep", jump)
    monkeypatch.setattr(bucket.Clock, "sleep", jump)
    monkeypatch.setattr(bucket.Clock, "current_time", lambda self: time.monotonic() + jumped[0])


def test_every_service_goes_to_the_endpoint_that_is_set(server: Server) -> None:
    assert identity()["Account"] == "123456789012"
    for service in ("ec2", "s3", "eks", "ssm", "pricing", "service-quotas", "iam"):
        assert client(service, "us-east-1").meta.endpoint_url == server.url


def test_without_an_endpoint_it_is_aws() -> None:
    assert client("eks", "eu-west-1").meta.endpoint_url == "https://eks.eu-west-1.amazonaws.com"


def test_requests_say_who_asks(server: Server) -> None:
    identity()
    assert "specrack/" in server.seen[0]["User-Agent"]


@pytest.mark.usefixtures("_quick")
def test_a_throttled_call_is_tried_again_and_then_given_up(server: Server) -> None:
    server.answers = [(400, THROTTLED)]
    with pytest.raises(AwsError) as caught:
        identity()
    assert len(server.seen) == session.ATTEMPTS
    assert caught.value.fault.kind == "throttled"
    assert str(caught.value) == (
        "sts throttled us (Throttling), 3 tries (wait a minute and run it again)"
    )
    assert caught.value.exit_status == 3


@pytest.mark.usefixtures("_quick")
def test_a_call_that_is_throttled_once_is_answered(server: Server) -> None:
    server.answers = [(400, THROTTLED), (200, IDENTITY)]
    assert identity()["Account"] == "123456789012"
    assert len(server.seen) == 2


def test_a_server_that_says_nothing_is_given_up_in_time(server: Server) -> None:
    server.answers = [None]
    started = time.monotonic()
    with pytest.raises(AwsError) as caught:
        identity(read_s=0.3, attempts=1)
    assert time.monotonic() - started < 3
    assert caught.value.fault.kind == "unreachable"
    assert "sts in us-east-1 did not answer in time" in str(caught.value)


def test_a_server_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session.ENDPOINT, "http://127.0.0.1:9")
    with pytest.raises(AwsError, match=r"sts in us-east-1 cannot be reached \(http://127"):
        identity(attempts=1)


def test_no_credentials_are_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AwsError) as caught:
        identity()
    assert caught.value.fault.kind == "credentials"
    assert caught.value.exit_status == 2
    assert "aws sso login" in caught.value.do


def test_half_credentials_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AwsError, match="AWS_SECRET_ACCESS_KEY is missing"):
        identity()


def test_an_unknown_profile_is_one_line() -> None:
    with pytest.raises(AwsError, match="there is no AWS profile nobody"):
        client("sts", "us-east-1", profile="nobody")


def test_an_address_that_is_none_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session.ENDPOINT, "nowhere")
    with pytest.raises(AwsError) as caught:
        client("sts", "us-east-1")
    assert "\n" not in str(caught.value)


def test_a_machine_outside_ec2_does_not_wait_for_its_metadata() -> None:
    made = session._session(None)
    core = made._session
    assert core.get_config_variable("metadata_service_timeout") == 1
    assert core.get_config_variable("metadata_service_num_attempts") == 1


def test_clients_may_be_made_from_many_threads() -> None:
    services = ["ec2", "sts", "ssm", "iam", "eks", "s3"] * 4
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda service: client(service, "us-east-1"), services))
    assert [one.meta.service_model.service_name for one in made] == services
