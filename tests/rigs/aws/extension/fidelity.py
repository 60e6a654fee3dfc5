"""Answers of moto that differ from AWS's and that Terraform reads as drift or errors."""

from __future__ import annotations

from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import EC2Backend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance
from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.responses import EC2Response
from moto.eks.models import EKSBackend
from moto.eks.responses import EKSResponse


def _template_tags() -> None:
    """A launch template's own tags are no part of its data."""
    create = EC2Backend.create_launch_template

    def create_launch_template(self: Any, *arguments: Any, **more: Any) -> Any:
        template = create(self, *arguments, **more)
        for version in template.versions:
            kept = [
                one
                for one in version.data.pop("TagSpecifications", [])
                if one["ResourceType"] != "launch-template"
            ]
            if kept:
                version.data["TagSpecifications"] = kept
        return template

    EC2Backend.create_launch_template = create_launch_template  # type: ignore[method-assign]


def _user_data() -> None:
    """An instance without user data has no such attribute, not an empty one."""
    describe = EC2Response.describe_instance_attribute

    def describe_instance_attribute(self: Any) -> Any:
        answer = describe(self)
        value = answer.result.get("UserData")
        if isinstance(value, dict) and not str(value.get("Value") or ""):
            answer.result["UserData"] = {}
        return answer

    EC2Response.describe_instance_attribute = (  # type: ignore[method-assign]
        describe_instance_attribute
    )


def _node_groups() -> None:
    """With a launch template a node group has no disk size or remote access of its own, and it
    takes the cluster's version; moto fills in defaults, and forgets the update settings."""
    create = EKSResponse.create_nodegroup

    def create_nodegroup(self: Any) -> Any:
        answer = create(self)
        cluster = self._get_param("name")
        group = self.eks_backend.describe_nodegroup(cluster, self._get_param("nodegroupName"))
        group.update_config = self._get_param("updateConfig") or {"maxUnavailable": 1}
        group.node_repair_config = self._get_param("nodeRepairConfig")
        if not self._get_param("remoteAccess"):
            group.remote_access = None
            group.resources.pop("remoteAccessSecurityGroup", None)
        if self._get_param("launchTemplate"):
            group.disk_size = None
            group.instance_types = self._get_param("instanceTypes")
            _make_group(self, group)
        group.version = (
            self._get_param("version") or self.eks_backend.describe_cluster(cluster).version
        )
        return answer

    delete = EKSBackend.delete_nodegroup

    def delete_nodegroup(self: Any, cluster_name: str, nodegroup_name: str) -> Any:
        group = delete(self, cluster_name, nodegroup_name)
        groups = autoscaling_backends[self.account_id][self.region_name].autoscaling_groups
        for one in group.resources["autoScalingGroups"]:
            groups.pop(one["name"], None)
        return group

    EKSResponse.create_nodegroup = create_nodegroup  # type: ignore[method-assign]
    EKSBackend.delete_nodegroup = delete_nodegroup  # type: ignore[method-assign]


def _make_group(response: Any, group: Any) -> None:
    """The Auto Scaling group of a node group, which moto only names. It starts no machines."""
    backend = autoscaling_backends[response.current_account][response.region]
    sizes = group.scaling_config
    for one in group.resources["autoScalingGroups"]:
        made = backend.create_auto_scaling_group(
            name=one["name"],
            availability_zones=[],
            desired_capacity=0,
            max_size=sizes["maxSize"],
            min_size=0,
            launch_config_name="",
            launch_template={
                "LaunchTemplateId": group.launch_template["id"],
                "Version": str(group.launch_template.get("version", "$Default")),
            },
            vpc_zone_identifier=",".join(group.subnets),
            default_cooldown=None,
            health_check_period=None,
            health_check_type=None,
            load_balancers=[],
            target_group_arns=[],
            placement_group=None,
            termination_policies=[],
            tags=[],
        )
        made.min_size = sizes["minSize"]


def _groups() -> None:
    """The groups of an instance are those of its first interface; a rule that names a group has
    its description with the group."""

    def instance_groups(self: Any) -> list[Any]:
        own = self.__dict__.get("security_groups") or []
        nics = self.__dict__.get("nics") or {}
        first = nics.get(0)
        return list(own) or (list(first._group_set) if first is not None else [])

    def set_groups(self: Any, groups: list[Any]) -> None:
        self.__dict__["security_groups"] = groups

    Instance.security_groups = property(instance_groups, set_groups)

    def description(self: Any) -> str | None:
        found = self.ip_range.get("Description") or (self.source_group or {}).get("Description")
        return found or self.__dict__.get("rig_description")

    def set_description(self: Any, text: str) -> None:
        self.__dict__["rig_description"] = text

    SecurityGroupRule.description = property(  # type: ignore[assignment, method-assign]
        description, set_description
    )


def _no_address() -> None:
    """An interface without a public address has no association, not an empty one."""
    described = NetworkInterface.association.fget  # type: ignore[attr-defined]

    def association(self: Any) -> dict[str, Any] | None:
        return described(self) or None

    NetworkInterface.association = property(association)  # type: ignore[assignment]


def _clusters() -> None:
    """moto forgets how a cluster lets people in."""
    create = EKSResponse.create_cluster

    def create_cluster(self: Any) -> Any:
        answer = create(self)
        cluster = self.eks_backend.describe_cluster(self._get_param("name"))
        access = self._get_param("accessConfig") or {}
        cluster.access_config = {
            "authenticationMode": access.get("authenticationMode", "CONFIG_MAP"),
            "bootstrapClusterCreatorAdminPermissions": access.get(
                "bootstrapClusterCreatorAdminPermissions", True
            ),
        }
        for key, name in (
            ("upgradePolicy", "upgrade_policy"),
            ("zonalShiftConfig", "zonal_shift_config"),
        ):
            if self._get_param(key):
                setattr(cluster, name, self._get_param(key))
        return answer

    EKSResponse.create_cluster = create_cluster  # type: ignore[method-assign]


def install() -> None:
    _template_tags()
    _user_data()
    _no_address()
    _groups()
    _node_groups()
    _clusters()
