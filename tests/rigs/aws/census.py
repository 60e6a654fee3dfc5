"""What an account holds, by kind: a destroy leaves nothing, a retry makes no twins."""

from __future__ import annotations

from typing import Any

from tests.rigs.aws.rig import ACCOUNT, AwsRig


def census(rig: AwsRig) -> dict[str, list[str]]:
    """Kind -> ids or names of what is there and not on its way out; empty kinds are left out."""
    found = {**_network(rig), **_machines(rig), **_names(rig), **_cluster(rig)}
    return {kind: sorted(ids) for kind, ids in found.items() if ids}


def _network(rig: AwsRig) -> dict[str, list[str]]:
    ec2 = rig.client("ec2")
    vpcs = [one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"] if not one["IsDefault"]]

    def ours(entries: list[dict[str, Any]], key: str) -> list[str]:
        return [one[key] for one in entries if one.get("VpcId") in vpcs]

    return {
        "vpc": vpcs,
        "subnet": ours(ec2.describe_subnets()["Subnets"], "SubnetId"),
        "route table": ours(ec2.describe_route_tables()["RouteTables"], "RouteTableId"),
        "security group": ours(ec2.describe_security_groups()["SecurityGroups"], "GroupId"),
        "vpc endpoint": ours(ec2.describe_vpc_endpoints()["VpcEndpoints"], "VpcEndpointId"),
        "internet gateway": [
            one["InternetGatewayId"] for one in ec2.describe_internet_gateways()["InternetGateways"]
        ],
        "nat gateway": [
            one["NatGatewayId"]
            for one in ec2.describe_nat_gateways()["NatGateways"]
            if one["State"] != "deleted"
        ],
        "address": [one["AllocationId"] for one in ec2.describe_addresses()["Addresses"]],
        "flow log": [one["FlowLogId"] for one in ec2.describe_flow_logs()["FlowLogs"]],
    }


def _machines(rig: AwsRig) -> dict[str, list[str]]:
    ec2 = rig.client("ec2")
    return {
        "instance": [
            one["InstanceId"]
            for batch in ec2.describe_instances()["Reservations"]
            for one in batch["Instances"]
            if one["State"]["Name"] != "terminated"
        ],
        "launch template": [
            one["LaunchTemplateName"] for one in ec2.describe_launch_templates()["LaunchTemplates"]
        ],
        "placement group": [
            one["GroupName"] for one in ec2.describe_placement_groups()["PlacementGroups"]
        ],
    }


def _names(rig: AwsRig) -> dict[str, list[str]]:
    iam, scheduler = rig.client("iam"), rig.client("scheduler")
    return {
        "role": [one["RoleName"] for one in iam.list_roles()["Roles"]],
        "instance profile": [
            one["InstanceProfileName"] for one in iam.list_instance_profiles()["InstanceProfiles"]
        ],
        "log group": [
            one["logGroupName"] for one in rig.client("logs").describe_log_groups()["logGroups"]
        ],
        "budget": [
            one["BudgetName"]
            for one in rig.client("budgets").describe_budgets(AccountId=ACCOUNT).get("Budgets", [])
        ],
        "schedule group": [
            one["Name"]
            for one in scheduler.list_schedule_groups()["ScheduleGroups"]
            if one["Name"] != "default"
        ],
        "schedule": [one["Name"] for one in scheduler.list_schedules()["Schedules"]],
    }


def _cluster(rig: AwsRig) -> dict[str, list[str]]:
    kms = rig.client("kms")
    keys = [one["KeyId"] for one in kms.list_keys()["Keys"]]
    return {
        "cluster": rig.client("eks").list_clusters()["clusters"],
        # AWS makes keys of its own, such as the one for disks; ours are tagged.
        "key": [
            key
            for key in keys
            if kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] != "PendingDeletion"
            and kms.list_resource_tags(KeyId=key)["Tags"]
        ],
    }
