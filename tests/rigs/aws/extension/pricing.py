"""The Price List API. moto has no such service, so the server sends its calls here."""

from __future__ import annotations

import json
from typing import Any

from moto.core.responses import BaseResponse

from tests.rigs.aws.extension import settings
from tests.rigs.aws.extension.registry import Parameters, attach, operation

PUBLISHED = "2026-11-09T00:00:00Z"


class PricingResponse(BaseResponse):
    """Answers for the signing name ``pricing``."""

    def __init__(self) -> None:
        super().__init__(service_name="pricing")


def _product(instance: str, usd_per_hour: str, region: str) -> dict[str, Any]:
    """One entry of a price list, with the members that such an entry has in AWS's own files."""
    sku = "".join(c for c in instance.upper() if c.isalnum()).ljust(16, "X")[:16]
    rate = f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    return {
        "product": {
            "productFamily": "Compute Instance",
            "sku": sku,
            "attributes": {
                "instanceType": instance,
                "regionCode": region,
                "operatingSystem": "Linux",
                "tenancy": "Shared",
                "preInstalledSw": "NA",
                "capacitystatus": "Used",
                "licenseModel": "No License required",
                "marketoption": "OnDemand",
                "servicecode": "AmazonEC2",
            },
        },
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {
                f"{sku}.JRTCKXETXF": {
                    "offerTermCode": "JRTCKXETXF",
                    "sku": sku,
                    "effectiveDate": PUBLISHED,
                    "priceDimensions": {
                        rate: {
                            "rateCode": rate,
                            "unit": "Hrs",
                            "beginRange": "0",
                            "endRange": "Inf",
                            "appliesTo": [],
                            "description": f"${usd_per_hour} per On Demand Linux {instance} hour",
                            "pricePerUnit": {"USD": usd_per_hour},
                        }
                    },
                    "termAttributes": {},
                }
            }
        },
        "version": "20261109000000",
        "publicationDate": PUBLISHED,
    }


def _matches(product: dict[str, Any], filters: list[dict[str, Any]]) -> bool:
    attributes = {**product["product"]["attributes"], "sku": product["product"]["sku"]}
    attributes["productFamily"] = product["product"]["productFamily"]
    lowered = {key.lower(): value for key, value in attributes.items()}
    return all(lowered.get(one["Field"].lower()) == one["Value"] for one in filters)


@operation("pricing", "GetProducts")
def get_products(response: Any, parameters: Parameters) -> dict[str, Any]:
    prices = {**settings.PRICES, **settings.VALUES["prices"]}
    filters = parameters.get("Filters") or []
    # The endpoint is in us-east-1; the prices may be of any region, here the same everywhere.
    region = next((one["Value"] for one in filters if one["Field"] == "regionCode"), "us-east-1")
    products = [_product(name, str(price), region) for name, price in prices.items()]
    if parameters.get("ServiceCode") != "AmazonEC2":
        products = []
    return {
        "FormatVersion": "aws_v1",
        "PriceList": [json.dumps(one) for one in products if _matches(one, filters)],
    }


@operation("pricing", "DescribeServices")
def describe_services(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {
        "FormatVersion": "aws_v1",
        "Services": [
            {"ServiceCode": "AmazonEC2", "AttributeNames": ["instanceType", "regionCode"]}
        ],
    }


def install() -> None:
    attach(PricingResponse, "pricing")
