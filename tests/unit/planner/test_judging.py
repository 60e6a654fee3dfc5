"""What an estimate says about a deployment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from infra.catalog import Catalog
from infra.catalog.catalog import DATA
from infra.errors import InputError
from infra.planner import Estimate, compare, estimate, machine
from infra.spec.loader import load_all
from infra.spec.model import Deployment

ROOT = Path(__file__).parents[3]
META = "meta-llama/Llama-3"


def deployment(**changes: Any) -> Deployment:
    data: dict[str, Any] = {
        "name": "chat",
        "tier": "prototype",
        "site": "aws/us-east-1",
        "model": {"target": f"{META}.1-8B", "draft": f"{META}.2-1B", "max_model_len": 8192},
        "serving": {"engine": "vllm", "speculation": {"method": "draft_model", "draft_tokens": 5}},
        "load": {"sessions": 20, "prompt_tokens": 1024, "output_tokens": 256},
        "sla": {"ttft_p95_ms": 400},
        "budget": {"usd_per_month": 3500},
    }  # fmt: skip
    return Deployment.model_validate({**data, **changes})


def scaled(**changes: Any) -> Deployment:
    base: dict[str, Any] = {
        "tier": "scaled",
        "model": {"target": f"{META}.1-70B", "draft": f"{META}.1-8B", "max_model_len": 8192},
        "load": {"sessions": 50, "prompt_tokens": 1024, "output_tokens": 256},
        "budget": {"usd_per_month": 22000},
    }
    return deployment(**{**base, **changes})


def test_the_prototype_fits_with_two_gpus_a_replica_and_is_over_the_budget() -> None:
    found = estimate(deployment())
    assert (found.instance, found.nodes, found.fit.tensor_parallel) == ("g5.12xlarge", 1, 2)
    assert (found.fit.verdict, found.fit.replicas, found.fit.sessions_per_replica) == (
        "fits",
        2,
        10,
    )
    assert [(fit.tensor_parallel, fit.verdict) for fit in found.alternatives] == [
        (1, "does not fit"),
        (4, "fits"),
    ]
    cost = found.cost
    assert cost is not None
    assert str(cost.fleet.usd_per_month) == "4140.56"
    assert (cost.within_budget, str(cost.duty_within_budget)) == (False, "0.845")
    assert str(cost.break_even_sessions) == "13.13"
    assert (cost.rate.source, cost.rate.as_of) == (("KPRICE",), "2026-07-20")


def test_the_fewest_nodes_of_the_range_that_reach_the_best_verdict_are_taken() -> None:
    few = estimate(scaled())
    assert (few.nodes, few.fit.replicas, few.fit.tokens_per_session) == (2, 2, 11864)
    many = estimate(scaled(load={"sessions": 140, "prompt_tokens": 1024, "output_tokens": 256}))
    assert (many.nodes, many.fit.verdict) == (4, "fits")
    too_many = estimate(scaled(load={"sessions": 900, "prompt_tokens": 1024, "output_tokens": 256}))
    assert (too_many.nodes, too_many.fit.verdict) == (4, "tight")
    assert few.cost is not None
    assert [str(cost.usd_per_month) for cost in few.cost.by_nodes] == [
        "32058.16",
        "48087.24",
        "64116.31",
    ]


def test_a_rack_is_priced_at_the_newest_contract_rate() -> None:
    found = estimate(
        scaled(tier="enterprise", site="rack/a", budget={"usd_per_month": 95000}),
    )
    assert (found.instance, found.fit.tensor_parallel) == ("hgx-h100-8x-reference", 4)
    assert found.cost is not None
    assert str(found.cost.fleet.usd_per_month) == "13724.00"
    assert str(found.cost.by_nodes[-1].usd_per_month) == "109792.00"
    assert found.cost.within_budget
    assert "memory_mib_seen of h100_sxm5 is unverified" in found.notes


def test_a_model_that_the_catalogue_does_not_know_is_not_guessed_at() -> None:
    serving = {"engine": "vllm", "speculation": {"method": "ngram", "draft_tokens": 3}}
    model = {"target": "acme/Mystery-9B", "max_model_len": 8192}
    found = estimate(deployment(model=model, serving=serving))
    assert found.fit.verdict == "unknown"
    assert found.fit.reason == "not in the catalogue, so the fit cannot be judged: acme/Mystery-9B"
    assert found.fit.kv_tokens is None
    assert {fit.verdict for fit in found.alternatives} == {"unknown"}
    assert found.cost is not None


def test_a_draft_that_the_method_does_not_load_takes_no_memory_and_is_mentioned() -> None:
    serving = {"engine": "vllm", "speculation": {"method": "ngram", "draft_tokens": 3}}
    without = estimate(deployment(serving=serving))
    assert (without.fit.kv_tokens or 0) > (estimate(deployment()).fit.kv_tokens or 0)
    assert "model.draft is not used by speculation method ngram" in without.notes


def test_what_is_not_sure_is_noted() -> None:
    notes = estimate(deployment(site="aws/eu-west-1")).notes
    assert "weights of llama-3.1-8b and llama-3.2-1b are from memory, unverified" in notes
    assert "the price is that of us-east-1; eu-west-1 may differ" in notes
    nominal = estimate(deployment(), instance="trn2.48xlarge").notes
    assert "trainium2: planned with its nominal 96 GB; what it reports is unknown" in nominal
    assert "the price of trn2.48xlarge is unverified" in nominal


def test_without_a_price_the_fit_is_judged_all_the_same() -> None:
    found = estimate(deployment(), instance="hgx-h200-8x-reference")
    assert found.cost is None
    assert found.fit.verdict == "fits"
    assert "the catalogue has no price for hgx-h200-8x-reference" in found.notes


def test_without_a_budget_nothing_is_said_about_one() -> None:
    cost = estimate(deployment(budget=None)).cost
    assert cost is not None
    assert (cost.within_budget, cost.duty_within_budget) == (None, None)


def test_the_local_deployment_fits_here_and_costs_nothing() -> None:
    found = estimate(load_all(ROOT, ["local"])[0])
    assert (found.instance, found.fit.verdict) == ("this-machine", "fits")
    assert found.cost is not None
    assert found.cost.fleet.usd_per_hour == 0
    assert found.cost.within_budget
    assert found.cost.break_even_sessions is None
    small = estimate(load_all(ROOT, ["local"])[0], memory_bytes=2_000_000_000)
    assert small.fit.verdict == "does not fit"


def test_the_memory_of_this_machine_is_that_of_its_container(tmp_path: Path) -> None:
    unlimited = machine.memory_bytes(tmp_path / "none")
    assert unlimited > 100_000_000
    (tmp_path / "max").write_text("max\n")
    assert machine.memory_bytes(tmp_path / "max") == unlimited
    (tmp_path / "low").write_text("12345678\n")
    assert machine.memory_bytes(tmp_path / "low") == 12345678


def test_a_file_of_a_machine_is_all_that_the_planner_needs(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA, tmp_path / "data"))
    (folder / "instances" / "p9.2xlarge.yaml").write_text(
        "name: p9.2xlarge\n"
        "provider: aws\n"
        "accelerator: h100_sxm5\n"
        "accelerators: 2\n"
        'on_demand: {usd_per_hour: 1.25, as_of: "2026-11", source: KPRICE}\n'
        "source: KTYPES\n"
    )
    known = Catalog(folder)
    found = estimate(deployment(), known, instance="p9.2xlarge")
    assert (found.fit.verdict, found.accelerators_per_node) == ("fits", 2)
    assert found.cost is not None
    assert str(found.cost.fleet.usd_per_month) == "912.50"
    assert compare(deployment(), known)[0].instance == "p9.2xlarge"


def test_comparing_puts_what_fits_first_and_the_cheapest_of_it() -> None:
    found = compare(scaled())
    verdicts = [entry.fit.verdict for entry in found]
    assert verdicts == sorted(verdicts, key=["fits", "tight", "does not fit"].index)
    fitting = [entry.cost.fleet.usd_per_hour for entry in found
               if entry.cost and entry.fit.verdict == "fits"]  # fmt: skip
    assert len(fitting) > 3
    assert fitting == sorted(fitting)


def test_an_unknown_tier_or_instance_is_refused() -> None:
    with pytest.raises(InputError, match="unknown tier 'huge'"):
        estimate(deployment(tier="huge"))
    with pytest.raises(InputError, match="unknown instance 'x1'"):
        estimate(deployment(), instance="x1")


@pytest.mark.parametrize("make", [deployment, scaled])
def test_an_estimate_is_json_with_numbers(make: Any) -> None:
    found = estimate(make())
    assert isinstance(found, Estimate)
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert found.cost is not None
    assert plain["cost"]["fleet"]["usd_per_month"] == float(found.cost.fleet.usd_per_month)
    assert plain["fit"]["kv_tokens"] == found.fit.kv_tokens
    assert plain["notes"] == list(found.notes)
