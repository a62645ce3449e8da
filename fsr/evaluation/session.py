"""What a worker keeps between tasks: the device, the original's binary, and its answers to the cases.

A session is opened on first use in a process and kept under the digest of its specification; expected results
stay in host memory, never in the address space of a candidate.
"""

from __future__ import annotations

import atexit
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from fsr.backends.lock import DeviceLock
from fsr.backends.protocol import Array, Device, DeviceFault, RecordingDevice, can_judge, can_record
from fsr.backends.select import open_device, parse_device, recording_backend
from fsr.errors import BaselineError, ContractError, MissingToolError
from fsr.evaluation.compiling import build as compile_candidate
from fsr.evaluation.compiling import run_toolchain, settled
from fsr.evaluation.pace import Pace
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import (
    BASELINE_TIMEOUT_S,
    CaseFailure,
    DataShelf,
    Runnable,
    Stopwatch,
    fails,
    run_once,
)
from fsr.evaluation.widened import Widened
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate, Case, CaseKind, CompileFailure, Fault, FaultKind, Image, Plan
from fsr.sandbox.confine import require_support, support
from fsr.testgen import cases as case_lists
from fsr.testgen.aimed import scalar_cases, value_cases, valued_anew
from fsr.testgen.compare import flushes
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.corners import OVERFLOWING
from fsr.testgen.families import FREE
from fsr.testgen.fitting import elements, room
from fsr.testgen.large import large_cases
from fsr.testgen.legal import illegal
from fsr.testgen.oracle import Expected, Once, expect
from fsr.testgen.placing import launched
from fsr.testgen.turning import turning_cases
from fsr.testgen.values import CaseData, build, outputs, same_bits

FIRST_TIMEOUT_S = 10.0  # the original's first case is a small one: a kernel that hangs is told soon
TIMED_SETS = 3
TIMED_POISON = 3
LARGE_ELEMENTS = 1 << 22
LARGE_S = 0.3  # what the original may take on a large case: candidates meet it twice, and bounds cost more
OTHER_VALUES = 6  # cases at sizes that a candidate names that come with other values as well: a path may need both
ERROR_LINES = 8  # of a compiler, shown
CROWD = 8  # times the threads that a case may launch: more are too many for a size that a candidate names
# Where there are no small cases, as many as the original answers four times in this share of the run's budget, which is
# what their data and answers take; of a list at least so many: one of each usual family of values. All, where an answer
# takes less than CHEAP_S.
CASES_SHARE, CASES_LEAST, CHEAP_S = 0.2, 4, 0.1
DEAR_S = 0.2  # an answer that takes this long is not asked for twice


class Session:
    """Everything needed to judge candidates of one kernel on one device.

    Raises BaselineError when the original does not compile, MissingToolError when the device is not there, or when
    untrusted candidates would run on the host where nothing can contain them."""

    def __init__(self, spec: SessionSpec) -> None:
        if spec.untrusted and spec.backend.confined:
            require_support(support())
        self._lock = _locked(spec)
        self.spec, self.contract = spec, spec.contract
        self.device: Device = open_device(parse_device(spec.device))
        self.baseline = self._compile_baseline()
        self.stopwatch = Stopwatch(spec.backend.limits.least_s)
        self._smoke_s = 0.0  # what the original's first answer, of two runs, took
        self._warm = False  # whether that was measured again
        self.notes: list[str] = []  # on what is not tested as it would be
        self.unset: bool | None = None  # whether the original reads shared memory that was never set, once it is asked
        self.held_out_ns: dict[Case, float | None] = {}  # the original's times beside the timed sizes
        self._expected: dict[Case, Expected] = {}
        self._shelf = DataShelf()
        self._search_cases: list[Case] = []
        self._corners: list[Case] | None = None
        self._counts: dict[Case, bool] = {}
        self._checked: Image | bool | None = None
        self._quick: Image | None = None  # what answers for an original that is dear
        self._host: Device | None = self.device if spec.backend.records else None
        self._timed: dict[Case, CaseData] = {}
        self.widened = Widened(spec, self.device, self.host, self.smoke_case)

    # ------------------------------------------------------------ the original

    def _compile_baseline(self) -> Binaries:
        built = compile_candidate(self.spec, self.spec.baseline)
        if isinstance(built, Binaries):
            return built
        detail = built.log if isinstance(built, CompileFailure) else built.detail
        line = built.line if isinstance(built, CompileFailure | Fault) else None
        raise BaselineError(
            f"the kernel does not compile for {self.spec.device}:\n{first_error(detail)}",
            where=f"line {line}" if line else "",
            fix="correct the kernel, or name what it needs in the contract",
        )

    def host(self) -> Device:
        """The host device of this process, for precise answers and recordings."""
        if self._host is None:
            self._host = recording_backend().open(0)
        return self._host

    def expected(self, case: Case) -> Expected:
        """The original's answer to a case; computed once. Raises BaselineError when the original fails it."""
        if case not in self._expected:
            wide, started = self.contract.reference is None and not case.kind.timed, time.monotonic()
            self._expected[case] = expect(
                self.contract,
                case,
                Once(self._run_baseline) if self._repeats() else self._run_baseline,
                precise=partial(self.widened.answer, noisy=False) if wide else None,
                noisy=partial(self.widened.answer, noisy=True) if wide else None,
                folder=Path(self.spec.folder),
            )
            self._smoke_s = self._smoke_s or time.monotonic() - started
        return self._expected[case]

    def _repeats(self) -> bool:
        """Whether the original need not be asked twice: it has no small cases, asking is dear, and all that it was
        asked first it said twice to the bit, leaving no element out."""
        first = self._expected.get(self.smoke_case()) if self._dear and self.cramped else None
        return first is not None and first.steady

    @property
    def _dear(self) -> bool:
        return self._smoke_s >= 2 * DEAR_S

    def _answering(self) -> Image:
        """What is asked for the original's answers: of one that is dear a build without instruments, which takes a
        fraction of the time, if that gives the bits of the first answer."""
        case = self.smoke_case()
        first = self._expected.get(case)
        if self._quick is None and self._dear and self.spec.backend.records and first is not None:
            self._quick = self.baseline.run
            built = run_toolchain(self.spec).compile(settled(self.spec, self.spec.baseline))
            if isinstance(built, Image) and first.steady:
                what = Runnable(self.device, built, self.spec.baseline.plan, self.contract)
                got = run_once(what, case, build(self.contract, case), 0, BASELINE_TIMEOUT_S)
                if all(bool(same_bits(got[name], want).all()) for name, want in first.arrays.items()):
                    self._quick = built
        return self._quick or self.baseline.run

    def answers_alike(self, case: Case, data: CaseData, got: Mapping[str, Array]) -> bool:
        """Whether the original gives these very bits on the data: then they are right, and what else is known of the
        case (how far the original itself may be off) need not be found out, which costs seconds at timed sizes."""
        wanted = self._run_baseline(case, data)
        names = outputs(self.contract, case)
        return all(bool(same_bits(got[name], wanted[name]).all()) for name in names)

    def _run_baseline(self, case: Case, data: CaseData) -> Mapping[str, Array]:
        limit_s = BASELINE_TIMEOUT_S if self._expected else FIRST_TIMEOUT_S
        try:
            return self._run_limited(case, data, limit_s)
        except DeviceFault as fault:
            if fault.fault.kind == FaultKind.MEMORY:
                raise
            raise self.baseline_error(case, fault.fault) from None

    def _run_limited(self, case: Case, data: CaseData, limit_s: float) -> Mapping[str, Array]:
        what = Runnable(self.device, self._answering(), self.spec.baseline.plan, self.contract)
        started = time.monotonic()
        try:
            return run_once(what, case, data, 0, limit_s)
        finally:
            self.stopwatch.note(case, started)

    def baseline_error(self, case: Case, fault: Fault) -> BaselineError:
        """The error for an original that fails one of its own cases."""
        sizes = ", ".join(f"{k}={v}" for k, v in case.sizes) or "no sizes"
        room = fault.kind is FaultKind.OUT_OF_BOUNDS and "' has " in fault.detail
        return BaselineError(
            f"the kernel fails its own tests: {fault.kind}: {fault.detail}",
            expected="a kernel that is right before it is made faster",
            where=f"case {case.name!r} ({sizes}; values {case.family})"
            + (f", line {fault.line}" if fault.line else ""),
            fix="correct the kernel, or narrow the sizes and values in its contract"
            + (", or state in its shape what the callers allocate, where that is more" if room else ""),
        )

    # ------------------------------------------------------------ cases

    @property
    def max_elements(self) -> int:
        """How large a test case may be, in elements of all buffers."""
        return self.spec.backend.limits.elements

    def smoke_case(self) -> Case:
        """The first case of every candidate."""
        return case_lists.smoke(self.contract, self.spec.seed, self.max_elements)

    @property
    def fixed(self) -> bool:
        """Whether there are no sizes but one of each: all cases have them."""
        return all(size.minimum == size.maximum for size in self.contract.sizes)

    @property
    def cramped(self) -> bool:
        """Whether there are no small cases: even the first, which is as small as the sizes allow, is large."""
        most = room(self.contract, self.max_elements)
        return self.fixed or elements(self.contract, self.smoke_case().size_map()) > most

    def search_cases(self) -> list[Case]:
        """The cases of every candidate that is worth full tests: the same list for all, so that the original
        answers each once."""
        if not self._search_cases:
            self._search_cases = self.affordable(case_lists.search_cases(
                self.contract, self.spec.baseline, self.spec.seed, max_elements=self.max_elements
            ), [self.smoke_case()])  # fmt: skip
        return list(self._search_cases)

    def affordable(self, cases: list[Case], before: Sequence[Case] = ()) -> list[Case]:
        """All of the cases; where there are no small ones, those that a share of the run's budget suffices for: first
        one of each family of values, those of ``before``, which come first, among them. What else the machine does
        decides nothing where there are small sizes."""
        if not self.cramped:
            return cases
        self.expected(self.smoke_case())
        one_s = self._answer_s()
        most = max(CASES_LEAST, int(CASES_SHARE * self.spec.budget_s / (4 * max(one_s, CHEAP_S)))) - len(before)
        if one_s < CHEAP_S or len(cases) <= most:
            return cases
        self.notes.append(f"{most} of {len(cases)} test cases: even the smallest takes {one_s:.1f} s")
        seen = Counter(case.family for case in before)
        turns = {case: seen.update([case.family]) or seen[case.family] for case in cases}
        usual = ("normal", "uniform", "wide", "mixed")
        kept = set(sorted(cases, key=lambda case: (turns[case], case.family not in usual))[:most])
        return [case for case in cases if case in kept]

    def _answer_s(self) -> float:
        """What the original takes for the first case, which is as small as any; what began with its first answer, as
        the device's own process, apart."""
        if self._smoke_s >= 2 * CHEAP_S and not self._warm:
            started = time.monotonic()
            self._run_limited(self.smoke_case(), self._shelf(self.contract, self.smoke_case(), 1), BASELINE_TIMEOUT_S)
            self._smoke_s, self._warm = min(self._smoke_s, 2 * (time.monotonic() - started)), True
        return self._smoke_s / 2

    def candidate_cases(self, candidate: Candidate) -> list[Case]:
        """Cases around the numbers that only this candidate names: its tiles, and sizes and values that it treats
        apart; and on both sides of the conditions on sizes and blocks that only it has."""
        baseline, seed = self.spec.baseline, self.spec.seed
        tailored = case_lists.tailored_cases(
            self.contract, candidate, baseline, seed, max_elements=self.max_elements,
            dear=lambda case: self._crowded(candidate.plan, case),
        )  # fmt: skip
        turning = turning_cases(self.contract, candidate, baseline, seed)
        named = [*tailored, *turning]
        often = [*tailored[:OTHER_VALUES], *turning[:OTHER_VALUES]]
        others = valued_anew([c for c in often if not self.waits(c)])
        if self.fixed:  # all other cases have this very size: other values alone may tell more
            named, others = [], others[:1]
        return self.affordable([*named, *others, *value_cases(self.contract, candidate, baseline, seed)])

    def held_out_cases(self) -> list[Case]:
        """The cases that decide promotion."""
        found = case_lists.held_out_cases(self.contract, self.spec.seed, max_elements=self.max_elements)
        return self.affordable(found)

    def corner_cases(self) -> list[Case]:
        """Cases of values and sizes that ordinary draws hardly ever have; only promotion meets them."""
        if self._corners is None:  # asked for by the tests, and by what is looked at in parts
            seed = self.spec.seed
            named = scalar_cases(self.contract, self.spec.baseline, seed)
            self._corners = self.affordable([*named, *corner_cases(self.contract, seed, self.max_elements)])
        return self._corners

    def large_cases(self) -> list[Case]:
        """Cases at the upper end of the sizes, as far as this machine answers them soon; none where there is but one
        size, which all other cases have."""
        if self.fixed:
            return []
        found = large_cases(self.contract, self.spec.seed, LARGE_ELEMENTS)
        return [*found, *large_cases(self.contract, self.spec.seed, 8 * LARGE_ELEMENTS)[-1:]]

    def counts(self, case: Case) -> bool:
        """Whether a case says anything: the original answers it in time, does not overflow on the way and stays within
        its buffers. Cases of ordinary size and values do; found out once for others."""
        if case not in self._counts:
            self._counts[case] = self._soon(case) and self._defined(case)
        return self._counts[case]

    def _soon(self, case: Case) -> bool:
        if not case.kind.unusual or not self.spec.backend.limits.threads:
            return True
        try:
            limit_s = LARGE_S if case.kind is CaseKind.LARGE else BASELINE_TIMEOUT_S
            self._run_limited(case, self._shelf(self.contract, case, 1), limit_s)
        except DeviceFault as fault:
            if fault.fault.kind in (FaultKind.HANG, FaultKind.MEMORY):
                return False
            raise self.baseline_error(case, fault.fault) from None
        return True

    def _defined(self, case: Case) -> bool:
        """Whether no signed integer of the original overflows on the case, as far as can be told: its answer would be
        undefined."""
        if case.family not in FREE and case.family not in OVERFLOWING:
            return True
        if self._checked is None:
            self._checked = _built_checked(self.spec.baseline)
        if not isinstance(self._checked, Image):  # nothing here can tell: rather refuse a right one than take a wrong
            return case.family in FREE  # but an index that is no index would end the run
        data = self._shelf(self.contract, case, 1)
        try:
            run_once(Runnable(self.host(), self._checked, self.spec.baseline.plan, self.contract), case, data)
            if self.contract.reference is not None and case.family in OVERFLOWING:
                self.expected(case)
        except (DeviceFault, BaselineError, ContractError):
            return False
        return True

    def illegal(self, candidate: Candidate) -> Fault | None:
        """A launch of the candidate that cannot be made at an end of the sizes, where the original's can."""
        most = self.device.info.max_shared_bytes or STATIC_SHARED_BYTES
        return illegal(self.contract, candidate, self.spec.baseline.plan, most)

    def first_failure(self, image: Image, candidate: Candidate, cases: list[Case]) -> tuple[int, CaseFailure | None]:
        """(cases passed, the first failure or None), of the cases that the device takes in time. Each case is run
        twice; where even the smallest is dear, the first."""
        plan, passed, flushed = candidate.plan, 0, flushes(candidate)
        pace = self._pace(plan)
        for case in cases:
            if pace.over(case) or not self.counts(case) or (passed and pace.crowded(case)):
                continue
            expected, started = self.expected(case), time.monotonic()
            limit_s = self.stopwatch.limit_s(case) + pace.limit_s(case)
            what, twice = Runnable(self.device, image, plan, self.contract, flushed), not (passed and self._repeats())
            failure = fails(what, case, expected, limit_s, self._shelf, twice=twice)
            if failure is not None:
                return passed, failure
            pace.took(case, time.monotonic() - started)
            passed += 1
        return passed, None

    def _pace(self, plan: Plan) -> Pace:
        own = cache(partial(self.launched_threads, plan))
        original = partial(self.launched_threads, self.spec.baseline.plan)
        return Pace(self.spec.backend.limits, self.spec.budget_s, self.cramped, own, original)

    def _crowded(self, plan: Plan, case: Case) -> bool:
        """Whether a case launches far more threads than others may, and than the original does on it."""
        most = CROWD * (self.spec.backend.limits.threads or 0)
        return 0 < most < self.launched_threads(plan, case) > 2 * self.launched_threads(self.spec.baseline.plan, case)

    def waits(self, case: Case) -> bool:
        """Whether so many threads run for a case, the original's too, that only what is promoted meets it."""
        most = CROWD * (self.spec.backend.limits.threads or 0)
        return 0 < most < self.launched_threads(self.spec.baseline.plan, case)

    def launched_threads(self, plan: Plan, case: Case) -> int:
        """Threads of all launches of a plan on a case."""
        launches = launched(self.contract, plan, case)
        return sum(math.prod(launch.grid) * math.prod(launch.block) for launch in launches)

    def timed(self, sets: int = 1) -> list[tuple[Case, CaseData]]:
        """The first ``sets`` (at most 3) input sets of every timed configuration, built once, as formulas where the
        device draws; the arrays are read-only, which tells the device that it may keep a copy of its own."""
        cases = case_lists.timed_cases(self.contract, self.spec.seed, TIMED_SETS)
        return [(case, self._timed_data(case)) for i, case in enumerate(cases) if i % TIMED_SETS < sets]

    def _timed_data(self, case: Case) -> CaseData:
        if case not in self._timed:  # of large ones each takes seconds and gigabytes, and a prediction wants but one
            data = build(self.contract, case, TIMED_POISON, drawn=can_judge(self.device))
            for name in data.arrays.keys() - data.draws.keys():
                data.arrays[name].flags.writeable = False
            self._timed[case] = data
        return self._timed[case]

    def recorder(self) -> RecordingDevice:
        """The host device, also beside a GPU. Raises MissingToolError."""
        host = self.host()
        assert can_record(host)
        return host

    def close(self) -> None:
        """Close the devices."""
        self.device.close()
        if self._host is not None and self._host is not self.device:
            self._host.close()
        if self._lock is not None:
            self._lock.release()


def first_error(log: str) -> str:
    """Of what a compiler said the first error, and how many more there are: the others mostly follow from it."""
    lines = log.strip().splitlines()
    errors = [n for n, line in enumerate(lines) if re.search(r"\berror\b", line)]
    if not errors:
        return log.strip()[-2500:]
    end = min([n for n in (*errors[1:], len(lines)) if n > errors[0]])
    told = lines[errors[0] : min(end, errors[0] + ERROR_LINES)]
    told = told[: told.index("")] if "" in told else told
    more = sum(": error" in lines[n] or "error:" in lines[n] for n in errors[1:])
    return "\n".join([*told, *([f"and {more} more"] if more else [])])


def _built_checked(baseline: Candidate) -> Image | bool:
    """The original trapping where a signed integer overflows or a buffer ends; False where that cannot be built."""
    from fsr.backends.host.compiler import HostToolchain

    try:
        image = HostToolchain(checked=True).compile(baseline, instrumented=True)
    except MissingToolError:
        return False
    return image if isinstance(image, Image) else False


def _locked(spec: SessionSpec) -> DeviceLock | None:
    """The claim on the session's GPU, taken; None on the host device."""
    if not spec.backend.numbered or spec.leased:
        return None
    index = parse_device(spec.device).index
    spec.backend.require(index)
    return DeviceLock(spec.backend.gpus()[index].uuid).__enter__()


_SESSIONS: dict[str, Session] = {}


@atexit.register  # a GPU's context must be given back before the interpreter takes its modules apart
def close_sessions() -> None:
    """Close every session of this process."""
    while _SESSIONS:
        _SESSIONS.popitem()[1].close()


def session_of(spec: SessionSpec) -> Session:
    """The process's session for a specification, opened on first use; an older one is closed."""
    key = spec.digest()
    if key not in _SESSIONS:
        close_sessions()
        _SESSIONS[key] = Session(spec)
    return _SESSIONS[key]
