"""Machines joined by EFA in an EKS cluster: the ``scaled`` tier.

A small pool of CPU machines holds what a cluster needs; the pool of machines with accelerators is
made from a launch template of ours, because only that can lay out EFA interfaces and aim at a
reservation. What runs in the cluster is rendered by ``infra.kubernetes``.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from constructs import Construct

from infra.catalog.interfaces import Interface
from infra.fleet import ResolvedFleet
from infra.lock import KubernetesRelease
from infra.spec.model import Aws, Deployment
from stacks.aws import resources as aws
from stacks.aws.guards import budget, reading
from stacks.aws.network import LOG_DAYS, Place, place
from stacks.aws.stack import AwsStack, Settings, allow, statements, trusted
from stacks.aws.values import Ref
from stacks.engine import cdk

#: Ray's head, the operators, DNS: machines without accelerators.
SYSTEM_INSTANCE, SYSTEM_NODES = "m6i.xlarge", 2
#: Container images of engines are 10 to 25 GB, and several are kept.
ROOT_GB = 500
#: Labels that Kubernetes objects choose nodes by.
POOL_LABEL, GPU_POOL, SYSTEM_POOL = "specrack/pool", "gpu", "system"
#: Which service accounts stand for the two roles: (namespace, name).
AUTOSCALER_ACCOUNT = ("kube-system", "cluster-autoscaler")
ENGINE_ACCOUNT = ("specrack", "engine")

#: AWS's node images, by maker of the accelerators.
AMI_TYPES = {"nvidia": "AL2023_x86_64_NVIDIA", "aws": "AL2023_x86_64_NEURON"}
SYSTEM_AMI_TYPE = "AL2023_x86_64_STANDARD"
TAINTS = {"nvidia": "nvidia.com/gpu", "aws": "aws.amazon.com/neuron"}

CAPACITY_TYPES = {
    "on_demand": "ON_DEMAND",
    "reservation": "ON_DEMAND",
    "spot": "SPOT",
    "capacity_block": "CAPACITY_BLOCK",
}

NODE_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonSSMManagedInstanceCore",
)


class ScaledStack(AwsStack):
    """Network, cluster, pools, roles, weights and budget."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        fleet: ResolvedFleet,
        release: KubernetesRelease,
        *,
        settings: Settings,
    ) -> None:
        super().__init__(scope, deployment, region=fleet.region, settings=settings)
        self.fleet = fleet
        asked = deployment.aws or Aws()
        where = place(self, asked.network, zone=fleet.zone, zones=2)
        self.cluster = self._cluster(where, asked, release)
        node_role, policies = self._node_role()
        self._addons()
        self._system_pool(where, node_role, policies, release)
        group = self._efa_group(where)
        template = self._template(group)
        self._gpu_pool(where, node_role, policies, template, release)
        self._account_role("autoscaler", AUTOSCALER_ACCOUNT, self._autoscaler_policy)
        self._account_role("engine", ENGINE_ACCOUNT, lambda role: reading(self, asked, role))
        self._weights(where, asked)
        budget(self, asked)
        cdk.TerraformOutput(self, "cluster_name", value=self.cluster.name)
        cdk.TerraformOutput(self, "cluster_endpoint", value=self.cluster.endpoint)

    # --- the cluster -----------------------------------------------------------------------------

    def _cluster(self, where: Place, asked: Aws, release: KubernetesRelease) -> aws.EksCluster:
        role = aws.IamRole(
            self,
            "cluster-role",
            name=self.named("cluster"),
            assume_role_policy=json.dumps(trusted("eks.amazonaws.com")),
        )
        policy = aws.IamRolePolicyAttachment(
            self,
            "cluster-policy",
            role=role.name,
            policy_arn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy",
        )
        key = aws.KmsKey(
            self,
            "secrets-key",
            description=f"Secrets of the cluster of {self.deployment.name}",
            enable_key_rotation=True,
            deletion_window_in_days=30 if self.protected else 7,
        )
        # Made by us, with an end: EKS would keep its logs for ever.
        logs = aws.CloudwatchLogGroup(
            self,
            "cluster-logs",
            name=f"/aws/eks/{self.named('cluster')}/cluster",
            retention_in_days=LOG_DAYS,
        )
        operators = list(asked.network.operators)
        return aws.EksCluster(
            self,
            "cluster",
            name=self.named("cluster"),
            version=release.version,
            role_arn=role.arn,
            enabled_cluster_log_types=[
                "api", "audit", "authenticator", "controllerManager", "scheduler",
            ],
            access_config=aws.EksClusterAccessConfig(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            encryption_config=aws.EksClusterEncryptionConfig(
                resources=["secrets"],
                provider=aws.EksClusterEncryptionConfigProvider(key_arn=key.arn),
            ),
            vpc_config=aws.EksClusterVpcConfig(
                subnet_ids=[where.machines, *where.others],
                endpoint_private_access=True,
                endpoint_public_access=bool(operators),
                public_access_cidrs=operators or None,
            ),
            depends_on=[policy, logs],
            lifecycle={"prevent_destroy": True} if self.protected else None,
        )  # fmt: skip

    def _addons(self) -> None:
        for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent"):
            aws.EksAddon(self, name, cluster_name=self.cluster.name, addon_name=name)

    def _node_role(self) -> tuple[aws.IamRole, list[aws.IamRolePolicyAttachment]]:
        role = aws.IamRole(
            self,
            "node-role",
            name=self.named("node"),
            assume_role_policy=json.dumps(trusted("ec2.amazonaws.com")),
        )
        policies = [
            aws.IamRolePolicyAttachment(
                self,
                f"node-policy-{number}",
                role=role.name,
                policy_arn=f"arn:aws:iam::aws:policy/{policy}",
            )
            for number, policy in enumerate(NODE_POLICIES)
        ]
        return role, policies

    # --- pools -----------------------------------------------------------------------------------

    def _system_pool(
        self,
        where: Place,
        role: aws.IamRole,
        policies: list[aws.IamRolePolicyAttachment],
        release: KubernetesRelease,
    ) -> None:
        template = aws.LaunchTemplate(
            self,
            "system-template",
            name=self.named("system"),
            instance_type=SYSTEM_INSTANCE,
            update_default_version=True,
            metadata_options=self._metadata(),
            block_device_mappings=self._disk(100),
            tag_specifications=self._tagged("system"),
        )
        pool = aws.EksNodeGroup(
            self,
            "system-pool",
            cluster_name=self.cluster.name,
            node_group_name="system",
            node_role_arn=role.arn,
            subnet_ids=[where.machines, *where.others],
            ami_type=SYSTEM_AMI_TYPE,
            release_version=release.release_version,
            launch_template=aws.EksNodeGroupLaunchTemplate(
                id=template.id, version=template.latest_version
            ),
            scaling_config=aws.EksNodeGroupScalingConfig(
                min_size=SYSTEM_NODES, desired_size=SYSTEM_NODES, max_size=SYSTEM_NODES + 1
            ),
            update_config=aws.EksNodeGroupUpdateConfig(max_unavailable=1),
            labels={POOL_LABEL: SYSTEM_POOL},
            depends_on=policies,
        )
        aws.EksAddon(
            self,
            "coredns",
            cluster_name=self.cluster.name,
            addon_name="coredns",
            depends_on=[pool],
        )

    def _gpu_pool(
        self,
        where: Place,
        role: aws.IamRole,
        policies: list[aws.IamRolePolicyAttachment],
        template: aws.LaunchTemplate,
        release: KubernetesRelease,
    ) -> None:
        fleet = self.fleet
        pool = aws.EksNodeGroup(
            self,
            "gpu-pool",
            cluster_name=self.cluster.name,
            node_group_name="gpu",
            node_role_arn=role.arn,
            # EFA works inside one subnet.
            subnet_ids=[where.machines],
            ami_type=AMI_TYPES[fleet.accelerator_vendor],
            release_version=release.release_version,
            capacity_type=CAPACITY_TYPES[fleet.buy],
            launch_template=aws.EksNodeGroupLaunchTemplate(
                id=template.id, version=template.latest_version
            ),
            scaling_config=aws.EksNodeGroupScalingConfig(
                min_size=fleet.nodes_min, desired_size=fleet.nodes_min, max_size=fleet.nodes_max
            ),
            update_config=aws.EksNodeGroupUpdateConfig(max_unavailable=1),
            labels={POOL_LABEL: GPU_POOL},
            taint=aws.EksNodeGroupTaint(
                key=TAINTS[fleet.accelerator_vendor], value="present", effect="NO_SCHEDULE"
            ),
            depends_on=policies,
            # How many there are is the autoscaler's to say.
            lifecycle={"ignore_changes": ["scaling_config[0].desired_size"]},
        )
        # So that the autoscaler can start from no machine: it cannot look at one then.
        scaling_group = pool.resources.item(0).field("autoscaling_groups").item(0).field("name")
        aws.AutoscalingGroupTag(
            self,
            "gpu-pool-label",
            autoscaling_group_name=scaling_group,
            tag=aws.AutoscalingGroupTagTag(
                key=f"k8s.io/cluster-autoscaler/node-template/label/{POOL_LABEL}",
                value=GPU_POOL,
                propagate_at_launch=False,
            ),
        )

    def _efa_group(self, where: Place) -> aws.SecurityGroup:
        group = aws.SecurityGroup(
            self,
            "efa-group",
            name=self.named("efa"),
            description="EFA between the machines: everything, among themselves only",
            vpc_id=where.vpc_id,
        )
        aws.VpcSecurityGroupIngressRule(
            self,
            "efa-in",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA needs every protocol from its own group",
        )
        aws.VpcSecurityGroupEgressRule(
            self,
            "efa-out",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA needs every protocol to its own group",
        )
        return group

    def _template(self, group: aws.SecurityGroup) -> aws.LaunchTemplate:
        fleet = self.fleet
        cluster_group: Ref = (
            self.cluster.vpc_config.item(0).field("cluster_security_group_id")
        )  # fmt: skip
        placement = None
        if fleet.buy in ("on_demand", "reservation"):
            # With a Capacity Block, AWS places the machines; a group of ours would be in the way.
            nearby = aws.PlacementGroup(
                self, "nearby", name=self.named("nearby"), strategy="cluster"
            )
            placement = aws.LaunchTemplatePlacement(group_name=nearby.name)
        return aws.LaunchTemplate(
            self,
            "gpu-template",
            name=self.named("gpu"),
            instance_type=fleet.instance.name,
            update_default_version=True,
            metadata_options=self._metadata(),
            block_device_mappings=self._disk(ROOT_GB),
            network_interfaces=[
                _card(interface, [cluster_group, group.id]) for interface in fleet.interfaces
            ],
            placement=placement,
            capacity_reservation_specification=self._reservation(),
            instance_market_options=(
                aws.LaunchTemplateInstanceMarketOptions(market_type="capacity-block")
                if fleet.buy == "capacity_block"
                else None
            ),
            tag_specifications=self._tagged("gpu"),
        )

    def _reservation(self) -> aws.LaunchTemplateCapacityReservationSpecification | None:
        if self.fleet.reservation is None:
            return None
        target = aws.LaunchTemplateCapacityReservationSpecificationCapacityReservationTarget(
            capacity_reservation_id=self.fleet.reservation
        )
        return aws.LaunchTemplateCapacityReservationSpecification(
            capacity_reservation_target=target
        )

    def _metadata(self) -> aws.LaunchTemplateMetadataOptions:
        return aws.LaunchTemplateMetadataOptions(
            # One hop: pods get their roles from the Pod Identity agent, not from the node.
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        )  # fmt: skip

    def _disk(self, size_gb: int) -> aws.LaunchTemplateBlockDeviceMappings:
        return aws.LaunchTemplateBlockDeviceMappings(
            device_name="/dev/xvda",
            ebs=aws.LaunchTemplateBlockDeviceMappingsEbs(
                volume_type="gp3",
                volume_size=size_gb,
                encrypted="true",
                delete_on_termination="true",
            ),
        )

    def _tagged(self, pool: str) -> list[aws.LaunchTemplateTagSpecifications]:
        """Tags of what the template makes: AWS does not hand a provider's default tags on."""
        tags = {**self.common_tags(), "Name": self.named(pool)}
        return [
            aws.LaunchTemplateTagSpecifications(resource_type=kind, tags=tags)
            for kind in ("instance", "volume")
        ]

    # --- roles of service accounts ---------------------------------------------------------------

    def _account_role(
        self, what: str, account: tuple[str, str], grant: Callable[[aws.IamRole], None]
    ) -> None:
        """A role that one service account of the cluster has, through EKS Pod Identity."""
        namespace, name = account
        role = aws.IamRole(
            self,
            f"{what}-role",
            name=self.named(what),
            assume_role_policy=json.dumps(
                statements(
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": ["pods.eks.amazonaws.com"]},
                        "Action": ["sts:AssumeRole", "sts:TagSession"],
                    }
                )
            ),
        )
        grant(role)
        aws.EksPodIdentityAssociation(
            self,
            f"{what}-account",
            cluster_name=self.cluster.name,
            namespace=namespace,
            service_account=name,
            role_arn=role.arn,
        )

    def _autoscaler_policy(self, role: aws.IamRole) -> None:
        owned = {
            "StringEquals": {
                f"aws:ResourceTag/k8s.io/cluster-autoscaler/{self.named('cluster')}": "owned"
            }
        }
        aws.IamRolePolicy(
            self,
            "autoscaler-policy",
            name="scale",
            role=role.name,
            policy=json.dumps(
                statements(
                    allow(
                        [
                            "autoscaling:DescribeAutoScalingGroups",
                            "autoscaling:DescribeAutoScalingInstances",
                            "autoscaling:DescribeLaunchConfigurations",
                            "autoscaling:DescribeScalingActivities",
                            "autoscaling:DescribeTags",
                            "ec2:DescribeImages",
                            "ec2:DescribeInstanceTypes",
                            "ec2:DescribeLaunchTemplateVersions",
                            "ec2:GetInstanceTypesFromInstanceRequirements",
                        ],
                        ["*"],
                    ),
                    allow(
                        ["eks:DescribeNodegroup"],
                        [f"arn:aws:eks:{self.region}:*:nodegroup/{self.named('cluster')}/*/*"],
                    ),
                    allow(
                        [
                            "autoscaling:SetDesiredCapacity",
                            "autoscaling:TerminateInstanceInAutoScalingGroup",
                        ],
                        [f"arn:aws:autoscaling:{self.region}:*:autoScalingGroup:*"],
                        owned,
                    ),
                )
            ),
        )

    # --- weights ---------------------------------------------------------------------------------

    def _weights(self, where: Place, asked: Aws) -> None:
        """A Lustre file system in front of the bucket, where the deployment asks for one."""
        weights = asked.weights
        if weights is None or weights.lustre_gib is None:
            return
        group = aws.SecurityGroup(
            self,
            "lustre-group",
            name=self.named("lustre"),
            description="Lustre between the file system and the machines",
            vpc_id=where.vpc_id,
        )
        cluster_group = self.cluster.vpc_config.item(0).field("cluster_security_group_id")
        for name, low, high in (("service", 988, 988), ("more", 1018, 1023)):
            for source, peer in (("machines", cluster_group), ("itself", group.id)):
                aws.VpcSecurityGroupIngressRule(
                    self,
                    f"lustre-{name}-{source}",
                    security_group_id=group.id,
                    referenced_security_group_id=peer,
                    ip_protocol="tcp",
                    from_port=low,
                    to_port=high,
                    description=f"Lustre from {source}",
                )
            aws.VpcSecurityGroupEgressRule(
                self,
                f"lustre-{name}-out",
                security_group_id=group.id,
                referenced_security_group_id=group.id,
                ip_protocol="tcp",
                from_port=low,
                to_port=high,
                description="Lustre among its servers",
            )
        files = aws.FsxLustreFileSystem(
            self,
            "weights",
            storage_capacity=weights.lustre_gib,
            subnet_ids=[where.machines],
            security_group_ids=[group.id],
            # A cache: what it holds is in the bucket.
            deployment_type="SCRATCH_2",
            import_path=f"s3://{weights.bucket}/{weights.prefix}".rstrip("/"),
            data_compression_type="LZ4",
        )
        cdk.TerraformOutput(self, "weights_dns", value=files.dns_name)
        cdk.TerraformOutput(self, "weights_mount", value=files.mount_name)


def _card(interface: Interface, groups: list[str]) -> aws.LaunchTemplateNetworkInterfaces:
    return aws.LaunchTemplateNetworkInterfaces(
        network_card_index=interface.card,
        device_index=interface.device,
        interface_type=interface.kind,
        security_groups=groups,
        delete_on_termination="true",
    )
