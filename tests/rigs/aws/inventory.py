"""What is in the account, counted by kind, whoever made it and whatever a state says."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.rigs.aws.rig import ACCOUNT, AwsRig

#: EC2's lists: operation, list, and what does not count (default objects of the account).
EC2 = {
    "vpc": ("describe_vpcs", "Vpcs"),
    "subnet": ("describe_subnets", "Subnets"),
    "internet gateway": ("describe_internet_gateways", "InternetGateways"),
    "address": ("describe_addresses", "Addresses"),
    "nat gateway": ("describe_nat_gateways", "NatGateways"),
    "route table": ("describe_route_tables", "RouteTables"),
    "endpoint": ("describe_vpc_endpoints", "VpcEndpoints"),
    "security group": ("describe_security_groups", "SecurityGroups"),
    "rule": ("describe_security_group_rules", "SecurityGroupRules"),
    "flow log": ("describe_flow_logs", "FlowLogs"),
    "launch template": ("describe_launch_templates", "LaunchTemplates"),
    "placement group": ("describe_placement_groups", "PlacementGroups"),
    "reservation": ("describe_capacity_reservations", "CapacityReservations"),
    "volume": ("describe_volumes", "Volumes"),
    "interface": ("describe_network_interfaces", "NetworkInterfaces"),
}
GONE = {"deleted", "deleting", "terminated", "shutting-down", "cancelled", "PENDING_DELETION"}


def _state(item: dict[str, Any]) -> str:
    state = item.get("State") or item.get("VpcEndpointState") or ""
    return str(state.get("Name") if isinstance(state, dict) else state)


def count(rig: AwsRig) -> Counter[str]:
    """Living objects by kind, with the links between them (routes, attachments, policies)."""
    found: Counter[str] = Counter()
    ec2 = rig.client("ec2")
    for kind, (operation, list_) in EC2.items():
        for item in getattr(ec2, operation)()[list_]:
            if _state(item) in GONE:
                continue
            found[kind] += 1
            if kind == "route table":
                found["route"] += len(item["Routes"])
                found["route table link"] += len(item["Associations"])
    for reservation in ec2.describe_instances()["Reservations"]:
        for item in reservation["Instances"]:
            found["instance"] += _state(item) not in GONE
    _iam(rig, found)
    _eks(rig, found)
    _others(rig, found)
    return +found


def _iam(rig: AwsRig, found: Counter[str]) -> None:
    iam = rig.client("iam")
    for role in iam.list_roles()["Roles"]:
        found["role"] += 1
        name = role["RoleName"]
        found["role policy"] += len(iam.list_role_policies(RoleName=name)["PolicyNames"])
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        found["attached policy"] += len(attached)
    found["instance profile"] += len(iam.list_instance_profiles()["InstanceProfiles"])
    found["own policy"] += len(iam.list_policies(Scope="Local")["Policies"])
    oidc = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]
    found["oidc provider"] += len(oidc)


def _eks(rig: AwsRig, found: Counter[str]) -> None:
    eks = rig.client("eks")
    for cluster in eks.list_clusters()["clusters"]:
        found["cluster"] += 1
        found["node group"] += len(eks.list_nodegroups(clusterName=cluster)["nodegroups"])
        found["add-on"] += len(eks.list_addons(clusterName=cluster)["addons"])
        found["access entry"] += len(eks.list_access_entries(clusterName=cluster)["accessEntries"])
        identities = eks.list_pod_identity_associations(clusterName=cluster)["associations"]
        found["pod identity"] += len(identities)
    groups = rig.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    found["auto scaling group"] += len(groups)


def _others(rig: AwsRig, found: Counter[str]) -> None:
    found["log group"] += len(rig.client("logs").describe_log_groups()["logGroups"])
    alarms = rig.client("cloudwatch").describe_alarms()["MetricAlarms"]
    found["alarm"] += len(alarms)
    found["budget"] += len(rig.client("budgets").describe_budgets(AccountId=ACCOUNT)["Budgets"])
    scheduler = rig.client("scheduler")
    found["schedule group"] += len(scheduler.list_schedule_groups()["ScheduleGroups"])
    found["schedule"] += len(scheduler.list_schedules()["Schedules"])
    found["topic"] += len(rig.client("sns").list_topics()["Topics"])
    found["secret"] += len(rig.client("secretsmanager").list_secrets()["SecretList"])
    found["file system"] += len(rig.client("fsx").describe_file_systems()["FileSystems"])
    kms = rig.client("kms")
    for key in kms.list_keys()["Keys"]:
        about = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
        found["key"] += about["KeyManager"] == "CUSTOMER" and about["KeyState"] == "Enabled"


def buckets(rig: AwsRig) -> set[str]:
    """Names of buckets; the one for states is among them."""
    return {one["Name"] for one in rig.client("s3").list_buckets()["Buckets"]}


def difference(found: Counter[str], wanted: Counter[str]) -> str:
    """What differs, in words; empty when nothing does."""
    lines = []
    for kind in sorted(set(found) | set(wanted)):
        if found[kind] != wanted[kind]:
            lines.append(f"{kind}: {found[kind]} instead of {wanted[kind]}")
    return ", ".join(lines)
