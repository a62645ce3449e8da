"""The speed of light: the least time that a kernel's bytes allow, and how far a candidate is from it.

Every input has to come from DRAM once and every output has to go there once (Williams et al. 2009, the roofline's
memory roof). That bound needs no model of the kernel: it holds whatever code computes the same. What stands between a
time and its bound is the headroom; where it is used up, nothing is left to search for.
"""

from __future__ import annotations

import math

from fsr.contract.model import Contract
from fsr.errors import FsrError
from fsr.hardware.dtypes import numpy_dtype
from fsr.hardware.gpus import Target
from fsr.records import Role
from fsr.search.proposers.protocol import View

ARRIVED = 1.03  # times the bound: what is left is below what a verdict can tell from noise
NEARLY = 1.25  # where fewer questions are asked


def bound_ns(contract: Contract, target: Target) -> float | None:
    """Nanoseconds that moving all inputs and outputs once takes at the GPU's DRAM rate; the geometric mean over the
    timed configurations, as times are. None where an input may be read in part only (it is indexed by another)."""
    if any(a.constraints.high is not None and a.dtype.startswith(("int", "uint")) for a in contract.buffers()):
        return None
    logs = []
    try:
        for sizes in contract.timed_sizes():
            moved = sum(
                math.prod(contract.shape(a, sizes)) * numpy_dtype(a.dtype).itemsize * (2 if a.role is Role.INOUT else 1)
                for a in contract.buffers()
            )
            logs.append(math.log(moved / target.memory_bytes_per_s * 1e9))
    except (FsrError, ValueError):  # a size that cannot be evaluated, or nothing to move
        return None
    return math.exp(sum(logs) / len(logs)) if logs else None


def headroom(view: View, bound: float | None) -> float | None:
    """Time of the fastest over the bound, at least 1 where the bound holds; None where either is not known."""
    best = view.elites[0].time_ns if view.elites else None
    return best / bound if best and bound else None
