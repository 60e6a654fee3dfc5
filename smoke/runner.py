"""A smoke run from end to end: preflight, warm-up, the measured load, the baseline, the outputs.

Nothing is written here: cancelling a run at any moment leaves nothing half done.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from infra.errors import EndpointError
from infra.spec.model import Load, Sla
from smoke import drive, prompts, request, schedule, speculation, stats, verdict
from smoke.clock import NS_PER_MS, NS_PER_S, Clock, MonotonicClock
from smoke.endpoint import Url, auth_headers, base_url, parse_url, refuse_proxy
from smoke.lateness import ReadLagProbe, lateness_of
from smoke.measured import Measured
from smoke.options import Options, Target
from smoke.preflight import AcceptanceReader, Served, check, read_counters
from smoke.progress import Progress, silent
from smoke.sample import Sample
from smoke.transport import Client

_LIVE_EVERY_NS = 200 * NS_PER_MS


async def measure(
    target: Target,
    sla: Sla,
    load: Load,
    options: Options,
    acceptance_reader: AcceptanceReader,
    progress: Progress = silent,
    *,
    clock: Clock | None = None,
) -> Measured:
    """Measure ``target`` under ``load`` until every clause of ``sla`` is decided or time is up.

    Raises InputError for a target or prompts that cannot be used, EndpointError when nothing could
    be measured (down, not ready, or every warm-up request failed).
    """
    async with AsyncExitStack() as stack:
        run = _Run(target, sla, load, options, acceptance_reader, progress, clock)
        with _quiet_collector():
            return await run.run(stack)


@dataclass(slots=True)
class _Side:
    """One of the two endpoints compared."""

    what: str
    base: Url
    client: Client
    served: Served

    def sender(self, run: _Run, kind: request.Kind) -> drive.Sender:
        def body(number: int) -> bytes:
            return request.body(
                kind,
                run.prompts.text(number),
                model=self.served.model,
                max_tokens=run.load.output_tokens,
                seed=run.options.seed,
                engine=self.served.engine,
                ignore_eos=run.options.ignore_eos,
            )

        return drive.Sender(self.client, self.base.below(request.PATH[kind]), run.clock, body)


class _Run:
    def __init__(
        self,
        target: Target,
        sla: Sla,
        load: Load,
        options: Options,
        reader: AcceptanceReader,
        progress: Progress,
        clock: Clock | None,
    ) -> None:
        self.target, self.sla, self.load, self.options = target, sla, load, options
        self.reader, self.progress = reader, progress
        self.clock: Clock = clock or MonotonicClock()
        own = options.prompts_file
        self.prompts = prompts.PromptSet(
            prompts.from_file(own) if own else prompts.shipped(),
            tokens=None if own else load.prompt_tokens,
            seed=options.seed,
        )
        self._live_ns = 0

    async def run(self, stack: AsyncExitStack) -> Measured:
        started_at = datetime.now(UTC)
        self.progress("preflight", 0, 1)
        begin_ns = self.clock.now_ns()
        baseline_url = self.target.baseline_url
        base = base_url(self.target.url)
        baseline_base = base_url(baseline_url, what="the baseline URL") if baseline_url else None
        metrics_url = self._metrics_url(base)
        side = await self._open(stack, base, "endpoint")
        baseline = (
            await self._open(stack, baseline_base, "baseline", known=side.served)
            if baseline_base
            else None
        )
        metrics_client = side.client
        if metrics_url.origin != base.origin:
            metrics_client = await stack.enter_async_context(self._client(metrics_url))
        found = Measured(
            self.target, self.sla, self.load, self.options, started_at, side.served,
            prompts_are_users=self.options.prompts_file is not None,
        )  # fmt: skip
        found.phases.append(("preflight", self._since_s(begin_ns)))
        await self._warm_up(found, side)
        before, problem = await read_counters(metrics_client, metrics_url, self.reader)
        await self._main(found, side)
        after, later_problem = await read_counters(metrics_client, metrics_url, self.reader)
        found.reading = speculation.reading_between(before, after, problem=problem or later_problem)
        if baseline is not None:
            await self._baseline(found, baseline)
            if self.sla.speculation is not None and self.sla.speculation.output == "identical":
                await self._outputs(found, side, baseline)
        found.ended_at = datetime.now(UTC)
        return found

    # ---- phases

    async def _warm_up(self, found: Measured, side: _Side) -> None:
        """Two waves, left out of the results. The first has all sessions at once and fills every
        slot and cache; the second has as many as are in flight on average, and gives R."""
        sessions, think_s = self.load.sessions, self.load.think_s
        with self._phase(found, "warm-up", 2):
            sender = side.sender(self, self.options.kind)
            # Prompts far from the measured ones, so that no cache is warmed for those.
            first = await drive.wave(
                sender, count=sessions, concurrency=sessions, first_prompt=1_000_000
            )
            self._some_must_work(first, side)
            self.progress("warm-up", 1, 2)
            in_flight = schedule.mean_concurrency(
                sessions, think_s=think_s, service_time_s=_median_service_s(first)
            )
            second = await drive.wave(
                sender,
                count=max(4, in_flight),
                concurrency=in_flight,
                first_prompt=1_000_000 + sessions,
            )
            self._some_must_work(second, side)
        found.service_time_s = _median_service_s(second)
        found.rate_rps = self.options.rate_rps or schedule.rate_of_sessions(
            sessions, think_s=think_s, service_time_s=found.service_time_s
        )

    async def _main(self, found: Measured, side: _Side) -> None:
        need = self.options.min_requests or verdict.requests_needed(self.sla)
        in_time = found.rate_rps * self.options.max_seconds
        if need > in_time:
            found.notes.append(
                f"{need} requests are needed to pass every clause, and {in_time:.0f} fit into "
                f"{self.options.max_seconds:g} s at {found.rate_rps:.3g} requests/s."
            )
        with self._phase(found, "load", need):
            async with ReadLagProbe() as probe:
                loop = self._open_loop(found, side, max_requests=None)
                loop.on_done = lambda done, scheduled: self._live(
                    "load", done, max(need, scheduled), loop.settled
                )

                def decided(samples: list[Sample], scheduled: int) -> bool:
                    found.looks += 1
                    lags_ms = [sample.lag_ms for sample in samples]
                    late = lateness_of(lags_ms, probe.samples_ns)
                    seen = verdict.Evidence(samples, scheduled, late)
                    return verdict.decided(verdict.load_clauses(self.sla, seen))

                await loop.run(min_requests=need, decided=decided)
            found.main, found.scheduled = loop.samples, loop.scheduled
            found.capped, found.start_ns = loop.capped, loop.start_ns
            found.lateness = lateness_of([one.lag_ms for one in found.main], probe.samples_ns)

    async def _baseline(self, found: Measured, baseline: _Side) -> None:
        """The same arrivals and prompts against the baseline, as many as decide the speed-up."""
        limit = self.sla.speculation.speedup_min if self.sla.speculation is not None else None
        need = min(self.options.baseline_requests, found.scheduled)
        with self._phase(found, "baseline", need):
            sender = baseline.sender(self, self.options.kind)
            warm = await drive.wave(
                sender,
                count=self.load.sessions,
                concurrency=self.load.sessions,
                first_prompt=1_000_000,
            )
            self._some_must_work(warm, baseline)
            loop = self._open_loop(found, baseline, max_requests=found.scheduled)
            loop.on_done = lambda done, scheduled: self._live(
                "baseline", done, max(need, scheduled), loop.settled
            )

            def compare(samples: list[Sample], scheduled: int) -> speculation.LoadCompared:
                return speculation.compare_load(
                    found.main, samples, scheduled=scheduled, seed=self.options.seed
                )

            def decided(samples: list[Sample], scheduled: int) -> bool:
                if limit is None:
                    return True
                clause = speculation.speedup_clause(limit, compare(samples, scheduled))
                return not clause.more_helps

            await loop.run(min_requests=need, decided=decided)
            found.load_ab = compare(loop.samples, loop.scheduled)

    async def _outputs(self, found: Measured, side: _Side, baseline: _Side) -> None:
        """Pairs one at a time, the side that goes first alternating."""
        count = self.options.output_pairs
        kind = found.outputs_kind
        senders = (side.sender(self, kind), baseline.sender(self, kind))
        pairs: list[tuple[Sample, Sample]] = []
        with self._phase(found, "outputs", count):
            end_ns = self.clock.now_ns() + round(self.options.max_seconds * NS_PER_S)
            for number in range(count):
                if self.clock.now_ns() > end_ns:
                    found.notes.append(
                        f"Outputs: {number} of {count} pairs in {self.options.max_seconds:g} s."
                    )
                    break
                first = number % 2
                one = await senders[first].ask(number, index=number)
                two = await senders[1 - first].ask(number, index=number)
                pairs.append((two, one) if first else (one, two))
                self.progress("outputs", number + 1, count)
        found.outputs = speculation.compare_outputs(pairs)

    # ---- parts

    def _open_loop(
        self, found: Measured, side: _Side, *, max_requests: int | None
    ) -> drive.OpenLoop:
        return drive.OpenLoop(
            sender=side.sender(self, self.options.kind),
            offsets=schedule.arrivals(self.options.arrival, found.rate_rps, seed=self.options.seed),
            max_seconds=self.options.max_seconds,
            max_in_flight=self.options.max_in_flight or max(256, 4 * self.load.sessions),
            max_requests=max_requests,
        )

    async def _open(
        self, stack: AsyncExitStack, base: Url, what: str, *, known: Served | None = None
    ) -> _Side:
        client = await stack.enter_async_context(self._client(base))
        # A baseline may serve the model under another name, so it is asked for its own.
        served = await check(
            client,
            base,
            model=self.target.model if known is None else None,
            fallback=None if known is None else known.model,
            engine=self.target.engine,
            what=what,
        )
        return _Side(what, base, client, served)

    def _client(self, url: Url) -> Client:
        refuse_proxy(url)
        return Client(
            url.origin,
            clock=self.clock,
            timeouts=self.options.timeouts,
            headers=auth_headers(),
        )

    def _metrics_url(self, base: Url) -> Url:
        given = self.target.metrics_url
        return parse_url(given, what="the metrics URL") if given else base.below("/metrics")

    def _some_must_work(self, samples: list[Sample], side: _Side) -> None:
        if any(sample.ok for sample in samples):
            return
        (outcome, message), _ = Counter(
            (sample.outcome, sample.message) for sample in samples
        ).most_common(1)[0]
        raise EndpointError(
            f"{side.what} {side.base}: every one of {len(samples)} warm-up requests failed: "
            f"{outcome}: {message}",
            do="nothing was measured; see the server's log",
        )

    @contextlib.contextmanager
    def _phase(self, found: Measured, name: str, total: int) -> Iterator[None]:
        begin_ns = self.clock.now_ns()
        self._live_ns = 0
        self.progress(name, 0, total)
        yield
        found.phases.append((name, self._since_s(begin_ns)))

    def _live(self, phase: str, done: int, total: int, samples: list[Sample]) -> None:
        now_ns = self.clock.now_ns()
        if now_ns - self._live_ns < _LIVE_EVERY_NS and done < total:
            return
        self._live_ns = now_ns
        latest = sorted(sample.ttft_ms for sample in samples[-500:])
        self.progress(phase, done, total, stats.quantile(latest, 0.95) if latest else None)

    def _since_s(self, begin_ns: int) -> float:
        return (self.clock.now_ns() - begin_ns) / NS_PER_S


def _median_service_s(samples: list[Sample]) -> float:
    return statistics.median(one.service_ms for one in samples if one.ok) / 1000


@contextlib.contextmanager
def _quiet_collector() -> Iterator[None]:
    """Keep the garbage collector from walking everything imported in mid-measurement: what lives
    now is set aside, so that collections during the run are short."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
