"""Does a model pair fit into the memory of a node, and how much context is left?

The rule: an engine may use 0.9 of the memory that a GPU reports; 2 GB a GPU go to the runtime;
then come the weights of target and draft; the rest holds keys and values (BF16) of both.
It leaves out activations and fragmentation, so what it calls tight is tight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

MEMORY_SHARE = 0.9
RUNTIME_GB_PER_GPU = 2.0
MIB = 1024 * 1024

Verdict = Literal["fits", "tight", "does not fit", "unknown"]
#: From best to worst.
VERDICTS: tuple[Verdict, ...] = ("fits", "tight", "does not fit", "unknown")


@dataclass(frozen=True, slots=True)
class Pair:
    """What target and draft (if one is loaded) need. GB are 1e9 bytes."""

    weights_gb: float
    kv_bytes_per_token: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What the load asks for: concurrent sessions, tokens of one at the load, and at most."""

    sessions: int
    session_tokens: int
    max_model_len: int


@dataclass(frozen=True, slots=True)
class Fit:
    """How a pair fits with one replica on ``tensor_parallel`` GPUs.

    ``kv_tokens``: context tokens that one replica can hold, all sessions together; negative when
    not even the weights fit. ``tokens_per_session``: of it, for each session that the replica gets
    when the load is spread evenly.
    """

    tensor_parallel: int
    replicas: int
    verdict: Verdict
    reason: str
    weights_gb: float | None = None
    kv_tokens: int | None = None
    sessions_per_replica: int | None = None
    tokens_per_session: int | None = None


def kv_tokens_left(*, memory_bytes: int, gpus: int, pair: Pair) -> int:
    """Tokens of context that fit beside the weights of ``pair`` on ``gpus`` GPUs.

    ``memory_bytes``: what one GPU reports. Rounded down. Negative: the weights do not fit.
    """
    usable = gpus * (MEMORY_SHARE * memory_bytes - RUNTIME_GB_PER_GPU * 1e9)
    return math.floor((usable - pair.weights_gb * 1e9) / pair.kv_bytes_per_token)


def judge(
    *, memory_bytes: int, tensor_parallel: int, replicas: int, pair: Pair, demand: Demand
) -> Fit:
    """The verdict for ``replicas`` replicas (in all nodes) of ``tensor_parallel`` GPUs each.

    ``fits``: every session can grow to max_model_len at once. ``tight``: all sessions fit at the
    load's length, not at max_model_len. ``does not fit``: the weights, or one request of
    max_model_len (engines refuse to start), or the sessions at the load's length do not.
    """
    tokens = kv_tokens_left(memory_bytes=memory_bytes, gpus=tensor_parallel, pair=pair)
    sessions = math.ceil(demand.sessions / replicas)
    each = max(tokens, 0) // sessions
    verdict: Verdict = "does not fit"
    if tokens < 0:
        missing = -tokens * pair.kv_bytes_per_token / 1e9
        reason = f"weights of {pair.weights_gb:.2f} GB are {missing:.1f} GB more than there is room"
    elif tokens < demand.max_model_len:
        reason = (
            f"room for {tokens:,} tokens, fewer than one request of max_model_len "
            f"{demand.max_model_len:,}"
        )
    elif each < demand.session_tokens:
        held = tokens // demand.session_tokens
        reason = f"holds {held} of {sessions} sessions of {demand.session_tokens:,} tokens"
    elif each < demand.max_model_len:
        verdict = "tight"
        reason = (
            f"{each:,} tokens a session: enough for the load's {demand.session_tokens:,}, "
            f"not for max_model_len {demand.max_model_len:,}"
        )
    else:
        verdict = "fits"
        reason = f"{each:,} tokens a session, max_model_len is {demand.max_model_len:,}"
    return Fit(
        tensor_parallel=tensor_parallel,
        replicas=replicas,
        verdict=verdict,
        reason=reason,
        weights_gb=pair.weights_gb,
        kv_tokens=tokens,
        sessions_per_replica=sessions,
        tokens_per_session=each,
    )


def splits(accelerators: int) -> tuple[int, ...]:
    """Tensor-parallel sizes to consider on a node: powers of two up to 8 that divide its GPUs.

    Eight is the number of key-value heads of the Llama models of the catalogue's tables; more
    ranks would hold copies, which this arithmetic does not model.
    """
    return tuple(size for size in (1, 2, 4, 8) if size <= accelerators and accelerators % size == 0)
