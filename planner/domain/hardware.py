"""One GPU system: eight equal GPUs in a box, or however many, and how they are linked."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, Strict, model_validator

from planner.domain.base import Sourced

__all__ = ["HardwareProfile", "LinkKind"]

_Count = Annotated[int, Strict(), Field(gt=0)]
_Rate = Annotated[float, Field(gt=0)]


class LinkKind(StrEnum):
    """How the GPUs of one box talk to each other."""

    NVLINK = "nvlink"
    PCIE = "pcie"
    INFINITY_FABRIC = "infinity_fabric"


class HardwareProfile(Sourced):
    """Facts of one GPU system, each with a source. ``id`` is what ``--hw`` takes."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    id: Annotated[str, Field(min_length=1)]
    name: str
    aliases: tuple[str, ...] = ()
    vendor: str
    """``nvidia`` or ``amd``."""
    sm: Annotated[int, Strict(), Field(gt=0)] | None = None
    """CUDA compute capability times ten (103 is sm_103); None where it does not apply."""
    n_gpus: _Count
    """GPUs in the box."""
    n_sms: _Count | None = None
    """Streaming multiprocessors (compute units) of one GPU."""
    memory_bytes: _Count
    """Device memory of one GPU as the driver reports it."""
    hbm_bandwidth_bytes_per_s: _Rate
    link_kind: LinkKind
    link_bandwidth_bytes_per_s: _Rate
    """Of one GPU, one direction."""
    nvls: bool
    """Whether NVLink SHARP (in-switch reduction) exists on these links."""
    bf16_flop_per_s: _Rate
    """Dense, without sparsity."""
    fp8_flop_per_s: _Rate | None = None
    fp4_flop_per_s: _Rate | None = None
    allreduce_latency_s: Annotated[float, Field(gt=0)] | None = None
    """Measured all-reduce of 16 KB over all GPUs of this host inside a CUDA graph. On PCIe it differs several times
    between hosts, so that without it a prediction there has a wide interval."""
    power_w: Annotated[float, Field(gt=0)] | None = None
    """Board power limit of one GPU."""
    smem_per_block_bytes: _Count | None = None
    """Shared memory that one thread block can use (opt-in maximum)."""
    kernel_tables: str | None = None
    """Name of the system in the packaged kernel tables; None: only the data sheet speaks."""
    predictions: bool = False
    """Whether something was measured on this system (or its kernels), so that predictions are made for it."""

    @property
    def sm_name(self) -> str:
        """``sm_103``, or the vendor for a GPU that has no compute capability."""
        return f"sm_{self.sm}" if self.sm is not None else self.vendor

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.nvls and self.link_kind is not LinkKind.NVLINK:
            raise ValueError(f"nvls = true needs link_kind = nvlink, got {self.link_kind.value}")
        if self.vendor == "nvidia" and self.sm is None:
            raise ValueError("an NVIDIA system needs sm (compute capability times ten)")
        if self.fp8_flop_per_s is not None and self.fp8_flop_per_s < self.bf16_flop_per_s:
            raise ValueError("fp8_flop_per_s is below bf16_flop_per_s")
        return self
