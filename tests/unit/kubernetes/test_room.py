"""What a worker takes of its node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog import catalog
from infra.catalog.hardware import Instance
from infra.errors import UnsupportedError
from infra.kubernetes import room
from infra.kubernetes.room import room_of

MACHINES = sorted(
    (one for one in catalog().instances.values() if one.provider == "aws" and one.accelerators),
    key=lambda one: one.name,
)


@given(st.sampled_from(MACHINES), st.booleans())
def test_no_worker_takes_more_than_its_node_can_give(instance: Instance, efa: bool) -> None:
    """Kubernetes must find room for it, or the pod waits for ever on a machine that is paid for."""
    made = room_of(instance, efa=efa)
    assert instance.vcpu is not None
    assert instance.ram_gib is not None
    assert 1 <= made.cpus <= instance.vcpu - room.CPU_LEFT
    huge_gib = room.HUGE_PAGES_GIB if efa else 0
    assert made.memory_gib + huge_gib + room.MEMORY_LEFT_GIB <= instance.ram_gib * 0.9
    assert made.shm_gib <= made.memory_gib / 2
    assert made.huge_pages_mib / 1024 <= huge_gib
    disks_gib = (instance.local_nvme_gb or 0) * 1e9 / 2**30
    assert made.cache_gib <= (disks_gib or room.CACHE_GIB_WITHOUT_DISKS)


def test_a_p4d(monkeypatch: pytest.MonkeyPatch) -> None:
    made = room_of(catalog().instance("p4d.24xlarge"), efa=True)
    assert (made.cpus, made.memory_gib, made.shm_gib) == (92, 1018, 68)


def test_a_machine_without_accelerators_is_too_small_for_a_worker() -> None:
    small = (
        catalog()
        .instance("p4d.24xlarge")
        .model_copy(update={"name": "tiny", "vcpu": 2, "ram_gib": 8})
    )
    with pytest.raises(UnsupportedError, match="tiny is too small for a worker: 2 vCPUs, 8 GiB"):
        room_of(small, efa=False)
