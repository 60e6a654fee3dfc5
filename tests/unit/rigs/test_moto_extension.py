"""The test AWS: each operation that we added to moto answers as botocore's model of AWS says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.rigs.aws import images
from tests.rigs.aws.extension import OPERATIONS, registry
from tests.rigs.aws.fixtures import aws, aws_server  # noqa: F401
from tests.rigs.aws.rig import AwsRig

ROLE = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "eks.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(aws: AwsRig) -> Ask:  # noqa: F811
    """Call an operation by its name; what botocore parsed from the answer."""
    from botocore import xform_name

    clients: dict[str, Any] = {}

    def call(service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        client = clients.setdefault(service, aws.client(service))
        answer: dict[str, Any] = getattr(client, xform_name(operation))(**arguments)
        del answer["ResponseMetadata"]
        called.add((service, operation))
        return answer

    return call


#: Filled by ``ask``; the last test sees whether one was left out.
called: set[tuple[str, str]] = set()


def test_placement_groups_have_unique_names_tags_and_can_be_deleted(ask: Ask) -> None:
    made = ask(
        "ec2",
        "CreatePlacementGroup",
        GroupName="ring",
        Strategy="cluster",
        TagSpecifications=[
            {"ResourceType": "placement-group", "Tags": [{"Key": "a", "Value": "b"}]}
        ],
    )["PlacementGroup"]
    (seen,) = ask("ec2", "DescribePlacementGroups", GroupNames=["ring"])["PlacementGroups"]
    assert seen == made
    assert seen["Tags"] == [{"Key": "a", "Value": "b"}]
    tagged = [{"Name": "tag:a", "Values": ["b"]}]
    assert ask("ec2", "DescribePlacementGroups", Filters=tagged)["PlacementGroups"] == [made]
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Duplicate"):
        ask("ec2", "CreatePlacementGroup", GroupName="ring", Strategy="cluster")
    ask("ec2", "DeletePlacementGroup", GroupName="ring")
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        ask("ec2", "DescribePlacementGroups", GroupNames=["ring"])


def test_a_capacity_reservation_lives_until_it_is_cancelled(ask: Ask) -> None:
    made = ask(
        "ec2",
        "CreateCapacityReservation",
        InstanceType="p4d.24xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="us-east-1a",
        InstanceCount=2,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]
    key = made["CapacityReservationId"]
    assert (made["State"], made["AvailableInstanceCount"]) == ("active", 2)
    assert made["AvailabilityZoneId"].startswith("use1-az")
    ask("ec2", "ModifyCapacityReservation", CapacityReservationId=key, InstanceCount=3)
    ask("ec2", "CancelCapacityReservation", CapacityReservationId=key)
    (seen,) = ask(
        "ec2",
        "DescribeCapacityReservations",
        Filters=[{"Name": "state", "Values": ["cancelled"]}],
    )["CapacityReservations"]
    assert (seen["CapacityReservationId"], seen["TotalInstanceCount"]) == (key, 3)
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        ask("ec2", "DescribeCapacityReservations", CapacityReservationIds=["cr-none"])


def test_a_capacity_block_is_bought_from_an_offering(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    (offering,) = ask(
        "ec2",
        "DescribeCapacityBlockOfferings",
        InstanceType="p5.48xlarge",
        InstanceCount=4,
        CapacityDurationHours=48,
    )["CapacityBlockOfferings"]
    assert (offering["StartDate"].hour, offering["StartDate"].minute) == (11, 30)
    bought = ask(
        "ec2",
        "PurchaseCapacityBlock",
        CapacityBlockOfferingId=offering["CapacityBlockOfferingId"],
        InstancePlatform="Linux/UNIX",
    )["CapacityReservation"]
    assert (bought["ReservationType"], bought["State"]) == ("capacity-block", "scheduled")
    assert bought["EndDate"] == offering["EndDate"]
    key = bought["CapacityReservationId"]
    aws.set(reservations={key: {"State": "active", "AvailableInstanceCount": 1}})
    (seen,) = ask("ec2", "DescribeCapacityReservations", CapacityReservationIds=[key])[
        "CapacityReservations"
    ]
    assert (seen["State"], seen["AvailableInstanceCount"]) == ("active", 1)


def test_an_instance_keeps_an_interface_on_each_network_card(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    ec2 = aws.client("ec2")
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    cards = [
        {
            "NetworkCardIndex": card,
            "DeviceIndex": 0 if card == 0 else 1,
            "InterfaceType": "efa",
            "SubnetId": subnet,
            "DeleteOnTermination": True,
        }
        for card in range(4)
    ]
    run = ec2.run_instances(
        ImageId=next(iter(images.images())),
        InstanceType="p4d.24xlarge",
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=cards,
    )
    key = run["Instances"][0]["InstanceId"]
    (seen,) = ec2.describe_instances(InstanceIds=[key])["Reservations"][0]["Instances"]
    places = {
        (one["Attachment"]["NetworkCardIndex"], one["Attachment"]["DeviceIndex"])
        for one in seen["NetworkInterfaces"]
    }
    assert places == {(0, 0), (1, 1), (2, 1), (3, 1)}
    on = ask("ec2", "MonitorInstances", InstanceIds=[key])["InstanceMonitorings"]
    assert on == [{"InstanceId": key, "Monitoring": {"State": "enabled"}}]
    off = ask("ec2", "UnmonitorInstances", InstanceIds=[key])["InstanceMonitorings"]
    assert off[0]["Monitoring"] == {"State": "disabled"}


def test_a_launch_template_keeps_its_cards_and_its_own_tags_apart(aws: AwsRig) -> None:  # noqa: F811
    ec2 = aws.client("ec2")
    cards = [
        {"NetworkCardIndex": card, "DeviceIndex": 0 if card == 0 else 1, "InterfaceType": "efa"}
        for card in range(4)
    ]
    ec2.create_launch_template(
        LaunchTemplateName="gpu",
        LaunchTemplateData={
            "InstanceType": "p4d.24xlarge",
            "NetworkInterfaces": cards,
            "Placement": {"GroupName": "ring"},
        },
        TagSpecifications=[
            {"ResourceType": "launch-template", "Tags": [{"Key": "a", "Value": "b"}]}
        ],
    )
    (version,) = ec2.describe_launch_template_versions(LaunchTemplateName="gpu")[
        "LaunchTemplateVersions"
    ]
    data = version["LaunchTemplateData"]
    assert data["NetworkInterfaces"] == cards
    assert data["Placement"] == {"GroupName": "ring"}
    assert "TagSpecifications" not in data


def test_quotas_are_what_the_test_sets(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    code = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}
    assert ask("service-quotas", "GetServiceQuota", **code)["Quota"]["Value"] == 384
    aws.set(quotas={"ec2": {"L-417A185B": 96}})
    assert ask("service-quotas", "GetServiceQuota", **code)["Quota"]["Value"] == 96
    assert ask("service-quotas", "GetAWSDefaultServiceQuota", **code)["Quota"]["Value"] == 384
    listed = ask("service-quotas", "ListServiceQuotas", ServiceCode="ec2")["Quotas"]
    assert {one["QuotaCode"]: one["Value"] for one in listed}["L-417A185B"] == 96
    with pytest.raises(ClientError, match="NoSuchResource"):
        ask("service-quotas", "GetServiceQuota", ServiceCode="ec2", QuotaCode="L-00000000")


def test_prices_are_found_by_type_and_are_what_the_test_sets(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    import json

    filters = [
        {"Type": "TERM_MATCH", "Field": "instanceType", "Value": "p4d.24xlarge"},
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"},
        {"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Shared"},
    ]
    aws.set(prices={"p4d.24xlarge": "20.5"})
    (text,) = ask("pricing", "GetProducts", ServiceCode="AmazonEC2", Filters=filters)["PriceList"]
    (term,) = json.loads(text)["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    assert (dimension["unit"], dimension["pricePerUnit"]) == ("Hrs", {"USD": "20.5"})
    assert ask("pricing", "DescribeServices", ServiceCode="AmazonEC2")["Services"]


def test_public_parameters_name_images_that_are_there(aws: AwsRig) -> None:  # noqa: F811
    ssm, ec2 = aws.client("ssm"), aws.client("ec2")
    base = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/nvidia/recommended"
    version = ssm.get_parameter(Name=f"{base}/release_version")["Parameter"]
    assert version["Value"] == f"1.33.5-{images.IMAGE_DATE}"
    name = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest"
    image = ssm.get_parameter(Name=f"{name}/ami-id")["Parameter"]["Value"]
    (seen,) = ec2.describe_images(ImageIds=[image])["Images"]
    assert seen["Name"].startswith("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)")
    aws.set(parameters={f"{name}/ami-id": "ami-0fedcba9876543210", f"{base}/release_version": None})
    changed = ssm.get_parameter(Name=f"{name}/ami-id")["Parameter"]
    assert (changed["Value"], changed["Version"]) == ("ami-0fedcba9876543210", 2)
    with pytest.raises(ClientError, match="ParameterNotFound"):
        ssm.get_parameter(Name=f"{base}/release_version")


def test_simulated_permissions_are_denied_by_the_test(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    aws.set(denied=["ec2:RunInstances"])
    results = ask(
        "iam",
        "SimulatePrincipalPolicy",
        PolicySourceArn="arn:aws:iam::123456789012:user/somebody",
        ActionNames=["ec2:RunInstances", "ec2:DescribeVpcs"],
    )["EvaluationResults"]
    assert [one["EvalDecision"] for one in results] == ["implicitDeny", "allowed"]


@pytest.fixture
def cluster(aws: AwsRig) -> str:  # noqa: F811
    import json

    iam, eks, ec2 = aws.client("iam"), aws.client("eks"), aws.client("ec2")
    role = iam.create_role(RoleName="cluster", AssumeRolePolicyDocument=json.dumps(ROLE))
    subnets = [one["SubnetId"] for one in ec2.describe_subnets()["Subnets"][:2]]
    eks.create_cluster(
        name="c",
        version="1.33",
        roleArn=role["Role"]["Arn"],
        resourcesVpcConfig={"subnetIds": subnets},
        accessConfig={"authenticationMode": "API"},
    )
    seen = eks.describe_cluster(name="c")["cluster"]
    assert seen["accessConfig"]["authenticationMode"] == "API"
    return "c"


def test_add_ons(ask: Ask, cluster: str) -> None:
    where = {"clusterName": cluster, "addonName": "vpc-cni"}
    made = ask("eks", "CreateAddon", **where, tags={"a": "b"})["addon"]
    assert made["status"] == "ACTIVE"
    assert ask("eks", "ListAddons", clusterName=cluster)["addons"] == ["vpc-cni"]
    update = ask("eks", "UpdateAddon", **where, addonVersion="v9.9.9-eksbuild.1")["update"]
    done = ask("eks", "DescribeUpdate", name=cluster, updateId=update["id"])["update"]
    assert done["status"] == "Successful"
    seen = ask("eks", "DescribeAddon", **where)["addon"]
    assert (seen["addonVersion"], seen["tags"]) == ("v9.9.9-eksbuild.1", {"a": "b"})
    with pytest.raises(ClientError, match="ResourceInUseException"):
        ask("eks", "CreateAddon", **where)
    assert ask("eks", "DeleteAddon", **where)["addon"]["status"] == "DELETING"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        ask("eks", "DescribeAddon", **where)
    (listed,) = ask("eks", "DescribeAddonVersions", addonName="coredns")["addons"]
    assert listed["addonVersions"][0]["compatibilities"]
    assert ask("eks", "DescribeClusterVersions")["clusterVersions"]


def test_access_entries_and_their_policies(ask: Ask, cluster: str) -> None:
    where = {"clusterName": cluster, "principalArn": "arn:aws:iam::123456789012:role/admin"}
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    made = ask("eks", "CreateAccessEntry", **where)["accessEntry"]
    assert ask("eks", "DescribeAccessEntry", **where)["accessEntry"] == made
    assert ask("eks", "ListAccessEntries", clusterName=cluster)["accessEntries"] == [
        where["principalArn"]
    ]
    ask("eks", "AssociateAccessPolicy", **where, policyArn=policy, accessScope={"type": "cluster"})
    (seen,) = ask("eks", "ListAssociatedAccessPolicies", **where)["associatedAccessPolicies"]
    assert seen["policyArn"] == policy
    ask("eks", "DisassociateAccessPolicy", **where, policyArn=policy)
    assert not ask("eks", "ListAssociatedAccessPolicies", **where)["associatedAccessPolicies"]
    ask("eks", "DeleteAccessEntry", **where)
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        ask("eks", "DescribeAccessEntry", **where)


def test_pod_identities(ask: Ask, cluster: str) -> None:
    made = ask(
        "eks",
        "CreatePodIdentityAssociation",
        clusterName=cluster,
        namespace="ns",
        serviceAccount="sa",
        roleArn="arn:aws:iam::123456789012:role/r",
    )["association"]
    where = {"clusterName": cluster, "associationId": made["associationId"]}
    assert ask("eks", "DescribePodIdentityAssociation", **where)["association"] == made
    assert len(ask("eks", "ListPodIdentityAssociations", clusterName=cluster)["associations"]) == 1
    ask("eks", "DeletePodIdentityAssociation", **where)
    assert not ask("eks", "ListPodIdentityAssociations", clusterName=cluster)["associations"]


def test_versions_of_clusters_and_node_groups_change_at_once(
    aws: AwsRig,  # noqa: F811
    ask: Ask,
    cluster: str,
) -> None:
    eks = aws.client("eks")
    subnets = eks.describe_cluster(name=cluster)["cluster"]["resourcesVpcConfig"]["subnetIds"]
    eks.create_nodegroup(
        clusterName=cluster,
        nodegroupName="gpu",
        subnets=subnets,
        nodeRole="arn:aws:iam::123456789012:role/cluster",
    )
    ask("eks", "UpdateClusterVersion", name=cluster, version="1.34")
    ask("eks", "UpdateNodegroupVersion", clusterName=cluster, nodegroupName="gpu", version="1.34")
    assert eks.describe_cluster(name=cluster)["cluster"]["version"] == "1.34"
    group = eks.describe_nodegroup(clusterName=cluster, nodegroupName="gpu")["nodegroup"]
    assert (group["version"], group["updateConfig"]) == ("1.34", {"maxUnavailable": 1})


def test_budgets_have_subscribers_tags_and_can_change(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    budgets = aws.client("budgets")
    account = "123456789012"
    notification = {
        "NotificationType": "ACTUAL",
        "ComparisonOperator": "GREATER_THAN",
        "Threshold": 80,
        "ThresholdType": "PERCENTAGE",
    }
    budget = {
        "BudgetName": "b",
        "BudgetLimit": {"Amount": "100", "Unit": "USD"},
        "TimeUnit": "MONTHLY",
        "BudgetType": "COST",
    }
    budgets.create_budget(
        AccountId=account,
        Budget=budget,
        NotificationsWithSubscribers=[
            {
                "Notification": notification,
                "Subscribers": [{"SubscriptionType": "EMAIL", "Address": "a@example.com"}],
            }
        ],
        ResourceTags=[{"Key": "a", "Value": "b"}],
    )
    where = {"AccountId": account, "BudgetName": "b", "Notification": notification}
    other = {"SubscriptionType": "EMAIL", "Address": "b@example.com"}
    ask("budgets", "CreateSubscriber", **where, Subscriber=other)
    seen = ask("budgets", "DescribeSubscribersForNotification", **where)["Subscribers"]
    assert [one["Address"] for one in seen] == ["a@example.com", "b@example.com"]
    ask("budgets", "DeleteSubscriber", **where, Subscriber=other)
    assert len(ask("budgets", "DescribeSubscribersForNotification", **where)["Subscribers"]) == 1
    changed = budget | {"BudgetLimit": {"Amount": "200", "Unit": "USD"}}
    ask("budgets", "UpdateBudget", AccountId=account, NewBudget=changed)
    limit = budgets.describe_budget(AccountId=account, BudgetName="b")["Budget"]["BudgetLimit"]
    assert float(limit["Amount"]) == 200
    arn = f"arn:aws:budgets::{account}:budget/b"
    ask("budgets", "TagResource", ResourceARN=arn, ResourceTags=[{"Key": "c", "Value": "d"}])
    ask("budgets", "UntagResource", ResourceARN=arn, ResourceTagKeys=["a"])
    tags = ask("budgets", "ListTagsForResource", ResourceARN=arn)["ResourceTags"]
    assert tags == [{"Key": "c", "Value": "d"}]


def test_a_lustre_file_system_is_available_and_whole(aws: AwsRig, ask: Ask) -> None:  # noqa: F811
    fsx, ec2 = aws.client("fsx"), aws.client("ec2")
    subnet = ec2.describe_subnets()["Subnets"][0]
    key = fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[subnet["SubnetId"]],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
    )["FileSystem"]["FileSystemId"]
    (seen,) = fsx.describe_file_systems(FileSystemIds=[key])["FileSystems"]
    assert (seen["Lifecycle"], seen["VpcId"]) == ("AVAILABLE", subnet["VpcId"])
    assert seen["LustreConfiguration"]["DeploymentType"] == "PERSISTENT_2"
    grown = ask("fsx", "UpdateFileSystem", FileSystemId=key, StorageCapacity=2400)["FileSystem"]
    assert grown["StorageCapacity"] == 2400


def test_what_aws_does_not_have_is_an_error_of_the_rig() -> None:
    from moto.core.utils import get_service_model

    shape = get_service_model("ec2").operation_model("CreatePlacementGroup").output_shape
    good = {"PlacementGroup": {"GroupName": "a", "PartitionCount": 1}}
    registry.check(good, shape)
    for wrong in (
        {"PlacementGroup": {"GroupNames": "a"}},
        {"PlacementGroup": {"PartitionCount": "1"}},
        {"PlacementGroup": {"Strategy": "anywhere"}},
        {"PlacementGroup": ["a"]},
    ):
        with pytest.raises(AssertionError):
            registry.check(wrong, shape)


def test_faults_slow_calls_refuse_them_and_lose_answers(aws: AwsRig) -> None:  # noqa: F811
    ec2 = aws.client("ec2")
    aws.faults(
        {"service": "ec2", "action": "CreateVpc", "status": 503, "code": "RequestLimitExceeded"},
        {"service": "ec2", "action": "CreateSubnet", "delay_s": 0.5},
    )
    before = len(ec2.describe_vpcs()["Vpcs"])
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        ec2.create_vpc(CidrBlock="10.0.0.0/16")
    assert len(ec2.describe_vpcs()["Vpcs"]) == before
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    start = time.monotonic()
    ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
    assert time.monotonic() - start >= 0.5
    aws.faults({"service": "ec2", "action": "CreateVpc", "status": 500, "when": "after"})
    with pytest.raises(ClientError, match="InternalError"):
        ec2.create_vpc(CidrBlock="10.1.0.0/16")
    assert len(ec2.describe_vpcs()["Vpcs"]) == before + 2
    assert [one["action"] for one in aws.calls()][-1] == "DescribeVpcs"


def test_every_added_operation_was_called_above(request: pytest.FixtureRequest) -> None:
    if len(request.session.items) < 15:
        pytest.skip("only when the whole module runs")
    assert set(OPERATIONS) == called
