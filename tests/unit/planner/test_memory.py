"""Memory arithmetic against the audited table.

The table used exact parameter counts; the catalogue has weights to 0.01 GB, as published. So a
figure may differ by 0.005 GB a model, divided by the bytes of one token, and no more.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog import catalog
from infra.planner.memory import MIB, Demand, Pair, judge, kv_tokens_left, splits

IDS = {
    "1b": "meta-llama/Llama-3.2-1B",
    "8b": "meta-llama/Llama-3.1-8B",
    "70b": "meta-llama/Llama-3.1-70B",
}


def pair(*names: str) -> Pair:
    rows = [catalog().models[IDS[name]] for name in names]
    return Pair(sum(row.weights_gb for row in rows), sum(row.kv_bytes_per_token for row in rows))


def memory(instance: str) -> int:
    chip = catalog().accelerators[catalog().instance(instance).accelerator or ""]
    return (chip.memory_mib_seen or chip.memory_mib_reported or 0) * MIB


@pytest.mark.parametrize(
    ("instance", "gpus", "names", "audited"),
    [
        ("g5.12xlarge", 1, ("8b", "1b"), 6_517),
        ("g5.12xlarge", 2, ("8b", "1b"), 126_145),
        ("g5.12xlarge", 4, ("8b", "1b"), 365_401),
        ("g5.12xlarge", 1, ("8b",), 27_006),
        ("p4d.24xlarge", 8, ("70b",), 464_262),
        ("p4d.24xlarge", 8, ("70b", "1b"), 415_198),
        ("p4d.24xlarge", 8, ("70b", "8b"), 296_608),
        ("p4d.24xlarge", 4, ("70b",), 16_817),
        ("p5.48xlarge", 4, ("70b", "1b"), 433_612),
        ("Standard_ND96isr_MI300X_v5", 1, ("70b", "1b"), 110_869),
        ("p6-b200.48xlarge", 1, ("70b", "1b"), 76_180),
    ],
)
def test_tokens_left_for_context_agree_with_the_audited_table(
    instance: str, gpus: int, names: tuple[str, ...], audited: int
) -> None:
    needed = pair(*names)
    tokens = kv_tokens_left(memory_bytes=memory(instance), gpus=gpus, pair=needed)
    rounding = len(names) * 0.005e9 / needed.kv_bytes_per_token + 1
    assert abs(tokens - audited) <= rounding


def test_fp8_weights_and_keys_agree_with_the_audited_table_too() -> None:
    target, draft = pair("70b"), pair("1b")
    # The target in FP8, weights and KV; the draft in BF16.
    fp8 = Pair(
        target.weights_gb / 2 + draft.weights_gb,
        target.kv_bytes_per_token // 2 + draft.kv_bytes_per_token,
    )
    tokens = kv_tokens_left(memory_bytes=memory("p5.48xlarge"), gpus=2, pair=fp8)
    assert abs(tokens - 391_191) <= 0.0075e9 / fp8.kv_bytes_per_token + 1


@pytest.mark.parametrize(
    ("instance", "gpus", "names"),
    [("p5.48xlarge", 1, ("70b",)), ("p5en.48xlarge", 1, ("70b", "1b"))],
)
def test_a_70b_in_bf16_does_not_fit_on_one_hopper(
    instance: str, gpus: int, names: tuple[str, ...]
) -> None:
    assert kv_tokens_left(memory_bytes=memory(instance), gpus=gpus, pair=pair(*names)) < 0


def verdict(tokens: int, *, sessions: int = 5, load: int = 1000, most: int = 4000) -> str:
    """The verdict where exactly ``tokens`` tokens of context fit."""
    needed = Pair(weights_gb=1, kv_bytes_per_token=1000)
    usable = 1e9 + 2e9 + tokens * 1000
    fit = judge(
        memory_bytes=math.ceil(usable / 0.9),
        tensor_parallel=1,
        replicas=1,
        pair=needed,
        demand=Demand(sessions=sessions, session_tokens=load, max_model_len=most),
    )
    assert fit.kv_tokens == tokens
    return f"{fit.verdict}: {fit.reason}"


def test_the_verdict_says_why() -> None:
    assert verdict(20_000) == "fits: 4,000 tokens a session, max_model_len is 4,000"
    assert verdict(19_999) == (
        "tight: 3,999 tokens a session: enough for the load's 1,000, not for max_model_len 4,000"
    )
    assert verdict(5_000).startswith("tight: 1,000 tokens a session")
    assert verdict(4_999) == "does not fit: holds 4 of 5 sessions of 1,000 tokens"
    assert verdict(3_999, sessions=1) == (
        "does not fit: room for 3,999 tokens, fewer than one request of max_model_len 4,000"
    )
    assert verdict(-1_000_000) == (
        "does not fit: weights of 1.00 GB are 1.0 GB more than there is room"
    )


def test_a_g5_with_one_gpu_a_replica_is_too_tight_for_five_sessions_and_with_two_it_is_not() -> (
    None
):
    for gpus, expected in ((1, "tight"), (2, "fits")):
        fit = judge(
            memory_bytes=memory("g5.12xlarge"),
            tensor_parallel=gpus,
            replicas=1,
            pair=pair("8b", "1b"),
            demand=Demand(sessions=5, session_tokens=1280, max_model_len=4096),
        )
        assert fit.verdict == expected
        assert (fit.tokens_per_session or 0) < 1400 or gpus == 2


@given(
    st.integers(1, 300_000),
    st.integers(1, 8),
    st.floats(0.001, 1000),
    st.integers(1, 10**6),
    st.integers(1, 10**4),
)
def test_more_gpus_never_leave_less_and_more_sessions_never_leave_more(
    mib: int, gpus: int, weights: float, kv: int, sessions: int
) -> None:
    needed = Pair(weights, kv)
    usable_each = 0.9 * mib * MIB - 2e9
    one = kv_tokens_left(memory_bytes=mib * MIB, gpus=gpus, pair=needed)
    two = kv_tokens_left(memory_bytes=mib * MIB, gpus=gpus + 1, pair=needed)
    assert (two >= one) == (usable_each >= 0) or two == one

    def each(count: int) -> int:
        fit = judge(
            memory_bytes=mib * MIB, tensor_parallel=gpus, replicas=2, pair=needed,
            demand=Demand(count, 10, 10),
        )  # fmt: skip
        return fit.tokens_per_session or 0

    assert each(sessions) >= each(sessions + 1)


def test_sizes_to_consider_divide_the_gpus_of_a_node() -> None:
    assert [splits(count) for count in (0, 1, 4, 6, 8, 16)] == [
        (), (1,), (1, 2, 4), (1, 2), (1, 2, 4, 8), (1, 2, 4, 8),
    ]  # fmt: skip
