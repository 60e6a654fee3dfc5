"""What the test account happens to have. Tests set it through the server (``AwsRig.set``)."""

from __future__ import annotations

from typing import Any

#: EC2 quotas in vCPUs, by code (facts file, section 2.6). Here: an account that was granted some.
EC2_QUOTAS: dict[str, tuple[str, float]] = {
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 256.0),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 256.0),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", 192.0),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", 192.0),
    "L-417A185B": ("Running On-Demand P instances", 384.0),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", 384.0),
    "L-C4BD4855": ("All P5 Spot Instance Requests", 0.0),
    "L-1945791B": ("Running On-Demand Inf instances", 96.0),
    "L-B5D1601B": ("All Inf Spot Instance Requests", 96.0),
    "L-2C3B7624": ("Running On-Demand Trn instances", 192.0),
    "L-6B0D517C": ("All Trn Spot Instance Requests", 192.0),
    "L-0263D0A3": ("EC2-VPC Elastic IPs", 5.0),
}
VPC_QUOTAS: dict[str, tuple[str, float]] = {
    "L-F678F1CE": ("VPCs per Region", 5.0),
    "L-A4707A72": ("Internet gateways per Region", 5.0),
    "L-FE5A380F": ("NAT gateways per Availability Zone", 5.0),
}
EKS_QUOTAS: dict[str, tuple[str, float]] = {"L-1194D53C": ("Clusters", 100.0)}
#: On-demand list prices, us-east-1, Linux, USD an hour (facts file, section 2.2).
PRICES: dict[str, str] = {
    "g5.12xlarge": "5.672",
    "g5.48xlarge": "16.288",
    "g6e.12xlarge": "10.49264",
    "g6e.48xlarge": "30.13118",
    "p4d.24xlarge": "21.957642",
    "p4de.24xlarge": "27.44705",
    "p5.4xlarge": "6.88",
    "p5.48xlarge": "55.04",
    "p5en.48xlarge": "63.296",
    "p6-b200.48xlarge": "113.9328",
}

_DEFAULTS: dict[str, Any] = {
    # {service code: {quota code: value}}, on top of the tables above
    "quotas": {},
    # {instance type: "USD an hour"}
    "prices": {},
    # actions that SimulatePrincipalPolicy denies, such as "ec2:RunInstances"
    "denied": [],
    # {parameter name: value} on top of the public ones; None removes one
    "parameters": {},
    # {reservation id: {member: value}} over what DescribeCapacityReservations would say
    "reservations": {},
    # {availability zone: [instance types]}: what DescribeInstanceTypeOfferings hides there
    "not_offered": {},
    # {subnet id: free addresses}
    "free_addresses": {},
}

VALUES: dict[str, Any] = {}


def reset() -> None:
    """Back to what a fresh server has."""
    VALUES.clear()
    VALUES.update({key: type(value)(value) for key, value in _DEFAULTS.items()})


def put(values: dict[str, Any]) -> None:
    """Set some of them. Raises KeyError for an unknown name."""
    for key, value in values.items():
        if key not in _DEFAULTS:
            raise KeyError(f"{key}: not a setting; one of {', '.join(sorted(_DEFAULTS))}")
        VALUES[key] = value


reset()
