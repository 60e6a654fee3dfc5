"""FSx for Lustre: the members that moto leaves out and that Terraform waits for or compares."""

from __future__ import annotations

import time
from typing import Any

from moto.fsx.models import FileSystem
from moto.fsx.responses import FSxResponse

from tests.rigs.aws.extension.registry import Parameters, attach, operation

#: What AWS fills in for a Lustre file system when the call does not say.
LUSTRE = {
    "MountName": "fsx",
    "DeploymentType": "SCRATCH_1",
    "WeeklyMaintenanceStartTime": "1:00:00",
    "DataCompressionType": "NONE",
    "CopyTagsToBackups": False,
    "AutomaticBackupRetentionDays": 0,
    "LogConfiguration": {"Level": "DISABLED"},
}


@operation("fsx", "UpdateFileSystem")
def update_file_system(response: Any, parameters: Parameters) -> dict[str, Any]:
    from moto.fsx.exceptions import FileSystemNotFound

    found = response.fsx_backend.file_systems.get(parameters["FileSystemId"])
    if found is None:
        raise FileSystemNotFound(parameters["FileSystemId"])
    if parameters.get("StorageCapacity"):
        found.storage_capacity = int(parameters["StorageCapacity"])
    if parameters.get("LustreConfiguration"):
        found.lustre_configuration = {
            **(found.lustre_configuration or {}),
            **parameters["LustreConfiguration"],
        }
    return {"FileSystem": found.to_dict()}


def install() -> None:
    attach(FSxResponse, "fsx")
    described = FileSystem.to_dict

    def to_dict(self: Any) -> dict[str, Any]:
        answer = described(self)
        created = self.__dict__.setdefault("rig_created", time.time())
        answer.setdefault("Lifecycle", "AVAILABLE")
        answer.setdefault("CreationTime", created)
        answer.setdefault("OwnerId", self.backend.account_id)
        answer.setdefault("StorageType", "SSD")
        answer.setdefault("NetworkInterfaceIds", [])
        answer.setdefault("VpcId", _vpc_of(self))
        if self.file_system_type == "LUSTRE":
            answer["LustreConfiguration"] = {**LUSTRE, **(self.lustre_configuration or {})}
            answer.setdefault("FileSystemTypeVersion", "2.15")
        return answer

    FileSystem.to_dict = to_dict  # type: ignore[method-assign]


def _vpc_of(file_system: Any) -> str:
    from moto.ec2.models import ec2_backends

    backend = ec2_backends[file_system.backend.account_id][file_system.backend.region_name]
    for subnet in file_system.subnet_ids or []:
        for zone in backend.subnets.values():
            if subnet in zone:
                return str(zone[subnet].vpc_id)
    return "vpc-00000000"
