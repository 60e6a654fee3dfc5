"""What is found before anything is started."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from infra.serving.preflight import check
from infra.spec.model import Deployment

from .conftest import MakeDeployment
from .gguf_files import tokens, write_gguf

HF: dict[str, Any] = {
    "serving.engine": "vllm",
    "model.target": "models/tiny/target",
    "model.draft": "models/tiny/draft",
}


def faults(deployment: Deployment, root: Path) -> list[tuple[str, str]]:
    problems = check(deployment, root)
    assert all(p.path == "" and p.line is None and "\n" not in p.what for p in problems)
    return [(problem.key, problem.what) for problem in problems]


@pytest.mark.parametrize("changes", [{}, HF])
def test_the_shipped_pair_has_no_faults(
    make: MakeDeployment, root: Path, changes: dict[str, Any]
) -> None:
    assert faults(make(**changes), root) == []


def test_all_faults_are_reported_at_once(make: MakeDeployment, root: Path) -> None:
    deployment = make(
        **{
            "model.target": "nope.gguf",
            "model.draft": "pyproject.toml",
            "serving.speculation.method": "eagle3",
        }
    )
    assert faults(deployment, root) == [
        (
            "serving.speculation.method",
            "llamacpp has no speculation method eagle3 (llamacpp offers none, draft_model, ngram)",
        ),
        ("model.target", "nope.gguf: No such file or directory"),
        (
            "model.draft",
            "pyproject.toml: it is not a GGUF file (it does not begin with GGUF);"
            " llamacpp serves GGUF files",
        ),
    ]


def test_a_folder_where_a_file_is_wanted_is_a_fault(make: MakeDeployment, root: Path) -> None:
    found = faults(make(**{"model.target": "models/tiny/target"}), root)
    assert found == [("model.target", "models/tiny/target: Is a directory")]


@pytest.mark.parametrize(
    ("draft_tokens", "says"),
    [
        (tokens(700), "the draft has 700 tokens, the target 1000"),
        # llama.cpp takes these two, and aborts in mid-service.
        (tokens(990), "the draft lacks token 990 of the target (990 tokens)"),
        (tokens(1001), "the target lacks token 1000 of the draft (1000 tokens)"),
        ([*tokens(600), "other", *tokens(1000)[601:]], "token 600 is 'other' in the draft"),
    ],
)
def test_a_gguf_draft_with_another_vocabulary_is_a_fault(
    make: MakeDeployment, tmp_path: Path, draft_tokens: list[str], says: str
) -> None:
    write_gguf(tmp_path / "target.gguf", tokens(1000))
    write_gguf(tmp_path / "draft.gguf", draft_tokens)
    deployment = make(**{"model.target": "target.gguf", "model.draft": "draft.gguf"})
    ((key, what),) = faults(deployment, tmp_path)
    assert key == "model.draft"
    assert says in what


def test_a_padded_gguf_vocabulary_is_fine(make: MakeDeployment, tmp_path: Path) -> None:
    write_gguf(tmp_path / "target.gguf", tokens(1000))
    write_gguf(tmp_path / "draft.gguf", tokens(1000) + ["[PAD]"] * 64)
    deployment = make(**{"model.target": "target.gguf", "model.draft": "draft.gguf"})
    assert faults(deployment, tmp_path) == []


def test_special_tokens_that_differ_are_a_fault(make: MakeDeployment, tmp_path: Path) -> None:
    write_gguf(tmp_path / "target.gguf", tokens(1000))
    write_gguf(tmp_path / "draft.gguf", tokens(1000), eos_token_id=3)
    deployment = make(**{"model.target": "target.gguf", "model.draft": "draft.gguf"})
    ((_, what),) = faults(deployment, tmp_path)
    assert "tokenizer.ggml.eos_token_id is 3 in the draft and 2 in the target" in what


def test_a_draft_that_the_method_does_not_use_is_not_looked_at(
    make: MakeDeployment, root: Path
) -> None:
    deployment = make(**{"serving.speculation.method": "ngram", "model.draft": "nope.gguf"})
    assert faults(deployment, root) == []


@pytest.mark.parametrize("changes", [{}, HF])
def test_more_context_than_the_models_were_trained_for_is_a_fault(
    make: MakeDeployment, root: Path, changes: dict[str, Any]
) -> None:
    found = faults(make(**changes, **{"model.max_model_len": 2048}), root)
    assert found == [
        ("model.max_model_len", f"2048 is more than the {what}'s trained context of 1024")
        for what in ("target", "draft")
    ]


@pytest.fixture
def pair(tmp_path: Path, root: Path) -> Path:
    """A copy of the shipped pair in Hugging Face form, to be damaged."""
    for name in ("target", "draft"):
        shutil.copytree(root / "models/tiny" / name, tmp_path / name)
    return tmp_path


PAIR: dict[str, Any] = HF | {"model.target": "target", "model.draft": "draft"}


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_hf_vocabularies_of_different_size_are_a_fault_with_both_sizes(
    make: MakeDeployment, pair: Path
) -> None:
    edit(pair / "target/config.json", vocab_size=152_064)
    edit(pair / "draft/config.json", vocab_size=151_936)
    ((key, what),) = faults(make(**PAIR), pair)
    assert key == "model.draft"
    assert "vocab_size is 151936 in the draft and 152064 in the target" in what


def test_hf_vocabularies_of_one_size_but_other_tokens_are_a_fault(
    make: MakeDeployment, pair: Path
) -> None:
    path = pair / "draft/tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    first, second = (text for text, token_id in vocabulary.items() if token_id in (500, 501))
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    path.write_text(json.dumps(tokenizer))
    ((key, what),) = faults(make(**PAIR), pair)
    assert key == "model.draft"
    assert "token 500" in what


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("config.json", "the folder has no config.json"),
        ("model.safetensors", "the folder has no *.safetensors"),
        ("tokenizer.json", "the folder has no tokenizer.json and no tokenizer.model"),
        ("", "no such folder"),
    ],
)
def test_a_folder_that_lacks_a_part_is_a_fault(
    make: MakeDeployment, pair: Path, missing: str, says: str
) -> None:
    if missing:
        (pair / "draft" / missing).unlink()
    else:
        shutil.rmtree(pair / "draft")
    assert faults(make(**PAIR), pair) == [("model.draft", f"draft: {says}")]


@pytest.mark.parametrize("content", ["", "not json", "[]", '"text"', "[" * 100_000])
def test_a_config_that_is_not_one_is_a_fault(
    make: MakeDeployment, pair: Path, content: str
) -> None:
    (pair / "target/config.json").write_text(content)
    ((key, what),) = faults(make(**PAIR), pair)
    assert key == "model.target"
    assert "config.json" in what


def test_a_head_needs_no_tokenizer_and_no_context_of_its_own(
    make: MakeDeployment, pair: Path
) -> None:
    (pair / "draft/tokenizer.json").unlink()
    edit(pair / "draft/config.json", vocab_size=32_000, max_position_embeddings=64)
    assert faults(make(**PAIR, **{"serving.speculation.method": "eagle"}), pair) == []


@pytest.mark.parametrize(
    ("scaling", "context_tokens"),
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}, 2048),
        ({"type": "linear", "factor": 2}, 2048),
        ({"rope_type": "llama3", "factor": 8.0}, 1024),
        ({"rope_type": "default"}, 1024),
    ],
)
def test_scaled_positions_count_as_vllm_counts_them(
    make: MakeDeployment, pair: Path, scaling: dict[str, Any], context_tokens: int
) -> None:
    for name in ("target", "draft"):
        edit(pair / name / "config.json", rope_parameters=scaling)
    assert faults(make(**PAIR, **{"model.max_model_len": context_tokens}), pair) == []
    assert faults(make(**PAIR, **{"model.max_model_len": context_tokens + 1}), pair) != []


def test_hub_ids_are_not_looked_for_on_disk(make: MakeDeployment, tmp_path: Path) -> None:
    deployment = make(
        **HF | {"model.target": "org/target", "model.draft": "org/draft", "site": "aws/us-east-1"}
    )
    assert faults(deployment, tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"model.target": "org/target"}, "model.target", "is a hub id"),
        ({"serving.engine": "trtllm"}, "serving.speculation.method", "TensorRT-LLM needs a GPU"),
        (
            HF
            | {
                "model.target": "org/target",
                "model.draft": "org/draft",
                "serving.speculation.synthetic_acceptance_length": 2,
            },
            "serving.speculation.synthetic_acceptance_length",
            "cannot pretend acceptance",
        ),
    ],
)
def test_what_the_engine_cannot_do_is_a_fault_at_its_key(
    make: MakeDeployment, root: Path, changes: dict[str, Any], key: str, says: str
) -> None:
    ((found_key, what),) = faults(make(**changes), root)
    assert found_key == key
    assert says in what


def test_the_kind_of_node_decides_which_version_is_asked(make: MakeDeployment, root: Path) -> None:
    deployment = make(
        **HF
        | {
            "site": "rack/lab",
            "model.target": "org/target",
            "model.draft": "org/draft",
            "serving.speculation.method": "medusa",
        }
    )
    assert [p.key for p in check(deployment, root)] == ["serving.speculation.method"]
    assert check(deployment, root, kind="cpu") == []
