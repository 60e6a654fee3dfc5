"""Engine adapters: a deployment in, a launch plan out; metrics text in, an acceptance record out.

Both are pure functions: no disk, no clock, no network. What must be looked up on disk before a
start is ``infra.serving.preflight``'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from infra.errors import UnsupportedError

if TYPE_CHECKING:
    from infra.serving.acceptance import AcceptanceRecord
    from infra.serving.plan import LaunchPlan
    from infra.spec.model import Deployment

#: What the engine computes on.
NodeKind = Literal["cpu", "gpu"]


@dataclass(frozen=True, slots=True)
class Node:
    """What an adapter must know about the machine it plans for.

    ``gpus``: accelerators in the node (0 on a CPU node). ``threads``: CPU threads that one server
    may use. ``root``: the project's root on that host, absolute; model paths are relative to it.
    ``replicas``: nodes among which the deployment's sessions are spread, this one included; None
    where it is not known.
    """

    kind: NodeKind
    gpus: int
    threads: int
    root: str
    replicas: int | None = None

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"a node needs at least one thread, not {self.threads}")
        if (self.kind == "gpu") != (self.gpus > 0):
            raise ValueError(f"a {self.kind} node with {self.gpus} GPUs makes no sense")
        if self.replicas is not None and self.replicas < 1:
            raise ValueError(f"sessions cannot be spread among {self.replicas} nodes")


class Adapter(Protocol):
    """What Specrack must know about an engine."""

    @property
    def name(self) -> str:
        """The engine's name in deployment files."""

    def launch_plan(self, deployment: Deployment, node: Node, *, baseline: bool) -> LaunchPlan:
        """How to serve ``deployment`` on ``node``.

        With ``baseline`` a second service with speculation off is planned, for A/B; it is left out
        where speculation is off anyway. Raises UnsupportedError for what the engine cannot do.
        """

    def acceptance(self, metrics_text: str) -> AcceptanceRecord | None:
        """The speculation counters in what ``/metrics`` answered; None: not speculating.

        Raises EndpointError when the text is not Prometheus text.
        """


def adapter(engine: str) -> Adapter:
    """The adapter of ``engine``. Raises UnsupportedError for engines without one."""
    # Imported here: the child process and the adapters import Node from this module.
    if engine == "llamacpp":
        from infra.serving.llamacpp import LlamaCpp

        return LlamaCpp()
    if engine == "vllm":
        from infra.serving.vllm import Vllm

        return Vllm()
    if engine == "trtllm":
        from infra.serving.trtllm import TensorRtLlm

        return TensorRtLlm()
    raise UnsupportedError(f"engine {engine} is unknown; today: llamacpp, trtllm, vllm")
