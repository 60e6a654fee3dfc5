"""Whole runs against a mock server: phases, verdicts, failures, what is sent."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import smoke
from infra.errors import EndpointError, InputError
from infra.serving.acceptance import AcceptanceRecord
from infra.spec.model import Load, Sla, SpeculationSla
from smoke import drive
from smoke.clock import NS_PER_S, MonotonicClock
from smoke.endpoint import base_url
from smoke.outcome import Outcome
from smoke.sample import Sample
from smoke.transport import Client
from tests.unit.smoke import mock_server as mock
from tests.unit.smoke.mock_server import Asked, MockServer, Script

SLA = Sla(ttft_p95_ms=5000, tpot_p95_ms=5000, e2e_p95_ms=9000, error_rate_max=0.2)
SPECULATION = SpeculationSla(
    speedup_min=0.1, mean_acceptance_length_min=2.0, output="identical"
)  # fmt: skip
LOAD = Load(sessions=4, prompt_tokens=16, output_tokens=3, think_s=0.01)
TIMEOUTS = smoke.Timeouts(connect_s=2, first_byte_s=0.4, stall_s=0.3, total_s=3)
OPTIONS = smoke.Options(
    rate_rps=150, min_requests=60, max_seconds=5, output_pairs=4, baseline_requests=20,
    timeouts=TIMEOUTS,
)  # fmt: skip


def read_counters(text: str) -> AcceptanceRecord | None:
    """The mock's metrics are four numbers; anything else is not metrics."""
    if not text:
        return None
    try:
        drafts, drafted, accepted, first = (int(word) for word in text.split())
    except ValueError:
        raise EndpointError("not Prometheus text") from None
    return AcceptanceRecord(drafts, drafted, accepted, (first, accepted - first))


def counting(*readings: str) -> object:
    """Metrics that answer with one reading after the other."""
    series = iter(readings)
    return lambda: next(series)


def run(
    server: MockServer,
    *,
    sla: Sla = SLA,
    load: Load = LOAD,
    options: smoke.Options = OPTIONS,
    baseline: MockServer | None = None,
    progress: smoke.Progress = smoke.silent,
    **target: str,
) -> smoke.Report:
    return smoke.run(
        smoke.Target(url=server.url, baseline_url=baseline.url if baseline else None, **target),  # type: ignore[arg-type]
        sla,
        load,
        options,
        read_counters,
        progress,
    )


def verdicts(report: smoke.Report) -> dict[str, str]:
    return {clause.name: clause.verdict for clause in report.clauses}


def test_a_good_endpoint_passes_every_clause() -> None:
    metrics = counting("0 0 0 0", "900 1800 1200 700")
    with MockServer(metrics=metrics) as server, MockServer() as baseline:  # type: ignore[arg-type]
        sla = SLA.model_copy(update={"speculation": SPECULATION})
        report = run(server, sla=sla, baseline=baseline)
    assert (report.verdict, report.exit_status) == ("pass", 0)
    assert set(verdicts(report).values()) == {"pass"}
    assert len(report.clauses) == 7
    assert report.results.requests >= 60
    assert report.results.errors == 0
    assert report.results.token_counts_from == "usage"
    assert report.acceptance is not None
    assert report.acceptance.mean_acceptance_length == pytest.approx(1 + 1200 / 900)
    assert report.outputs is not None
    assert (report.outputs.pairs, report.outputs.equal) == (4, 4)
    assert report.speedup is not None
    assert report.speedup.pairs >= 20
    assert [phase.name for phase in report.phases] == [
        "preflight", "warm-up", "load", "baseline", "outputs",
    ]  # fmt: skip
    assert report.environment.model == "tiny"
    assert report.environment.engine == "llamacpp"


def test_requests_are_greedy_seeded_streamed_and_of_the_promised_length() -> None:
    with MockServer() as server:
        run(server, options=smoke.Options(rate_rps=200, min_requests=5, max_seconds=0.1, seed=9))
        bodies = [asked.body for asked in server.asked]
        paths = {asked.path for asked in server.asked}
    assert paths == {"/v1/chat/completions"}
    for body in bodies:
        assert body["model"] == "tiny"
        assert body["stream"] is True
        assert body["stream_options"] == {"include_usage": True}
        assert (body["temperature"], body["seed"], body["max_tokens"]) == (0, 9, 3)
        assert body["ignore_eos"] is True
        assert body["cache_prompt"] is False


def test_llamacpps_own_fields_are_not_sent_to_vllm() -> None:
    with MockServer(owned_by="vllm") as server:
        report = run(server)
        assert report.environment.engine == "vllm"
        assert all("cache_prompt" not in asked.body for asked in server.asked)


def test_the_baseline_gets_the_same_prompts_in_the_same_order() -> None:
    with MockServer() as server, MockServer() as baseline:
        report = run(server, baseline=baseline)
        sent = [asked.prompt for asked in server.asked]
        repeated = [asked.prompt for asked in baseline.asked]
    warm_up = len(sent) - report.results.requests
    measured = set(sent[warm_up:])
    # All prompts but those of the baseline's own warm-up were sent to the endpoint, too.
    assert len(repeated) >= 20 + LOAD.sessions
    assert set(repeated[LOAD.sessions :]) <= measured
    assert not set(sent[:warm_up]) & measured


def test_the_key_is_sent_and_never_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRACK_API_KEY", "sk-very-secret")
    with MockServer() as server:
        report = run(server)
        assert {asked.headers["authorization"] for asked in server.asked} == {
            "Bearer sk-very-secret"
        }
    assert "secret" not in smoke.report.to_json(report)


def test_a_tight_limit_fails_with_value_and_bound() -> None:
    with MockServer(lambda asked: [0.1, *mock.good(asked)]) as server:
        report = run(server, sla=Sla(ttft_p95_ms=0.0001, error_rate_max=0.2))
    assert (report.verdict, report.exit_status) == ("fail", 1)
    clause = report.clauses[0]
    assert clause.verdict == "fail"
    assert isinstance(clause.measured, float)
    assert isinstance(clause.lower, float)
    assert "ttft_p95_ms" in report.summary


def test_an_undecided_run_extends_itself_until_time_is_up() -> None:
    """300 clean requests are needed for 1%; only about 150 fit into the time."""
    options = smoke.Options(rate_rps=150, min_requests=60, max_seconds=1.0, timeouts=TIMEOUTS)
    with MockServer() as server:
        report = run(server, sla=Sla(e2e_p95_ms=9000, error_rate_max=0.01), options=options)
    assert report.exit_status == 3
    assert report.results.requests > 90
    assert report.offered.looks > 1
    assert any("looked at" in note for note in report.notes)
    assert "takes 299 requests" in report.clauses[-1].reason


def test_what_can_not_fit_into_the_time_is_said_beforehand() -> None:
    options = smoke.Options(rate_rps=100, max_seconds=0.2, timeouts=TIMEOUTS)
    with MockServer() as server:
        report = run(server, sla=Sla(e2e_p95_ms=9000, error_rate_max=0.001), options=options)
    assert any("2995 requests are needed" in note for note in report.notes)
    assert report.verdict == "inconclusive"


def test_missing_metrics_leave_only_the_acceptance_undecided() -> None:
    sla = SLA.model_copy(
        update={"speculation": SpeculationSla(mean_acceptance_length_min=2.0)}
    )  # fmt: skip
    with MockServer() as server:
        report = run(server, sla=sla)
    found = verdicts(report)
    assert found.pop("speculation.mean_acceptance_length_min") == "inconclusive"
    assert set(found.values()) == {"pass"}
    assert "HTTP 404" in report.clauses[-1].reason


def test_metrics_that_are_no_metrics_say_so() -> None:
    sla = SLA.model_copy(
        update={"speculation": SpeculationSla(mean_acceptance_length_min=2.0)}
    )  # fmt: skip
    with MockServer(metrics=lambda: "<html>") as server:
        report = run(server, sla=sla)
    assert "not Prometheus text" in report.clauses[-1].reason
    assert report.clauses[-1].verdict == "inconclusive"


def test_a_restart_in_mid_run_is_noticed_by_falling_counters() -> None:
    metrics = counting("900 1800 1200 700", "400 800 700 380")
    with MockServer(metrics=metrics) as server:  # type: ignore[arg-type]
        report = run(server)
    assert report.acceptance is not None
    assert report.acceptance.restarted
    assert report.acceptance.drafts == 400
    assert any("restarted" in warning for warning in report.warnings)


def test_different_outputs_fail_the_equality_clause() -> None:
    sla = SLA.model_copy(update={"speculation": SpeculationSla(output="identical")})

    def other(asked: Asked) -> Script:
        return mock.good(asked, text="something else")

    with MockServer() as server, MockServer(other) as baseline:
        report = run(server, sla=sla, baseline=baseline)
    assert verdicts(report)["speculation.output"] == "fail"
    assert report.outputs is not None
    assert report.outputs.equal == 0
    assert report.outputs.differences[0].position == 0


def test_speculation_slower_than_promised_fails() -> None:
    sla = SLA.model_copy(update={"speculation": SpeculationSla(speedup_min=1.0)})

    def slow(asked: Asked) -> Script:
        return mock.good(asked, gap_s=0.02)

    with MockServer(slow) as server, MockServer() as baseline:
        report = run(server, sla=sla, baseline=baseline)
    assert verdicts(report)["speculation.speedup_min"] == "fail"
    assert any("slower" in warning for warning in report.warnings)


def test_failures_under_load_are_counted_by_kind() -> None:
    """Every fifth request is cut, every other fifth refused; the warm-up is clean."""
    numbers = itertools.count()

    def script(asked: Asked) -> Script:
        number = next(numbers)
        if number < 12 or number % 5 > 1:
            return mock.good(asked)
        if number % 5 == 0:
            return [mock.STREAM_HEAD + mock.token("a", chat=True), mock.CLOSE]
        return mock.plain("503 Busy", '{"error":{"message":"no slot"}}')

    with MockServer(script) as server:
        report = run(server)
    assert report.verdict == "fail"
    kinds = {group.outcome: group for group in report.errors}
    assert set(kinds) == {"truncated", "http_5xx"}
    assert kinds["http_5xx"].example == "HTTP 503: no slot"
    assert report.results.errors == sum(group.count for group in report.errors)
    assert Counter(row.outcome for row in report.requests)["truncated"] == kinds["truncated"].count


def test_too_many_in_flight_are_not_sent_and_bar_a_pass() -> None:
    options = smoke.Options(
        rate_rps=200, min_requests=60, max_seconds=0.6, max_in_flight=2, timeouts=TIMEOUTS
    )

    def slow(asked: Asked) -> Script:
        return mock.good(asked, gap_s=0.03)

    with MockServer(slow) as server:
        report = run(server, options=options)
    assert report.offered.not_sent > 0
    assert report.lateness.sent_share < 0.99
    assert report.verdict == "inconclusive"
    assert "client" in report.clauses[0].reason
    assert any("could not be sent" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([mock.STREAM_HEAD + mock.token("a", chat=True), mock.HANG], "stalled: silent"),
        ([mock.STREAM_HEAD + mock.event("{broken") + mock.LAST_CHUNK], "broken_sse"),
        (mock.plain("400 Bad", '{"error":{"message":"no such field"}}'), "HTTP 400: no such field"),
        ([mock.HANG], "timeout_first_byte"),
    ],
)
def test_an_endpoint_that_never_works_is_an_error_with_its_reason(
    script: Script, words: str
) -> None:
    with MockServer(lambda _: script) as server, pytest.raises(EndpointError) as caught:
        run(server)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 3


def test_an_endpoint_that_is_down_is_an_error() -> None:
    with MockServer() as server:
        pass
    with pytest.raises(EndpointError, match="nothing listens at"):
        run(server)


@pytest.mark.parametrize(
    ("path", "reply", "words"),
    [
        ("/health", mock.plain("503 Busy", '{"error":{"message":"Loading model"}}'), "not ready"),
        ("/v1/models", mock.plain("401 No", '{"error":{"message":"key?"}}'), "SPECRACK_API_KEY"),
        ("/v1/models", mock.plain("404 No", "{}"), "--model"),
        ("/v1/models", mock.plain("200 OK", "[1"), "--model"),
        ("/health", [b"SSH-2.0\r\n"], "does an HTTP server listen there"),
    ],
)
def test_a_failed_preflight_says_what_to_do(path: str, reply: Script, words: str) -> None:
    def other(asked: Asked) -> Script | None:
        return reply if asked.path == path else None

    with MockServer(other=other) as server, pytest.raises(EndpointError) as caught:
        run(server)
    assert words in str(caught.value)


def test_several_models_must_be_chosen_from() -> None:
    with MockServer(models=("a", "b")) as server:
        with pytest.raises(InputError, match="a, b"):
            run(server)
        assert run(server, model="b").environment.model == "b"


def test_progress_tells_every_phase_and_its_end() -> None:
    told: list[tuple[str, int, int]] = []

    def progress(phase: str, done: int, total: int, live_ttft_p95_ms: float | None = None) -> None:
        told.append((phase, done, total))

    with MockServer() as server:
        run(server, progress=progress)
    assert list(dict.fromkeys(phase for phase, _, _ in told)) == [
        "preflight", "warm-up", "load", "done",
    ]  # fmt: skip
    assert all(0 <= done <= total for _, done, total in told)


def test_sigterm_stops_the_run_and_reaches_the_handler_that_was_there() -> None:
    class StoppedError(Exception):
        pass

    def handler(_signal: int, _frame: object) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with MockServer(lambda _: [mock.HANG]) as server:
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
            timer.start()
            with pytest.raises(StoppedError):
                run(server, options=smoke.Options())
            timer.join()
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_writes_nothing(
    tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    out = tmp_path / "out"
    asked = threading.Event()

    def script(_: Asked) -> Script:
        asked.set()
        return [mock.HANG]

    with MockServer(script) as server:
        command = [sys.executable, "-m", "smoke", "--url", server.url, "--sla-ttft-p95-ms", "9"]
        process = subprocess.Popen(
            [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert asked.wait(20)
        time.sleep(0.1)
        process.send_signal(sent)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == status
    assert "Traceback" not in output + errors
    assert not out.exists()


class LeapingClock:
    """Sleeps take no time: the clock leaps instead."""

    def __init__(self) -> None:
        self.ns = NS_PER_S

    def now_ns(self) -> int:
        self.ns += 1000
        return self.ns

    async def sleep_until(self, moment_ns: int) -> None:
        self.ns = max(self.ns, moment_ns)
        await asyncio.sleep(0)


def _open_loop(server: MockServer, client: Client, clock: LeapingClock) -> drive.OpenLoop:
    def body(number: int) -> bytes:
        return smoke_body(number)

    sender = drive.Sender(client, base_url(server.url).below("/v1/completions"), clock, body)
    offsets = itertools.count(0, NS_PER_S)
    return drive.OpenLoop(sender=sender, offsets=offsets, max_seconds=20, max_in_flight=1000)


def smoke_body(number: int) -> bytes:
    return b'{"prompt":"%d","max_tokens":1}' % number


def test_the_open_loop_sends_by_the_schedule_and_looks_at_leading_replies_only() -> None:
    """On a leaping clock: intended moments are the schedule's, and every look sees arrivals
    0..n-1 without a gap, however replies overtake each other."""
    looks: list[int] = []

    def script(asked: Asked) -> Script:
        slow = int(asked.prompt) % 3 == 0
        return [0.02 if slow else 0.0, *mock.good(asked)]

    def decided(samples: list[Sample], scheduled: int) -> bool:
        looks.append(scheduled)
        assert [one.index for one in samples] == list(range(len(samples)))
        assert len(samples) == scheduled
        return False

    async def main() -> drive.OpenLoop:
        clock = LeapingClock()
        async with Client(
            base_url(server.url).origin, clock=MonotonicClock(), timeouts=TIMEOUTS
        ) as client:
            loop = _open_loop(server, client, clock)
            await loop.run(min_requests=5, decided=decided)
            return loop

    with MockServer(script) as server:
        loop = asyncio.run(main())
    assert loop.out_of_time
    assert loop.scheduled == 21
    begin = loop.samples[0].intended_ns
    assert [one.intended_ns - begin for one in loop.samples] == [n * NS_PER_S for n in range(21)]
    assert looks[0] >= 5
    assert looks[-1] == 21


def test_a_run_taken_up_again_goes_on_in_the_schedule() -> None:
    """A look stops the sending; when what was in flight tips the balance back, it goes on with
    the very next arrival, none lost and none twice."""
    answers = iter([True, False])

    def decided(samples: list[Sample], scheduled: int) -> bool:
        return next(answers, scheduled >= 21)

    async def main() -> drive.OpenLoop:
        async with Client(
            base_url(server.url).origin, clock=MonotonicClock(), timeouts=TIMEOUTS
        ) as client:
            loop = _open_loop(server, client, LeapingClock())
            await loop.run(min_requests=5, decided=decided)
            return loop

    with MockServer() as server:
        loop = asyncio.run(main())
        prompts = [int(asked.prompt) for asked in server.asked]
    assert sorted(prompts) == list(range(21))
    assert [one.index for one in loop.samples] == list(range(21))
    assert {one.outcome for one in loop.samples} == {Outcome.OK}
