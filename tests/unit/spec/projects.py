"""Projects with deployment files, and deployments by Hypothesis."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

GOOD = """\
# What people chat with.
name: chat
tier: prototype
site: aws/us-east-1
model:
  target: meta-llama/Llama-3.1-8B-Instruct  # the model that answers
  draft: meta-llama/Llama-3.2-1B-Instruct
  max_model_len: 8192
serving: {engine: vllm, speculation: {method: draft_model, draft_tokens: 5}}
load: {sessions: 20, prompt_tokens: 1024, output_tokens: 256, think_s: 10}
sla:
  # People leave after a second.
  ttft_p95_ms: 400
  speculation: {speedup_min: 1.2}
budget: {usd_per_month: 3500}
tags: {team: search, cost_center: "42"}
"""


def project(root: Path, **files: str | bytes) -> Path:
    """A project at ``root`` with a deployment file for each keyword."""
    folder = root / "deployments"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        content = content.encode() if isinstance(content, str) else content
        (folder / f"{name}.yaml").write_bytes(content)
    return root


def replaced(*changes: tuple[str, str], base: str = GOOD) -> str:
    """``base`` with texts replaced; each must be there exactly once."""
    for old, new in changes:
        assert base.count(old) == 1, old
        base = base.replace(old, new)
    return base


_names = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True).filter(
    lambda name: not name.endswith("-next")
)
_texts = st.text(min_size=1, max_size=30).filter(
    lambda text: text.isprintable() and text == text.strip()
)
_latencies = st.floats(min_value=1e-3, max_value=1e6) | st.integers(min_value=1, max_value=10**6)
_methods_with_k = ("ngram", "lookahead", "mtp", "draft_model", "eagle3", "medusa", "eagle")


@st.composite
def valid_data(draw: st.DrawFn) -> dict[str, Any]:
    """The content of a good deployment file."""
    tier, site = draw(
        st.sampled_from(
            [
                ("local", "local"),
                ("prototype", "aws/us-east-1"),
                ("scaled", "aws/eu-west-2"),
                ("enterprise", "rack/a-1"),
            ]
        )
    )
    engine = draw(st.sampled_from(["vllm"] + (["llamacpp"] if tier == "local" else ["trtllm"])))
    method = draw(st.sampled_from(("none", "suffix", *_methods_with_k)))
    speculation: dict[str, Any] = {"method": method}
    if method in _methods_with_k:
        speculation["draft_tokens"] = draw(st.integers(1, 64))
    load = {
        "sessions": draw(st.integers(1, 10_000)),
        "prompt_tokens": draw(st.integers(1, 10_000)),
        "output_tokens": draw(st.integers(1, 10_000)),
        "think_s": draw(st.floats(0, 1e5)),
    }
    model = {
        "target": draw(_texts),
        "max_model_len": load["prompt_tokens"] + load["output_tokens"] + draw(st.integers(0, 99)),
        "draft": draw(_texts),
    }
    sla: dict[str, Any] = draw(
        st.dictionaries(
            st.sampled_from(["ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms"]), _latencies, min_size=1
        )
    )
    if method != "none" and draw(st.booleans()):
        sla["speculation"] = {"speedup_min": draw(st.floats(0.01, 10)), "output": "identical"}
    data = {
        "name": draw(_names),
        "tier": tier,
        "site": site,
        "model": model,
        "serving": {"engine": engine, "speculation": speculation},
        "load": load,
        "sla": sla,
        "tags": draw(
            st.dictionaries(
                _texts.filter(lambda key: not key.lower().startswith("aws:")),
                _texts | st.just(""),
                max_size=3,
            )
        ),
    }
    if draw(st.booleans()):
        data["budget"] = {"usd_per_month": draw(st.integers(0, 10**6) | st.floats(0, 1e6))}
    return data


def as_yaml_values(value: Any) -> Any:
    """Without Decimals, for a YAML writer."""
    if isinstance(value, dict):
        return {key: as_yaml_values(below) for key, below in value.items()}
    return float(value) if isinstance(value, Decimal) else value
