"""Which AWS actions a deploy needs, by the Terraform types that it uses; and what preflight asks.

The actions of a type are those that the AWS provider calls to create, read, change and delete it.
Where AWS decides by the resource's name, the group says so: policies are often scoped by it.
"""

from __future__ import annotations

from dataclasses import dataclass

ANY = "*"
#: The names that stacks give to what they make.
ROLE = "arn:{partition}:iam::{account}:role/{stack_key}-{machine}"
PROFILE = "arn:{partition}:iam::{account}:instance-profile/{stack_key}-server"
CLUSTER = "arn:{partition}:eks:{region}:{account}:cluster/{stack_key}-cluster"
NODE_GROUP = "arn:{partition}:eks:{region}:{account}:nodegroup/{stack_key}-cluster/gpu/*"
ADDON = "arn:{partition}:eks:{region}:{account}:addon/{stack_key}-cluster/vpc-cni/*"
ENTRY = "arn:{partition}:eks:{region}:{account}:access-entry/{stack_key}-cluster/*"
POD_IDENTITY = "arn:{partition}:eks:{region}:{account}:podidentityassociation/{stack_key}-cluster/*"
BUDGET = "arn:{partition}:budgets::{account}:budget/{stack_key}-month"
HOURS = "arn:{partition}:scheduler:{region}:{account}:schedule-group/{stack_key}-hours"
HOUR = "arn:{partition}:scheduler:{region}:{account}:schedule/{stack_key}-hours/{stack_key}-start"
LOGS = "arn:{partition}:logs:{region}:{account}:log-group:/specrack/{stack_key}/flows:*"


@dataclass(frozen=True, slots=True)
class Group:
    """``actions`` on ``resource``, an ARN with places to fill in, or ``*``."""

    resource: str
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """What decides which resources a stack has. ``reads``: weights from a bucket, or a secret."""

    eks: bool
    own_vpc: bool
    spot: bool = False
    placement_group: bool = False
    schedule: bool = False
    budget: bool = False
    reads: bool = False
    lustre: bool = False


_TAGS = ("ec2:CreateTags", "ec2:DescribeTags")

#: Terraform type -> (resource, actions).
BY_TYPE: dict[str, tuple[str, tuple[str, ...]]] = {
    "aws_vpc": (
        ANY,
        ("ec2:CreateVpc", "ec2:DeleteVpc", "ec2:DescribeVpcs", "ec2:DescribeVpcAttribute",
         "ec2:ModifyVpcAttribute", "ec2:DescribeNetworkAcls", "ec2:DescribeRouteTables",
         "ec2:DescribeSecurityGroups"),
    ),
    "aws_subnet": (
        ANY,
        ("ec2:CreateSubnet", "ec2:DeleteSubnet", "ec2:DescribeSubnets",
         "ec2:ModifySubnetAttribute", "ec2:DescribeNetworkInterfaces"),
    ),
    "aws_internet_gateway": (
        ANY,
        ("ec2:CreateInternetGateway", "ec2:AttachInternetGateway", "ec2:DetachInternetGateway",
         "ec2:DeleteInternetGateway", "ec2:DescribeInternetGateways"),
    ),
    "aws_eip": (
        ANY,
        ("ec2:AllocateAddress", "ec2:ReleaseAddress", "ec2:DescribeAddresses",
         "ec2:DescribeAddressesAttribute", "ec2:DisassociateAddress"),
    ),
    "aws_nat_gateway": (
        ANY,
        ("ec2:CreateNatGateway", "ec2:DeleteNatGateway", "ec2:DescribeNatGateways"),
    ),
    "aws_route_table": (
        ANY,
        ("ec2:CreateRouteTable", "ec2:DeleteRouteTable", "ec2:DescribeRouteTables"),
    ),
    "aws_route": (
        ANY,
        ("ec2:CreateRoute", "ec2:DeleteRoute", "ec2:DescribeRouteTables"),
    ),
    "aws_route_table_association": (
        ANY,
        ("ec2:AssociateRouteTable", "ec2:DisassociateRouteTable", "ec2:DescribeRouteTables"),
    ),
    "aws_vpc_endpoint": (
        ANY,
        ("ec2:CreateVpcEndpoint", "ec2:DeleteVpcEndpoints", "ec2:DescribeVpcEndpoints",
         "ec2:ModifyVpcEndpoint", "ec2:DescribePrefixLists"),
    ),
    "aws_default_security_group": (
        ANY,
        ("ec2:DescribeSecurityGroups", "ec2:RevokeSecurityGroupIngress",
         "ec2:RevokeSecurityGroupEgress"),
    ),
    "aws_security_group": (
        ANY,
        ("ec2:CreateSecurityGroup", "ec2:DeleteSecurityGroup", "ec2:DescribeSecurityGroups",
         "ec2:RevokeSecurityGroupEgress", "ec2:DescribeNetworkInterfaces"),
    ),
    "aws_vpc_security_group_ingress_rule": (
        ANY,
        ("ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress",
         "ec2:DescribeSecurityGroupRules"),
    ),
    "aws_vpc_security_group_egress_rule": (
        ANY,
        ("ec2:AuthorizeSecurityGroupEgress", "ec2:RevokeSecurityGroupEgress",
         "ec2:DescribeSecurityGroupRules"),
    ),
    "aws_flow_log": (
        ANY,
        ("ec2:CreateFlowLogs", "ec2:DeleteFlowLogs", "ec2:DescribeFlowLogs"),
    ),
    "aws_instance": (
        ANY,
        ("ec2:RunInstances", "ec2:TerminateInstances", "ec2:StopInstances", "ec2:StartInstances",
         "ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceAttribute",
         "ec2:DescribeInstanceCreditSpecifications", "ec2:ModifyInstanceAttribute",
         "ec2:DescribeVolumes", "ec2:DescribeImages", "ec2:MonitorInstances",
         "ec2:UnmonitorInstances"),
    ),
    "aws_launch_template": (
        ANY,
        ("ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplateVersion",
         "ec2:DeleteLaunchTemplate", "ec2:DescribeLaunchTemplates",
         "ec2:DescribeLaunchTemplateVersions", "ec2:ModifyLaunchTemplate"),
    ),
    "aws_placement_group": (
        ANY,
        ("ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup", "ec2:DescribePlacementGroups"),
    ),
    "aws_ec2_capacity_reservation": (
        ANY,
        ("ec2:CreateCapacityReservation", "ec2:CancelCapacityReservation",
         "ec2:DescribeCapacityReservations", "ec2:ModifyCapacityReservation"),
    ),
    "aws_autoscaling_group_tag": (
        ANY,
        ("autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags", "autoscaling:DescribeTags"),
    ),
    "aws_iam_role": (
        ROLE,
        ("iam:CreateRole", "iam:DeleteRole", "iam:GetRole", "iam:PassRole", "iam:TagRole",
         "iam:ListRolePolicies", "iam:ListAttachedRolePolicies",
         "iam:ListInstanceProfilesForRole", "iam:UpdateAssumeRolePolicy"),
    ),
    "aws_iam_role_policy": (
        ROLE,
        ("iam:PutRolePolicy", "iam:GetRolePolicy", "iam:DeleteRolePolicy"),
    ),
    "aws_iam_role_policy_attachment": (
        ROLE,
        ("iam:AttachRolePolicy", "iam:DetachRolePolicy", "iam:ListAttachedRolePolicies"),
    ),
    "aws_iam_instance_profile": (
        PROFILE,
        ("iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:GetInstanceProfile",
         "iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile",
         "iam:TagInstanceProfile"),
    ),
    "aws_iam_openid_connect_provider": (
        ANY,
        ("iam:CreateOpenIDConnectProvider", "iam:DeleteOpenIDConnectProvider",
         "iam:GetOpenIDConnectProvider", "iam:TagOpenIDConnectProvider"),
    ),
    "aws_eks_cluster": (
        CLUSTER,
        ("eks:CreateCluster", "eks:DeleteCluster", "eks:DescribeCluster",
         "eks:UpdateClusterConfig", "eks:UpdateClusterVersion", "eks:TagResource",
         "eks:CreateNodegroup", "eks:CreateAddon", "eks:CreateAccessEntry",
         "eks:CreatePodIdentityAssociation", "eks:DescribeUpdate"),
    ),
    "aws_eks_node_group": (
        NODE_GROUP,
        ("eks:DeleteNodegroup", "eks:DescribeNodegroup",
         "eks:UpdateNodegroupConfig", "eks:UpdateNodegroupVersion"),
    ),
    "aws_eks_addon": (
        ADDON,
        ("eks:DeleteAddon", "eks:DescribeAddon", "eks:UpdateAddon"),
    ),
    "aws_eks_access_entry": (
        ENTRY,
        ("eks:DeleteAccessEntry", "eks:DescribeAccessEntry"),
    ),
    "aws_eks_access_policy_association": (
        ENTRY,
        ("eks:AssociateAccessPolicy", "eks:DisassociateAccessPolicy",
         "eks:ListAssociatedAccessPolicies"),
    ),
    "aws_eks_pod_identity_association": (
        POD_IDENTITY,
        ("eks:DeletePodIdentityAssociation",
         "eks:DescribePodIdentityAssociation"),
    ),
    "aws_s3_bucket": (
        ANY,
        ("s3:CreateBucket", "s3:DeleteBucket", "s3:ListBucket", "s3:GetBucketTagging",
         "s3:PutBucketTagging"),
    ),
    "aws_s3_bucket_versioning": (ANY, ("s3:GetBucketVersioning", "s3:PutBucketVersioning")),
    "aws_s3_bucket_server_side_encryption_configuration": (
        ANY, ("s3:GetEncryptionConfiguration", "s3:PutEncryptionConfiguration"),
    ),
    "aws_s3_bucket_public_access_block": (
        ANY, ("s3:GetBucketPublicAccessBlock", "s3:PutBucketPublicAccessBlock"),
    ),
    "aws_s3_bucket_policy": (
        ANY, ("s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"),
    ),
    "aws_s3_bucket_lifecycle_configuration": (
        ANY, ("s3:GetLifecycleConfiguration", "s3:PutLifecycleConfiguration"),
    ),
    "aws_fsx_lustre_file_system": (
        ANY,
        ("fsx:CreateFileSystem", "fsx:DeleteFileSystem", "fsx:DescribeFileSystems",
         "fsx:UpdateFileSystem", "fsx:TagResource", "fsx:ListTagsForResource"),
    ),
    "aws_fsx_data_repository_association": (
        ANY,
        ("fsx:CreateDataRepositoryAssociation", "fsx:DeleteDataRepositoryAssociation",
         "fsx:DescribeDataRepositoryAssociations"),
    ),
    "aws_kms_key": (
        ANY,
        ("kms:CreateKey", "kms:DescribeKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus",
         "kms:EnableKeyRotation", "kms:ListResourceTags", "kms:TagResource",
         "kms:ScheduleKeyDeletion"),
    ),
    "aws_kms_alias": (ANY, ("kms:CreateAlias", "kms:DeleteAlias", "kms:ListAliases")),
    "aws_cloudwatch_log_group": (
        LOGS,
        ("logs:CreateLogGroup", "logs:DeleteLogGroup", "logs:PutRetentionPolicy",
         "logs:ListTagsForResource", "logs:TagResource"),
    ),
    "aws_cloudwatch_metric_alarm": (
        ANY,
        ("cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms",
         "cloudwatch:ListTagsForResource", "cloudwatch:TagResource"),
    ),
    "aws_budgets_budget": (
        BUDGET,
        ("budgets:ModifyBudget", "budgets:ViewBudget", "budgets:ListTagsForResource",
         "budgets:TagResource"),
    ),
    "aws_sns_topic": (
        ANY,
        ("sns:CreateTopic", "sns:DeleteTopic", "sns:GetTopicAttributes",
         "sns:SetTopicAttributes", "sns:ListTagsForResource", "sns:TagResource"),
    ),
    "aws_sns_topic_subscription": (
        ANY, ("sns:Subscribe", "sns:Unsubscribe", "sns:GetSubscriptionAttributes"),
    ),
    "aws_scheduler_schedule_group": (
        HOURS,
        ("scheduler:CreateScheduleGroup", "scheduler:DeleteScheduleGroup",
         "scheduler:GetScheduleGroup", "scheduler:ListTagsForResource", "scheduler:TagResource"),
    ),
    "aws_scheduler_schedule": (
        HOUR,
        ("scheduler:CreateSchedule", "scheduler:DeleteSchedule", "scheduler:GetSchedule",
         "scheduler:UpdateSchedule"),
    ),
    "aws_secretsmanager_secret": (
        ANY,
        ("secretsmanager:CreateSecret", "secretsmanager:DeleteSecret",
         "secretsmanager:DescribeSecret", "secretsmanager:TagResource"),
    ),
}  # fmt: skip

_OWN_VPC = (
    "aws_vpc",
    "aws_subnet",
    "aws_internet_gateway",
    "aws_eip",
    "aws_nat_gateway",
    "aws_route_table",
    "aws_route",
    "aws_route_table_association",
    "aws_default_security_group",
    "aws_vpc_endpoint",
    "aws_flow_log",
    "aws_cloudwatch_log_group",
    "aws_iam_role_policy",
)
_ALWAYS = (
    "aws_security_group",
    "aws_vpc_security_group_egress_rule",
    "aws_vpc_security_group_ingress_rule",
    "aws_iam_role",
    "aws_iam_role_policy_attachment",
)
_HOSTS = ("aws_instance", "aws_iam_instance_profile")
_EKS = (
    "aws_launch_template",
    "aws_eks_cluster",
    "aws_eks_node_group",
    "aws_eks_addon",
    "aws_eks_pod_identity_association",
    "aws_autoscaling_group_tag",
    "aws_iam_role_policy",
    "aws_kms_key",
    "aws_cloudwatch_log_group",
)
#: How Ansible and the smoke run reach a machine that nobody can connect to from outside.
TUNNEL = (
    "ec2-instance-connect:SendSSHPublicKey",
    "ssm:DescribeInstanceInformation",
    "ssm:StartSession",
    "ssm:TerminateSession",
)

#: What preflight itself may ask, all of it reading. docs/preflight.md shows it as a policy.
PREFLIGHT = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeAddresses",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNatGateways",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "eks:DescribeClusterVersions",
    "iam:GetRole",
    "iam:SimulatePrincipalPolicy",
    "pricing:GetProducts",
    "s3:ListBucket",
    "secretsmanager:DescribeSecret",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "ssm:GetParameter",
    "sts:GetCallerIdentity",
)


def types(parts: Parts) -> frozenset[str]:
    """The Terraform types that a stack of these parts uses."""
    found = {*_ALWAYS, *(_EKS if parts.eks else _HOSTS)}
    if parts.own_vpc:
        found.update(_OWN_VPC)
    if parts.placement_group:
        found.add("aws_placement_group")
    if parts.schedule:
        found |= {"aws_scheduler_schedule_group", "aws_scheduler_schedule", "aws_iam_role_policy"}
    if parts.budget:
        found.add("aws_budgets_budget")
    if parts.reads:
        found.add("aws_iam_role_policy")
    if parts.lustre:
        found.add("aws_fsx_lustre_file_system")
    return frozenset(found)


def needed(parts: Parts) -> tuple[Group, ...]:
    """The actions of a deploy, each once a resource, sorted."""
    by_resource: dict[str, set[str]] = {ANY: {*_TAGS, "ssm:GetParameter"}}
    for kind in types(parts):
        resource, actions = BY_TYPE[kind]
        by_resource.setdefault(resource, set()).update(actions)
    if LOGS in by_resource:
        by_resource[ANY].add("logs:DescribeLogGroups")
    if parts.spot:
        by_resource[ANY].add("ec2:RequestSpotInstances")
    if not parts.eks:
        by_resource[ANY].update(TUNNEL)
    machine = "node" if parts.eks else "server"
    return tuple(
        Group(resource.replace("{machine}", machine), tuple(sorted(actions)))
        for resource, actions in sorted(by_resource.items())
    )
