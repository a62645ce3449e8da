"""Sizes that neither time nor memory allow in full, on the host device: a few blocks of a launch, on buffers of which
only the touched pages exist, each element held against the original's.

What is found there is gross: indices in too few bits, too few blocks, rows dealt out wrongly. So values are compared
loosely, which no order of summation can fail. Blocks that add to one another's results cannot be looked at alone: where
either kernel holds atomics, or a plan has several launches or scratch, nothing is said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fsr.backends.host.device import HostDevice
from fsr.backends.host.sparse import FarPlan
from fsr.backends.protocol import Array, DeviceFault
from fsr.errors import ContractError
from fsr.evaluation.session import Session
from fsr.evaluation.testing import CaseFailure
from fsr.hardware.dtypes import is_float
from fsr.records import Candidate, Case, FaultKind, Image, Plan
from fsr.source.tokens import tokenize
from fsr.testgen.compare import Mismatch
from fsr.testgen.large import far_cases
from fsr.testgen.placing import place
from fsr.testgen.values import build

Written = Mapping[str, tuple[Array, Array]]  # places and values, by output

FAR_S, FAR_SHARE = 4.0, 0.03  # at most, and of the promotion's budget
BLOCK_S = 2.0  # what the chosen blocks of one run may take
LANDMARKS = (15, 16, 24, 31, 32)  # powers of two where an index may overflow
RANDOM_BLOCKS, SEARCHED = 24, 34
GROSS = {2: 0.25, 4: 2.0**-6, 8: 2.0**-6}  # of an element's size, or of what is usual among them
_MUTUAL = ("atomic", "__threadfence", "asm", "cooperative_groups", "red_", "__nv_atomic")


@dataclass(slots=True)
class _Kernel:
    """One kernel on one case: runs some of its blocks. ``seen``: all that any of them wrote."""

    plan: FarPlan
    grid: int
    seen: dict[str, list[Array]] = field(default_factory=dict)

    def run(self, blocks: Sequence[int]) -> Written:
        found = self.plan.run(sorted(set(blocks)), BLOCK_S)
        for name, (places, _) in found.items():
            self.seen.setdefault(name, []).append(places[-1:])
        return found

    def reach(self, name: str) -> int:
        """The largest place written so far; -1 for none."""
        return max((int(p[-1]) for p in self.seen.get(name, []) if len(p)), default=-1)


def far_failure(
    session: Session, candidate: Candidate, image: Image, budget_s: float
) -> tuple[int, CaseFailure | None]:
    """(cases that said something, the first failure or None)."""
    device, baseline = session.device, session.spec.baseline
    if not isinstance(device, HostDevice) or not _alone(baseline) or not _alone(candidate):
        return 0, None
    passed, started = 0, time.monotonic()
    for case in far_cases(session.contract, session.spec.seed):
        if time.monotonic() - started > min(FAR_S, FAR_SHARE * budget_s):
            break
        told, failure = _on_case(session, device, candidate.plan, image, case)
        if failure is not None:
            return passed, failure
        passed += told
    return passed, None


def _alone(candidate: Candidate) -> bool:
    """Whether each block's results are its own."""
    names = {token.text for token in tokenize(candidate.source) if token.kind == "name"}
    mutual = any(name.startswith(_MUTUAL) for name in names)
    return not mutual and len(candidate.plan.launches) == 1 and not candidate.plan.scratch


def _on_case(
    session: Session, device: HostDevice, plan: Plan, image: Image, case: Case
) -> tuple[bool, CaseFailure | None]:
    """(whether the case says anything, the failure)."""
    try:
        with _opened(session, device, session.spec.baseline.plan, session.baseline.run, case) as original:
            chosen, wanted = _ran(original, _landmarks(session, case, original.grid))
            if not any(len(places) for places, _ in wanted.values()):
                return False, None
    except (DeviceFault, ContractError, MemoryError, OSError):
        return False, None  # the original cannot, so that nobody must
    try:
        with _opened(session, device, plan, image, case) as subject:
            return True, _compared(case, subject, original.grid, chosen, wanted)
    except DeviceFault as fault:
        if fault.fault.kind in (FaultKind.MEMORY, FaultKind.HANG) or fault.fatal:
            return False, None  # its blocks do more than the original's
        return True, CaseFailure(case, fault=fault.fault)
    except (ContractError, MemoryError, OSError):
        return False, None


def _ran(original: _Kernel, blocks: list[int]) -> tuple[list[int], Written]:
    """The original on these blocks, or on a third or a ninth of them where all touch too much."""
    for part in (blocks, blocks[::3], blocks[::9]):
        try:
            return part, original.run(part)
        except DeviceFault as fault:
            if fault.fault.kind is not FaultKind.MEMORY:
                raise
    raise MemoryError("a block touches too much")


def _opened(session: Session, device: HostDevice, plan: Plan, image: Image, case: Case) -> _Opened:
    data = build(session.contract, case, 1, drawn=True)
    launches, buffers = place(session.contract, plan, case, data, 1)
    if len(launches) != 1:
        raise MemoryError("nothing is launched")
    return _Opened(_Kernel(device.far(image, launches, buffers), math.prod(launches[0].grid)))


@dataclass(slots=True)
class _Opened:
    kernel: _Kernel

    def __enter__(self) -> _Kernel:
        return self.kernel

    def __exit__(self, *_: object) -> None:
        self.kernel.plan.__exit__(None, None, None)


def _landmarks(session: Session, case: Case, grid: int) -> list[int]:
    """Blocks at the ends, in the middle, where the number of an element or of a block passes a power of two, and a few
    at random."""
    shapes = [session.contract.shape(a, case.size_map()) for a in session.contract.buffers()]
    largest = max(math.prod(shape) for shape in shapes)
    rng = np.random.default_rng([case.seed % 2**32, 404])
    blocks = [0, 1, grid // 2, grid - 2, grid - 1, *(int(b) for b in rng.integers(0, grid, 4))]
    for power in LANDMARKS:
        for number in ((1 << power) * grid // max(largest, 1), 1 << power):
            blocks += [number - 1, number, number + 1]
    return sorted({b for b in blocks if 0 <= b < grid})


def _compared(case: Case, subject: _Kernel, grid: int, chosen: list[int], wanted: Written) -> CaseFailure | None:
    scaled = {b * subject.grid // grid + n for b in chosen for n in (-1, 0, 1)} if subject.grid != grid else set(chosen)
    got = subject.run([b for b in scaled if 0 <= b < subject.grid])
    for name, (places, values) in wanted.items():
        found = _differing(case, name, (places, values), got[name])
        if found is not None:
            return found
        missing = places[~np.isin(places, got[name][0], assume_unique=True)]
        if 2 * len(missing) > len(places) or (len(missing) and int(places[-1]) > subject.reach(name)):
            found = _searched(case, subject, name, missing, (places, values))
            if found is not None:
                return found
    return None


def _differing(case: Case, name: str, wanted: tuple[Array, Array], got: tuple[Array, Array]) -> CaseFailure | None:
    """The worst of the elements that both wrote, where it is far off."""
    _, mine, theirs = np.intersect1d(wanted[0], got[0], assume_unique=True, return_indices=True)
    want, have = wanted[1][mine], got[1][theirs]
    if not len(want):
        return None
    a, b = want.astype(np.float64), have.astype(np.float64)
    if is_float(want.dtype):
        usual = float(np.sqrt(np.mean(np.where(np.isfinite(a), a, 0.0) ** 2)))
        bound = GROSS[want.dtype.itemsize] * np.maximum(np.abs(a), usual)
    else:
        bound = np.zeros(len(a))
    with np.errstate(invalid="ignore"):
        wrong = np.isfinite(a) & ~(np.abs(a - b) <= bound) if is_float(want.dtype) else want != have
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    place_ = (int(wanted[0][mine[at]]),)
    error = float(abs(a[at] - b[at]))
    mismatch = Mismatch(
        name, "value", place_, float(b[at]), float(a[at]), error, float(bound[at]), int(wrong.sum()), len(a)
    )
    return CaseFailure(case, mismatch=mismatch)


def _searched(
    case: Case, subject: _Kernel, name: str, missing: Array, wanted: tuple[Array, Array]
) -> CaseFailure | None:
    """Look for the block that writes an element which none wrote yet: by bisection, as blocks mostly come in the order
    of what they write, and at random. An element beyond all that any of them writes is written by none."""
    target = int(missing[len(missing) // 2])
    low, high = 0, subject.grid - 1
    for _ in range(SEARCHED):
        if low > high:
            break
        middle = (low + high) // 2
        got = subject.run([middle])
        places = got[name][0]
        if len(places) and target > int(places[-1]):
            low = middle + 1
        elif not len(places) or target < int(places[0]):
            high = middle - 1
        else:
            return _differing(case, name, wanted, got[name])
    rng = np.random.default_rng([case.seed % 2**32, 405])
    subject.run([int(b) for b in rng.integers(0, subject.grid, RANDOM_BLOCKS)])
    if subject.reach(name) >= target:
        return None  # blocks come in an order of their own
    value = float(wanted[1][np.searchsorted(wanted[0], target)])
    mismatch = Mismatch(name, "unwritten", (target,), math.nan, value, math.inf, 0.0, len(missing), len(wanted[0]))
    return CaseFailure(case, mismatch=mismatch)
