"""The parameter space of the register-blocked GEMM: which tilings are worth compiling at all."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.hardware.gpus import Target
from fsr.hardware.limits import MAX_REGISTERS, REGISTERS_PER_SM, STATIC_SHARED_BYTES

LANES_M, LANES_N = 4, 8  # a warp covers 4 x 8 threads: each shared-memory read of a fragment is one wavefront
CHUNK = 4  # elements that one global or shared access moves, where it may
PAD = 4  # extra elements a row of a tile that is stored transposed: spreads the stores over the banks

OVERHEAD_REGISTERS = 36  # addresses, predicates and loop counters, as ptxas needed for 128x128x8 with 8x8


@dataclass(frozen=True, slots=True)
class GemmConfig:
    """A block computes bm x bn outputs in steps of bk; a thread computes tm x tn of them.

    ``buffers`` 2: the next tile is fetched into registers while this one is computed, one barrier a step;
    1: half the shared memory, two barriers a step.
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    buffers: int = 2

    @property
    def threads(self) -> int:
        """Threads a block."""
        return (self.bm // self.tm) * (self.bn // self.tn)

    def loads(self, extent: int, width: int = CHUNK) -> int:
        """Accesses of ``width`` elements a thread needs to fetch an ``extent`` x bk tile."""
        return extent * self.bk // (width * self.threads)

    def shared_bytes(self, a_bytes: int = 4, b_bytes: int = 4) -> int:
        """Static shared memory for elements of these sizes."""
        return self.buffers * self.bk * ((self.bm + PAD) * a_bytes + (self.bn + PAD) * b_bytes)

    def registers(self, acc_bytes: int = 4, a_bytes: int = 4, b_bytes: int = 4) -> int:
        """Estimated registers a thread: accumulators, fragments, the prefetched tile, and what is always needed."""
        words = self.tm * self.tn * acc_bytes + self.tm * a_bytes + self.tn * b_bytes
        fetched = CHUNK * (self.loads(self.bm) * a_bytes + self.loads(self.bn) * b_bytes)
        return OVERHEAD_REGISTERS + (words + fetched + 3) // 4

    def params(self) -> tuple[tuple[str, int | str], ...]:
        """The configuration as parameters of a move."""
        fields = ("bm", "bn", "bk", "tm", "tn", "buffers")
        return tuple((f, getattr(self, f)) for f in fields if f != "buffers" or self.buffers != 2)


def fits(config: GemmConfig, acc_bytes: int = 4, a_bytes: int = 4, b_bytes: int = 4) -> bool:
    """Whether a configuration divides into whole warps and loads for either layout of both operands, and stays
    within static shared memory, the register file and 255 registers a thread."""
    c = config
    if c.bm % (LANES_M * c.tm) or c.bn % (LANES_N * c.tn) or not 64 <= c.threads <= 512:
        return False
    registers = c.registers(acc_bytes, a_bytes, b_bytes)
    if registers > MAX_REGISTERS or registers * c.threads > REGISTERS_PER_SM:
        return False
    return c.shared_bytes(a_bytes, b_bytes) <= STATIC_SHARED_BYTES and all(_divides(c, e) for e in (c.bm, c.bn))


def _divides(c: GemmConfig, extent: int) -> bool:
    """Whether the threads share the loads of an extent x bk tile evenly, along k and along the other dimension."""
    by_k, by_outer = c.bk // CHUNK, extent // CHUNK
    if c.bk % CHUNK or extent % CHUNK or (extent * c.bk) % (CHUNK * c.threads) or c.loads(extent) > 8:
        return False
    return c.threads % by_k == 0 and c.threads % by_outer == 0


def promise(config: GemmConfig, m: int, n: int, gpu: Target) -> float:
    """A guess from 0 to 1 of how well a configuration does on m x n outputs: operations per element read from shared
    memory, times the share of multiprocessors at work over all waves, less where few warps hide latency."""
    blocks = -(-m // config.bm) * -(-n // config.bn)
    waves = -(-blocks // gpu.sm_count)
    intensity: float = config.tm * config.tn / (config.tm + config.tn)
    warps = (
        min(blocks / gpu.sm_count, gpu.registers_per_sm / (config.threads * config.registers())) * config.threads / 32
    )
    latency: float = min(1.0, warps / 8) ** 0.25
    return intensity / (intensity + 1) * blocks / (waves * gpu.sm_count) * latency


FIRST = (
    GemmConfig(128, 128, 8, 8, 8), GemmConfig(128, 128, 16, 8, 8), GemmConfig(64, 64, 16, 8, 4),
    GemmConfig(128, 64, 16, 8, 8), GemmConfig(64, 64, 16, 4, 4), GemmConfig(64, 128, 16, 8, 8),
    GemmConfig(128, 64, 16, 8, 4), GemmConfig(64, 64, 32, 8, 4), GemmConfig(64, 64, 16, 8, 8),
    GemmConfig(32, 32, 32, 2, 4),
)  # fmt: skip
"""What usually wins somewhere between 512 and 8192 rows, best guesses first."""
