"""Metrics of several engines on one page."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from infra.kubernetes.app.metrics import merged
from infra.serving.adapters import adapter

PAGE = """\
# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="chat"} 10.0
# HELP vllm:spec_decode_num_draft_tokens_total Tokens.
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0"} 40.0
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total 22
# HELP ttft Histogram of time to first token.
# TYPE ttft histogram
ttft_bucket{le="0.1"} 3
ttft_bucket{le="+Inf"} 4
ttft_sum 0.5
ttft_count 4
"""


def samples(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels["replica"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "le" not in sample.labels
    }


def test_each_replicas_series_stay_apart_under_one_heading() -> None:
    text = merged({"a": PAGE, "b": PAGE.replace("10.0", "5.0")})
    lines = text.splitlines()
    headings = [line for line in lines if line.startswith("# TYPE")]
    assert len(headings) == len(set(headings)) == 4
    drafts = "vllm:spec_decode_num_drafts_total"
    places = [number for number, line in enumerate(lines) if line.startswith(drafts)]
    assert places == [places[0], places[0] + 1]  # a family's lines stand together
    found = samples(text)
    assert found[(drafts, "a")] == 10
    assert found[(drafts, "b")] == 5
    assert found[("ttft_count", "a")] == 4


def test_the_acceptance_of_all_replicas_is_their_sum() -> None:
    record = adapter("vllm").acceptance(merged({"a": PAGE, "b": PAGE, "c": PAGE}))
    assert record is not None
    assert (record.drafts, record.draft_tokens, record.accepted_tokens) == (30, 120, 66)


def test_a_name_of_a_replica_cannot_break_the_page() -> None:
    text = merged({'a"} x\n': "up 1\n"})
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"replica": 'a"} x\n'}


def test_what_is_no_metric_is_left_out() -> None:
    assert merged({"a": "<html>\nup 1\n# EOF\n", "b": ""}) == 'up{replica="a"} 1\n'
    assert merged({}) == ""


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=200), max_size=3))
def test_any_text_is_merged_without_a_fault(pages: dict[str, str]) -> None:
    text = merged(pages)
    assert text == "" or text.endswith("\n")


NAMES = st.sampled_from(["a", "b_total", "c:d"])


@given(
    st.dictionaries(
        st.sampled_from(["r1", "r2", "r3"]), st.dictionaries(NAMES, st.integers(0, 9)), min_size=1
    )
)
def test_no_value_is_lost(pages: dict[str, dict[str, int]]) -> None:
    def page(values: dict[str, int]) -> str:
        return "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in values.items())

    text = merged({replica: page(values) for replica, values in pages.items()})
    made: Callable[[str, str], float] = lambda name, replica: samples(text)[(name, replica)]  # noqa: E731
    for replica, values in pages.items():
        for name, value in values.items():
            assert made(name, replica) == value
