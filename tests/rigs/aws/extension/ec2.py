"""Placement groups, capacity reservations and Capacity Blocks; several network cards."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_network_interfaces import Attachment
from moto.ec2.models.instances import Instance
from moto.ec2.responses import EC2Response

from tests.rigs.aws.extension import settings
from tests.rigs.aws.extension.registry import Parameters, attach, operation, store

#: Capacity Blocks start and end at this time of the day (EC2 User Guide, Capacity Blocks for ML).
BLOCK_TIME = (11, 30)


def new_id(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:17]}"


def tag(response: Any, parameters: Parameters, resource_type: str, resource_id: str) -> None:
    """Keep the tags of a creation where moto keeps all of EC2's tags."""
    for one in parameters.get("TagSpecifications") or []:
        if one.get("ResourceType") == resource_type and one.get("Tags"):
            response.ec2_backend.create_tags(
                [resource_id], {tag["Key"]: tag.get("Value", "") for tag in one["Tags"]}
            )


def tags_of(response: Any, resource_id: str) -> list[dict[str, str]]:
    found = response.ec2_backend.describe_tags(filters={"resource-id": [resource_id]})
    return [{"Key": tag["key"], "Value": tag["value"]} for tag in found]


def arn(response: Any, kind: str, name: str) -> str:
    return f"arn:aws:ec2:{response.region}:{response.current_account}:{kind}/{name}"


def wanted(parameters: Parameters, view: dict[str, Any], known: dict[str, str]) -> bool:
    """Does ``view`` pass the call's filters? ``known`` maps a filter's name to a member."""
    for one in parameters.get("Filters") or []:
        name, values = one["Name"], one.get("Values") or []
        if name.startswith("tag:"):
            tags = {tag["Key"]: tag["Value"] for tag in view.get("Tags", [])}
            if tags.get(name[4:]) not in values:
                return False
        elif name in known:
            if str(view.get(known[name], "")) not in values:
                return False
        else:
            raise EC2ClientError(
                "InvalidParameterValue", f"The filter '{name}' is invalid (rig: not known here)"
            )
    return True


# --- placement groups ---------------------------------------------------------------------------


def _group_view(response: Any, group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "Tags": tags_of(response, group["GroupId"])}


@operation("ec2", "CreatePlacementGroup")
def create_placement_group(response: Any, parameters: Parameters) -> dict[str, Any]:
    groups = store(response.ec2_backend, "placement_groups")
    name = parameters["GroupName"]
    if name in groups:
        raise EC2ClientError(
            "InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists."
        )
    group = {
        "GroupName": name,
        "GroupId": new_id("pg"),
        "State": "available",
        "Strategy": parameters.get("Strategy") or "cluster",
        "GroupArn": arn(response, "placement-group", name),
    }
    if parameters.get("PartitionCount"):
        group["PartitionCount"] = int(parameters["PartitionCount"])
    if parameters.get("SpreadLevel"):
        group["SpreadLevel"] = parameters["SpreadLevel"]
    groups[name] = group
    tag(response, parameters, "placement-group", group["GroupId"])
    return {"PlacementGroup": _group_view(response, group)}


@operation("ec2", "DescribePlacementGroups")
def describe_placement_groups(response: Any, parameters: Parameters) -> dict[str, Any]:
    groups = store(response.ec2_backend, "placement_groups")
    names, ids = parameters.get("GroupNames") or [], parameters.get("GroupIds") or []
    for name in names:
        if name not in groups:
            raise EC2ClientError(
                "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."
            )
    views = [_group_view(response, group) for group in groups.values()]
    return {
        "PlacementGroups": [
            view
            for view in views
            if (not names or view["GroupName"] in names)
            and (not ids or view["GroupId"] in ids)
            and wanted(
                parameters,
                view,
                {"group-name": "GroupName", "state": "State", "strategy": "Strategy"},
            )
        ]
    }


@operation("ec2", "DeletePlacementGroup")
def delete_placement_group(response: Any, parameters: Parameters) -> dict[str, Any]:
    name = parameters["GroupName"]
    if store(response.ec2_backend, "placement_groups").pop(name, None) is None:
        raise EC2ClientError(
            "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."
        )
    return {}


# --- capacity reservations and blocks -----------------------------------------------------------


def _reservation_view(response: Any, reservation: dict[str, Any]) -> dict[str, Any]:
    key = reservation["CapacityReservationId"]
    view = {**reservation, "Tags": tags_of(response, key)}
    view |= settings.VALUES["reservations"].get(key, {})
    return view


def _reserve(response: Any, parameters: Parameters, **more: Any) -> dict[str, Any]:
    key = new_id("cr")
    now = datetime.now(UTC)
    count = int(parameters.get("InstanceCount") or 1)
    zone = parameters["AvailabilityZone"]
    zone_ids = {one.name: one.zone_id for one in response.ec2_backend.describe_availability_zones()}
    if zone not in zone_ids:
        raise EC2ClientError("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
    reservation = {
        "CapacityReservationId": key,
        "OwnerId": response.current_account,
        "CapacityReservationArn": arn(response, "capacity-reservation", key),
        "AvailabilityZoneId": zone_ids[zone],
        "AvailabilityZone": zone,
        "InstanceType": parameters["InstanceType"],
        "InstancePlatform": parameters["InstancePlatform"],
        "Tenancy": parameters.get("Tenancy") or "default",
        "TotalInstanceCount": count,
        "AvailableInstanceCount": count,
        "EbsOptimized": bool(parameters.get("EbsOptimized")),
        "EphemeralStorage": bool(parameters.get("EphemeralStorage")),
        "State": "active",
        "StartDate": now,
        "EndDateType": parameters.get("EndDateType") or "unlimited",
        "InstanceMatchCriteria": parameters.get("InstanceMatchCriteria") or "open",
        "CreateDate": now,
        "ReservationType": "default",
    }
    for optional in ("EndDate", "PlacementGroupArn", "OutpostArn"):
        if parameters.get(optional):
            reservation[optional] = parameters[optional]
    reservation |= more
    store(response.ec2_backend, "reservations")[key] = reservation
    tag(response, parameters, "capacity-reservation", key)
    return _reservation_view(response, reservation)


def _reservation(response: Any, key: str) -> dict[str, Any]:
    found = store(response.ec2_backend, "reservations").get(key)
    if found is None:
        raise EC2ClientError(
            "InvalidCapacityReservationId.NotFound",
            f"The capacity reservation ID '{key}' does not exist",
        )
    return found  # type: ignore[no-any-return]


@operation("ec2", "CreateCapacityReservation")
def create_capacity_reservation(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {"CapacityReservation": _reserve(response, parameters)}


@operation("ec2", "DescribeCapacityReservations")
def describe_capacity_reservations(response: Any, parameters: Parameters) -> dict[str, Any]:
    ids = parameters.get("CapacityReservationIds") or []
    found = (
        [_reservation(response, key) for key in ids]
        if ids
        else list(store(response.ec2_backend, "reservations").values())
    )
    known = {
        "instance-type": "InstanceType",
        "availability-zone": "AvailabilityZone",
        "state": "State",
        "owner-id": "OwnerId",
        "instance-match-criteria": "InstanceMatchCriteria",
        "reservation-type": "ReservationType",
    }
    views = [_reservation_view(response, one) for one in found]
    return {"CapacityReservations": [one for one in views if wanted(parameters, one, known)]}


@operation("ec2", "ModifyCapacityReservation")
def modify_capacity_reservation(response: Any, parameters: Parameters) -> dict[str, Any]:
    found = _reservation(response, parameters["CapacityReservationId"])
    if parameters.get("InstanceCount"):
        used = found["TotalInstanceCount"] - found["AvailableInstanceCount"]
        found["TotalInstanceCount"] = int(parameters["InstanceCount"])
        found["AvailableInstanceCount"] = found["TotalInstanceCount"] - used
    for key in ("EndDate", "EndDateType", "InstanceMatchCriteria"):
        if parameters.get(key):
            found[key] = parameters[key]
    return {"Return": True}


@operation("ec2", "CancelCapacityReservation")
def cancel_capacity_reservation(response: Any, parameters: Parameters) -> dict[str, Any]:
    _reservation(response, parameters["CapacityReservationId"])["State"] = "cancelled"
    return {"Return": True}


@operation("ec2", "DescribeCapacityBlockOfferings")
def describe_capacity_block_offerings(response: Any, parameters: Parameters) -> dict[str, Any]:
    """One offering for what was asked: the next block of that length, in the first zone."""
    hours = int(parameters["CapacityDurationHours"])
    if hours % 24:
        raise EC2ClientError("InvalidParameterValue", "The duration must be whole days.")
    start = datetime.now(UTC).replace(
        hour=BLOCK_TIME[0], minute=BLOCK_TIME[1], second=0, microsecond=0
    ) + timedelta(days=1)
    key = new_id("cbo")
    offering = {
        "CapacityBlockOfferingId": key,
        "InstanceType": parameters.get("InstanceType") or "p4d.24xlarge",
        "AvailabilityZone": f"{response.region}a",
        "InstanceCount": int(parameters.get("InstanceCount") or 1),
        "StartDate": start,
        "EndDate": start + timedelta(hours=hours),
        "CapacityBlockDurationHours": hours,
        "UpfrontFee": "1000.00",
        "CurrencyCode": "USD",
        "Tenancy": "default",
    }
    store(response.ec2_backend, "block_offerings")[key] = offering
    return {"CapacityBlockOfferings": [offering]}


@operation("ec2", "PurchaseCapacityBlock")
def purchase_capacity_block(response: Any, parameters: Parameters) -> dict[str, Any]:
    offering = store(response.ec2_backend, "block_offerings").get(
        parameters["CapacityBlockOfferingId"]
    )
    if offering is None:
        raise EC2ClientError("InvalidParameterValue", "No such Capacity Block offering.")
    bought = _reserve(
        response,
        {
            **parameters,
            "InstanceType": offering["InstanceType"],
            "AvailabilityZone": offering["AvailabilityZone"],
            "InstanceCount": offering["InstanceCount"],
            "InstanceMatchCriteria": "targeted",
            "EndDateType": "limited",
            "EndDate": offering["EndDate"],
        },
        State="scheduled",
        StartDate=offering["StartDate"],
        ReservationType="capacity-block",
    )
    return {"CapacityReservation": bought}


# --- detailed monitoring ------------------------------------------------------------------------


def _monitor(response: Any, parameters: Parameters, state: bool) -> dict[str, Any]:
    found = []
    for key in parameters["InstanceIds"]:
        word = "enabled" if state else "disabled"
        response.ec2_backend.get_instance(key).monitoring_state = word
        found.append({"InstanceId": key, "Monitoring": {"State": word}})
    return {"InstanceMonitorings": found}


@operation("ec2", "MonitorInstances")
def monitor_instances(response: Any, parameters: Parameters) -> dict[str, Any]:
    return _monitor(response, parameters, True)


@operation("ec2", "UnmonitorInstances")
def unmonitor_instances(response: Any, parameters: Parameters) -> dict[str, Any]:
    return _monitor(response, parameters, False)


# --- several network cards ----------------------------------------------------------------------


def _keep_every_card() -> None:
    """moto keeps one interface a device index; with EFA there is one a card, so that all but
    one of cards 1-3 were lost (device index 1 on each of them, or 0 on each)."""
    attach_eni = Instance.attach_eni
    prep_nics = Instance.prep_nics

    attachment_init = Attachment.__init__

    def attachment(self: Any, eni: Any) -> None:
        attachment_init(self, eni)
        self.network_card_index = getattr(eni, "network_card_index", 0)

    def prep(self: Any, nic_spec: list[dict[str, Any]], *arguments: Any, **more: Any) -> None:
        self.rig_cards = [int(nic.get("NetworkCardIndex") or 0) for nic in nic_spec]
        prep_nics(self, nic_spec, *arguments, **more)
        self.rig_cards = []

    def attach_one(self: Any, eni: Any, device_index: int) -> str:
        card = self.rig_cards.pop(0) if getattr(self, "rig_cards", None) else 0
        eni.network_card_index = card
        if card == 0:
            return str(attach_eni(self, eni, device_index))
        before = dict(self.nics)
        key = str(attach_eni(self, eni, device_index))
        self.nics = {**before, card * 100 + int(device_index): eni}
        return key

    Attachment.__init__ = attachment  # type: ignore[method-assign]
    Instance.prep_nics = prep  # type: ignore[method-assign]
    Instance.attach_eni = attach_one  # type: ignore[method-assign]


def _hide_offerings() -> None:
    describe = EC2Response.describe_instance_type_offerings

    def describe_instance_type_offerings(self: Any) -> Any:
        answer = describe(self)
        hidden = settings.VALUES["not_offered"]
        if hidden:
            answer.result["InstanceTypeOfferings"] = [
                one
                for one in answer.result["InstanceTypeOfferings"]
                if one["InstanceType"] not in hidden.get(one["Location"], [])
            ]
        return answer

    EC2Response.describe_instance_type_offerings = (  # type: ignore[method-assign]
        describe_instance_type_offerings
    )


def _set_free_addresses() -> None:
    from moto.ec2.models.subnets import Subnet

    counted = Subnet.available_ip_address_count.fget  # type: ignore[attr-defined]

    def available(self: Any) -> int:
        return int(settings.VALUES["free_addresses"].get(self.id, counted(self)))

    Subnet.available_ip_address_count = property(available)  # type: ignore[assignment]


def install() -> None:
    attach(EC2Response, "ec2")
    _keep_every_card()
    _hide_offerings()
    _set_free_addresses()
