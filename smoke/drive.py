"""Sending: open-loop by a schedule, all at once, or one at a time.

The open loop never waits for a reply before it sends the next request. It may be stopped by a
look at what has come back so far, and taken up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from smoke.clock import NS_PER_MS, NS_PER_S, Clock
from smoke.endpoint import Url
from smoke.sample import Sample, sample_of
from smoke.transport import Client

#: From the decision to send until the first request, so that the first is not late.
_LEAD_NS = 20 * NS_PER_MS
#: Samples grow by this factor from one look at the verdict to the next.
_LOOK_GROWTH = 1.25


@dataclass(slots=True)
class Sender:
    """Asks one endpoint. ``body(number)`` gives the JSON of prompt ``number``."""

    client: Client
    url: Url
    clock: Clock
    body: Callable[[int], bytes]

    def prepare(self, prompt: int) -> bytes:
        return self.client.post_bytes(self.url, self.body(prompt))

    async def ask(
        self, prompt: int, *, index: int, intended_ns: int | None = None, request: bytes = b""
    ) -> Sample:
        """One request; never raises for what the endpoint does."""
        request = request or self.prepare(prompt)
        intended_ns = self.clock.now_ns() if intended_ns is None else intended_ns
        reply = await self.client.exchange(request)
        return sample_of(reply, index=index, prompt=prompt, intended_ns=intended_ns)


async def wave(sender: Sender, *, count: int, concurrency: int, first_prompt: int) -> list[Sample]:
    """``count`` requests, ``concurrency`` at a time, each sent when one before it is done."""
    numbers = iter(range(count))
    samples: list[Sample] = []

    async def worker() -> None:
        for number in numbers:
            samples.append(await sender.ask(first_prompt + number, index=number))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(count, concurrency)):
            group.create_task(worker())
    return samples


@dataclass(slots=True)
class OpenLoop:
    """An open-loop phase. ``samples`` is complete, in order of arrival, after ``run``."""

    sender: Sender
    #: Offsets of arrivals in ns, endless.
    offsets: Iterator[int]
    max_seconds: float
    max_in_flight: int
    #: Arrivals are numbered from 0; at most this many, None for no end.
    max_requests: int | None = None
    #: Called after each completed request with (done, scheduled).
    on_done: Callable[[int, int], None] | None = None
    samples: list[Sample] = field(default_factory=list)
    scheduled: int = 0
    capped: int = 0
    out_of_time: bool = False
    start_ns: int = 0
    _settled: dict[int, Sample | None] = field(default_factory=dict)
    _prefix: int = 0
    _last_offset_ns: int = 0
    #: Taken from ``offsets`` and not yet sent, because a look stopped us in between.
    _pending_ns: int | None = None

    @property
    def settled(self) -> list[Sample]:
        """What has come back so far, in order of completion."""
        return [sample for sample in self._settled.values() if sample is not None]

    async def run(self, *, min_requests: int, decided: Callable[[list[Sample], int], bool]) -> None:
        """Send until ``decided(samples, scheduled)`` or until time or requests run out.

        The first look comes after ``min_requests`` have completed; sending goes on meanwhile.
        """
        next_look = min_requests
        while not self.out_of_time:
            next_look = await self._send_until(next_look, decided)
            self.samples = [one for _, one in sorted(self._settled.items()) if one is not None]
            # What was in flight at the last look is in now, and counts.
            if decided(self.samples, self.scheduled) and self.scheduled >= min_requests:
                return

    async def _send_until(
        self, next_look: int, decided: Callable[[list[Sample], int], bool]
    ) -> int:
        """Send until a look says so, then wait for what is in flight. Returns the next look."""
        changed = asyncio.Event()
        async with asyncio.TaskGroup() as requests:
            sending = asyncio.create_task(self._send(requests, changed))
            sending.add_done_callback(lambda _: changed.set())
            try:
                while not sending.done():
                    await changed.wait()
                    changed.clear()
                    self._advance_prefix()
                    if self._prefix < next_look:
                        continue
                    next_look = max(self._prefix + 1, math.ceil(self._prefix * _LOOK_GROWTH))
                    if decided(self._leading_samples(), self._prefix):
                        break
            finally:
                sending.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await sending
        return next_look

    async def _send(self, requests: asyncio.TaskGroup, changed: asyncio.Event) -> None:
        clock, sender = self.sender.clock, self.sender
        start_ns = clock.now_ns() + _LEAD_NS - self._last_offset_ns
        self.start_ns = self.start_ns or start_ns
        limit_ns = self.max_seconds * NS_PER_S
        while self.max_requests is None or self.scheduled < self.max_requests:
            offset_ns = next(self.offsets) if self._pending_ns is None else self._pending_ns
            self._pending_ns = offset_ns
            if offset_ns > limit_ns:
                break
            index = self.scheduled
            request = sender.prepare(index)
            intended_ns = start_ns + offset_ns
            await clock.sleep_until(intended_ns)
            self._pending_ns = None
            self.scheduled += 1
            self._last_offset_ns = offset_ns
            if self.scheduled - len(self._settled) > self.max_in_flight:
                self._settled[index] = None
                self.capped += 1
                continue
            requests.create_task(self._one(index, intended_ns, request, changed))
        self.out_of_time = True

    async def _one(
        self, index: int, intended_ns: int, request: bytes, changed: asyncio.Event
    ) -> None:
        self._settled[index] = await self.sender.ask(
            index, index=index, intended_ns=intended_ns, request=request
        )
        if self.on_done is not None:
            self.on_done(len(self._settled), self.scheduled)
        changed.set()

    def _advance_prefix(self) -> None:
        """Count the leading arrivals that are settled: looking at whatever is done would favour
        quick replies."""
        while self._prefix in self._settled:
            self._prefix += 1

    def _leading_samples(self) -> list[Sample]:
        leading = (self._settled[index] for index in range(self._prefix))
        return [sample for sample in leading if sample is not None]
