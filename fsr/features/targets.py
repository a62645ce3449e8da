"""Target GPUs: what a prediction needs to know of them, with sources.

Sources: NVIDIA H100 and H200 datasheets and the Hopper tuning guide; the A100 whitepaper; the Ada whitepaper;
the CUDA programming guide's table of compute capabilities (threads, blocks, registers, shared memory). DRAM rates
are the copy rates that such a device reaches, where one was measured here (H200: 4226 GB/s of 4800 GB/s), else
90 % of the datasheet. L2 rates and latencies are of the order that published microbenchmarks report.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU as the model sees it. Rates in bytes a second or per clock and multiprocessor, latencies in ns."""

    name: str
    arch: str
    sm_count: int
    clock_mhz: float
    dram_bytes_per_s: float
    l2_bytes_per_s: float
    l2_bytes: int
    l1_bytes: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    registers_per_sm: int = 65536
    threads_per_sm: int = 2048
    blocks_per_sm: int = 32
    issue_per_clock: float = 4.0  # warp instructions
    warp_size: int = 32
    dram_latency_ns: float = 550.0
    l2_latency_ns: float = 180.0
    l1_latency_ns: float = 20.0
    launch_ns: float = 2200.0  # from one event to the next around an empty kernel
    same_address_atomics_per_s: float = 1.7e9
    atomics_per_s: float = 1.2e11  # to distinct addresses, in L2


_H200 = Target("NVIDIA H200", "sm_90", 132, 1830.0, 4.226e12, 6.5e12, 60 << 20, 256 << 10, 228 << 10, 227 << 10)
_A100 = Target("NVIDIA A100", "sm_80", 108, 1410.0, 1.75e12, 4.2e12, 40 << 20, 192 << 10, 164 << 10, 163 << 10)
_RTX4090 = Target(
    "NVIDIA RTX 4090", "sm_89", 128, 2520.0, 0.92e12, 5.0e12, 72 << 20, 128 << 10, 100 << 10, 99 << 10,
    threads_per_sm=1536, blocks_per_sm=24,
)  # fmt: skip
_B200 = Target("NVIDIA B200", "sm_100", 148, 1850.0, 7.2e12, 9.0e12, 126 << 20, 256 << 10, 228 << 10, 227 << 10)

TARGETS = {target.arch: target for target in (_H200, _A100, _RTX4090, _B200)}


def target_of(arch: str) -> Target:
    """The target of an architecture such as ``sm_90`` (``sm_90a`` too). Raises UsageError for an unknown one."""
    found = TARGETS.get(arch.rstrip("af"))
    if found is None:
        raise UsageError(
            f"unknown target {arch!r}", expected=", ".join(sorted(TARGETS)), where="--target", fix="choose one of these"
        )
    return found
