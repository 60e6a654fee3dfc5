"""The adapter of TensorRT-LLM: ``trtllm-serve`` and its options file.

Rendered, not run here: TensorRT-LLM needs an NVIDIA GPU, and none of the machines that this
project is built and tested on has one. What is written below was read in TensorRT-LLM's own
sources and documentation (the places are named), and is checked as text only.

One version for everything, 1.2.1: the newest release, and the last that has lookahead and Medusa.
It has two backends, and the method decides which one is used: lookahead and Medusa work with the
TensorRT backend alone, draft models, n-grams and EAGLE-3 with the PyTorch backend alone.
"""

from __future__ import annotations

import json
import math
from typing import Any, Literal

from infra.errors import UnsupportedError
from infra.serving import support, trtllm_metrics
from infra.serving.acceptance import AcceptanceRecord
from infra.serving.adapters import Node
from infra.serving.plan import LaunchPlan, PlanFile, Role, Service
from infra.serving.references import is_hub_id, on_host
from infra.spec.model import Deployment

#: The newest release on PyPI (2026-12), and the last one with lookahead and Medusa: the main branch
#: dropped them (PR 18955, 2026-09-09).
VERSION = "1.2.1"

Backend = Literal["pytorch", "tensorrt"]

#: Which backend has the method. TensorRT-LLM docs/source/legacy/advanced/speculative-decoding.md
#: and the ``supports_backend`` of each method in llmapi/llm_args.py, read 2026-12.
_BACKENDS: dict[str, Backend] = {
    "none": "pytorch",
    "draft_model": "pytorch",
    "ngram": "pytorch",
    "eagle3": "pytorch",
    "lookahead": "tensorrt",
    "medusa": "tensorrt",
}

#: 70B are 141 GB to read, then CUDA graphs are captured.
PYTORCH_READY_TIMEOUT_S = 1800.0
#: The TensorRT backend builds an engine from the weights before it can load one.
TENSORRT_READY_TIMEOUT_S = 5400.0
STOP_TIMEOUT_S = 60.0

#: With 1.2.1, Prometheus text is here; /metrics answers with JSON.
METRICS_PATH = "/prometheus/metrics"

#: Share of the GPU memory that is left after the weights which goes to keys and values: the
#: engine's own default, and what ``infra.planner.memory`` reckons with.
KV_CACHE_SHARE = 0.9

#: Requests that one engine decodes at once, at most: what the engine plans buffers for.
MAX_BATCH = 256
#: Beyond this batch lookahead verifies so many tokens a step that it costs more than it saves
#: (facts: (7,7,7) at 25 sequences on a p4d costs about 12 plain steps).
LOOKAHEAD_MAX_BATCH = 10
#: The n of lookahead's n-grams, and the default of the other two (window, verification set).
LOOKAHEAD_NGRAM = 3
LOOKAHEAD_DEFAULT_WINDOW = 4

#: The longest match that is tried; the engine's own default.
NGRAM_MATCH_MAX_TOKENS = 2

_OPTIONS_FILE = "trtllm-options.yaml"
_ENV = {"TRTLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


class TensorRtLlm:
    """TensorRT-LLM's OpenAI server."""

    name = "trtllm"

    def launch_plan(self, deployment: Deployment, node: Node, *, baseline: bool) -> LaunchPlan:
        """See ``Adapter.launch_plan``. Raises UnsupportedError."""
        speculation = deployment.serving.speculation
        support.supported(
            self.name,
            VERSION,
            speculation.method,
            node.kind,
            synthetic=speculation.synthetic_acceptance_length is not None,
        )
        _refuse_what_is_not_rendered(deployment, node)
        services = [_service("speculative", deployment, node, port=deployment.serving.port)]
        if baseline and speculation.method != "none":
            services.append(_service("baseline", deployment, node, port=None))
        return LaunchPlan(
            deployment=deployment.name,
            engine="trtllm",
            engine_version=VERSION,
            served_model=served_name(deployment.model.target),
            requirements=(f"tensorrt-llm=={VERSION}",),
            services=tuple(services),
        )

    def acceptance(self, metrics_text: str) -> AcceptanceRecord | None:
        """See ``Adapter.acceptance``. Raises EndpointError.

        1.2.1 serves no counters of speculation as Prometheus text (1.1.0rc5 had five series, none
        of them these): the answer is then None although the engine does speculate.
        """
        return trtllm_metrics.acceptance(metrics_text)


def served_name(target: str) -> str:
    """The name under which ``trtllm-serve`` serves a model: it has no option for another one.

    A hub id as it is, the last part of a folder's path.
    """
    return target if is_hub_id(target) else target.rstrip("/").rpartition("/")[2]


def batch_of(deployment: Deployment, node: Node) -> int:
    """Requests that this node's engine decodes at once, at most: its share of the sessions."""
    share = math.ceil(deployment.load.sessions / (node.replicas or 1))
    return min(share, MAX_BATCH)


def lookahead_draft_tokens(window: int, ngram: int, verification_set: int) -> int:
    """Tokens that lookahead verifies a step, beside the one of the plain step.

    (0 if N=1 else N-2) + (W-1+G)(N-1): TensorRT-LLM examples/lookahead/README.md. The defaults
    (4, 3, 4) make 15, the README's (7, 7, 7) make 83.
    """
    return max(ngram - 2, 0) + (window - 1 + verification_set) * (ngram - 1)


def lookahead_window(draft_tokens: int) -> int:
    """The window (and the verification set) with which lookahead drafts ``draft_tokens``.

    With n-grams of three and both sizes W that is 4W-1: 3, 7, 11, 15 (the default), 19, ...
    Raises UnsupportedError for a number that no window gives.
    """
    window, rest = divmod(draft_tokens + 1, 4)
    if rest or not window:
        below, above = max(window, 1) * 4 - 1, (window + 1) * 4 - 1
        near = " or ".join(str(k) for k in sorted({below, above}))
        raise UnsupportedError(
            f"lookahead drafts 4 x window - 1 tokens a step, never {draft_tokens}",
            do=f"set serving.speculation.draft_tokens to {near}; the engine's default is 15",
        )
    return window


def _refuse_what_is_not_rendered(deployment: Deployment, node: Node) -> None:
    method = deployment.serving.speculation.method
    if method not in _BACKENDS:
        raise UnsupportedError(
            f"trtllm: there is no launch plan for method {method} yet",
            do=f"use one of {', '.join(_BACKENDS)}",
        )
    if method != "lookahead":
        return
    if deployment.model.draft is not None:
        raise support.UnsupportedReferenceError(
            "is never used: lookahead drafts from the target itself",
            key="model.draft",
            do="remove it, or use method draft_model",
        )
    lookahead_window(deployment.serving.speculation.draft_tokens or 0)
    if node.replicas is not None and batch_of(deployment, node) > LOOKAHEAD_MAX_BATCH:
        raise UnsupportedError(
            f"lookahead loses beyond {LOOKAHEAD_MAX_BATCH} requests at once, and "
            f"{deployment.load.sessions} sessions on {node.replicas} nodes are "
            f"{batch_of(deployment, node)} a node",
            do=f"at most {LOOKAHEAD_MAX_BATCH * node.replicas} sessions, "
            "or method draft_model or eagle3",
        )


def _service(role: Role, deployment: Deployment, node: Node, *, port: int | None) -> Service:
    backend = _BACKENDS[deployment.serving.speculation.method]
    options = _options(role, deployment, node)
    return Service(
        role=role,
        command=_command(deployment, node, backend),
        env=_environment(deployment),
        # JSON is YAML; and it needs no quoting rules of our own.
        files=(PlanFile(path=_OPTIONS_FILE, content=json.dumps(options, indent=2) + "\n"),),
        port=port,
        metrics_path=METRICS_PATH,
        ready_timeout_s=(
            TENSORRT_READY_TIMEOUT_S if backend == "tensorrt" else PYTORCH_READY_TIMEOUT_S
        ),
        stop_timeout_s=STOP_TIMEOUT_S,
    )


def _command(deployment: Deployment, node: Node, backend: Backend) -> tuple[str, ...]:
    return (
        "trtllm-serve", on_host(deployment.model.target, node.root),
        # The same for the baseline: A and B differ in speculation, and in nothing else.
        "--backend", backend,
        "--host", "127.0.0.1",
        "--port", "@PORT@",
        "--tp_size", str(node.gpus),
        "--max_batch_size", str(batch_of(deployment, node)),
        "--max_seq_len", str(deployment.model.max_model_len),
        "--kv_cache_free_gpu_memory_fraction", str(KV_CACHE_SHARE),
        # Its older name; 1.2 knows --config as well, 1.0 and 1.1 do not.
        "--extra_llm_api_options", f"@DIR@/{_OPTIONS_FILE}",
    )  # fmt: skip


def _options(role: Role, deployment: Deployment, node: Node) -> dict[str, Any]:
    """What ``trtllm-serve`` takes from a file only."""
    method = deployment.serving.speculation.method
    # Without it there are no metrics.
    options: dict[str, Any] = {"return_perf_metrics": True}
    if method in ("draft_model", "ngram"):
        # Their draft comes between two steps of the target ("two-model"): the steps cannot overlap.
        options["disable_overlap_scheduler"] = True
    if method == "draft_model":
        # NVIDIA's draft-target example: blocks are not reused, they would lack the draft's half.
        options["kv_cache_config"] = {"enable_block_reuse": False}
    if role == "speculative" and method != "none":
        options["speculative_config"] = speculative_config(deployment, node)
    return options


def speculative_config(deployment: Deployment, node: Node) -> dict[str, Any]:
    """``speculative_config`` of the options file, for a deployment that speculates.

    Raises UnsupportedError for a number of draft tokens that the method cannot make.
    """
    speculation, draft = deployment.serving.speculation, deployment.model.draft
    method, k = speculation.method, speculation.draft_tokens or 0
    row = support.supported("trtllm", VERSION, method, node.kind)
    config: dict[str, Any] = {"decoding_type": row.spelling}
    if method == "lookahead":
        window = lookahead_window(k)
        return config | {
            "max_window_size": window,
            "max_ngram_size": LOOKAHEAD_NGRAM,
            "max_verification_set_size": window,
        }
    config["max_draft_len"] = k
    if method == "ngram":
        config["max_matching_ngram_size"] = NGRAM_MATCH_MAX_TOKENS
    elif draft is not None:
        # Later releases call it speculative_model and keep this name as an alias.
        config["speculative_model_dir"] = on_host(draft, node.root)
    if method == "medusa":
        # One chain: each head proposes its best token. Wider trees verify more tokens a step.
        config["num_medusa_heads"] = k
        config["medusa_choices"] = [[0] * length for length in range(1, k + 1)]
    return config


def _environment(deployment: Deployment) -> dict[str, str]:
    environment = dict(_ENV)
    names = (deployment.model.target, deployment.model.draft)
    if not any(name is not None and is_hub_id(name) for name in names):
        environment["HF_HUB_OFFLINE"] = "1"
    return environment
