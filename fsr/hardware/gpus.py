"""GPUs to predict for: their limits and rates, each with its source.

Rates that vendors publish are kept as published; those nobody publishes (latencies, L2 bandwidth, atomic rates) are
measured values from the literature, rounded. Sources:

[H] NVIDIA H100 Tensor Core GPU Architecture, white paper v1.04; H200 data sheet (2024-11).
[A] NVIDIA A100 Tensor Core GPU Architecture, white paper v1.0.
[V] NVIDIA Tesla V100 GPU Architecture, white paper WP-08608; [U] NVIDIA Turing GPU Architecture, white paper, T4 data
    sheet; [G] NVIDIA Ampere GA102 GPU Architecture, white paper, A40 data sheet.
[L] NVIDIA Ada GPU Architecture, white paper v2.02; L40S data sheet.
[B] NVIDIA Blackwell Architecture technical brief; HGX B200 data sheet.
[R] NVIDIA RTX Blackwell GPU Architecture, white paper v1.1.
[M] AMD CDNA 3 Architecture, white paper; MI300X data sheet.
[T] CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability".
[C] Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024;
    Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018; chipsandcheese.com,
    "Nvidia's H100" and "Testing AMD's Giant MI300X": latencies and L2 bandwidth; what mma.sync reaches on Hopper.
[m] Measured on an H200 with CUDA 13.0, as what fits some 400 candidates of ten kernels: the L2's rate, and 600 ns
    from DRAM, which is a third above the unloaded latency in [C]; so are those of the other NVIDIA GPUs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fsr.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU. Rates are per second, sizes in bytes; latencies are of hits, DRAM's is under load.

    ``clock_ghz`` is a sustained SM clock under load, below the boost clock that vendors quote. ``lds_per_clock`` is
    bytes an SM's L1 and shared memory deliver a clock; ``sm_to_l2`` bytes an SM exchanges with the L2 a clock.
    """

    name: str
    arch: str
    sm_count: int
    clock_ghz: float
    memory_bytes_per_s: float
    l2_bytes_per_s: float
    l2_bytes: int
    l1_bytes: int  # L1 and shared memory together, an SM
    fp32_per_clock: int  # fused multiply-adds an SM and clock
    fp64_per_clock: int
    tensor_flops_per_s: float  # float16 with float32 sums, dense
    issue_per_clock: int  # warp instructions an SM and clock
    max_shared_bytes: int  # a block, opted in
    shared_bytes_per_sm: int
    registers_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    sources: tuple[str, ...]
    warp_size: int = 32
    register_unit: int = 256  # registers are given to warps in multiples of this
    reserved_shared_bytes: int = 1024  # a block, for the system
    lds_per_clock: int = 128
    sm_to_l2: int = 64
    l2_slices: int = 96
    dram_latency_ns: float = 600.0
    l2_latency_ns: float = 150.0
    l1_latency_ns: float = 20.0
    mma_share: float = 1.0  # of the tensor cores' rate that instructions of one warp reach (mma.sync)
    launch_ns: float = 2300.0
    next_launch_ns: float = 1100.0

    @property
    def capability(self) -> int:
        """The number of a CUDA architecture, 90 for 'sm_90a'; 0 for others."""
        return int("".join(c for c in self.arch if c.isdigit())) if self.arch.startswith("sm_") else 0


_KIB, _MIB = 1024, 1024 * 1024

H200 = Target(
    "NVIDIA H200", "sm_90", sm_count=132, clock_ghz=1.75, memory_bytes_per_s=4.8e12, l2_bytes_per_s=7.0e12,
    l2_bytes=50 * _MIB, l1_bytes=256 * _KIB, fp32_per_clock=128, fp64_per_clock=64, tensor_flops_per_s=989e12,
    issue_per_clock=4, max_shared_bytes=227 * _KIB, shared_bytes_per_sm=228 * _KIB, registers_per_sm=65536,
    max_threads_per_sm=2048, max_blocks_per_sm=32, sources=("[H]", "[T]", "[C]", "[m]"), mma_share=0.62,
)  # fmt: skip
H100 = replace(H200, name="NVIDIA H100 SXM", memory_bytes_per_s=3.35e12)
A100 = Target(
    "NVIDIA A100 80GB SXM", "sm_80", sm_count=108, clock_ghz=1.35, memory_bytes_per_s=2.04e12, l2_bytes_per_s=4.0e12,
    l2_bytes=40 * _MIB, l1_bytes=192 * _KIB, fp32_per_clock=64, fp64_per_clock=32, tensor_flops_per_s=312e12,
    issue_per_clock=4, max_shared_bytes=163 * _KIB, shared_bytes_per_sm=164 * _KIB, registers_per_sm=65536,
    max_threads_per_sm=2048, max_blocks_per_sm=32, sources=("[A]", "[T]", "[C]"), l2_slices=80,
)  # fmt: skip
RTX_4090 = Target(
    "NVIDIA GeForce RTX 4090", "sm_89", sm_count=128, clock_ghz=2.52, memory_bytes_per_s=1.008e12,
    l2_bytes_per_s=5.0e12, l2_bytes=72 * _MIB, l1_bytes=128 * _KIB, fp32_per_clock=128, fp64_per_clock=2,
    tensor_flops_per_s=165e12, issue_per_clock=4, max_shared_bytes=99 * _KIB, shared_bytes_per_sm=100 * _KIB,
    registers_per_sm=65536, max_threads_per_sm=1536, max_blocks_per_sm=24, sources=("[L]", "[T]", "[C]"),
    l2_slices=48, dram_latency_ns=465.0, l2_latency_ns=110.0, l1_latency_ns=13.0,
)  # fmt: skip
L40S = replace(
    RTX_4090, name="NVIDIA L40S", sm_count=142, clock_ghz=2.2, memory_bytes_per_s=0.864e12, l2_bytes_per_s=4.5e12,
    l2_bytes=96 * _MIB, tensor_flops_per_s=362e12,
)  # fmt: skip
B200 = Target(
    "NVIDIA B200", "sm_100", sm_count=148, clock_ghz=1.85, memory_bytes_per_s=8.0e12, l2_bytes_per_s=9.0e12,
    l2_bytes=126 * _MIB, l1_bytes=256 * _KIB, fp32_per_clock=128, fp64_per_clock=64, tensor_flops_per_s=2250e12,
    issue_per_clock=4, max_shared_bytes=227 * _KIB, shared_bytes_per_sm=228 * _KIB, registers_per_sm=65536,
    max_threads_per_sm=2048, max_blocks_per_sm=32, sources=("[B]", "[T]"), l2_slices=160,
    mma_share=0.5,  # nobody has published it; Hopper's is 0.62
)  # fmt: skip
V100 = Target(
    "NVIDIA V100 SXM2", "sm_70", sm_count=80, clock_ghz=1.38, memory_bytes_per_s=0.9e12, l2_bytes_per_s=2.1e12,
    l2_bytes=6 * _MIB, l1_bytes=128 * _KIB, fp32_per_clock=64, fp64_per_clock=32, tensor_flops_per_s=125e12,
    issue_per_clock=4, max_shared_bytes=96 * _KIB, shared_bytes_per_sm=96 * _KIB, registers_per_sm=65536,
    max_threads_per_sm=2048, max_blocks_per_sm=32, sources=("[V]", "[T]", "[C]"), reserved_shared_bytes=0,
    l2_slices=64, dram_latency_ns=500.0,
)  # fmt: skip
T4 = Target(
    "NVIDIA T4", "sm_75", sm_count=40, clock_ghz=1.2, memory_bytes_per_s=0.32e12, l2_bytes_per_s=1.0e12,
    l2_bytes=4 * _MIB, l1_bytes=96 * _KIB, fp32_per_clock=64, fp64_per_clock=2, tensor_flops_per_s=65e12,
    issue_per_clock=4, max_shared_bytes=64 * _KIB, shared_bytes_per_sm=64 * _KIB, registers_per_sm=65536,
    max_threads_per_sm=1024, max_blocks_per_sm=16, sources=("[U]", "[T]", "[C]"), reserved_shared_bytes=0,
    lds_per_clock=64, l2_slices=32, dram_latency_ns=500.0,
)  # fmt: skip
A40 = Target(
    "NVIDIA A40", "sm_86", sm_count=84, clock_ghz=1.5, memory_bytes_per_s=0.696e12, l2_bytes_per_s=2.0e12,
    l2_bytes=6 * _MIB, l1_bytes=128 * _KIB, fp32_per_clock=128, fp64_per_clock=2, tensor_flops_per_s=150e12,
    issue_per_clock=4, max_shared_bytes=99 * _KIB, shared_bytes_per_sm=100 * _KIB, registers_per_sm=65536,
    max_threads_per_sm=1536, max_blocks_per_sm=16, sources=("[G]", "[T]"), l2_slices=48, dram_latency_ns=500.0,
)  # fmt: skip
RTX_5090 = replace(
    RTX_4090, name="NVIDIA GeForce RTX 5090", arch="sm_120", sm_count=170, clock_ghz=2.41, memory_bytes_per_s=1.792e12,
    l2_bytes=96 * _MIB, l2_bytes_per_s=6.0e12, tensor_flops_per_s=209.5e12, l2_slices=64, sources=("[R]", "[T]"),
)  # fmt: skip
MI300X = Target(
    "AMD Instinct MI300X", "gfx942", sm_count=304, clock_ghz=2.0, memory_bytes_per_s=5.3e12, l2_bytes_per_s=11.0e12,
    l2_bytes=256 * _MIB, l1_bytes=32 * _KIB, fp32_per_clock=128, fp64_per_clock=64, tensor_flops_per_s=1307e12,
    issue_per_clock=4, max_shared_bytes=64 * _KIB, shared_bytes_per_sm=64 * _KIB, registers_per_sm=131072,
    max_threads_per_sm=2048, max_blocks_per_sm=32, sources=("[M]", "[C]"), warp_size=64, register_unit=512,
    reserved_shared_bytes=0, l2_slices=128, dram_latency_ns=700.0, l2_latency_ns=230.0, l1_latency_ns=60.0,
    launch_ns=6000.0, next_launch_ns=4000.0,
)  # fmt: skip

TARGETS: dict[str, Target] = {
    "h200": H200, "h100": H100, "a100": A100, "rtx4090": RTX_4090, "l40s": L40S, "b200": B200, "mi300x": MI300X,
    "v100": V100, "t4": T4, "a40": A40, "rtx5090": RTX_5090,
}  # fmt: skip
_ARCHES = {"sm_90": H200, "sm_90a": H200, "sm_80": A100, "sm_89": RTX_4090, "sm_100": B200, "sm_100a": B200,
           "sm_70": V100, "sm_75": T4, "sm_86": A40, "sm_120": RTX_5090, "gfx942": MI300X}  # fmt: skip


def target_of(name: str) -> Target:
    """The target called ``name``: an architecture (sm_90, gfx942) or a GPU (h200, 'NVIDIA L40S').

    Raises UsageError listing what is known.
    """
    key = name.strip().lower()
    if key in _ARCHES:
        return _ARCHES[key]
    flat = "".join(c for c in key if c.isalnum())
    words = re.split(r"[^a-z0-9]+", key)  # of 'NVIDIA H100 80GB HBM3'
    for short, target in TARGETS.items():
        if short in words or re.search(rf"{short}(?!\d)", flat):  # 'a40' is in 'A40', not in 'A4000'
            return target
    raise UsageError(
        f"no figures for the target {name!r}",
        expected=f"one of {', '.join(_ARCHES)}, {', '.join(TARGETS)}",
        where="--target",
        fix="choose the closest architecture",
    )


def closest_target(arch: str) -> Target:
    """The figures of an architecture, or of the closest NVIDIA one that is known where nothing is of it ('sm_87'):
    for guesses that a launch's limits do not depend on. Never raises."""
    if arch in _ARCHES:
        return _ARCHES[arch]
    number = int("".join(c for c in arch if c.isdigit()) or 90)
    return min((t for t in _ARCHES.values() if t.capability), key=lambda t: abs(t.capability - number))
