"""Running cases: each twice on different memory, compared with the original element by element."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fsr.backends.protocol import Array, Device, DeviceFault
from fsr.contract.model import Contract
from fsr.hardware.host_memory import host_memory_bytes
from fsr.records import Case, Fault, FaultKind, Image, Json, Plan
from fsr.testgen.compare import Mismatch, compare
from fsr.testgen.oracle import Expected
from fsr.testgen.placing import place
from fsr.testgen.unstated import Unstated, unstated
from fsr.testgen.values import CaseData, build, repoisoned

SHELF_BYTES = 512 << 20  # of kept data, at the least
BASELINE_TIMEOUT_S = 30.0  # of a case, for the original and its form in float64


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """Why a case failed: a device fault, or the worst mismatch; ``unstated``: what the contract leaves open."""

    case: Case
    fault: Fault | None = None
    mismatch: Mismatch | None = None
    unstated: Unstated | None = None

    @property
    def fatal(self) -> bool:
        """Whether it was a crash or a hang rather than a wrong answer."""
        return self.fault is not None and self.fault.kind in (
            FaultKind.CRASH,
            FaultKind.HANG,
            FaultKind.MEMORY,
            FaultKind.LAUNCH,
        )

    def evidence(self) -> dict[str, Json]:
        """The failure as the evidence of an outcome."""
        if self.mismatch is not None:
            found = self.unstated
            said: dict[str, Json] = {"remark": str(found), "unlimited": found.argument} if found is not None else {}
            return self.mismatch.evidence(self.case) | said
        fault = self.fault or Fault(FaultKind.UNKNOWN, "")
        return {
            "case": self.case.name, "sizes": self.case.size_map(), "family": self.case.family,  # type: ignore[dict-item]
            "seed": self.case.seed, "kind": fault.kind, "detail": fault.detail, "line": fault.line,
        }  # fmt: skip


def _nobody_asks(_: float) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Runnable:
    """A binary with its plan and contract, and the device that runs it. flushes: see testgen.compare. blocks: of each
    launch only these run, on the host device; () for all. took: told the seconds of each run."""

    device: Device
    image: Image
    plan: Plan
    contract: Contract
    flushes: bool = False
    blocks: tuple[int, ...] = ()
    took: Callable[[float], None] = _nobody_asks


def run_once(
    what: Runnable,
    case: Case,
    data: CaseData,
    poison_seed: int = 0,
    timeout_s: float = 10.0,
) -> Mapping[str, Array]:
    """One run of one case on fresh memory; returns all buffers. Raises DeviceFault, also for overwritten guard
    zones and changed inputs. A plan with nothing to launch (a size of 0) leaves the data as it is."""
    launches, buffers = place(what.contract, what.plan, case, data, poison_seed)
    if not launches:
        return {name: array.copy() for name, array in data.arrays.items()}
    with what.device.prepare(what.image, launches, buffers) as prepared:
        began = time.monotonic()
        try:
            if what.blocks:
                run_blocks(prepared, what.blocks, timeout_s)
            else:
                prepared.run(timeout_s)
        finally:
            what.took(time.monotonic() - began)
        broken = prepared.violations()
        if broken:
            raise DeviceFault(broken[0])
        return prepared.read()


def run_blocks(prepared: Any, blocks: Sequence[int], timeout_s: float) -> None:
    """Run these blocks of each launch of a plan that the host device prepared."""
    prepared.run(timeout_s, blocks)


DataOf = Callable[[Contract, Case, int], CaseData]
"""The data of a case under a poison seed: :func:`fsr.testgen.values.build`, or a shelf that keeps what that gave."""


def fails(
    what: Runnable,
    case: Case,
    expected: Expected,
    timeout_s: float,
    data_of: DataOf = build,
    *,
    twice: bool = True,
) -> CaseFailure | None:
    """Run a case twice (or once); the failure, or None. A fatal DeviceFault passes through: the process is lost."""
    part = expected.part
    for poison_seed in (1, 2) if twice else (1,):
        data = data_of(what.contract, case, poison_seed)
        try:
            got = run_once(what, case, data, poison_seed, timeout_s)
        except DeviceFault as fault:
            if fault.fatal:
                raise
            return CaseFailure(case, fault=fault.fault)
        began = data.arrays
        if part is not None:
            got, began = part.picked(got), part.picked(began)
        found = next(iter(compare(what.contract, case, got, expected, began, flushes=what.flushes)), None)
        if found is not None:
            if part is not None and found.index:
                shape = data.arrays[found.argument].shape
                found = replace(found, index=part.index(found.argument, found.index[0], shape))
            return CaseFailure(case, mismatch=found, unstated=unstated(what.contract, data))
    return None


class DataShelf:
    """Keeps the data of cases, which every candidate meets again: building them costs more than running them.

    Devices copy what they are given. The arrays are not marked read-only, which would let a device keep its copies:
    a stray write of one candidate could then change what all later ones start from. Past ``limit_bytes`` the least
    recently used go; a case that alone would take an eighth of it is not kept."""

    def __init__(self, limit_bytes: int = 0) -> None:
        self._kept: OrderedDict[Case, tuple[int, CaseData]] = OrderedDict()
        self._limit, self._bytes = limit_bytes or _room(), 0

    def __call__(self, contract: Contract, case: Case, poison_seed: int) -> CaseData:
        """See DataOf; always the same contract."""
        seed, data = self._kept.get(case) or (poison_seed, build(contract, case, poison_seed))
        if case in self._kept:
            self._kept.move_to_end(case)
        elif _bytes_of(data) <= self._limit // 8:
            self._kept[case] = seed, data
            self._bytes += _bytes_of(data)
            while self._bytes > self._limit:
                self._bytes -= _bytes_of(self._kept.popitem(last=False)[1][1])
        return data if seed == poison_seed else repoisoned(contract, case, data, poison_seed)


def _room() -> int:
    """Bytes for a shelf: an eighth of the memory for those of as many processes as there are CPUs, or what serves all
    cases but the largest."""
    return max(SHELF_BYTES, host_memory_bytes() // 8 // (os.cpu_count() or 1))


def _bytes_of(data: CaseData) -> int:
    return sum(array.nbytes for array in data.arrays.values())


class Stopwatch:
    """How long the original took on each case, to scale the time-outs of candidates."""

    def __init__(self, floor_s: float, factor: float = 30.0) -> None:
        self._seen: dict[Case, float] = {}
        self.last_s = 0.0  # what was noted last
        self._floor_s, self._factor = floor_s, factor

    def note(self, case: Case, started: float) -> None:
        """Record the time since ``started`` (time.monotonic) as the original's on this case."""
        self.last_s = time.monotonic() - started
        self._seen[case] = max(self.last_s, self._seen.get(case, 0.0))

    def limit_s(self, case: Case, slower: float = 1.0) -> float:
        """A candidate's time-out on this case, in seconds. ``slower``: its build than the original's."""
        return max(self._floor_s, slower * self._factor * self._seen.get(case, 0.0))
