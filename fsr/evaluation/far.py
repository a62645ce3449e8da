"""Sizes that neither time nor memory allow in full, on the host device: a few blocks of a launch, on buffers of which
only the touched pages exist, each element held against the original's.

What is found there is gross: indices in too few bits, too few blocks, rows dealt out wrongly. So values are compared
loosely, which no order of summation can fail. Blocks that add to one another's results cannot be looked at alone (where
either kernel has atomics in global memory, or a plan several launches or scratch), nor can those of which each goes
over a large part of the data. There one size just past 2^24 elements is run in whole, where memory and the budget allow
it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from fsr.backends.host.device import HostDevice
from fsr.backends.host.sparse import FarPlan
from fsr.backends.protocol import Array, DeviceFault
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.evaluation.session import Session
from fsr.evaluation.testing import CaseFailure, Runnable, run_once
from fsr.hardware.dtypes import doubled, is_float
from fsr.records import Candidate, Case, CaseKind, FaultKind, Image, Plan, Sizes
from fsr.testgen.compare import Mismatch, exactly_within
from fsr.testgen.corners import CONSTANT
from fsr.testgen.families import CROWNED
from fsr.testgen.fitting import elements
from fsr.testgen.generated import most_elements
from fsr.testgen.large import FAR_ELEMENTS, far_cases, filled_cases, largest_buffer, why_not_far
from fsr.testgen.numbers import numbers
from fsr.testgen.parts import meeting
from fsr.testgen.placing import place
from fsr.testgen.values import build, outputs

Written = Mapping[str, tuple[Array, Array]]  # places and values, by output

FAR_S, FAR_SHARE = 4.0, 0.03  # at most, and of the promotion's budget
SILENT_CASES = 2  # that say nothing: no other will either
BLOCK_S = 2.0  # what the chosen blocks of one run may take
LANDMARKS = (15, 16, 20, 23, 24, 31, 32)  # powers of two where an index may overflow, or is told apart
MOST_NAMED = 6  # numbers of the candidate's
RANDOM_BLOCKS, SEARCHED = 24, 34
BESIDE = 6  # blocks on either side of one that writes nothing, that are asked in its place
GROSS = {2: 0.25, 4: 2.0**-6, 8: 2.0**-6}  # of an element's size, or of what is usual among them
WHOLE_ELEMENTS = 5 << 23  # of all buffers together: two arrays of a little more than 2^24
WHOLE_S, SLOWER = 6.0, 3.0  # what that may take the original, and a candidate times as long
WHOLE_BUDGET_S = 60.0  # a promotion with less time has none for a whole run


@dataclass(slots=True)
class _Kernel:
    """One kernel on one case: runs some of its blocks. ``extents``: elements of its buffers; ``last``: the largest
    place that any of the blocks wrote, by output; ``step``: the widest gap in what a block wrote when it ran alone."""

    plan: FarPlan
    grid: int
    extents: Mapping[str, int]
    last: dict[str, int] = field(default_factory=dict)
    step: dict[str, int] = field(default_factory=dict)

    def run(self, blocks: Sequence[int]) -> Written:
        chosen = sorted(set(blocks))
        found = self.plan.run(chosen, BLOCK_S)
        for name, (places, _) in found.items():
            self.last[name] = max(self.last.get(name, -1), int(places[-1]) if len(places) else -1)
            if len(chosen) == 1 and len(places) > 1:
                self.step[name] = max(self.step.get(name, 0), int(np.diff(places).max()))
        return found

    def reach(self, name: str) -> int:
        """The largest place that a block may be thought to write; -1 for none. Blocks that go over the data in steps
        end anywhere in the last of them."""
        return self.last.get(name, -1) + max(self.step.get(name, 0) - 1, 0)


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a look at blocks told: a failure, or why it told nothing; neither where all were right."""

    failure: CaseFailure | None = None
    why: str = ""


def far_failure(
    session: Session, candidate: Candidate, image: Image, budget_s: float
) -> tuple[int, CaseFailure | None]:
    """(cases that said something, the first failure or None)."""
    device, baseline = session.device, session.spec.baseline
    if not isinstance(device, HostDevice):
        return 0, None
    image = session.quickened(image, candidate).image
    passed, beyond, silent, started = 0, 0, list[_Looked](), time.monotonic()
    cases, seconds = far_cases(session.contract, session.spec.seed), min(FAR_S, FAR_SHARE * budget_s)
    met = meeting(baseline) or meeting(candidate)
    session.not_in_blocks = dict(_unlooked(session.contract, cases, met))
    for case in () if met else _slow_lines(session):
        looked = _on_case(session, device, candidate, image, case)
        if looked.failure is not None:
            return 0, looked.failure
    for case in () if met else cases:
        if len(silent) == SILENT_CASES:
            session.not_in_blocks[case.sizes] = f"it was not tried after others, at which {silent[-1].why}"
            continue
        if time.monotonic() - started > seconds:
            session.not_in_blocks[case.sizes] = f"the {seconds:g} s that blocks alone have were over before"
            continue
        looked = _on_case(session, device, candidate, image, case)
        if looked.failure is not None:
            return passed, looked.failure
        if looked.why:
            silent.append(looked)
            session.not_in_blocks[case.sizes] = looked.why
            continue
        passed += 1
        beyond += case.size_map() not in session.contract.timed_sizes()
        session.in_blocks.add(case.sizes)
    if beyond or budget_s < WHOLE_BUDGET_S:
        return passed, None
    more, failure = _whole(session, candidate.plan, image, cases)
    return passed + more, failure


def _unlooked(contract: Contract, cases: Sequence[Case], met: str) -> Iterator[tuple[Sizes, str]]:
    """The timed sizes at which no block is looked at, and why."""
    apart = {case.sizes for case in cases}
    for sizes in contract.timed_sizes():
        if met:
            yield tuple(sizes.items()), f"{met}, so that no block is judged alone"
        elif tuple(sizes.items()) not in apart:
            yield tuple(sizes.items()), why_not_far(contract, sizes)


def _slow_lines(session: Session) -> list[Case]:
    """Long lines of one value that the original cannot answer in whole: it goes over a line for each of its elements,
    say. A few of its blocks can."""
    found = [case for case in session.corner_cases() if case.family == CONSTANT and case.kind is CaseKind.LARGE]
    return [
        replace(case, name="long line, in parts", family="constant")
        for case in found
        if not session.original.counts(case)
    ]


def _whole(session: Session, plan: Plan, image: Image, cases: Sequence[Case]) -> tuple[int, CaseFailure | None]:
    """The smallest of the cases past 2^24 elements in whole, if that can be, on values of one sign, whose sums are far
    from zero (of all cases where none goes so far); and those that fill counters. Each kernel runs once; floating
    results are compared as loosely as blocks."""
    contract, started, passed = session.contract, time.monotonic(), 0
    past = [case for case in cases if largest_buffer(contract, case.size_map()) > FAR_ELEMENTS[0]]
    smallest = min(past or cases, key=lambda case: elements(contract, case.size_map()), default=None)
    room = most_elements(contract, WHOLE_ELEMENTS)
    wanted = filled_cases(contract, session.spec.seed, room)
    if smallest is not None and elements(contract, smallest.size_map()) <= room:
        wanted = [replace(smallest, name="far, in whole", family=CROWNED), *wanted]
    for case in wanted:
        told, failure = _in_whole(session, plan, image, case)
        if failure is not None:
            return passed, failure
        passed += told
        if not told or time.monotonic() - started > WHOLE_S:
            break
    return passed, None


@dataclass(frozen=True, slots=True)
class _Loose:
    """A case, and the contract that says by how much whole numbers may be off in it."""

    case: Case
    contract: Contract


def _in_whole(session: Session, plan: Plan, image: Image, case: Case) -> tuple[bool, CaseFailure | None]:
    """(whether the case says anything, the failure)."""
    contract, baseline = session.contract, session.spec.baseline
    data = build(contract, case, 1)
    try:
        original = Runnable(session.device, session.original.build.image, baseline.plan, contract)
        wanted = run_once(original, case, data, 1, WHOLE_S)
    except DeviceFault:
        return False, None  # not soon enough, or not at all
    try:
        got = run_once(Runnable(session.device, image, plan, contract), case, data, 1, SLOWER * WHOLE_S)
    except DeviceFault as fault:
        if fault.fault.kind in (FaultKind.MEMORY, FaultKind.HANG) or fault.fatal:
            return False, None
        return True, CaseFailure(case, fault=fault.fault)
    on = _Loose(case, contract)
    found = (_worst(on, n, None, wanted[n].reshape(-1), got[n].reshape(-1)) for n in outputs(contract, case))
    return True, next((f for f in found if f is not None), None)


def _on_case(session: Session, device: HostDevice, candidate: Candidate, image: Image, case: Case) -> _Looked:
    chosen: list[int] = []
    try:
        with _opened(session, device, session.spec.baseline.plan, session.original.build.image, case) as original:
            chosen = _landmarks(session, candidate, case, original.grid)
            chosen, wanted = _ran(original, chosen)
            if not any(len(places) for places, _ in wanted.values()):
                return _Looked(why=f"the {len(chosen)} blocks looked at write nothing")
    except (DeviceFault, ContractError, MemoryError, OSError) as error:
        return _Looked(why=_told(error, chosen))  # the original cannot, so that nobody must

    @cache
    def by_data() -> frozenset[str]:
        try:
            with _opened(session, device, session.spec.baseline.plan, session.original.build.image, case) as again:
                return _by_data(again)
        except DeviceFault:  # each block touches much
            return frozenset()

    try:
        with _opened(session, device, candidate.plan, image, case) as subject:
            on = _Loose(case, session.contract)
            return _Looked(_compared(on, subject, original.grid, chosen, wanted, by_data))
    except DeviceFault as fault:
        if fault.fault.kind in (FaultKind.MEMORY, FaultKind.HANG) or fault.fatal:
            return _Looked(why=f"{_told(fault, chosen)} (the candidate's)")  # its blocks do more than the original's
        return _Looked(CaseFailure(case, fault=fault.fault))
    except (ContractError, MemoryError, OSError) as error:
        return _Looked(why=_told(error, chosen))


def _told(error: Exception, blocks: Sequence[int]) -> str:
    """Why some blocks told nothing, in words."""
    if not isinstance(error, DeviceFault):
        return str(error).partition("\n")[0] or type(error).__name__
    if error.fault.kind is FaultKind.HANG:
        return f"the {len(blocks)} blocks looked at take over {BLOCK_S:g} s on this device"
    if error.fault.kind is FaultKind.MEMORY:
        return f"one block touches too much: {error.fault.detail}"
    return f"blocks that run alone fail: {error.fault.kind}"


def _ran(original: _Kernel, blocks: list[int]) -> tuple[list[int], Written]:
    """The original on these blocks, or on a third or a ninth of them, or the last, where all touch too much."""
    for part in (blocks, blocks[::3], blocks[::9]):
        try:
            return part, original.run(part)
        except DeviceFault as fault:
            if fault.fault.kind is not FaultKind.MEMORY:
                raise
    return blocks[-1:], original.run(blocks[-1:])


def _opened(session: Session, device: HostDevice, plan: Plan, image: Image, case: Case) -> _Opened:
    data = build(session.contract, case, 1, drawn=True)
    launches, buffers = place(session.contract, plan, case, data, 1)
    if len(launches) != 1:
        raise MemoryError("nothing is launched")
    extents = {b.name: max(b.array.size, 1) for b in buffers}
    return _Opened(_Kernel(device.far(image, launches, buffers), math.prod(launches[0].grid), extents))


@dataclass(slots=True)
class _Opened:
    kernel: _Kernel

    def __enter__(self) -> _Kernel:
        return self.kernel

    def __exit__(self, *_: object) -> None:
        self.kernel.plan.__exit__(None, None, None)


def _landmarks(session: Session, candidate: Candidate, case: Case, grid: int) -> list[int]:
    """Blocks at the ends, in the middle, where the number of an element or of a block passes a power of two, or the
    number of an element one that the candidate alone names, and a few at random."""
    shapes = [session.contract.shape(a, case.size_map()) for a in session.contract.buffers()]
    largest = max(math.prod(shape) for shape in shapes)
    rng = np.random.default_rng([case.seed % 2**32, 404])
    blocks = [0, 1, grid // 2, grid - 2, grid - 1, *(int(b) for b in rng.integers(0, grid, 4))]
    for power in LANDMARKS:
        for number in ((1 << power) * grid // max(largest, 1), 1 << power):
            blocks += [number - 1, number, number + 1]
    own = sorted(numbers(candidate.source) - numbers(session.spec.baseline.source), reverse=True)
    blocks += [number * grid // largest for number in own[:MOST_NAMED] if number < largest]
    return sorted({b for b in blocks if 0 <= b < grid})


def _by_data(original: _Kernel) -> frozenset[str]:
    """Outputs of which data decide what a block writes: of some blocks amid the others one writes nothing, or no two
    write as many elements. That a candidate's blocks do not write an element says nothing then."""
    alone = [original.run([original.grid * part // 12]) for part in (4, 6, 7, 9)] if original.grid > 12 else []
    counts = {name: [len(found[name][0]) for found in alone] for name in (alone[0] if alone else ())}
    return frozenset(name for name, found in counts.items() if 0 in found or len({*found}) == len(found))


def _compared(
    on: _Loose,
    subject: _Kernel,
    grid: int,
    chosen: list[int],
    wanted: Written,
    by_data: Callable[[], frozenset[str]],
) -> CaseFailure | None:
    scaled = {b * subject.grid // grid + n for b in chosen for n in (-1, 0, 1)} if subject.grid != grid else set(chosen)
    got = subject.run([b for b in scaled if 0 <= b < subject.grid])
    for name, (places, values) in wanted.items():
        found = _differing(on, name, (places, values), got[name])
        if found is not None:
            return found
        missing = places[~np.isin(places, got[name][0], assume_unique=True)]
        absent = 2 * len(missing) > len(places) or (len(missing) and int(places[-1]) > subject.reach(name))
        if absent and name not in by_data():
            for target in {int(missing[len(missing) // 2]), int(missing[-1])}:
                found = _searched(on, subject, name, target, (places, values))
                if found is not None:
                    return found
    return None


def _differing(on: _Loose, name: str, wanted: tuple[Array, Array], got: tuple[Array, Array]) -> CaseFailure | None:
    """The worst of the elements that both wrote, where it is far off."""
    _, mine, theirs = np.intersect1d(wanted[0], got[0], assume_unique=True, return_indices=True)
    want, have = wanted[1][mine], got[1][theirs]
    return _worst(on, name, wanted[0][mine], want, have)


def _worst(on: _Loose, name: str, places: Array | None, want: Array, have: Array) -> CaseFailure | None:
    """The first value that is grossly wrong; ``places``: where they stand, None for one after another."""
    wrong, bound = _far_off(on.contract, want, have)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    a, b = float(want[at]), float(have[at])
    place_ = (at if places is None else int(places[at]),)
    mismatch = Mismatch(name, "value", place_, b, a, abs(a - b), float(bound), int(wrong.sum()), len(want))
    return CaseFailure(on.case, mismatch=mismatch)


def _far_off(contract: Contract, want: Array, have: Array) -> tuple[Array, float]:
    """Which values are grossly wrong, and the bound for those of the usual size."""
    if not is_float(want.dtype) or not len(want):
        slack = exactly_within(contract, want.dtype) or 0.0
        return np.abs(doubled(want) - doubled(have)) > slack if slack else want != have, slack
    share = GROSS[want.dtype.itemsize]
    a, b = want.astype(np.float64), have.astype(np.float64)
    finite = np.isfinite(a)
    usual = float(np.sqrt(np.mean(np.where(finite, a, 0.0) ** 2)))
    with np.errstate(invalid="ignore"):
        wrong = finite & ~(np.abs(a - b) <= share * np.maximum(np.abs(a), usual))
    return wrong, share * usual


def _in_steps(subject: _Kernel, name: str, target: int) -> int | None:
    """The block that writes an element where each writes a stretch, and again one step further; None where they do not
    seem to."""
    if subject.grid < 2:
        return None
    first, second = (subject.run([block])[name][0] for block in (0, 1))
    ends = np.flatnonzero(np.diff(first) > 1)
    if not len(ends) or not len(second) or second[0] <= first[0]:
        return None
    step, width = int(first[ends[0] + 1]) - int(first[0]), int(second[0]) - int(first[0])
    block = (target - int(first[0])) % step // width
    return block if block < subject.grid else None


def _writing(subject: _Kernel, name: str, low: int, high: int) -> tuple[int, Written]:
    """The block in the middle of some and what it writes; one beside it where it writes nothing, as threads beyond the
    end of a line, when lines follow one another, make up whole blocks in the midst of others."""
    middle = (low + high) // 2
    first = subject.run([middle])
    if not len(first[name][0]):
        for block in (middle + sign * n for n in range(1, BESIDE + 1) for sign in (-1, 1)):
            if low <= block <= high and len((got := subject.run([block]))[name][0]):
                return block, got
    return middle, first


def _searched(on: _Loose, subject: _Kernel, name: str, target: int, wanted: tuple[Array, Array]) -> CaseFailure | None:
    """Look for the block that writes an element which none wrote yet: where it stands if blocks go over the data in
    steps, or each writes as many elements; by bisection, as blocks mostly come in the order of what they write; and at
    random. An element beyond all that any of them writes is written by none."""
    in_order = target * subject.grid // subject.extents[name]  # where each block writes as many elements
    for likely in (_in_steps(subject, name, target), in_order):
        if likely is not None and target in (got := subject.run([likely]))[name][0]:
            return _differing(on, name, wanted, got[name])
    low, high = 0, subject.grid - 1
    for _ in range(SEARCHED):
        if low > high:
            break
        middle, got = _writing(subject, name, low, high)
        places = got[name][0]
        if len(places) and target > int(places[-1]):
            low = middle + 1
        elif not len(places) or target < int(places[0]):
            high = middle - 1
        else:
            return _differing(on, name, wanted, got[name])
    rng = np.random.default_rng([on.case.seed % 2**32, 405])
    subject.run([int(b) for b in rng.integers(0, subject.grid, RANDOM_BLOCKS)])
    if subject.reach(name) >= target:
        return None  # blocks come in an order of their own
    value = float(wanted[1][np.searchsorted(wanted[0], target)])
    mismatch = Mismatch(name, "unwritten", (target,), math.nan, value, math.inf, 0.0, 1, len(wanted[0]))
    return CaseFailure(on.case, mismatch=mismatch)
