"""Judging outputs where they are: on a device that draws and compares by itself the host sees verdicts alone.

The way of :mod:`fsr.testgen.compare`, by the kernels of the device: first the bits; where they differ, the original
runs again, on perturbed inputs, and in float64.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fsr.backends.protocol import Comparison, DeviceFault, JudgingDevice, can_judge
from fsr.contract.model import Contract
from fsr.evaluation.capacity import buffer_bytes
from fsr.evaluation.faults import OriginalFails
from fsr.evaluation.judging_pace import JudgingPace
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries
from fsr.evaluation.testing import CaseFailure
from fsr.evaluation.widened import in_float64
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Candidate, Case, Fault, FaultKind, Image, Plan, Role, Sizes
from fsr.testgen import families
from fsr.testgen.compare import (
    ARRAY_ERROR_CAP,
    OVERFLOWED_NEAR,
    TIMES_LESS_ACCURATE,
    Mismatch,
    adds,
    exactly_within,
    flushes,
    tolerance,
)
from fsr.testgen.draws import Kind, word
from fsr.testgen.fitting import elements
from fsr.testgen.generated import most_elements
from fsr.testgen.large import filled_cases, large_cases, largest_case
from fsr.testgen.oracle import NOISY_DOUBLES, NOISY_RUNS
from fsr.testgen.placing import place
from fsr.testgen.reference import widened_data
from fsr.testgen.shaking import PERTURBED_RUNS, moved_arrays, noisy_step, perturbation
from fsr.testgen.structured import are_written
from fsr.testgen.values import CaseData, outputs, poison_draw

# Elements of all buffers; with the last one of two alike has more than an int can count.
STEPS = (1 << 22, 1 << 25, 1 << 28, 1 << 31, (1 << 32) + (1 << 26))
COPIES = 6  # of a case's buffers: the candidate's, the original's twice, once perturbed, and in float64
BESIDE_BYTES = 4 << 30  # for the sanitizers, which run at the same time, a context each
AGAIN_SEED, WANT_SEED, OWN_SEED = 77, 78, 3  # poison of the original's runs and of a candidate's
LARGE_DATA = 1 << 21  # elements of a case from which drawing and comparing them here takes longer than all runs


class _OutOfTimeError(Exception):
    """The bits differ, and there is no time for the runs that would say whether they may."""


@dataclass(frozen=True, slots=True)
class _Original:
    """How the original, or its widened form, is run once more on a case."""

    session: Session
    device: JudgingDevice
    case: Case
    contract: Contract
    pace: JudgingPace | None = None

    def answered(self, poison_seed: int) -> AbstractContextManager[Any]:
        """The original itself after one run on the case, its outputs poisoned with that seed."""
        data = self.session.drawn(self.case, poison_seed)
        return self.ran(data, self.session.baseline.run, self.session.spec.baseline.plan)

    @contextmanager
    def ran(
        self, data: CaseData, image: Image, plan: Plan, shaken: int = 0, step: float | None = None
    ) -> Iterator[Any]:
        """A prepared plan after one run; ``shaken``: number of the perturbation, 0 for none; ``step``: its size, by
        default far above the type's rounding."""
        if shaken:
            data = moved_arrays(self.contract, self.case, data, shaken, step)
        launches, buffers = place(self.contract, plan, self.case, data)
        with self.device.prepare(image, launches, buffers) as ready:
            prepared: Any = ready
            if shaken:
                for buffer in buffers:
                    if buffer.formula is not None and buffer.role is not Role.OUT and is_float(buffer.array.dtype):
                        by = step or perturbation(buffer.array.dtype)
                        prepared.shake(buffer.name, word(self.case.seed, shaken), by)
            started = time.monotonic()
            prepared.run(max(10.0, self.session.original.stopwatch.limit_s(self.case)))
            if self.pace is not None:
                self.pace.ran(time.monotonic() - started)
            yield prepared


def failure_on_device(
    session: Session, device: JudgingDevice, candidate: Candidate, case: Case, prepared: Any, poison_seed: int
) -> CaseFailure | None:
    """What is wrong with the outputs that a prepared candidate left (drawn with ``poison_seed``); None when all is
    right. Raises BaselineError when the original fails the case."""
    original = _Original(session, device, case, session.contract)
    try:
        with original.answered(WANT_SEED) as want:
            return _compared(original, candidate, prepared, want, poison_seed)
    except DeviceFault as fault:
        if fault.fatal:
            raise
        raise session.original.error(case, fault.fault) from None


def first_failure(
    session: Session, image: Image, candidate: Candidate, cases: list[Case]
) -> tuple[int, CaseFailure | None]:
    """(cases passed, the first failure or None), as :meth:`Session.first_failure` says. Where every case is large, a
    device that draws and compares by itself does: here a case takes seconds."""
    device, contract, passed = session.device, session.contract, 0
    large = session.spec.cramped and elements(contract, session.spec.smoke_case().size_map()) >= LARGE_DATA
    foreign = contract.reference is not None or are_written(contract)  # an answer that is not the original's own
    if not can_judge(device) or not large or foreign:
        return session.first_failure(image, candidate, cases)
    for case in cases:
        if not session.original.counts(case):
            continue
        failure = _case_failure(session, device, image, candidate, case)
        if failure is not None:
            return passed, failure
        passed += 1
        session.reached.add(case.sizes)
    return passed, None


def _case_failure(
    session: Session, device: JudgingDevice, image: Image, candidate: Candidate, case: Case
) -> CaseFailure | None:
    """What is wrong with a candidate on a case, drawn and compared on the device; here where it has no room, and where
    floating values are made as a whole (in order, without repetition), which it cannot move. Raises BaselineError when
    the original fails the case, and fatal DeviceFaults."""
    data = session.drawn(case, OWN_SEED)
    launches, buffers = place(session.contract, candidate.plan, case, data)
    made = any(is_float(array.dtype) for name, array in data.arrays.items() if name not in data.draws)
    if made or data.layouts or not launches or not _has_room(session, case):
        return session.first_failure(image, candidate, [case])[1]
    try:
        with device.prepare(image, launches, buffers) as prepared:
            prepared.run(max(10.0, session.original.stopwatch.limit_s(case)))
            return failure_on_device(session, device, candidate, case, prepared, OWN_SEED)
    except DeviceFault as fault:
        if fault.fatal:
            raise
        return CaseFailure(case, fault=fault.fault)


def _compared(
    original: _Original, candidate: Candidate, prepared: Any, want: Any, poison_seed: int
) -> CaseFailure | None:
    """What is wrong with what a prepared candidate left, beside the original's answer."""
    broken = prepared.violations()
    if broken:
        return CaseFailure(original.case, fault=broken[0])
    names = outputs(original.session.contract, original.case)
    differing = [name for name in names if _differs(original, prepared, want, name)]
    if not differing:
        return None
    if original.pace is not None and not original.pace.bears():
        raise _OutOfTimeError
    with original.answered(AGAIN_SEED) as again:
        for name in differing:
            found = _judged(original, (prepared, want, again), name, candidate, poison_seed)
            if found is not None:
                return CaseFailure(original.case, mismatch=found)
    return None


def large_failure(
    session: Session, device: JudgingDevice, candidate: Candidate, binaries: Binaries, budget_s: float,
    below: int | None = None,
) -> tuple[int, CaseFailure | None]:  # fmt: skip
    """(cases passed, the first failure) at sizes as large as the contract, the memory and the budget allow: first one
    case of each step, upwards while the times of those before say that it will end in time, then the others, the
    largest first. ``below``: elements at which the original is known to fail. Raises OriginalFails where it does."""
    pace = JudgingPace(time.monotonic() + budget_s)
    looked = 0
    tried = set[tuple[Sizes, bool]]()
    ladder = [_cases_of_step(session, most) for most in STEPS]
    for case in [*(step[0] for step in ladder if step), *(c for step in reversed(ladder) for c in step[1:])]:
        size, told = elements(session.contract, case.size_map()), (case.sizes, case.family.startswith(families.ENDS))
        if told in tried or not pace.allows(size) or (below is not None and size >= below):
            continue
        tried.add(told)
        with pace.noting(size):
            try:
                failure = _run_and_judge(session, device, candidate, binaries, case, pace)
            except _OutOfTimeError:
                continue
        if failure is not None:
            return looked, failure
        looked += 1
        session.reached.add(case.sizes)
    return looked, None


def large_failure_at(
    session: Session, device: JudgingDevice, candidate: Candidate, binaries: Binaries, seeds: Collection[int]
) -> CaseFailure | None:
    """The first failure at those of the cases of :func:`large_failure` that have these seeds."""
    ladder = {case: None for most in STEPS for case in _cases_of_step(session, most) if case.seed in seeds}
    failures = (_run_and_judge(session, device, candidate, binaries, case) for case in ladder)
    return next((failure for failure in failures if failure is not None), None)


def _cases_of_step(session: Session, most: int) -> list[Case]:
    """The largest first."""
    contract, seed = session.contract, session.spec.seed
    if are_written(contract):
        return []
    most = most_elements(contract, most)
    found = [largest_case(contract, seed, most), *filled_cases(contract, seed, most)]
    found += reversed(large_cases(contract, seed, most))
    return [case for case in found if _has_room(session, case)]


def _has_room(session: Session, case: Case) -> bool:
    memory = session.device.info.memory_bytes or 0
    memory -= min(BESIDE_BYTES, memory // 4)
    return COPIES * buffer_bytes(session.contract, case.size_map()) < memory


def _run_and_judge(
    session: Session, device: JudgingDevice, candidate: Candidate, binaries: Binaries, case: Case,
    pace: JudgingPace | None = None,
) -> CaseFailure | None:  # fmt: skip
    launches, buffers = place(session.contract, candidate.plan, case, session.drawn(case, OWN_SEED))
    if not launches:
        return None
    original = _Original(session, device, case, session.contract, pace)
    with ExitStack() as stack:
        try:
            want = stack.enter_context(original.answered(WANT_SEED))
        except DeviceFault as fault:  # first, so that what it does is not held against the candidate
            if fault.fault.kind == FaultKind.MEMORY:
                return None
            raise _original_fails(session, case, fault.fault) from None
        try:
            prepared = stack.enter_context(device.prepare(binaries.run, launches, buffers))
            prepared.run(max(10.0, session.original.stopwatch.limit_s(case)))
            return _compared(original, candidate, prepared, want, OWN_SEED)
        except DeviceFault as fault:
            if fault.fatal:
                raise
            return None if fault.fault.kind == FaultKind.MEMORY else CaseFailure(case, fault=fault.fault)


def _original_fails(session: Session, case: Case, fault: Fault) -> OriginalFails:
    sizes = ", ".join(f"{name}={value}" for name, value in case.sizes)
    return OriginalFails(elements(session.contract, case.size_map()), sizes, fault.detail)


def _differs(original: _Original, got: Any, want: Any, name: str) -> bool:
    same = Comparison(0.0, 0.0, 0.0, 0.0, exact=True, sums=False, pure=False, poisons=(0, 0, 0))
    regions = (got.region(name), want.region(name), want.region(name))
    return original.device.judge.compare(regions, same) is not None


def _judged(
    original: _Original, ran: tuple[Any, Any, Any], name: str, candidate: Candidate, poison_seed: int
) -> Mismatch | None:
    session, case, judge = original.session, original.case, original.device.judge
    got, want, again = (prepared.region(name) for prepared in ran)
    flushed = flushes(candidate, session.spec.baseline)
    how = _comparison(session, case, name, got.dtype, flushed, poison_seed)
    if how.exact:
        found = judge.compare((got, want, again), how)
    else:
        with ExitStack() as stack:
            scale = _scale(original, stack, want, name)
            truth = _truth(original, stack, name)
            found = judge.compare((got, want, again), how, _known(judge, want, truth, scale, how))
            for _ in _wider_scales(original, want, truth, name, scale, how) if _is_off(found) else ():
                found = judge.compare((got, want, again), how, _known(judge, want, truth, scale, how))
                if not _is_off(found):
                    break
    if found is None:
        return None
    shape = session.contract.shape(session.contract.argument(name), case.size_map())
    index = tuple(int(i) for i in np.unravel_index(found.index, shape))
    return Mismatch(
        name, found.kind, index, found.got, found.expected, found.error, found.bound, found.count, got.count
    )


def _comparison(
    session: Session, case: Case, name: str, dtype: np.dtype[Any], flushed: bool, poison_seed: int
) -> Comparison:
    contract = session.contract
    unordered = adds(session.spec.baseline.source)
    relative, absolute = tolerance(contract, case, dtype, flushed=flushed, unordered=unordered)
    within = exactly_within(contract, dtype)
    pure = contract.argument(name).role is Role.OUT and name not in case.aliased
    first, second, third = (int(poison_draw(dtype, 1, seed).table[0]) for seed in (poison_seed, WANT_SEED, AGAIN_SEED))
    return Comparison(
        relative, absolute if within is None else within, TIMES_LESS_ACCURATE, OVERFLOWED_NEAR,
        exact=within is not None, sums=contract.tolerance.sum_length is not None,
        pure=pure, poisons=(first, second, third),
    )  # fmt: skip


def _scale(original: _Original, stack: ExitStack, want: Any, name: str) -> int:
    """Address of the scale of errors: the answer's size, and what perturbed runs moved it by."""
    session, pool = original.session, original.device.pool
    at: int = pool.take(8 * want.count)
    stack.callback(pool.give, at)
    original.device.judge.scale(at, want, None)
    if session.contract.tolerance.of_result:
        return at
    data = session.drawn(original.case, WANT_SEED)
    step = _step(data)
    for number in range(1, PERTURBED_RUNS + 1):
        with original.ran(data, session.baseline.run, session.spec.baseline.plan, number) as moved:
            original.device.judge.scale(at, want, moved.region(name), step)
    return at


def _step(data: CaseData) -> float:
    """By what share inputs are moved, the smallest of their types."""
    dtypes = [array.dtype for array in data.arrays.values()]
    dtypes += [numpy_dtype(f.dtype) for layout in data.layouts.values() for f in layout.fields]
    return min((perturbation(dtype) for dtype in dtypes if is_float(dtype)), default=1.0)


def _truth(original: _Original, stack: ExitStack, name: str) -> Any:
    """Where the float64 answer lies; None where there is none."""
    return _ran_wide(original, stack, name, original.session.original.widened.on_device())


def _ran_wide(
    original: _Original, stack: ExitStack, name: str, built: tuple[Candidate, Image] | None, shaken: int = 0
) -> Any:
    if built is None:
        return None
    candidate, image = built
    data = _widened(original.session.drawn(original.case, WANT_SEED))
    precise = replace(original, contract=in_float64(original.session.contract))
    step = noisy_step(original.session.contract)
    try:
        return stack.enter_context(precise.ran(data, image, candidate.plan, shaken, step)).region(name)
    except DeviceFault as fault:
        if fault.fatal:
            raise
        return None


def _known(judge: Any, want: Any, truth: Any, scale: int, how: Comparison) -> tuple[int, int, float]:
    """Addresses of the float64 answer (0: none) and of the scale, and the original's usual error relative to it."""
    if truth is None:
        return 0, scale, 0.0
    largest, root = judge.usual_error(want, int(truth.address), scale, how)
    return int(truth.address), scale, min(largest, ARRAY_ERROR_CAP * root)


def _is_off(found: Any) -> bool:
    """Whether a comparison found a value that is too far from the right one."""
    return found is not None and found.kind == "value"


def _wider_scales(original: _Original, want: Any, truth: Any, name: str, scale: int, how: Comparison) -> Iterator[None]:
    """A second opinion of the scale, wider each time: more perturbed runs, and how far rounding in the original's own
    types carries. Of a dear original a run or two are worth waiting for, and mostly suffice."""
    session, judge = original.session, original.device.judge
    data = session.drawn(original.case, WANT_SEED)
    step = _step(data)
    more = () if session.contract.tolerance.of_result else range(PERTURBED_RUNS + 1, 2 * PERTURBED_RUNS + 1)
    for number in more:
        with original.ran(data, session.baseline.run, session.spec.baseline.plan, number) as moved:
            judge.scale(scale, want, moved.region(name), step)
        yield
    right = want if truth is None else truth  # what is float64 throughout is its own
    if (want.dtype.itemsize < 8 and truth is None) or not how.relative:
        return
    # One run says little of an element that small differences grow in; a residue in float64 is often none at all.
    for number in range(NOISY_RUNS if truth is not None else NOISY_DOUBLES):
        with ExitStack() as stack:
            noisy = _ran_wide(original, stack, name, session.original.widened.on_device(noisy=1), number)
            if noisy is None:
                return
            # the bound is relative * scale, and of the noise TIMES_LESS_ACCURATE times as much
            judge.scale(scale, right, noisy, how.relative / TIMES_LESS_ACCURATE)
        yield


def _widened(data: CaseData) -> CaseData:
    """The drawn data as float64: inputs drawn in their own type and stored wide, outputs poisoned anew."""
    wide, arrays, draws = np.dtype(np.float64), dict(data.arrays), dict(data.draws)
    for name, draw in data.draws.items():
        dtype = data.arrays[name].dtype
        if is_float(dtype):
            arrays[name] = np.broadcast_to(np.zeros((), wide), data.arrays[name].shape)
            poisoned = draw.kind is Kind.BITS
            draws[name] = poison_draw(wide, draw.count, 5) if poisoned else replace(draw, narrow=dtype.name)
    undrawn = widened_data(replace(data, arrays={n: a for n, a in arrays.items() if n not in draws}))
    return replace(undrawn, arrays={**arrays, **undrawn.arrays}, draws=draws)
