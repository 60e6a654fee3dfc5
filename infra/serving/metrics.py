"""What ``/metrics`` says about speculation: Prometheus text in, one normal form out.

Counters are summed over engines and model labels. Absent counters mean that the server does not
speculate, which is not the same as zero accepted tokens.
"""

from __future__ import annotations

import math
from collections import defaultdict

from infra.errors import EndpointError
from infra.serving.acceptance import AcceptanceRecord

_PREFIXES = {"llamacpp": "llamacpp:", "vllm": "vllm:"}

_DRAFTS = "spec_decode_num_drafts"
_DRAFT_TOKENS = "spec_decode_num_draft_tokens"
_ACCEPTED_TOKENS = "spec_decode_num_accepted_tokens"
_ACCEPTED_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"

#: More positions than any k that a deployment may ask for: beyond is garbage, not a position.
_MAX_POSITIONS = 1024


def acceptance(engine: str, metrics_text: str) -> AcceptanceRecord | None:
    """The speculation counters of ``engine`` in ``metrics_text``; None: not speculating.

    llama.cpp shows its counters as zeros when speculation is off, so all zeros from it also mean
    None: nothing was speculated so far. Raises EndpointError when the text is not Prometheus text.
    """
    totals, positions = _read(_PREFIXES[engine], metrics_text)
    if _DRAFTS not in totals and _DRAFT_TOKENS not in totals:
        return None
    missing = [name for name in (_DRAFTS, _DRAFT_TOKENS, _ACCEPTED_TOKENS) if name not in totals]
    if missing:
        raise EndpointError(
            f"/metrics has some counters of speculation but not {_PREFIXES[engine]}{missing[0]}",
            do="is this the engine and version that the deployment names?",
        )
    if engine == "llamacpp" and not any(totals.values()):
        return None
    width = max(positions, default=-1) + 1
    return AcceptanceRecord(
        drafts=totals[_DRAFTS],
        draft_tokens=totals[_DRAFT_TOKENS],
        accepted_tokens=totals[_ACCEPTED_TOKENS],
        accepted_per_position=tuple(positions.get(position, 0) for position in range(width)),
    )


def _read(prefix: str, text: str) -> tuple[dict[str, int], dict[int, int]]:
    """Sums by counter name (without prefix and ``_total``), and accepted tokens by position."""
    from prometheus_client.parser import text_string_to_metric_families

    totals: dict[str, int] = defaultdict(int)
    positions: dict[int, int] = defaultdict(int)
    families = 0
    try:
        for family in text_string_to_metric_families(text):
            families += bool(family.samples)
            for sample in family.samples:
                if not sample.name.startswith(prefix):
                    continue
                name = sample.name.removeprefix(prefix).removesuffix("_total")
                if name == _ACCEPTED_PER_POSITION:
                    positions[_position(sample.labels)] += _count(sample.name, sample.value)
                elif name in (_DRAFTS, _DRAFT_TOKENS, _ACCEPTED_TOKENS):
                    totals[name] += _count(sample.name, sample.value)
    # The parser raises ValueError for most faults, and whatever it trips over for the others.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _not_prometheus(text) from error
    if not families:
        raise _not_prometheus(text)
    return dict(totals), dict(positions)


def _count(name: str, value: float) -> int:
    if not math.isfinite(value) or value < 0:
        raise EndpointError(f"/metrics: {name} is {value}, which is not a count")
    return round(value)


def _position(labels: dict[str, str]) -> int:
    text = labels.get("position", "")
    is_short_number = text.isascii() and text.isdigit() and len(text) <= 4
    if not is_short_number or int(text) >= _MAX_POSITIONS:
        raise EndpointError(f"/metrics: position {text[:40]!r} is not a draft position")
    return int(text)


def _not_prometheus(text: str) -> EndpointError:
    beginning = " ".join(text[:200].split())[:60]
    what = f"it begins with {beginning!r}" if beginning else "it is empty"
    return EndpointError(
        f"/metrics did not answer with Prometheus text: {what}",
        do="is the port the engine's, and are its metrics switched on?",
    )
