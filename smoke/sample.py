"""What was measured of one request, and the figures that follow from it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from smoke.clock import NS_PER_MS
from smoke.connection import Reply
from smoke.outcome import Outcome
from smoke.sse import CountSource, decode


@dataclass(frozen=True, slots=True)
class Sample:
    """One request. Times in nanoseconds of the harness's clock.

    Latencies count from ``intended_ns``, the moment the schedule wanted the request sent, so that
    a client or server that falls behind cannot hide the wait. ``service_ms`` counts from the
    moment it was written.
    """

    index: int
    prompt: int
    intended_ns: int
    started_ns: int
    sent_ns: int
    end_ns: int
    connect_ns: int
    outcome: Outcome
    message: str = ""
    text: str = ""
    chunk_ns: tuple[int, ...] = ()
    output_tokens: int = 0
    prompt_tokens: int | None = None
    count_source: CountSource = "chunks"

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def lag_ms(self) -> float:
        """How late we wrote the request, the making of a connection left out."""
        if not self.sent_ns:
            return (self.started_ns - self.intended_ns) / NS_PER_MS
        return max(0, self.sent_ns - self.connect_ns - self.intended_ns) / NS_PER_MS

    @property
    def ttft_ms(self) -> float:
        """TTFT: to the first chunk with text. Infinite for a failed request."""
        if not self.ok or not self.chunk_ns:
            return math.inf
        return (self.chunk_ns[0] - self.intended_ns) / NS_PER_MS

    @property
    def e2e_ms(self) -> float:
        """E2E: to the end of the reply. Infinite for a failed request."""
        return (self.end_ns - self.intended_ns) / NS_PER_MS if self.ok else math.inf

    @property
    def service_ms(self) -> float:
        """From the request written to the end of the reply. Infinite for a failed request."""
        return (self.end_ns - self.sent_ns) / NS_PER_MS if self.ok else math.inf

    @property
    def tpot_ms(self) -> float | None:
        """TPOT: (last - first token time) / (output tokens - 1), because one chunk may carry
        several tokens. Infinite for a failed request, None for an output of one token."""
        if not self.ok:
            return math.inf
        if self.output_tokens < 2 or not self.chunk_ns:
            return None
        return (self.chunk_ns[-1] - self.chunk_ns[0]) / NS_PER_MS / (self.output_tokens - 1)

    @property
    def itl_ms(self) -> list[float]:
        """ITL per chunk: the gaps between chunks with text, however many tokens each carries."""
        times = self.chunk_ns
        return [(b - a) / NS_PER_MS for a, b in itertools.pairwise(times)]


def sample_of(reply: Reply, *, index: int, prompt: int, intended_ns: int) -> Sample:
    """Decode ``reply`` into a sample."""
    decoded = decode(reply)
    return Sample(
        index=index,
        prompt=prompt,
        intended_ns=intended_ns,
        started_ns=reply.started_ns,
        sent_ns=reply.sent_ns,
        end_ns=reply.end_ns,
        connect_ns=reply.connect_ns,
        outcome=decoded.outcome,
        message=decoded.message,
        text=decoded.text,
        chunk_ns=tuple(decoded.chunk_ns),
        output_tokens=decoded.output_tokens or 0,
        prompt_tokens=decoded.prompt_tokens,
        count_source=decoded.count_source,
    )
