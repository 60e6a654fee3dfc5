"""TensorRT-LLM's counters of speculation: Prometheus text in, one acceptance record out.

Two families speak of drafts, and a release has one, the other, both or none (names read in
tensorrt_llm/metrics/collector.py, 2026-12; not seen on a running server):

- per finished request, by position: ``trtllm_spec_decode_drafted_tokens_total{token_position}``
  and ``..._accepted_tokens_total{token_position}``. Every draft has exactly one first token, so
  there are as many drafts as tokens drafted at position 0.
- per iteration: ``trtllm_spec_decode_num_draft_tokens_total`` and
  ``..._num_accepted_tokens_total``. How many drafts these tokens were in is not told, and the gauge
  of the mean length is of the last iteration alone: no record can be made of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from infra.errors import EndpointError
from infra.serving.acceptance import AcceptanceRecord

_PREFIX = "trtllm_spec_decode_"
_DRAFTED, _ACCEPTED = "drafted_tokens", "accepted_tokens"

#: More positions than any k that a deployment may ask for: beyond is garbage, not a position.
_MAX_POSITIONS = 1024


@dataclass(slots=True)
class _Sums:
    """Tokens by position."""

    drafted: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    accepted: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def acceptance(text: str) -> AcceptanceRecord | None:
    """The counters in ``text``; None: it has none, so either nothing speculates or this release
    does not count. Raises EndpointError when the text is not Prometheus text."""
    sums = _read(text)
    if not sums.drafted:
        return None
    return AcceptanceRecord(
        drafts=sums.drafted.get(0, 0),
        draft_tokens=sum(sums.drafted.values()),
        accepted_tokens=sum(sums.accepted.values()),
        accepted_per_position=tuple(
            sums.accepted.get(position, 0) for position in range(max(sums.drafted) + 1)
        ),
    )


def _read(text: str) -> _Sums:
    from prometheus_client.parser import text_string_to_metric_families

    sums = _Sums()
    families = 0
    try:
        for family in text_string_to_metric_families(text):
            families += bool(family.samples)
            for sample in family.samples:
                if sample.name.startswith(_PREFIX):
                    _add(sums, sample.name, sample.labels, sample.value)
    # The parser raises ValueError for most faults, and whatever it trips over for the others.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _not_prometheus(text) from error
    if not families:
        raise _not_prometheus(text)
    return sums


def _add(sums: _Sums, full_name: str, labels: dict[str, str], value: float) -> None:
    name = full_name.removeprefix(_PREFIX).removesuffix("_total")
    if name not in (_DRAFTED, _ACCEPTED):
        return
    if not math.isfinite(value) or value < 0:
        raise EndpointError(f"{full_name} is {value}, which is not a count")
    by_position = sums.drafted if name == _DRAFTED else sums.accepted
    by_position[_position(labels)] += round(value)


def _position(labels: dict[str, str]) -> int:
    text = labels.get("token_position", "")
    is_short_number = text.isascii() and text.isdigit() and len(text) <= 4
    if not is_short_number or int(text) >= _MAX_POSITIONS:
        raise EndpointError(f"token_position {text[:40]!r} is not a draft position")
    return int(text)


def _not_prometheus(text: str) -> EndpointError:
    beginning = " ".join(text[:200].split())[:60]
    what = f"it begins with {beginning!r}" if beginning else "it is empty"
    return EndpointError(
        f"the metrics are no Prometheus text: {what}",
        do="trtllm-serve has it at /prometheus/metrics, with return_perf_metrics switched on",
    )
