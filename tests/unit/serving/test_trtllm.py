"""Deployment -> launch plan of TensorRT-LLM. Text only: nothing of it runs without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.errors import EndpointError, UnsupportedError
from infra.serving import trtllm
from infra.serving.acceptance import AcceptanceRecord
from infra.serving.adapters import Node, adapter
from infra.serving.plan import LaunchPlan, Service

from .conftest import MakeDeployment

P4D = Node(kind="gpu", gpus=8, threads=96, root="/srv/specrack", replicas=4)
LLAMA: dict[str, Any] = {
    "serving.engine": "trtllm",
    "site": "aws/us-east-1",
    "model.target": "meta-llama/Llama-3.1-70B-Instruct",
    "model.draft": "meta-llama/Llama-3.1-8B-Instruct",
    "model.max_model_len": 8192,
    "load.sessions": 40,
}
LOOKAHEAD: dict[str, Any] = LLAMA | {
    "model.draft": None,
    "serving.speculation": {"method": "lookahead", "draft_tokens": 15},
}


def plan(make: MakeDeployment, *, baseline: bool = False, **changes: Any) -> LaunchPlan:
    return adapter("trtllm").launch_plan(make(**LLAMA | changes), P4D, baseline=baseline)


def option(service: Service, name: str) -> str:
    return service.command[service.command.index(name) + 1]


def options(service: Service) -> dict[str, Any]:
    (file,) = service.files
    assert option(service, "--extra_llm_api_options") == f"@DIR@/{file.path}"
    content: dict[str, Any] = json.loads(file.content)
    return content


def test_a_draft_model_on_a_p4d(make: MakeDeployment) -> None:
    made = plan(make)
    (service,) = made.services
    assert service.command == (
        "trtllm-serve", "meta-llama/Llama-3.1-70B-Instruct",
        "--backend", "pytorch",
        "--host", "127.0.0.1",
        "--port", "@PORT@",
        "--tp_size", "8",
        "--max_batch_size", "10",
        "--max_seq_len", "8192",
        "--kv_cache_free_gpu_memory_fraction", "0.9",
        "--extra_llm_api_options", "@DIR@/trtllm-options.yaml",
    )  # fmt: skip
    assert options(service) == {
        "return_perf_metrics": True,
        "disable_overlap_scheduler": True,
        "kv_cache_config": {"enable_block_reuse": False},
        "speculative_config": {
            "decoding_type": "DraftTarget",
            "max_draft_len": 4,
            "speculative_model_dir": "meta-llama/Llama-3.1-8B-Instruct",
        },
    }
    assert made.requirements == ("tensorrt-llm==1.2.1",)
    assert made.engine_version == trtllm.VERSION
    assert service.metrics_path == "/prometheus/metrics"


def test_the_options_file_is_yaml_as_well(make: MakeDeployment) -> None:
    from ruamel.yaml import YAML

    (service,) = plan(make).services
    assert YAML(typ="safe").load(service.files[0].content) == options(service)


def test_the_baseline_differs_in_speculation_alone(make: MakeDeployment) -> None:
    speculative, baseline = plan(make, baseline=True, **{"serving.port": 8000}).services
    assert (speculative.port, baseline.port) == (8000, None)
    assert speculative.command == baseline.command
    with_it, without = options(speculative), options(baseline)
    assert with_it.pop("speculative_config")
    assert with_it == without


def test_the_baseline_of_lookahead_keeps_its_backend(make: MakeDeployment) -> None:
    _, baseline = plan(make, baseline=True, **LOOKAHEAD).services
    assert option(baseline, "--backend") == "tensorrt"
    assert "speculative_config" not in options(baseline)


def test_without_speculation_there_is_one_server_and_no_section(make: MakeDeployment) -> None:
    changes = {"serving.speculation": {"method": "none"}, "sla.speculation": None}
    (service,) = plan(make, baseline=True, **changes).services
    assert options(service) == {"return_perf_metrics": True}


def test_eagle3_is_called_eagle_in_this_release(make: MakeDeployment) -> None:
    head = "models/eagle3-70b"
    (service,) = plan(
        make, **{"serving.speculation.method": "eagle3", "model.draft": head}
    ).services
    assert options(service)["speculative_config"] == {
        "decoding_type": "Eagle",
        "max_draft_len": 4,
        "speculative_model_dir": "/srv/specrack/models/eagle3-70b",
    }


def test_ngram_needs_no_draft(make: MakeDeployment) -> None:
    changes = {"serving.speculation.method": "ngram", "model.draft": None}
    (service,) = plan(make, **changes).services
    assert options(service)["speculative_config"] == {
        "decoding_type": "NGram",
        "max_draft_len": 4,
        "max_matching_ngram_size": 2,
    }


def test_medusa_is_a_chain_of_as_many_heads_as_tokens(make: MakeDeployment) -> None:
    speculation = {"method": "medusa", "draft_tokens": 3}
    (service,) = plan(make, **{"serving.speculation": speculation}).services
    assert option(service, "--backend") == "tensorrt"
    assert service.ready_timeout_s == trtllm.TENSORRT_READY_TIMEOUT_S
    assert options(service)["speculative_config"] == {
        "decoding_type": "Medusa",
        "max_draft_len": 3,
        "speculative_model_dir": "meta-llama/Llama-3.1-8B-Instruct",
        "num_medusa_heads": 3,
        "medusa_choices": [[0], [0, 0], [0, 0, 0]],
    }


# --- lookahead


def test_lookahead_has_the_documented_window_and_no_draft(make: MakeDeployment) -> None:
    (service,) = plan(make, **LOOKAHEAD).services
    assert option(service, "--backend") == "tensorrt"
    assert options(service)["speculative_config"] == {
        "decoding_type": "Lookahead",
        "max_window_size": 4,
        "max_ngram_size": 3,
        "max_verification_set_size": 4,
    }


@pytest.mark.parametrize(
    ("triple", "tokens"), [((4, 3, 4), 15), ((7, 7, 7), 83), ((1, 1, 0), 0), ((1, 3, 1), 3)]
)
def test_tokens_of_a_window_are_as_the_examples_say(
    triple: tuple[int, int, int], tokens: int
) -> None:
    assert trtllm.lookahead_draft_tokens(*triple) == tokens


@given(st.integers(min_value=1, max_value=64))
def test_every_number_of_draft_tokens_gives_its_window_or_the_nearest_ones(tokens: int) -> None:
    try:
        window = trtllm.lookahead_window(tokens)
    except UnsupportedError as error:
        near = [k for k in range(1, 70) if f" {k} " in f" {error.do.replace(';', ' ')} "]
        assert all(trtllm.lookahead_window(k) for k in near)
        assert near
        assert min(abs(k - tokens) for k in near) <= 3
        return
    assert trtllm.lookahead_draft_tokens(window, trtllm.LOOKAHEAD_NGRAM, window) == tokens


def test_lookahead_refuses_a_draft_that_it_would_never_use(make: MakeDeployment) -> None:
    changes = LOOKAHEAD | {"model.draft": "meta-llama/Llama-3.1-8B-Instruct"}
    with pytest.raises(UnsupportedError, match=r"model\.draft: is never used: lookahead drafts"):
        plan(make, **changes)


def test_lookahead_refuses_more_requests_a_node_than_it_pays_for(make: MakeDeployment) -> None:
    with pytest.raises(UnsupportedError, match=r"50 sessions on 4 nodes are 13 a node.*at most 40"):
        plan(make, **LOOKAHEAD | {"load.sessions": 50})
    assert plan(make, **LOOKAHEAD | {"load.sessions": 40})


def test_lookahead_refuses_a_number_of_tokens_that_no_window_gives(make: MakeDeployment) -> None:
    changes = LOOKAHEAD | {"serving.speculation": {"method": "lookahead", "draft_tokens": 5}}
    with pytest.raises(UnsupportedError, match="draft_tokens to 3 or 7"):
        plan(make, **changes)


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"serving.speculation": {"method": "suffix"}}, "supported by trtllm after 1.2.1"),
        ({"serving.speculation.method": "mtp"}, "no launch plan for method mtp"),
        ({"serving.speculation.method": "eagle"}, "no launch plan for method eagle"),
        ({"serving.speculation.synthetic_acceptance_length": 2}, "it has no such option"),
    ],
)
def test_what_this_engine_cannot_do_is_refused(
    make: MakeDeployment, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UnsupportedError, match=says) as raised:
        plan(make, **changes)
    assert "\n" not in str(raised.value)


def test_a_node_without_gpus_is_refused(make: MakeDeployment) -> None:
    cpu = Node(kind="cpu", gpus=0, threads=2, root="/")
    for method in ("eagle3", "draft_model", "ngram"):
        deployment = make(**LLAMA, **{"serving.speculation.method": method})
        with pytest.raises(UnsupportedError, match="on a cpu node: TensorRT-LLM needs a GPU"):
            adapter("trtllm").launch_plan(deployment, cpu, baseline=False)


# --- names


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("models/llama-70b", "llama-70b"),
        ("models/llama-70b/", "llama-70b"),
    ],
)
def test_the_served_name_is_the_one_that_the_server_makes_of_the_model(
    make: MakeDeployment, target: str, name: str
) -> None:
    assert plan(make, **{"model.target": target}).served_model == name


def test_a_plan_is_a_pure_function_and_survives_json(make: MakeDeployment) -> None:
    first, second = plan(make, baseline=True), plan(make, baseline=True)
    assert first.digest() == second.digest()
    assert LaunchPlan.model_validate_json(first.model_dump_json()) == first


def test_models_from_disk_need_no_hub(make: MakeDeployment) -> None:
    (hub,) = plan(make).services
    (disk,) = plan(make, **{"model.target": "models/a", "model.draft": "models/b"}).services
    assert "HF_HUB_OFFLINE" not in hub.env
    assert disk.env["HF_HUB_OFFLINE"] == "1"


# --- metrics


COUNTERS = """\
# TYPE trtllm_spec_decode_drafted_tokens counter
trtllm_spec_decode_drafted_tokens_total{token_position="0",worker="0"} 10
trtllm_spec_decode_drafted_tokens_total{token_position="0",worker="1"} 20
trtllm_spec_decode_drafted_tokens_total{token_position="1",worker="0"} 10
trtllm_spec_decode_drafted_tokens_total{token_position="1",worker="1"} 18
# TYPE trtllm_spec_decode_accepted_tokens counter
trtllm_spec_decode_accepted_tokens_total{token_position="0",worker="0"} 8
trtllm_spec_decode_accepted_tokens_total{token_position="0",worker="1"} 15
trtllm_spec_decode_accepted_tokens_total{token_position="1",worker="1"} 6
trtllm_spec_decode_accepted_tokens_created{token_position="1",worker="1"} 1.7e9
"""


def test_counters_by_position_are_summed_over_workers() -> None:
    record = adapter("trtllm").acceptance(COUNTERS)
    assert record == AcceptanceRecord(30, 58, 29, (23, 6))
    assert record is not None
    assert record.mean_acceptance_length == pytest.approx(1 + 29 / 30)


@pytest.mark.parametrize(
    "text",
    [
        "trtllm_e2e_request_latency_seconds_count 4\n",
        # Tokens without the number of drafts: no record can be made of these.
        "trtllm_spec_decode_num_draft_tokens_total 9\n"
        "trtllm_spec_decode_num_accepted_tokens_total 4\n",
    ],
)
def test_without_counters_by_position_there_is_no_record(text: str) -> None:
    assert adapter("trtllm").acceptance(text) is None


def test_tritons_own_metrics_say_nothing_of_drafts(root: Path) -> None:
    text = "# TYPE nv_trt_llm_request_metrics gauge\nnv_trt_llm_request_metrics 1\n"
    assert adapter("trtllm").acceptance(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[{"iter": 1, "specDecodingStats": {}}]',
        'trtllm_spec_decode_drafted_tokens_total{token_position="0"} NaN\n',
        'trtllm_spec_decode_drafted_tokens_total{token_position="0"} -1\n',
        'trtllm_spec_decode_drafted_tokens_total{token_position="x"} 1\n',
        "trtllm_spec_decode_drafted_tokens_total 1\n",
        'trtllm_spec_decode_drafted_tokens_total{token_position="99999"} 1\n',
    ],
)
def test_garbage_is_no_measurement(text: str) -> None:
    with pytest.raises(EndpointError):
        adapter("trtllm").acceptance(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    said = ""
    try:
        adapter("trtllm").acceptance(text)
    except EndpointError as error:
        said = str(error)
    assert "\n" not in said
