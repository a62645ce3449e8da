"""How close a measured time comes to what this device can do, in words that a user can check.

*Cold*: before each timed run the L2 is emptied, so every input has to come from DRAM once; every output has to be
written once. Their sum over the time, as a share of the measured copy rate, is the fraction that is told.

*In the L2*: outputs up to the L2's size may still lie there when the clock stops, so the sum can exceed the copy rate
honestly (up to twice). What surely passed DRAM is all inputs, and outputs beyond the L2's size, but for buffers that
are both, which may be touched in part: a time that this bound does not allow is no win but a fault to explain. Launched
back to back, buffers that fit the L2 need not pass DRAM at all; no bound is told for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.features.schema import Features, Roofline

WARP = 32


@dataclass(frozen=True, slots=True)
class MustMove:
    """Bytes of all inputs and of all outputs of one run; what is both counts in both. ``unsure_bytes``: those of them
    that a run may not move: an edge of a buffer that is written in part stays, and nothing of it need be read."""

    read_bytes: float
    written_bytes: float
    unsure_bytes: float = 0.0

    @property
    def total_bytes(self) -> float:
        """All inputs once and all outputs once."""
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What was measured of a device: its copy rate (bytes read and written a second), its rate of thread-level FP32
    instructions (None: not measured), and the size of its L2."""

    copy_bytes_per_s: float
    instructions_per_s: float | None = None
    l2_bytes: int = 0


def roofline(moved: MustMove, ceilings: Ceilings, time_ns: float, features: Features) -> Roofline:
    """A time against the ceilings. Instructions are those counted, else those recorded, else none are told."""
    seconds, rate = time_ns * 1e-9, ceilings.copy_bytes_per_s
    kept = min(moved.written_bytes, ceilings.l2_bytes)
    executed = features.counters.instructions if features.counters is not None else None
    executed = executed or (features.access.warp_instructions if features.access is not None else None)
    peak = ceilings.instructions_per_s
    return Roofline(
        read_bytes=moved.read_bytes,
        written_bytes=moved.written_bytes,
        copy_bytes_per_s=rate,
        fraction=moved.total_bytes / seconds / rate,
        kept_bytes=kept,
        drained_fraction=max(moved.total_bytes - moved.unsure_bytes - kept, 0.0) / seconds / rate,
        instructions_per_s=peak,
        issue_fraction=executed * WARP / seconds / peak if executed and peak else None,
    )
