"""The adapter of llama.cpp's own server, run in a child process through ``xllamacpp``."""

from __future__ import annotations

from infra.errors import UnsupportedError
from infra.serving import metrics, support
from infra.serving.acceptance import AcceptanceRecord
from infra.serving.adapters import Node
from infra.serving.llamacpp_config import LlamaCppMethod, ServerConfig
from infra.serving.plan import LaunchPlan, PlanFile, Role, Service
from infra.serving.references import is_hub_id, on_host
from infra.spec.model import Deployment

#: The release of ``xllamacpp`` that Specrack is tested with (its own Python environment has it).
VERSION = "2026.10.11549"

#: Sessions beyond this share slots: each slot reserves max_model_len of KV cache, and on CPU cores
#: a batch wider than this gains nothing.
MAX_SLOTS = 16

#: llama.cpp gives every open connection a thread; these are for health checks, metrics and people.
SPARE_CONNECTIONS = 8


class LlamaCpp:
    """llama.cpp: the ``local`` default."""

    name = "llamacpp"

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
        services = [_service("speculative", deployment, node, port=deployment.serving.port)]
        if baseline and speculation.method != "none":
            services.append(_service("baseline", deployment, node, port=None))
        return LaunchPlan(
            deployment=deployment.name,
            engine="llamacpp",
            engine_version=VERSION,
            served_model=deployment.name,
            services=tuple(services),
        )

    def acceptance(self, metrics_text: str) -> AcceptanceRecord | None:
        """See ``Adapter.acceptance``. Raises EndpointError."""
        return metrics.acceptance(self.name, metrics_text)


def _service(role: Role, deployment: Deployment, node: Node, *, port: int | None) -> Service:
    return Service(
        role=role,
        command=(
            "@PYTHON@",
            "-m",
            "infra.serving.llamacpp_server",
            "--config",
            "@DIR@/server.json",
            "--port",
            "@PORT@",
        ),
        files=(
            PlanFile(
                path="server.json",
                content=_config(role, deployment, node).model_dump_json(indent=2) + "\n",
            ),
        ),
        # At a failed assertion llama.cpp would start a debugger on itself, if there is one.
        env={"GGML_NO_BACKTRACE": "1"},
        port=port,
    )


def _config(role: Role, deployment: Deployment, node: Node) -> ServerConfig:
    model, load = deployment.model, deployment.load
    speculation = deployment.serving.speculation
    method = _method(speculation.method) if role == "speculative" else "none"
    speculating = method != "none"
    return ServerConfig(
        model=_path(model.target, node, key="model.target"),
        alias=deployment.name,
        method=method,
        draft=(
            _path(model.draft, node, key="model.draft")
            if method == "draft_model" and model.draft is not None
            else None
        ),
        draft_tokens=speculation.draft_tokens if speculating else None,
        synthetic_acceptance_length=(
            speculation.synthetic_acceptance_length if speculating else None
        ),
        slots=min(load.sessions, MAX_SLOTS),
        slot_context_tokens=model.max_model_len,
        threads=node.threads,
        connections=load.sessions + SPARE_CONNECTIONS,
    )


def _method(method: str) -> LlamaCppMethod:
    if method in ("none", "draft_model", "ngram"):
        return method  # type: ignore[return-value]  # mypy does not narrow str by "in"
    raise UnsupportedError(f"method {method} is not offered on llamacpp")


def _path(name: str, node: Node, *, key: str) -> str:
    if is_hub_id(name):
        raise support.UnsupportedReferenceError(
            f"{name} is a hub id, and llamacpp serves a GGUF file on the host",
            key=key,
            do="give the path of a .gguf file from the project's root",
        )
    return on_host(name, node.root)
