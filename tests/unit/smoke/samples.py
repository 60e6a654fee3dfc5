"""Samples made up for tests, in milliseconds."""

from __future__ import annotations

from smoke.clock import NS_PER_MS
from smoke.lateness import Lateness, lateness_of
from smoke.outcome import Outcome
from smoke.sample import Sample


def sample(
    index: int = 0,
    *,
    ttft_ms: float = 10.0,
    e2e_ms: float = 100.0,
    tokens: int = 10,
    lag_ms: float = 0.0,
    at_ms: float = 0.0,
    outcome: Outcome = Outcome.OK,
    message: str = "",
    text: str = "text",
    count_source: str = "usage",
) -> Sample:
    """A sample whose first token comes ``ttft_ms`` and whose last comes ``e2e_ms`` after the
    intended moment, written ``lag_ms`` late."""
    intended_ns = round((1000 + at_ms) * NS_PER_MS)
    sent_ns = intended_ns + round(lag_ms * NS_PER_MS)
    first_ns = intended_ns + round(ttft_ms * NS_PER_MS)
    end_ns = intended_ns + round(e2e_ms * NS_PER_MS)
    return Sample(
        index=index,
        prompt=index,
        intended_ns=intended_ns,
        started_ns=sent_ns,
        sent_ns=sent_ns,
        end_ns=end_ns,
        connect_ns=0,
        outcome=outcome,
        message=message,
        text=text if outcome is Outcome.OK else "",
        chunk_ns=(first_ns, end_ns) if outcome is Outcome.OK else (),
        output_tokens=tokens if outcome is Outcome.OK else 0,
        prompt_tokens=7,
        count_source=count_source,  # type: ignore[arg-type]
    )


def failed(index: int = 0, outcome: Outcome = Outcome.STALLED, message: str = "silent") -> Sample:
    return sample(index, outcome=outcome, message=message)


def on_time() -> Lateness:
    """A harness without any lateness."""
    return lateness_of([0.0], [0])


def late(send_ms: float = 0.0, read_ms: float = 0.0) -> Lateness:
    """A harness that is always this late."""
    return lateness_of([send_ms], [round(read_ms * NS_PER_MS)])
