"""Prometheus text -> acceptance record."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.errors import EndpointError
from infra.serving.acceptance import AcceptanceRecord
from infra.serving.metrics import acceptance

CASES = Path(os.environ.get("SPECRACK_CASES", Path(__file__).parents[4] / "shared/cases"))


def counters(prefix: str = "vllm:", suffix: str = "_total", labels: str = 'engine="0"') -> str:
    spec = f"{prefix}spec_decode_num"
    return (
        f"{spec}_drafts{suffix}{{{labels}}} 10\n"
        f"{spec}_draft_tokens{suffix}{{{labels}}} 40\n"
        f"{spec}_accepted_tokens{suffix}{{{labels}}} 15\n"
        f'{spec}_accepted_tokens_per_pos{suffix}{{{labels},position="0"}} 9\n'
        f'{spec}_accepted_tokens_per_pos{suffix}{{{labels},position="1"}} 6\n'
    )


RECORD = AcceptanceRecord(10, 40, 15, (9, 6))


def test_a_real_vllm_scrape_gives_its_counters(fixtures: Path) -> None:
    record = acceptance("vllm", (fixtures / "vllm_speculative.prom").read_text())
    assert record == AcceptanceRecord(2504, 10016, 5260, (1872, 1448, 1084, 856))
    assert record.acceptance_rate == pytest.approx(0.525, abs=0.001)


def test_a_real_vllm_scrape_without_speculation_is_none(fixtures: Path) -> None:
    assert acceptance("vllm", (fixtures / "vllm_baseline.prom").read_text()) is None


def test_a_real_llamacpp_scrape_gives_its_counters(fixtures: Path) -> None:
    record = acceptance("llamacpp", (fixtures / "llamacpp_speculative.prom").read_text())
    assert record is not None
    assert record.drafts > 0
    assert sum(record.accepted_per_position) == record.accepted_tokens
    assert len(record.accepted_per_position) == 4


def test_zeros_of_a_llamacpp_without_speculation_are_none(fixtures: Path) -> None:
    text = (fixtures / "llamacpp_baseline.prom").read_text()
    assert "llamacpp:spec_decode_num_drafts_total 0" in text
    assert acceptance("llamacpp", text) is None


def test_zeros_of_vllm_are_a_record_because_it_hides_them_when_not_speculating() -> None:
    text = "".join(
        f"vllm:spec_decode_num_{name}_total 0\n"
        for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    assert acceptance("vllm", text) == AcceptanceRecord(0, 0, 0)


@pytest.mark.parametrize("suffix", ["_total", ""])
def test_names_count_with_and_without_total(suffix: str) -> None:
    assert acceptance("vllm", counters(suffix=suffix)) == RECORD


def test_counters_are_summed_over_engines_and_models() -> None:
    text = counters(labels='engine="0",model_name="a"') + counters(labels='engine="1"')
    assert acceptance("vllm", text) == AcceptanceRecord(20, 80, 30, (18, 12))


def test_created_series_are_not_counted() -> None:
    text = counters() + 'vllm:spec_decode_num_drafts_created{engine="0"} 1.79e+09\n'
    assert acceptance("vllm", text) == RECORD


def test_position_ten_comes_after_nine() -> None:
    text = counters() + "".join(
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {20 - i}\n'
        for i in (10, 9, 2)
    )
    record = acceptance("vllm", text)
    assert record is not None
    assert record.accepted_per_position == (9, 6, 18, 0, 0, 0, 0, 0, 0, 11, 10)


def test_counters_of_another_engine_are_not_ours() -> None:
    assert acceptance("llamacpp", counters("vllm:")) is None
    assert acceptance("llamacpp", counters("llamacpp:")) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "<!DOCTYPE html>\n<html><body>It works</body></html>",
        '{"error": {"message": "not found"}}',
        "\x00\x01\x02\x7fELF",
        "vllm:spec_decode_num_drafts_total{engine= 4",
        "vllm:spec_decode_num_drafts_total many",
        "upstream connect error or disconnect/reset before headers",
    ],
)
def test_text_that_is_not_prometheus_is_one_clear_line(text: str) -> None:
    with pytest.raises(EndpointError, match="did not answer with Prometheus text") as raised:
        acceptance("vllm", text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1"])
def test_a_value_that_is_no_count_is_named(value: str) -> None:
    text = counters().replace("} 10\n", f"}} {value}\n")
    with pytest.raises(EndpointError, match=r"spec_decode_num_drafts_total is .*not a count"):
        acceptance("vllm", text)


@pytest.mark.parametrize("position", ["", "first", "-1", "1024", "²", "9" * 5000])
def test_a_position_that_is_no_position_is_named(position: str) -> None:
    text = counters().replace('position="1"', f'position="{position}"')
    with pytest.raises(EndpointError, match="is not a draft position") as raised:
        acceptance("vllm", text)
    assert len(str(raised.value)) < 200


def test_a_counter_that_lacks_its_fellows_is_refused() -> None:
    with pytest.raises(EndpointError, match="not vllm:spec_decode_num_draft_tokens"):
        acceptance("vllm", "vllm:spec_decode_num_drafts_total 3\n")


@given(st.text() | st.text(alphabet='vllm:spec_decode_num_drafts_total{}="0 1\n#\\'))
def test_any_text_gives_a_record_none_or_endpoint_error(text: str) -> None:
    with contextlib.suppress(EndpointError):
        record = acceptance("vllm", text)
        assert record is None or record.drafts >= 0


@given(st.integers(0, 400), st.text(max_size=3))
def test_a_scrape_with_a_damaged_place_never_raises_anything_else(at: int, junk: str) -> None:
    text = counters()
    with contextlib.suppress(EndpointError):
        acceptance("vllm", text[:at] + junk + text[at + 1 :])


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10**12)), max_size=30),
    st.randoms(use_true_random=False),
)
def test_the_order_of_lines_does_not_matter(
    positions: list[tuple[int, int]], random: object
) -> None:
    lines = [
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{p}",engine="{i}"}} {n}\n'
        for i, (p, n) in enumerate(positions)
    ]
    shuffled = list(lines)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    head = counters()
    assert acceptance("vllm", head + "".join(lines)) == acceptance("vllm", head + "".join(shuffled))


def case(name: str) -> str:
    path = CASES / "metrics" / name
    if not path.is_file():
        pytest.skip(f"field case {name} is not on this machine")
    return path.read_text()


def test_a_live_vllm_from_the_field_is_read() -> None:
    record = acceptance("vllm", case("vllm_live_2xDGXSpark_specdecode.prom"))
    assert record is not None
    assert record.drafts == 2_043_630
    assert record.draft_tokens == 10_218_118
    assert record.accepted_per_position[:4] == (1_883_866, 1_732_372, 1_489_894, 1_204_113)


def test_a_triton_server_from_the_field_does_not_speculate() -> None:
    assert acceptance("vllm", case("triton_trtllm_README_sample.prom")) is None
