"""Accelerators, machines and their prices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from infra.catalog.rows import Dated, Row
from infra.catalog.values import Count, Frozen, Ints, Rows, SourceIds, Texts, Usd

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class Accelerator(Row):
    """One chip. TFLOPS are dense; GB and GB/s are 1e9 bytes; MiB is what is reported."""

    name: str
    vendor: Literal["nvidia", "amd", "aws"]
    arch: str | None = None
    memory_gb: Positive
    memory_mib_reported: Count | None = None
    #: What the driver shows where that is known to be less; planned with in place of the other.
    memory_mib_seen: Count | None = None
    memory_type: str | None = None
    memory_gb_per_s: Positive | None = None
    memory_gb_per_s_other_source: Positive | None = None
    bf16_tflops: Positive | None = None
    bf16_tflops_achievable_matmul: Positive | None = None
    fp8_tflops: Positive | None = None
    fp8_tflops_achievable_matmul: Positive | None = None
    fp4_tflops: Positive | None = None
    fabric: Literal["none", "nvlink", "xgmi", "neuronlink"] | None = None
    fabric_gb_per_s_both_ways: NotNegative | None = None
    fabric_gb_per_s_other_source: Positive | None = None
    fabric_pair_gb_per_s_one_way: Positive | None = None
    fabric_links: Count | None = None
    pcie_gen: Count | None = None
    cores: Count | None = None
    tdp_w: Positive | None = None


class Price(Dated):
    """A rate in USD an hour. ``regions``: us-east-1 when empty."""

    usd_per_hour: Usd
    regions: Texts = ()


class Plan(Price):
    """A rate under a commitment, or spot."""

    kind: str


class Quota(Frozen):
    """Service Quotas codes, and the vCPUs that one machine draws from them."""

    on_demand: str
    spot: str
    vcpu: Count
    source: SourceIds


class NumaNode(Frozen):
    """Which GPUs and NICs hang on a socket, by index."""

    node: Annotated[int, Field(ge=0)]
    gpus: Ints
    nics: Ints


class Numa(Frozen):
    """NUMA nodes. ``cpu_ids``: CPU ranges by node; ``unverified``: fields from memory."""

    nodes: Count
    gpus_per_node: Count | None = None
    cpu_ids: Texts = ()
    pcie_switch: str | None = None
    layout: Annotated[tuple[NumaNode, ...], Rows] = ()
    note: str | None = None
    unverified: Texts = ()


class InfiniBand(Frozen):
    """InfiniBand ports, all at one speed."""

    interfaces: Count
    gbps_each: Count
    generation: str | None = None
    gpudirect_rdma: bool | None = None
    storage_ports: Count | None = None
    note: str | None = None


class Interconnect(Frozen):
    """What joins the GPUs of one machine."""

    type: Literal["nvswitch", "xgmi_mesh"]
    gpu_gb_per_s_both_ways: Positive
    aggregate_tb_per_s: Positive | None = None
    sharp: str | None = None


class Instance(Row):
    """A machine that can be rented or racked. No accelerator: a CPU machine."""

    name: str
    provider: Literal["aws", "azure", "colo", "local"]
    accelerator: str | None = None
    accelerators: Annotated[int, Field(ge=0)]
    vcpu: Count | None = None
    cpu: str | None = None
    ram_gib: Count | None = None
    local_nvme_gb: Annotated[int, Field(ge=0)] | None = None
    temp_ssd_gib: Count | None = None
    network_gbps: Count | None = None
    network_cards: Count | None = None
    enis_per_card: Count | None = None
    efa_interfaces: Annotated[int, Field(ge=0)] = 0
    efa_generation: str | None = None
    #: Where on the network cards the EFA interfaces go: infra/catalog/interfaces.py.
    efa_layout: Literal["efa", "efa_only", "efa_on_others"] | None = None
    ebs_gbps: Count | None = None
    gpudirect_rdma: bool | None = None
    ofi_nccl_protocol: str | None = None
    infiniband: InfiniBand | None = None
    interconnect: Interconnect | None = None
    pcie_gen: Count | None = None
    pcie_link: str | None = None
    numa: Numa | None = None
    neuroncores_physical: Count | None = None
    logical_cores_lnc2: Count | None = None
    usage_classes: Texts = ()
    on_demand: Price | None = None
    #: The rates of Capacity Blocks for ML, newest first.
    capacity_blocks: Annotated[tuple[Price, ...], Rows] = ()
    #: What on-demand cost before.
    price_history: Annotated[tuple[Price, ...], Rows] = ()
    plans: Annotated[tuple[Plan, ...], Rows] = ()
    quota: Quota | None = None


class MarketRate(Dated):
    """What a GPU hour cost at a provider on a date."""

    accelerator: str
    provider: str
    usd_per_gpu_hour: Usd
    node_usd_per_hour: Usd | None = None
