"""The price says where it is from and how old it is."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from infra.aws.checks import price
from infra.aws.prices import HourlyPrice, judge, list_price
from tests.unit.aws.needs import need, reserved, scaled
from tests.unit.aws.scripted import Error, scripted


def product(usd: str, kind: str = "g5.12xlarge", unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": kind}},
            "terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}},
        }
    )


def checked(answer: Any) -> Any:
    [row] = price.check(scripted({"pricing.get_products": answer}), need())
    return row


def test_the_price_of_today_is_named_as_such() -> None:
    row = checked({"PriceList": [product("5.6720000000")]})
    assert row.verdict == "ok"
    assert row.found == "$5.672 an hour each, on demand, asked just now"


def test_a_price_that_differs_from_the_estimates_is_a_warning() -> None:
    row = checked({"PriceList": [product("6.5")]})
    assert row.verdict == "warn"
    assert "the estimate reckons with $5.672 of 2026-07-20" in row.found


def test_without_an_answer_the_catalogue_is_shown_with_date_and_reason() -> None:
    row = checked(Error("AccessDeniedException"))
    assert row.verdict == "ok"
    assert "$5.672 an hour each, on demand, catalogue of 2026-07-20" in row.found
    assert "days old (this identity may not pricing:GetProducts)" in row.found


def test_a_region_that_the_catalogue_has_no_price_for_is_a_warning() -> None:
    far = need(site="aws/eu-west-1")
    [row] = price.check(scripted({"pricing.get_products": {"PriceList": []}}), far)
    assert row.verdict == "warn"
    assert "that is us-east-1's price" in row.found


def test_how_old_the_catalogue_is() -> None:
    known = HourlyPrice(Decimal("5.672"), "on demand", False, "2026-07-20", "us-east-1")
    row = judge(need(), None, known, why="x", today=date(2026, 12, 4))
    assert "137 days old" in row.found


def test_spot_prices_come_from_the_zone() -> None:
    spot = need(fleet={"buy": "spot", "zone": "us-east-1b"})
    script = {
        "ec2.describe_spot_price_history": {
            "SpotPriceHistory": [
                {"SpotPrice": "2.345600", "Timestamp": datetime(2026, 12, 4, tzinfo=UTC)}
            ]
        }
    }
    [row] = price.check(scripted(script), spot)
    assert row.found == "$2.3456 an hour each, spot in us-east-1b, asked just now"


def test_a_block_was_paid_for_when_it_was_bought() -> None:
    [row] = price.check(scripted({}), reserved(buy="capacity_block"))
    assert "in a Capacity Block" in row.found
    assert "paid for when they are bought" in row.found


def test_a_machine_without_a_price_is_a_warning() -> None:
    trn = scaled(instance="trn2.48xlarge")
    [row] = price.check(scripted({"pricing.get_products": {"PriceList": []}}), trn)
    assert row.verdict == "warn"
    assert "no price is known" in row.found


def test_a_list_price_is_taken_only_when_there_is_one() -> None:
    assert list_price([product("5.672")], "g5.12xlarge") == Decimal("5.672")
    assert list_price([product("5.672"), product("5.672")], "g5.12xlarge") == Decimal("5.672")
    assert list_price([product("5.672"), product("9")], "g5.12xlarge") is None
    assert list_price([product("5.672", kind="g5.48xlarge")], "g5.12xlarge") is None
    assert list_price([product("5.672", unit="GB-Mo")], "g5.12xlarge") is None
    assert list_price([product("0.0000000000")], "g5.12xlarge") is None
    assert list_price([product("free")], "g5.12xlarge") is None


def test_the_filters_single_out_linux_on_demand_in_the_region() -> None:
    """The Pricing API has dozens of rows for one type; these leave one."""
    aws = scripted({"pricing.get_products": {"PriceList": []}})
    price.on_demand(aws, need(site="aws/eu-west-1"))
    [(_, region, request)] = aws.requests
    assert region == "us-east-1"
    assert request["ServiceCode"] == "AmazonEC2"
    assert {entry["Field"]: entry["Value"] for entry in request["Filters"]} == {
        "instanceType": "g5.12xlarge",
        "regionCode": "eu-west-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
