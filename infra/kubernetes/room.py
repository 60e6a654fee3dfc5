"""What a worker takes of its node: nearly all of it, and never more than there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from infra.catalog.hardware import Instance
from infra.errors import UnsupportedError

#: CPUs left to the kubelet, the node's own daemons and our device plugins.
CPU_LEFT, CPU_LEFT_SHARE = 2, 0.04
#: Of the memory: what the kernel takes before Kubernetes counts, and the kubelet's reserve.
MEMORY_SHARE = 0.90
#: Beside that, for daemons.
MEMORY_LEFT_GIB = 8
#: AWS's images for EFA reserve 5,128 huge pages of 2 MiB on each node: about 10 GiB.
HUGE_PAGES_GIB = 10.02
#: Of them for the worker, as in AWS's own examples for EFA.
HUGE_PAGES_MIB = 5120
#: Shared memory: NCCL's and MPI's segments, per accelerator, and Ray's object store.
SHM_GIB_PER_ACCELERATOR = 8
#: Ray's object store: requests and answers are small and stay in messages.
OBJECT_STORE_GIB = 4
#: Of the local disks, for weights, engines and logs.
CACHE_SHARE = 0.8
#: Where there are no local disks: what the node's root volume can give.
CACHE_GIB_WITHOUT_DISKS = 200


@dataclass(frozen=True, slots=True)
class Room:
    """Whole CPUs; GiB are 2**30 bytes."""

    cpus: int
    memory_gib: int
    shm_gib: int
    cache_gib: int
    huge_pages_mib: int


def room_of(instance: Instance, *, efa: bool) -> Room:
    """What one worker gets of ``instance``. Raises UnsupportedError for a machine too small."""
    cpus = (instance.vcpu or 0) - max(CPU_LEFT, math.ceil((instance.vcpu or 0) * CPU_LEFT_SHARE))
    huge = HUGE_PAGES_GIB if efa else 0.0
    memory = math.floor((instance.ram_gib or 0) * MEMORY_SHARE - huge - MEMORY_LEFT_GIB)
    # Shared memory counts as the worker's: half of it, at most.
    shm = min(instance.accelerators * SHM_GIB_PER_ACCELERATOR + OBJECT_STORE_GIB, memory // 2)
    if cpus < 1 or shm <= OBJECT_STORE_GIB:
        raise UnsupportedError(
            f"{instance.name} is too small for a worker: {instance.vcpu} vCPUs, "
            f"{instance.ram_gib} GiB"
        )
    disks_gib = (instance.local_nvme_gb or 0) * 10**9 / 2**30
    cache = math.floor(disks_gib * CACHE_SHARE) or CACHE_GIB_WITHOUT_DISKS
    return Room(
        cpus=cpus,
        memory_gib=memory,
        shm_gib=shm,
        cache_gib=cache,
        huge_pages_mib=HUGE_PAGES_MIB if efa else 0,
    )
