"""How to find, in an account, an object that a stack was going to create; and its import id.

A finder gets a resource's arguments with every reference filled in. By tags where tags are given
at creation; by name where names are unique; by what it hangs on where it has neither. It answers
with what is there: whose it is, ``infra.aws.adopt`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from infra.aws.faults import code_of
from infra.aws.session import client

STACK_TAG = "specrack:stack"
ADDRESS_TAG = "specrack:address"


@dataclass(frozen=True, slots=True)
class Found:
    """An object. ``attributes``: what other resources refer to; ``tags`` is None where the object
    cannot have any, so that it is ours when its parent is; ``pending``: AWS still makes it."""

    import_id: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] | None = None
    created: datetime | None = None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """Whose objects, and where."""

    region: str
    account: str
    partition: str
    stack_key: str

    def client(self, service: str) -> Any:
        return client(service, self.region)


Arguments = Mapping[str, Any]
Finder = Callable[[Where, str, Arguments], Iterator[Found]]
FINDERS: dict[str, Finder] = {}

#: Created again, these find what is there and change nothing: AWS's calls for them set a value.
HARMLESS = frozenset(
    {
        "aws_autoscaling_group_tag",
        "aws_cloudwatch_metric_alarm",
        "aws_default_security_group",
        "aws_eks_access_policy_association",
        "aws_iam_role_policy",
        "aws_iam_role_policy_attachment",
        "aws_s3_bucket_lifecycle_configuration",
        "aws_s3_bucket_policy",
        "aws_s3_bucket_public_access_block",
        "aws_s3_bucket_server_side_encryption_configuration",
        "aws_s3_bucket_versioning",
        "aws_sns_topic",
        "aws_sns_topic_subscription",
    }
)


def finder(kind: str) -> Callable[[Finder], Finder]:
    """Declare the finder of a resource type."""

    def declare(found: Finder) -> Finder:
        FINDERS[kind] = found
        return found

    return declare


def tags_of(items: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """A list of tags, or a mapping, as a dict."""
    if isinstance(items, Mapping):
        return {str(name): str(text) for name, text in items.items()}
    return {str(one[key]): str(one.get(value, "")) for one in items or []}


def moment(value: Any) -> datetime | None:
    """A time of AWS's, in UTC. Some services give seconds or milliseconds."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    return None


def absent(error: ClientError) -> bool:
    """Does the error say that there is no such object?"""
    code = code_of(error)
    return (
        "NotFound" in code or "NoSuch" in code or code in ("404", "InvalidPlacementGroup.Unknown")
    )


def one(call: Callable[..., Any], **arguments: Any) -> dict[str, Any] | None:
    """The answer to a question for one object, or None when there is no such object."""
    try:
        answer: dict[str, Any] = call(**arguments)
    except ClientError as error:
        if absent(error):
            return None
        raise
    return answer


# --- EC2, by tags -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tagged:
    """An EC2 type that takes its tags when it is created. ``states``: where it has a state, the
    ones that count, and which of them are pending. ``filters`` is misspelt in a few calls."""

    operation: str
    list_: str
    id_: str
    state: str = ""
    states: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    filters: str = "Filters"
    created: str = ""


_TAGGED: dict[str, _Tagged] = {
    "aws_vpc": _Tagged("describe_vpcs", "Vpcs", "VpcId"),
    "aws_subnet": _Tagged("describe_subnets", "Subnets", "SubnetId"),
    "aws_internet_gateway": _Tagged(
        "describe_internet_gateways", "InternetGateways", "InternetGatewayId"
    ),
    "aws_eip": _Tagged("describe_addresses", "Addresses", "AllocationId"),
    "aws_nat_gateway": _Tagged(
        "describe_nat_gateways",
        "NatGateways",
        "NatGatewayId",
        "State",
        frozenset({"pending", "available"}),
        frozenset({"pending"}),
    ),
    "aws_route_table": _Tagged("describe_route_tables", "RouteTables", "RouteTableId"),
    "aws_vpc_endpoint": _Tagged(
        "describe_vpc_endpoints",
        "VpcEndpoints",
        "VpcEndpointId",
        "State",
        frozenset({"Pending", "pending", "Available", "available", "pendingAcceptance"}),
        frozenset({"Pending", "pending"}),
    ),
    "aws_security_group": _Tagged("describe_security_groups", "SecurityGroups", "GroupId"),
    "aws_flow_log": _Tagged("describe_flow_logs", "FlowLogs", "FlowLogId", filters="Filter"),
    "aws_ec2_capacity_reservation": _Tagged(
        "describe_capacity_reservations",
        "CapacityReservations",
        "CapacityReservationId",
        "State",
        frozenset({"active", "pending", "scheduled"}),
        frozenset({"pending"}),
    ),
    "aws_placement_group": _Tagged(
        "describe_placement_groups",
        "PlacementGroups",
        "GroupName",
        "State",
        frozenset({"pending", "available"}),
        frozenset({"pending"}),
    ),
    "aws_launch_template": _Tagged(
        "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"
    ),
}


def _tag_filters(where: Where, address: str) -> list[dict[str, Any]]:
    found = [{"Name": f"tag:{STACK_TAG}", "Values": [where.stack_key]}]
    if address:
        found.append({"Name": f"tag:{ADDRESS_TAG}", "Values": [address]})
    return found


def _describe(where: Where, kind: _Tagged, address: str) -> Iterator[Found]:
    """Objects of the stack with that address; of any address when it is empty."""
    ec2 = where.client("ec2")
    filters = {kind.filters: _tag_filters(where, address)}
    if ec2.can_paginate(kind.operation):
        pages = ec2.get_paginator(kind.operation).paginate(**filters)
    else:
        pages = [getattr(ec2, kind.operation)(**filters)]
    for page in pages:
        for item in page.get(kind.list_) or []:
            state = str(item.get(kind.state, "")) if kind.state else ""
            if kind.state and state not in kind.states:
                continue
            yield Found(
                str(item[kind.id_]),
                {"id": str(item[kind.id_])},
                tags_of(item.get("Tags")),
                moment(item.get("CreateTime") or item.get("CreateDate")),
                state in kind.pending,
            )


def _by_tags(kind: _Tagged) -> Finder:
    def find(where: Where, address: str, _arguments: Arguments) -> Iterator[Found]:
        yield from _describe(where, kind, address)

    return find


for _name, _kind in _TAGGED.items():
    FINDERS[_name] = _by_tags(_kind)


@finder("aws_instance")
def _instance(where: Where, address: str, _arguments: Arguments) -> Iterator[Found]:
    pages = where.client("ec2").get_paginator("describe_instances")
    living = ["pending", "running", "stopping", "stopped"]
    filters = [*_tag_filters(where, address), {"Name": "instance-state-name", "Values": living}]
    for page in pages.paginate(Filters=filters):
        for reservation in page["Reservations"]:
            for item in reservation["Instances"]:
                key = item["InstanceId"]
                arn = f"arn:{where.partition}:ec2:{where.region}:{where.account}:instance/{key}"
                yield Found(
                    key,
                    {"id": key, "arn": arn},
                    tags_of(item.get("Tags")),
                    moment(item.get("LaunchTime")),
                    item["State"]["Name"] == "pending",
                )


def _rules(where: Where, address: str, arguments: Arguments, egress: bool) -> Iterator[Found]:
    ec2 = where.client("ec2")
    group = str(arguments["security_group_id"])
    pages = ec2.get_paginator("describe_security_group_rules").paginate(
        Filters=[{"Name": "group-id", "Values": [group]}]
    )
    for page in pages:
        for item in page["SecurityGroupRules"]:
            tags = tags_of(item.get("Tags"))
            if bool(item.get("IsEgress")) != egress:
                continue
            if tags.get(ADDRESS_TAG) == address or _same_rule(item, arguments):
                # A group of ours has no rules but ours.
                key = item["SecurityGroupRuleId"]
                yield Found(key, {"id": key}, None)


def _same_rule(item: Mapping[str, Any], arguments: Arguments) -> bool:
    protocol = str(arguments["ip_protocol"])
    if str(item.get("IpProtocol")) != protocol:
        return False
    if protocol != "-1":
        for key, mine in (("FromPort", "from_port"), ("ToPort", "to_port")):
            if str(item.get(key)) != str(arguments.get(mine)):
                return False
    other = (item.get("ReferencedGroupInfo") or {}).get("GroupId")
    theirs = (item.get("CidrIpv4"), item.get("CidrIpv6"), item.get("PrefixListId"), other)
    ours = tuple(
        arguments.get(key)
        for key in ("cidr_ipv4", "cidr_ipv6", "prefix_list_id", "referenced_security_group_id")
    )
    return tuple(x or None for x in theirs) == tuple(x or None for x in ours)


@finder("aws_vpc_security_group_ingress_rule")
def _ingress(where: Where, address: str, arguments: Arguments) -> Iterator[Found]:
    yield from _rules(where, address, arguments, egress=False)


@finder("aws_vpc_security_group_egress_rule")
def _egress(where: Where, address: str, arguments: Arguments) -> Iterator[Found]:
    yield from _rules(where, address, arguments, egress=True)


def _route_table(where: Where, arguments: Arguments) -> Mapping[str, Any] | None:
    answer = one(
        where.client("ec2").describe_route_tables, RouteTableIds=[arguments["route_table_id"]]
    )
    return answer["RouteTables"][0] if answer and answer["RouteTables"] else None


@finder("aws_route")
def _route(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    table = _route_table(where, arguments)
    names = {
        "destination_cidr_block": "DestinationCidrBlock",
        "destination_ipv6_cidr_block": "DestinationIpv6CidrBlock",
        "destination_prefix_list_id": "DestinationPrefixListId",
    }
    for ours, theirs in names.items():
        wanted = arguments.get(ours)
        for route in (table or {}).get("Routes") or []:
            if wanted and route.get(theirs) == wanted:
                yield Found(f"{arguments['route_table_id']}_{wanted}", {}, None)


@finder("aws_route_table_association")
def _association(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    table = _route_table(where, arguments)
    for link in (table or {}).get("Associations") or []:
        if link.get("SubnetId") == arguments.get("subnet_id"):
            yield Found(f"{arguments['subnet_id']}/{arguments['route_table_id']}", {}, None)


# --- IAM, by name -------------------------------------------------------------------------------


@finder("aws_iam_role")
def _role(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    if answer := one(where.client("iam").get_role, RoleName=arguments["name"]):
        role = answer["Role"]
        yield Found(
            role["RoleName"],
            {"id": role["RoleName"], "name": role["RoleName"], "arn": role["Arn"]},
            tags_of(role.get("Tags")),
            moment(role.get("CreateDate")),
        )


@finder("aws_iam_instance_profile")
def _profile(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    iam = where.client("iam")
    if answer := one(iam.get_instance_profile, InstanceProfileName=arguments["name"]):
        profile = answer["InstanceProfile"]
        name = profile["InstanceProfileName"]
        yield Found(
            name,
            {"id": name, "name": name, "arn": profile["Arn"]},
            tags_of(profile.get("Tags")),
            moment(profile.get("CreateDate")),
        )


@finder("aws_iam_policy")
def _policy(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    iam = where.client("iam")
    arn = f"arn:{where.partition}:iam::{where.account}:policy/{arguments['name']}"
    if answer := one(iam.get_policy, PolicyArn=arn):
        yield Found(
            arn,
            {"id": arn, "arn": arn, "name": str(arguments["name"])},
            tags_of(answer["Policy"].get("Tags")),
            moment(answer["Policy"].get("CreateDate")),
        )


@finder("aws_iam_openid_connect_provider")
def _oidc(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    iam = where.client("iam")
    host = str(arguments["url"]).removeprefix("https://").rstrip("/")
    arn = f"arn:{where.partition}:iam::{where.account}:oidc-provider/{host}"
    if answer := one(iam.get_open_id_connect_provider, OpenIDConnectProviderArn=arn):
        yield Found(
            arn, {"id": arn, "arn": arn}, tags_of(answer.get("Tags")),
            moment(answer.get("CreateDate")),
        )  # fmt: skip


# --- EKS ----------------------------------------------------------------------------------------


@finder("aws_eks_cluster")
def _cluster(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    if answer := one(where.client("eks").describe_cluster, name=arguments["name"]):
        cluster = answer["cluster"]
        if cluster["status"] in ("DELETING", "FAILED"):
            return
        name = cluster["name"]
        issuer = ((cluster.get("identity") or {}).get("oidc") or {}).get("issuer", "")
        group = (cluster.get("resourcesVpcConfig") or {}).get("clusterSecurityGroupId", "")
        yield Found(
            name,
            {
                "id": name,
                "name": name,
                "arn": cluster["arn"],
                "identity[0].oidc[0].issuer": issuer,
                "vpc_config[0].cluster_security_group_id": group,
            },
            tags_of(cluster.get("tags")),
            moment(cluster.get("createdAt")),
            cluster["status"] == "CREATING",
        )


@finder("aws_eks_node_group")
def _node_group(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    cluster, name = arguments["cluster_name"], arguments["node_group_name"]
    eks = where.client("eks")
    if answer := one(eks.describe_nodegroup, clusterName=cluster, nodegroupName=name):
        group = answer["nodegroup"]
        if group["status"] == "DELETING":
            return
        key = f"{cluster}:{name}"
        yield Found(
            key,
            {"id": key, "arn": group["nodegroupArn"]},
            tags_of(group.get("tags")),
            moment(group.get("createdAt")),
            group["status"] == "CREATING",
        )


@finder("aws_eks_addon")
def _addon(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    cluster, name = arguments["cluster_name"], arguments["addon_name"]
    if answer := one(where.client("eks").describe_addon, clusterName=cluster, addonName=name):
        addon = answer["addon"]
        if addon["status"] == "DELETING":
            return
        key = f"{cluster}:{name}"
        yield Found(
            key,
            {"id": key, "arn": addon["addonArn"]},
            tags_of(addon.get("tags")),
            moment(addon.get("createdAt")),
            addon["status"] == "CREATING",
        )


@finder("aws_eks_access_entry")
def _access_entry(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    cluster, principal = arguments["cluster_name"], arguments["principal_arn"]
    eks = where.client("eks")
    if answer := one(eks.describe_access_entry, clusterName=cluster, principalArn=principal):
        entry = answer["accessEntry"]
        key = f"{cluster}:{principal}"
        yield Found(key, {"id": key}, tags_of(entry.get("tags")), moment(entry.get("createdAt")))


@finder("aws_eks_pod_identity_association")
def _pod_identity(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    cluster = arguments["cluster_name"]
    pages = (
        where.client("eks")
        .get_paginator("list_pod_identity_associations")
        .paginate(
            clusterName=cluster,
            namespace=arguments["namespace"],
            serviceAccount=arguments["service_account"],
        )
    )
    for page in pages:
        for item in page["associations"]:
            same = (item["namespace"], item["serviceAccount"]) == (
                arguments["namespace"],
                arguments["service_account"],
            )
            if same:
                # One account of a cluster of ours has one association.
                yield Found(f"{cluster},{item['associationId']}", {}, None)


# --- storage, logs, money, schedules ------------------------------------------------------------


@finder("aws_s3_bucket")
def _bucket(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    s3 = where.client("s3")
    name = str(arguments["bucket"])
    for page in s3.get_paginator("list_buckets").paginate():
        for item in page["Buckets"]:
            if item["Name"] != name:
                continue
            answer = one(s3.get_bucket_tagging, Bucket=name)
            yield Found(
                name,
                {"id": name, "bucket": name, "arn": f"arn:{where.partition}:s3:::{name}"},
                tags_of(answer["TagSet"] if answer else None),
                moment(item.get("CreationDate")),
            )


@finder("aws_fsx_lustre_file_system")
def _lustre(where: Where, address: str, _arguments: Arguments) -> Iterator[Found]:
    pages = where.client("fsx").get_paginator("describe_file_systems").paginate()
    for page in pages:
        for item in page["FileSystems"]:
            tags = tags_of(item.get("Tags"))
            mine = (tags.get(STACK_TAG), tags.get(ADDRESS_TAG)) == (where.stack_key, address)
            if mine and item.get("Lifecycle") in ("CREATING", "AVAILABLE", "UPDATING"):
                key = item["FileSystemId"]
                yield Found(
                    key,
                    {"id": key, "arn": item["ResourceARN"], "dns_name": item.get("DNSName", "")},
                    tags,
                    moment(item.get("CreationTime")),
                    item["Lifecycle"] == "CREATING",
                )


@finder("aws_fsx_data_repository_association")
def _repository(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    pages = (
        where.client("fsx")
        .get_paginator("describe_data_repository_associations")
        .paginate(Filters=[{"Name": "file-system-id", "Values": [arguments["file_system_id"]]}])
    )
    for page in pages:
        for item in page["Associations"]:
            if item.get("FileSystemPath") == arguments.get("file_system_path") and item.get(
                "Lifecycle"
            ) in ("CREATING", "AVAILABLE", "UPDATING"):
                yield Found(item["AssociationId"], {}, None, None, item["Lifecycle"] == "CREATING")


@finder("aws_kms_key")
def _kms_key(where: Where, address: str, _arguments: Arguments) -> Iterator[Found]:
    kms = where.client("kms")
    for page in kms.get_paginator("list_keys").paginate():
        for item in page["Keys"]:
            try:
                listed = kms.list_resource_tags(KeyId=item["KeyId"])["Tags"]
            except ClientError:
                # Keys of AWS's own and of others may not be asked about; ours may.
                continue
            tags = tags_of(listed, "TagKey", "TagValue")
            if (tags.get(STACK_TAG), tags.get(ADDRESS_TAG)) != (where.stack_key, address):
                continue
            about = kms.describe_key(KeyId=item["KeyId"])["KeyMetadata"]
            if about["KeyState"] in ("Enabled", "Creating", "Disabled"):
                yield Found(
                    about["KeyId"],
                    {"id": about["KeyId"], "key_id": about["KeyId"], "arn": about["Arn"]},
                    tags,
                    moment(about.get("CreationDate")),
                    about["KeyState"] == "Creating",
                )


@finder("aws_kms_alias")
def _kms_alias(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    for page in where.client("kms").get_paginator("list_aliases").paginate():
        for item in page["Aliases"]:
            if item["AliasName"] == arguments["name"]:
                yield Found(item["AliasName"], {"id": item["AliasName"]}, None)


@finder("aws_cloudwatch_log_group")
def _log_group(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    logs = where.client("logs")
    name = str(arguments["name"])
    for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=name):
        for item in page["logGroups"]:
            if item["logGroupName"] != name:
                continue
            arn = str(item["arn"]).removesuffix(":*")
            answer = one(logs.list_tags_for_resource, resourceArn=arn)
            yield Found(
                name,
                {"id": name, "name": name, "arn": arn},
                tags_of(answer["tags"] if answer else None),
                moment(item.get("creationTime")),
            )


@finder("aws_budgets_budget")
def _budget(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    budgets = where.client("budgets")
    name = str(arguments["name"])
    if one(budgets.describe_budget, AccountId=where.account, BudgetName=name):
        arn = f"arn:{where.partition}:budgets::{where.account}:budget/{name}"
        answer = one(budgets.list_tags_for_resource, ResourceARN=arn)
        yield Found(
            f"{where.account}:{name}",
            {"id": f"{where.account}:{name}", "name": name, "arn": arn},
            tags_of(answer["ResourceTags"] if answer else None),
        )


@finder("aws_scheduler_schedule_group")
def _schedule_group(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    scheduler = where.client("scheduler")
    answer = one(scheduler.get_schedule_group, Name=arguments["name"])
    if answer and answer.get("State") != "DELETING":
        listed = one(scheduler.list_tags_for_resource, ResourceArn=answer["Arn"])
        yield Found(
            answer["Name"],
            {"id": answer["Name"], "name": answer["Name"], "arn": answer["Arn"]},
            tags_of(listed["Tags"] if listed else None),
            moment(answer.get("CreationDate")),
        )


@finder("aws_scheduler_schedule")
def _schedule(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    group = str(arguments.get("group_name") or "default")
    answer = one(where.client("scheduler").get_schedule, Name=arguments["name"], GroupName=group)
    if answer:
        # In a group of ours; schedules take no tags.
        yield Found(f"{group}/{answer['Name']}", {}, None)


@finder("aws_secretsmanager_secret")
def _secret(where: Where, _address: str, arguments: Arguments) -> Iterator[Found]:
    answer = one(where.client("secretsmanager").describe_secret, SecretId=arguments["name"])
    if answer and not answer.get("DeletedDate"):
        yield Found(
            answer["ARN"],
            {"id": answer["ARN"], "arn": answer["ARN"], "name": answer["Name"]},
            tags_of(answer.get("Tags")),
            moment(answer.get("CreatedDate")),
        )


def all_of_stack(where: Where, kind: str) -> list[Found]:
    """Every object of the stack of a type that is found by tags, whatever its address."""
    if kind == "aws_instance":
        return list(_instance(where, "", {}))
    return list(_describe(where, _TAGGED[kind], "")) if kind in _TAGGED else []


#: Types of which there may be more than one: their names are not unique.
COUNTED = frozenset({*_TAGGED, "aws_instance"} - {"aws_placement_group", "aws_launch_template"})
