"""How many blocks and warps of a kernel live on an SM together, and what stops more."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.hardware.gpus import Target

_SHARED_UNIT = 128  # shared memory is given in multiples of this (CUDA occupancy calculator, sm_70 and later)
_REGISTER_STEP = 8  # registers a thread are rounded up to this
_GUESSED_REGISTERS = 32  # where the compiler could not tell: rarely a limit, as most kernels


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``blocks`` an SM, their ``warps``, the ``fraction`` of the warps that fit, and the ``limit``: 'threads',
    'blocks', 'registers' or 'shared'. No blocks: the launch is impossible."""

    blocks: int
    warps: int
    fraction: float
    limit: str


def occupancy(target: Target, threads_per_block: int, registers: int | None, shared_bytes: int) -> Occupancy:
    """Resident blocks and warps by the rules of NVIDIA's occupancy calculator.

    ``shared_bytes`` is static plus dynamic; ``registers`` a thread, None where unknown.
    """
    warps = -(-threads_per_block // target.warp_size)
    limits = {"threads": target.max_threads_per_sm // (warps * target.warp_size), "blocks": target.max_blocks_per_sm}
    per_thread = -(-(registers or _GUESSED_REGISTERS) // _REGISTER_STEP) * _REGISTER_STEP
    per_warp = -(-per_thread * target.warp_size // target.register_unit) * target.register_unit
    limits["registers"] = target.registers_per_sm // per_warp // warps
    if shared_bytes:
        used = -(-(shared_bytes + target.reserved_shared_bytes) // _SHARED_UNIT) * _SHARED_UNIT
        limits["shared"] = target.shared_bytes_per_sm // used
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    fit = target.max_threads_per_sm // target.warp_size
    return Occupancy(blocks, blocks * warps, min(1.0, blocks * warps / fit), limit)
