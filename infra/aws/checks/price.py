"""What a machine costs an hour now: from AWS where it answers, else from the catalogue, and which.

The Pricing API knows on-demand prices; spot prices come from EC2 itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from infra.aws.ask import Aws
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.prices import BLOCK_PAID, HourlyPrice, judge, list_price, snapshot
from infra.aws.rows import Row

#: The Pricing API is in few regions; this one has the prices of all.
PRICING_REGION = "us-east-1"


def check(aws: Aws, need: Need) -> list[Row]:
    """Always an answer: the catalogue's when AWS does not give one."""
    if need.buy == "capacity_block":
        return [judge(need, None, snapshot(need), why=BLOCK_PAID)]
    try:
        live = spot(aws, need) if need.buy == "spot" else on_demand(aws, need)
        why = "" if live else "AWS lists none for this machine here"
    except AwsError as error:
        live, why = None, error.message
    return [judge(need, live, snapshot(need), why=why)]


def on_demand(aws: Aws, need: Need) -> HourlyPrice | None:
    """Linux, shared tenancy, on demand, from the Pricing API. Raises AwsError."""
    wanted = {
        "instanceType": need.instance.name,
        "regionCode": need.region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    answer = aws.call(
        "pricing",
        "get_products",
        PRICING_REGION,
        ServiceCode="AmazonEC2",
        Filters=[
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in wanted.items()
        ],
    )
    price = list_price(answer.get("PriceList") or (), need.instance.name)
    if price is None:
        return None
    today = datetime.now(UTC).date().isoformat()
    return HourlyPrice(price, "on demand", True, today, need.region)


def spot(aws: Aws, need: Need) -> HourlyPrice | None:
    """The present spot price in the zone. Raises AwsError."""
    now = datetime.now(UTC)
    history = aws.call(
        "ec2",
        "describe_spot_price_history",
        InstanceTypes=[need.instance.name],
        AvailabilityZone=need.zone,
        ProductDescriptions=["Linux/UNIX"],
        StartTime=now,
        MaxResults=1,
    )["SpotPriceHistory"]
    if not history:
        return None
    price = Decimal(str(history[0]["SpotPrice"]))
    return HourlyPrice(price, f"spot in {need.zone}", True, now.date().isoformat(), need.region)
