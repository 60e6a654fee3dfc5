"""One machine with accelerators on AWS: the ``prototype`` tier.

No way in but Session Manager; the serving port is open to the networks that the deployment names,
for the gateway in front of the engine. What differs between machine types is data
(``infra/catalog/data/instances/``).
"""

from __future__ import annotations

import json

from constructs import Construct

from infra.fleet import ResolvedFleet
from infra.lock import Image
from infra.spec.model import Aws, Deployment
from stacks.aws import resources as aws
from stacks.aws.guards import budget, reading
from stacks.aws.network import Place, place
from stacks.aws.stack import AwsStack, Settings, allow, statements, trusted
from stacks.engine import cdk

#: Where the gateway listens; engines stay on loopback.
SERVING_PORT = 8000
#: System, engine and logs; models are on the machine's own NVMe disks.
ROOT_GB = 200


class PrototypeStack(AwsStack):
    """A machine, its network and role, its schedule and its budget."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        fleet: ResolvedFleet,
        image: Image,
        *,
        settings: Settings,
    ) -> None:
        super().__init__(scope, deployment, region=fleet.region, settings=settings)
        asked = deployment.aws or Aws()
        where = place(self, asked.network, zone=fleet.zone)
        group = self._group(where, asked)
        profile = self._profile(asked)
        self.machine = self._machine(fleet, image, where, group, profile)
        self._schedule(fleet)
        budget(self, asked)
        cdk.TerraformOutput(self, "instance_id", value=self.machine.id)
        cdk.TerraformOutput(self, "private_ip", value=self.machine.private_ip)

    def _group(self, where: Place, asked: Aws) -> aws.SecurityGroup:
        group = aws.SecurityGroup(
            self,
            "server-group",
            name=self.named("server"),
            description=f"The server of {self.deployment.name}",
            vpc_id=where.vpc_id,
        )
        for number, cidr in enumerate(asked.network.clients):
            aws.VpcSecurityGroupIngressRule(
                self,
                f"clients-{number}",
                security_group_id=group.id,
                ip_protocol="tcp",
                from_port=SERVING_PORT,
                to_port=SERVING_PORT,
                description=f"Clients of {self.deployment.name}",
                cidr_ipv4=None if ":" in cidr else cidr,
                cidr_ipv6=cidr if ":" in cidr else None,
            )
        # Session Manager, packages, S3 and the model hub. Names and time come from the VPC itself.
        for name, port, why in (
            ("https", 443, "Session Manager, S3, model hub, packages"),
            ("http", 80, "Package mirrors of the distribution, which are signed"),
        ):
            aws.VpcSecurityGroupEgressRule(
                self,
                f"out-{name}",
                security_group_id=group.id,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
                cidr_ipv4="0.0.0.0/0",
                description=why,
            )
        return group

    def _profile(self, asked: Aws) -> aws.IamInstanceProfile:
        role = aws.IamRole(
            self,
            "server-role",
            name=self.named("server"),
            assume_role_policy=json.dumps(trusted("ec2.amazonaws.com")),
        )
        aws.IamRolePolicyAttachment(
            self,
            "session-manager",
            role=role.name,
            policy_arn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
        )
        reading(self, asked, role)
        return aws.IamInstanceProfile(
            self, "server-profile", name=self.named("server"), role=role.name
        )

    def _machine(
        self,
        fleet: ResolvedFleet,
        image: Image,
        where: Place,
        group: aws.SecurityGroup,
        profile: aws.IamInstanceProfile,
    ) -> aws.Instance:
        return aws.Instance(
            self,
            "server",
            ami=image.id,
            instance_type=fleet.instance.name,
            subnet_id=where.machines,
            vpc_security_group_ids=[group.id],
            associate_public_ip_address=False,
            iam_instance_profile=profile.name,
            disable_api_termination=self.protected,
            ebs_optimized=True,
            monitoring=True,
            metadata_options=aws.InstanceMetadataOptions(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
            ),
            root_block_device=aws.InstanceRootBlockDevice(
                volume_type="gp3",
                volume_size=ROOT_GB,
                encrypted=True,
                tags={**self.common_tags(), "Name": self.named("server")},
            ),
            instance_market_options=_market(fleet),
            capacity_reservation_specification=_reservation(fleet),
            lifecycle={"prevent_destroy": True} if self.protected else None,
        )

    def _schedule(self, fleet: ResolvedFleet) -> None:
        """Start and stop the machine by the clock; its disk and address stay."""
        if fleet.schedule is None:
            return
        group = aws.SchedulerScheduleGroup(self, "hours", name=self.named("hours"))
        role = aws.IamRole(
            self,
            "hours-role",
            name=self.named("hours"),
            assume_role_policy=json.dumps(
                trusted(
                    "scheduler.amazonaws.com",
                    condition={"ArnLike": {"aws:SourceArn": group.arn}},
                )
            ),
        )
        aws.IamRolePolicy(
            self,
            "hours-policy",
            name="start-and-stop",
            role=role.name,
            policy=json.dumps(
                statements(allow(["ec2:StartInstances", "ec2:StopInstances"], [self.machine.arn]))
            ),
        )
        for action, when in (
            ("start", fleet.schedule.start_cron),
            ("stop", fleet.schedule.stop_cron),
        ):
            aws.SchedulerSchedule(
                self,
                f"{action}-hour",
                name=self.named(action),
                group_name=group.name,
                schedule_expression=when,
                schedule_expression_timezone=fleet.schedule.zone,
                flexible_time_window=aws.SchedulerScheduleFlexibleTimeWindow(mode="OFF"),
                target=aws.SchedulerScheduleTarget(
                    arn=f"arn:aws:scheduler:::aws-sdk:ec2:{action}Instances",
                    role_arn=role.arn,
                    input=json.dumps({"InstanceIds": [self.machine.id]}),
                ),
            )


def _market(fleet: ResolvedFleet) -> aws.InstanceInstanceMarketOptions | None:
    if fleet.buy == "spot":
        return aws.InstanceInstanceMarketOptions(
            market_type="spot",
            # Stopped, not lost, when AWS takes the machine back.
            spot_options=aws.InstanceInstanceMarketOptionsSpotOptions(
                instance_interruption_behavior="stop", spot_instance_type="persistent"
            ),
        )
    if fleet.buy == "capacity_block":
        return aws.InstanceInstanceMarketOptions(market_type="capacity-block")
    return None


def _reservation(fleet: ResolvedFleet) -> aws.InstanceCapacityReservationSpecification | None:
    if fleet.reservation is None:
        return None
    return aws.InstanceCapacityReservationSpecification(
        capacity_reservation_target=aws.InstanceCapacityReservationSpecificationCapacityReservationTarget(
            capacity_reservation_id=fleet.reservation
        )
    )
