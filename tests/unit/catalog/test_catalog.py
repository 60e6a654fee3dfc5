"""The catalogue: typed, strict, lazy, and no figure without a source and a date."""

# ruff: noqa: E501
from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from infra.catalog import Catalog, catalog
from infra.catalog.catalog import DATA
from infra.catalog.rows import Row
from infra.errors import InputError

ROOT = Path(__file__).parents[3]
FILES = sorted(path for path in DATA.rglob("*.yaml") if path.name != "sources.yaml")


def content(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def uncovered(value: Any, sources: Any, where: str = "", covered: bool = False) -> Iterator[str]:
    """Places of figures that no source with a date stands for."""
    if isinstance(value, dict):
        ids = value.get("source")
        known = [ids] if isinstance(ids, str) else ids or []
        covered = covered or bool(known)
        for key in known:
            if not re.search(r"\d{4}", str(sources.get(key, {}).get("date", ""))):
                yield f"{where}: source {key} has no date"
        for key, below in value.items():
            if key == "sources":
                yield from uncovered({"source": sorted({*_flat(below)})}, sources, f"{where}.{key}")
            else:
                yield from uncovered(below, sources, f"{where}.{key}", covered)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from uncovered(below, sources, f"{where}[{number}]", covered)
    elif isinstance(value, int | float) and not isinstance(value, bool) and not covered:
        yield f"{where}: {value} has no source"


def _flat(sources: dict[str, Any]) -> Iterator[str]:
    for ids in sources.values():
        yield from [ids] if isinstance(ids, str) else ids


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_figure_has_a_source_that_has_a_date(path: Path) -> None:
    value, sources = content(path), content(DATA / "sources.yaml")
    if path.parent.name == "tiers":
        # Choices of ours, not figures from somewhere; the row's source says whose.
        assert value["source"]
    assert list(uncovered(value, sources)) == []


def test_a_figure_without_a_source_or_with_an_undated_one_would_be_found() -> None:
    sources = {"A": {"date": "2026-01"}, "B": {"date": "n/a"}}
    row = {"price": {"usd": 1}, "sources": {"price": "B"}}
    assert list(uncovered([row], sources)) == [
        "[0].price.usd: 1 has no source",
        "[0].sources: source B has no date",
    ]
    assert list(uncovered([{**row, "source": "A", "sources": {}}], sources)) == []


def test_what_is_from_memory_is_marked_unverified_everywhere() -> None:
    known = catalog()
    rows: list[Row] = [*known.accelerators.values(), *known.instances.values()]
    for row in [*rows, *known.models.values()]:
        for field in type(row).model_fields:
            if getattr(row, field) is not None and "MEM" in row.sources.get(field, ()):
                assert not row.is_verified(field), (row, field)
    for text in (path.read_text() for path in FILES):
        for entry in re.findall(r"\{[^{}]*source: MEM[^{}]*\}", text):
            assert "verified: false" in entry, entry
    # For example these three, which the sources do not have:
    assert not catalog().accelerators["a10g"].is_verified("bf16_tflops")
    assert not catalog().instances["g5.12xlarge"].plans[0].verified
    assert not catalog().models["meta-llama/Llama-3.1-8B"].is_verified("weights_gb")


def test_prices_are_exact_and_dated() -> None:
    price = catalog().instance("p4d.24xlarge").on_demand
    assert price is not None
    assert price.usd_per_hour == Decimal("21.957642")
    assert (price.as_of, price.source) == ("2026-07-20", ("KPRICE", "DRCPT"))
    (before,) = catalog().instance("p5.48xlarge").price_history
    assert before.usd_per_hour == Decimal("98.32")
    blocks = catalog().instance("p5e.48xlarge").capacity_blocks
    assert [(str(b.usd_per_hour), b.as_of) for b in blocks] == [
        ("39.8", "2026-01"),
        ("34.61", "2025"),
        ("43.26", "2024-Q4"),
    ]


def test_hardware_says_what_operators_need() -> None:
    p4d = catalog().instance("p4d.24xlarge")
    assert (p4d.accelerator, p4d.accelerators, p4d.efa_interfaces) == ("a100_40", 8, 4)
    assert p4d.quota is not None
    assert (p4d.quota.on_demand, p4d.quota.vcpu) == ("L-417A185B", 96)
    assert p4d.numa is not None
    assert p4d.numa.layout[1].nics == (2, 3)
    assert p4d.numa.cpu_ids == ("0-23,48-71", "24-47,72-95")
    p5 = catalog().instance("p5.48xlarge")
    assert p5.numa is not None
    assert p5.numa.unverified == ("cpu_ids",)
    assert p5.numa.layout[0].nics == tuple(range(16))
    assert catalog().instance("hgx-h100-8x-reference").infiniband is not None
    providers = {row.provider for row in catalog().instances.values()}
    assert providers == {"aws", "azure", "colo", "local"}


def test_the_accelerator_of_every_market_rate_and_the_instance_of_every_tier_are_known() -> None:
    known = catalog()
    for rate in known.market:
        assert rate.accelerator in known.accelerators
        if rate.node_usd_per_hour is not None:  # a node has eight; rates are rounded to cents
            assert abs(rate.node_usd_per_hour - 8 * rate.usd_per_gpu_hour) < Decimal("0.04")
    for name in known.tier_names:
        tier = known.tier(name)
        instance = known.instance(tier.nodes.instance)
        assert instance.accelerators % tier.tensor_parallel == 0
        if tier.market_rate:
            assert tier.market_rate in {rate.provider for rate in known.market}


def test_tiers_hold_what_was_asked_and_what_is_better_with_a_reason() -> None:
    assert catalog().tier_names == ("enterprise", "local", "prototype", "scaled")
    rates = {
        name: str(asked.usd_per_1k_session_seconds)
        for name in catalog().tier_names
        if (asked := catalog().tier(name).asked)
    }
    assert rates == {"prototype": "0.12", "scaled": "0.065", "enterprise": "0.042"}
    for name in rates:
        better = catalog().tier(name).better
        assert len(better) >= 3
        assert any(re.search(r"\d", entry.reason) for entry in better)
    local = catalog().tier("local")
    assert local.engines.offered == ("llamacpp", "vllm")
    assert local.asked is None


def test_the_tiny_pair_is_what_lies_in_the_models_folder() -> None:
    for role in ("target", "draft"):
        row = catalog().models[f"models/tiny/{role}.gguf"]
        config = json.loads((ROOT / "models" / "tiny" / role / "config.json").read_text())
        per_layer = 2 * config["num_key_value_heads"] * config["head_dim"] * 2  # K and V, 2 bytes
        assert row.kv_bytes_per_token == config["num_hidden_layers"] * per_layer
        assert row.vocabulary == config["vocab_size"]
        size = (ROOT / "models" / "tiny" / f"{role}.gguf").stat().st_size
        assert row.weights_gb == size / 1e9
        assert row.parameters_billion * 4 == pytest.approx(row.weights_gb, rel=0.06)


def test_a_hub_id_finds_its_model_and_the_names_of_a_family_share_it() -> None:
    models = catalog().models
    assert models["meta-llama/Llama-3.3-70B-Instruct"] is models["meta-llama/Llama-3.1-70B"]
    assert models["meta-llama/Llama-3.1-8B"].vocabulary == 128256


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA, tmp_path / "data"))


def test_only_what_is_asked_for_is_read(folder: Path) -> None:
    for path in folder.rglob("*.yaml"):
        if path.stem != "local":
            path.write_text("{")
    known = Catalog(folder)
    assert "scaled" in known.tier_names
    assert known.tier("local").engines.default == "llamacpp"
    for attribute in ("sources", "models", "market"):
        with pytest.raises(InputError, match=rf"{attribute}\.yaml: is not valid YAML"):
            getattr(known, attribute)
    with pytest.raises(InputError, match=r"scaled\.yaml"):
        known.tier("scaled")


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("instances/g5.12xlarge", "vcpu: 48", "vcpu: '48'", "vcpu: Input should be a"),
        ("instances/g5.12xlarge", "vcpu: 48", "vcpus: 48", "vcpus: Extra inputs are not permitted"),
        ("instances/g5.12xlarge", "accelerator: a10g", "accelerator: a11g", "unknown accelerator a11g"),
        ("instances/this-machine", "accelerators: 0", "accelerators: 1", "this-machine: accelerator and"),
        ("instances/g5.24xlarge", "name: g5.24xlarge", "name: g5.12xlarge", "must be g5.24xlarge like the file"),
        ("instances/g5.12xlarge", '"2026-07-20"', '"July"', "on_demand.as_of: String should match pattern"),
        ("instances/g5.12xlarge", "usd_per_hour: 5.672", "usd_per_hour: '5'", "on_demand.usd_per_hour"),
        ("accelerators/a10g", "[bf16_tflops,", "[bf17_tflops,", "bf17_tflops, which the row has"),
        ("models", "llama-3.2-3b", "llama-3.2-1b", "two rows are called llama-3.2-1b"),
        ("models", "[meta-llama/Llama-3.2-3B", "[meta-llama/Llama-3.2-1B", "two rows have the id"),
        ("tiers/scaled", "min: 2", "min: 5", "min 5 is above max 4"),
        ("tiers/scaled", "default: trtllm", "default: x", "default engine x is not offered"),
        ("tiers/scaled", "sites: [aws]", "sites: [moon]", "sites.0: Input should be 'aws'"),
    ],
)  # fmt: skip
def test_a_fault_in_the_data_names_the_file_and_the_row(
    folder: Path, file: str, old: str, new: str, told: str
) -> None:
    path = folder / f"{file}.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    known = Catalog(folder)
    kind, _, name = file.partition("/")

    def read() -> None:
        found = None if kind == "tiers" else getattr(known, kind)
        known.tier(name) if kind == "tiers" else found[name] if name else None

    with pytest.raises(InputError, match=told) as caught:
        read()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_no_list_is_told(folder: Path) -> None:
    (folder / "market.yaml").unlink()
    (folder / "models.yaml").write_text("a: b")
    (folder / "sources.yaml").write_text("- a")
    (folder / "accelerators" / "l4.yaml").write_bytes(b"\xff")
    known = Catalog(folder)
    for attribute, told in (
        ("market", "no such file"),
        ("models", "must be a list"),
        ("sources", "must be a mapping"),
    ):
        with pytest.raises(InputError, match=told):
            getattr(known, attribute)
    with pytest.raises(InputError, match=r"l4\.yaml: cannot be read"):
        known.accelerators["l4"]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown tier 'x'; known are enterprise, local"):
        catalog().tier("x")
    with pytest.raises(InputError, match="unknown instance 'x'; known are Standard_ND96asr_v4"):
        catalog().instance("x")


def test_the_catalogue_is_read_once_and_cannot_be_changed() -> None:
    assert catalog() is catalog()
    assert catalog().tier("local") is catalog().tier("local")
    row = catalog().instance("g5.12xlarge")
    with pytest.raises(ValidationError, match="frozen"):
        row.vcpu = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        catalog().instances["x"] = row  # type: ignore[index]
