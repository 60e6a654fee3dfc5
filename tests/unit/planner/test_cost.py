"""Money against the audited table; cents and shares are rounded as it rounds them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog import catalog
from infra.planner.cost import break_even, duty, fleet, node_rate, per_1k_session_seconds


def usd(instance: str) -> Decimal:
    rate = node_rate(catalog().instance(instance), catalog())
    assert rate is not None
    return rate.usd_per_hour


@pytest.mark.parametrize(
    ("instance", "nodes", "per_month"),
    [
        ("g5.12xlarge", 1, "4140.56"),
        ("g5.48xlarge", 1, "11890.24"),
        ("g6e.12xlarge", 1, "7659.63"),
        ("g6e.48xlarge", 1, "21995.76"),
        ("p4d.24xlarge", 1, "16029.08"),
        ("p4d.24xlarge", 2, "32058.16"),
        ("p4d.24xlarge", 3, "48087.24"),
        ("p4d.24xlarge", 4, "64116.31"),
        ("p4de.24xlarge", 1, "20036.35"),
        ("p5.4xlarge", 1, "5022.40"),
        ("p5.48xlarge", 1, "40179.20"),
        ("p5.48xlarge", 8, "321433.60"),
        ("p5en.48xlarge", 1, "46206.08"),
        ("p6-b200.48xlarge", 1, "83170.94"),
        ("p6-b300.48xlarge", 1, "103963.68"),
        ("inf2.24xlarge", 1, "4738.16"),
        ("inf2.48xlarge", 1, "9476.33"),
    ],
)
def test_a_month_is_730_hours_to_the_cent(instance: str, nodes: int, per_month: str) -> None:
    assert str(fleet(usd(instance), nodes).usd_per_month) == per_month


@pytest.mark.parametrize(
    ("instance", "nodes", "rate", "sessions"),
    [
        ("g5.12xlarge", 1, "0.12", "13.13"),
        ("p4d.24xlarge", 2, "0.065", "187.7"),
        ("p4d.24xlarge", 4, "0.065", "375.3"),
        ("p5.48xlarge", 1, "0.042", "364.0"),
        ("p5.48xlarge", 8, "0.042", "2912.2"),
    ],
)
def test_break_even_agrees_with_the_audit(
    instance: str, nodes: int, rate: str, sessions: str
) -> None:
    found = break_even(fleet(usd(instance), nodes).usd_per_hour, Decimal(rate))
    assert found is not None
    assert found.quantize(Decimal(sessions)) == Decimal(sessions)


@pytest.mark.parametrize(
    ("instance", "nodes", "sessions", "rate"),
    [
        ("g5.12xlarge", 1, 5, "0.3151"),
        ("g5.12xlarge", 1, 20, "0.0788"),
        ("p4d.24xlarge", 2, 50, "0.2440"),
        ("p4d.24xlarge", 2, 250, "0.0488"),
        ("p4d.24xlarge", 4, 50, "0.4879"),
        ("p4d.24xlarge", 4, 250, "0.0976"),
    ],
)
def test_session_seconds_agree_with_the_audit(
    instance: str, nodes: int, sessions: int, rate: str
) -> None:
    per_hour = fleet(usd(instance), nodes).usd_per_hour
    # 21.957642 x 2 / (3.6 x 50) is 0.24397: the audit rounds it to 0.2440 as well.
    assert str(per_1k_session_seconds(per_hour, sessions)) == rate


@pytest.mark.parametrize(
    ("month", "budget", "share"),
    [
        ("4140.56", "1200", "0.289"),  # the audit, rounding to the nearest, has 0.290
        ("4140.56", "3500", "0.845"),
        ("32058.16", "22000", "0.686"),
        ("64116.31", "22000", "0.343"),
        ("0", "0", "1"),
        ("100", "0", "0.000"),
    ],
)
def test_the_duty_that_a_budget_pays_for_is_never_rounded_up(
    month: str, budget: str, share: str
) -> None:
    assert str(duty(Decimal(month), Decimal(budget))) == share


@given(st.integers(1, 10**7), st.integers(0, 10**7))
def test_a_duty_never_costs_more_than_the_budget(month: int, budget: int) -> None:
    share = duty(Decimal(month), Decimal(budget))
    assert 0 <= share <= 1
    assert share * month <= budget or share * month - budget <= 0


@given(st.decimals("0.01", 1000, places=2), st.integers(1, 5000))
def test_at_break_even_the_fleet_costs_what_is_asked(per_hour: Decimal, sessions: int) -> None:
    exact = per_hour / (Decimal("3.6") * sessions)
    found = break_even(per_hour, exact)
    assert found is not None
    assert abs(found - sessions) <= Decimal("0.01")


def test_a_rate_comes_from_the_list_then_the_market_then_a_capacity_block() -> None:
    def rate(instance: str, market: str | None = None) -> object:
        found = node_rate(catalog().instance(instance), catalog(), market)
        return found and (str(found.usd_per_hour), found.as_of, found.basis)

    index = "SemiAnalysis 1-year contract index"
    assert rate("g5.12xlarge", index) == ("5.672", "2026-07-20", "on-demand list price")
    # 2.35 x 8; 1.70 is of October 2025.
    assert rate("hgx-h100-8x-reference", index) == ("18.80", "2026-03", f"{index}, 2.35 a GPU hour")
    assert rate("hgx-h100-8x-reference") is None
    assert rate("p5e.48xlarge") == (
        "39.8",
        "2026-01",
        "Capacity Block, paid ahead for a fixed time",
    )
    assert rate("this-machine") == ("0", "2026-12-01", "nothing is rented")


def test_a_price_that_nobody_read_says_so() -> None:
    found = node_rate(catalog().instance("trn2.48xlarge"), catalog())
    assert found is not None
    assert not found.verified


def test_nothing_breaks_even_with_a_price_of_nothing() -> None:
    assert break_even(Decimal(5), Decimal(0)) is None
