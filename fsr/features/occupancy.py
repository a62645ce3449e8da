"""How many blocks of a kernel one multiprocessor holds at a time, and what limits that."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.features.targets import Target

REGISTER_UNIT = 256  # registers are given to warps in units of this many (CUDA occupancy calculator)
SHARED_UNIT = 128
RESERVED_SHARED = 1024  # per block, taken by the system on sm_80 and later
DEFAULT_REGISTERS = 32  # when no compiler told


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``blocks`` and ``warps`` resident a multiprocessor; ``limit``: threads, blocks, registers or shared."""

    blocks: int
    warps: int
    limit: str

    def share(self, target: Target) -> float:
        """Resident warps over the most there can be, 0 to 1."""
        return self.warps / (target.threads_per_sm / target.warp_size)


def occupancy(threads: int, registers: int | None, shared_bytes: int, target: Target) -> Occupancy:
    """Occupancy of blocks of ``threads`` threads with ``registers`` a thread and ``shared_bytes`` a block.

    A block that does not fit at all has 0 blocks."""
    warps = -(-max(threads, 1) // target.warp_size)
    per_warp = -(-(registers or DEFAULT_REGISTERS) * target.warp_size // REGISTER_UNIT) * REGISTER_UNIT
    shared = -(-(shared_bytes + RESERVED_SHARED) // SHARED_UNIT) * SHARED_UNIT
    limits = {
        "threads": target.threads_per_sm // (warps * target.warp_size),
        "blocks": target.blocks_per_sm,
        "registers": target.registers_per_sm // (per_warp * warps),
        "shared": target.shared_per_sm_bytes // shared,
    }
    limit = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limit], limits[limit] * warps, limit)
