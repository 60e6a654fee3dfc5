"""Service quotas of EC2, VPC and EKS. moto has some of VPC's defaults and no more."""

from __future__ import annotations

from typing import Any

from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.responses import ServiceQuotasResponse

from tests.rigs.aws.extension import settings
from tests.rigs.aws.extension.registry import Parameters, attach, operation

TABLES = {
    "ec2": ("Amazon Elastic Compute Cloud (Amazon EC2)", settings.EC2_QUOTAS),
    "vpc": ("Amazon Virtual Private Cloud (Amazon VPC)", settings.VPC_QUOTAS),
    "eks": ("Amazon Elastic Kubernetes Service (Amazon EKS)", settings.EKS_QUOTAS),
}


def _quota(response: Any, service: str, code: str, *, default: bool = False) -> dict[str, Any]:
    title, table = TABLES.get(service, ("", {}))
    if code not in table:
        raise NoSuchResource
    name, value = table[code]
    if not default:
        value = float(settings.VALUES["quotas"].get(service, {}).get(code, value))
    owner = "" if default else response.current_account
    return {
        "ServiceCode": service,
        "ServiceName": title,
        "QuotaArn": f"arn:aws:servicequotas:{response.region}:{owner}:{service}/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


@operation("service-quotas", "GetServiceQuota")
def get_service_quota(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {"Quota": _quota(response, parameters["ServiceCode"], parameters["QuotaCode"])}


@operation("service-quotas", "GetAWSDefaultServiceQuota")
def get_default(response: Any, parameters: Parameters) -> dict[str, Any]:
    service, code = parameters["ServiceCode"], parameters["QuotaCode"]
    return {"Quota": _quota(response, service, code, default=True)}


@operation("service-quotas", "ListServiceQuotas")
def list_service_quotas(response: Any, parameters: Parameters) -> dict[str, Any]:
    service = parameters["ServiceCode"]
    if service not in TABLES:
        raise NoSuchResource
    return {"Quotas": [_quota(response, service, code) for code in TABLES[service][1]]}


def install() -> None:
    attach(ServiceQuotasResponse, "service-quotas")
