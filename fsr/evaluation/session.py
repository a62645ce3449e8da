"""What a worker keeps between tasks: the device, the original's binary, and its answers to the cases.

A session is opened on first use in a process and kept under the digest of its specification; expected results
stay in host memory, never in the address space of a candidate.
"""

from __future__ import annotations

import atexit
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from fsr.backends.lock import DeviceLock
from fsr.backends.protocol import Device, RecordingDevice, can_judge, can_record
from fsr.backends.select import open_device, parse_device, recording_backend
from fsr.evaluation.coverage import covered, in_words
from fsr.evaluation.hosts import Hosts, idle_hosts
from fsr.evaluation.original import Original
from fsr.evaluation.owners import BlockMap
from fsr.evaluation.pace import Pace
from fsr.evaluation.quickened import INSTRUMENTED, Quickened
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure, Runnable, fails
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate, Case, Fault, Image, Plan, Sizes
from fsr.sandbox.confine import require_support, support
from fsr.testgen import cases as case_lists
from fsr.testgen.aimed import (
    counted_cases,
    length_cases,
    scalar_cases,
    spelled_cases,
    threshold_cases,
    value_cases,
    valued_anew,
)
from fsr.testgen.compare import flushes
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.coverage import Covered
from fsr.testgen.dialled import dialled_cases
from fsr.testgen.fitting import elements
from fsr.testgen.large import bulk_cases, large_cases
from fsr.testgen.legal import illegal
from fsr.testgen.parts import BLOCKS, alone
from fsr.testgen.placing import launched
from fsr.testgen.small_worlds import small_cases
from fsr.testgen.turning import turning_cases
from fsr.testgen.values import CaseData, build, repoisoned

TIMED_SETS = 3
TIMED_POISON = 3
LARGE_ELEMENTS = 1 << 22
LARGEST = 2  # cases of a search that are run as large as they were drawn, whatever that takes
OTHER_VALUES = 6  # cases at sizes that a candidate names that come with other values as well: a path may need both
CROWD = 8  # times the threads that a case may launch: more are too many for a size that a candidate names
# Where there are no small cases, as many as the original answers four times in this share of the run's budget, which is
# what their data and answers take; of a list at least so many: one of each usual family of values. All, where neither
# takes CHEAP_S. Of those that decide promotion half as many where the others come in parts.
CASES_SHARE, CASES_LEAST, WHOLE_LEAST, CHEAP_S = 0.2, 4, 1, 0.1


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
        self._host: Device | None = self.device if spec.backend.records else None
        self._hosts: Hosts | None = None
        self.original = Original(spec, self.device, self.host)
        self.notes: list[str] = []  # on what is not tested as it would be
        self.unset: bool | None = None  # whether the original reads shared memory that was never set, once it is asked
        self.held_out_ns: dict[Case, float | None] = {}  # the original's times beside the timed sizes
        self.reached: set[Sizes] = set()  # sizes of cases that a candidate passed in whole
        self.in_blocks: set[Sizes] = set()  # and of those of which some blocks did
        self.not_in_blocks: dict[Sizes, str] = {}  # why none did at other sizes
        self._search_cases: list[Case] = []
        self._corners: list[Case] | None = None
        self._large: list[Case] | None = None
        self._coverage: list[Case] | None = None
        self._mapped: tuple[Image, BlockMap] | None = None  # of the last candidate that was judged in parts
        self._running: tuple[Image, Quickened] | None = None  # of the last candidate that was judged
        self._timed: dict[Case, CaseData] = {}
        self._drawn: tuple[Case, int, CaseData] | None = None

    def host(self) -> Device:
        """The host device of this process, for precise answers and recordings."""
        if self._host is None:
            self._host = recording_backend().open(0)
        return self._host

    @property
    def baseline(self) -> Binaries:
        """The original's."""
        return self.original.binaries

    def note(self, told: str) -> None:
        """Tell something of how the kernel is tested, once."""
        if told not in self.notes:
            self.notes.append(told)

    # ------------------------------------------------------------ cases

    @property
    def max_elements(self) -> int:
        """How large a test case may be, in elements of all buffers."""
        return self.spec.backend.limits.elements

    def search_cases(self) -> list[Case]:
        """The cases of every candidate that is worth full tests: the same list for all, so that the original
        answers each once."""
        if not self._search_cases:
            self._search_cases = self.affordable(case_lists.search_cases(
                self.contract, self.spec.baseline, self.spec.seed, max_elements=self.max_elements
            ), [self.spec.smoke_case()])  # fmt: skip
            size = partial(elements, self.contract)
            largest = sorted(self._search_cases, key=lambda case: size(case.size_map()))[-LARGEST:]
            self.original.whole = frozenset(largest)
        return list(self._search_cases)

    def affordable(self, cases: list[Case], before: Sequence[Case] = (), *, whole: bool = False) -> list[Case]:
        """All of the cases; where there are no small ones, those that a share of the run's budget suffices for: first
        one of each family of values, those of ``before``, which come first, among them. Where blocks can be judged
        alone the others follow in parts, and these too unless ``whole``. What else the machine does decides nothing
        where there are small sizes."""
        if not self.spec.cramped:
            return cases
        self.original.expected(self.spec.smoke_case())
        one_s, seen = self.original.case_s, Counter(case.family for case in before)
        most = max(CASES_LEAST, int(CASES_SHARE * self.spec.budget_s / (4 * max(one_s, CHEAP_S)))) - len(before)
        if one_s < CHEAP_S or (len(cases) <= most and not self.original.divides):
            return cases
        turns = {case: seen.update([case.family]) or seen[case.family] for case in cases}
        usual = ("normal", "uniform", "wide", "mixed")
        ranked = sorted(cases, key=lambda case: (turns[case], case.family not in usual))
        if self.original.divides:
            most = max(WHOLE_LEAST, most // 2) if whole else 0
            self.note(f"most test cases are judged in part, on {BLOCKS} blocks: one in whole takes {one_s:.1f} s")
            return [*ranked[:most], *(replace(case, parts=True) for case in ranked[most:])]
        self.note(f"{most} of {len(cases)} test cases: even the smallest takes {one_s:.1f} s")
        kept = set(ranked[:most])
        return [case for case in cases if case in kept]

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
        if self.spec.fixed:  # all other cases have this very size: other values alone may tell more
            named, others = [], others[:1]
        return self.affordable([*named, *others, *value_cases(self.contract, candidate, baseline, seed)])

    def held_out_cases(self) -> list[Case]:
        """The cases that decide promotion."""
        found = case_lists.held_out_cases(self.contract, self.spec.seed, max_elements=self.max_elements)
        return self.affordable(found, whole=True)

    def corner_cases(self) -> list[Case]:
        """Cases of values and sizes that ordinary draws hardly ever have; only promotion meets them."""
        if self._corners is None:  # asked for by the tests, and by what is looked at in parts
            seed = self.spec.seed
            named = [
                case
                for kind in (scalar_cases, counted_cases, length_cases, spelled_cases, threshold_cases)
                for case in kind(self.contract, self.spec.baseline, seed)
            ]
            drawn = [
                case
                for kind in (corner_cases, dialled_cases, small_cases)
                for case in kind(self.contract, seed, self.max_elements)
            ]
            self._corners = self.affordable([*named, *drawn])
        return self._corners

    def known_cases(self) -> list[Case]:
        """The cases that every candidate meets that is promoted, but those of :meth:`coverage_cases`."""
        return [*self.search_cases(), *self.held_out_cases(), *self.corner_cases()]

    def coverage_cases(self) -> list[Case]:
        """Cases that run what few of the others run of the original; lines that none runs are told. Only promotion
        meets them."""
        if self._coverage is None:
            self.covers(covered(self.spec, self.recorder(), self.spec.baseline, self.known_cases()))
        return list(self._coverage or ())

    @property
    def looked(self) -> bool:
        """Whether :meth:`coverage_cases` are known."""
        return self._coverage is not None

    def covers(self, found: Covered) -> None:
        """Note what was found for :meth:`coverage_cases`."""
        self._coverage = list(found.cases)
        if found.never:
            told = in_words(
                self.spec.baseline.source,
                found.never,
                "the kernel: if larger ones do not either, a candidate may do anything there",
            )
            self.note(told)

    def large_cases(self) -> list[Case]:
        """Cases at the upper end of the sizes, as far as this machine answers them soon; none where there is but one
        size, which all other cases have."""
        if self.spec.fixed:
            return []
        if self._large is None:  # every promotion and every mutant asks
            contract, seed = self.contract, self.spec.seed
            self._large = bulk_cases(contract, seed, LARGE_ELEMENTS, self._threads_at)
            self._large += large_cases(contract, seed, LARGE_ELEMENTS)
            self._large += large_cases(contract, seed, 8 * LARGE_ELEMENTS)[-1:]
        return list(self._large)

    def _threads_at(self, sizes: Mapping[str, int]) -> int:
        return self.launched_threads(
            self.spec.baseline.plan, replace(self.spec.smoke_case(), sizes=tuple(sizes.items()))
        )

    def illegal(self, candidate: Candidate) -> Fault | None:
        """A launch of the candidate that cannot be made at an end of the sizes, where the original's can."""
        most = self.device.info.max_shared_bytes or STATIC_SHARED_BYTES
        return illegal(self.contract, candidate, self.spec.baseline.plan, most)

    def first_failure(self, image: Image, candidate: Candidate, cases: list[Case]) -> tuple[int, CaseFailure | None]:
        """(cases passed, the first failure or None), of the cases that the device takes in time. Each case is run
        twice; where even the smallest is dear, the first, and those in parts."""
        pace, passed = self.pace(candidate.plan), 0
        for wanted in cases:
            if pace.over(wanted):
                continue
            case = pace.fitting(wanted, self.contract) if passed else wanted
            if case is None:
                continue
            case = self.original.answerable(case)
            if not self.original.counts(case):
                continue
            started = time.monotonic()
            twice = case.parts or not (self.original.repeats() and (passed or self.original.divides))
            failure = self.failure(image, candidate, case, pace.limit_s(case), twice=twice)
            if failure is not None:
                return passed, failure
            pace.took(case, time.monotonic() - started)
            passed += 1
            if not case.parts:
                self.reached.add(case.sizes)
        return passed, None

    def failure(
        self, image: Image, candidate: Candidate, case: Case, more_s: float = 0.0, *, twice: bool = True
    ) -> CaseFailure | None:
        """What is wrong with a candidate on a case. ``more_s``: on top of the time that the original's suggests."""
        flushed = flushes(candidate, self.spec.baseline)
        original, build = self.original, self.quickened(image, candidate)
        what = Runnable(self.device, build.image, candidate.plan, self.contract, flushed, took=build.took)
        expected = original.expected(case)
        slower = INSTRUMENTED if build.image.instrumented and not original.build.image.instrumented else 1.0
        limit_s = original.stopwatch.limit_s(case, slower) + more_s
        judge = partial(fails, case=case, expected=expected, data_of=original.shelf, twice=twice)
        if expected.part is None:
            failure = judge(what, timeout_s=limit_s)
            if failure is None or failure.mismatch is None:
                return failure
            alike = build.like(expected.instrumented)
            return judge(replace(what, image=alike), timeout_s=INSTRUMENTED * limit_s) if alike else failure
        limit_s += original.stopwatch.limit_s(self.spec.smoke_case())
        blocks = self._owners(image, what, candidate).blocks(expected.part)
        failure = judge(replace(what, blocks=blocks), timeout_s=limit_s)
        return judge(what, timeout_s=limit_s) if failure is not None and blocks else failure

    def quickened(self, image: Image, candidate: Candidate) -> Quickened:
        """The build of a candidate that its next case runs, by the one that was built to be judged."""
        if self._running is None or self._running[0] is not image:
            self._running = image, Quickened(self.spec, candidate, image)
        if self._running[1].due:
            self._running[1].switch()
        return self._running[1]

    def _owners(self, image: Image, what: Runnable, candidate: Candidate) -> BlockMap:
        """Which blocks of a candidate write what; found out once while it is judged."""
        if self._mapped is None or self._mapped[0] is not image:
            case = self.spec.smoke_case()
            data = self.original.shelf(self.contract, case, 1)
            self._mapped = image, BlockMap.guessed(what, case, data) if alone(candidate) else BlockMap.unknown()
        return self._mapped[1]

    def pace(self, plan: Plan) -> Pace:
        """Which of a list of cases there is time for, of a candidate with this plan."""
        own = cache(partial(self.launched_threads, plan))
        original = partial(self.launched_threads, self.spec.baseline.plan)
        return Pace(self.spec.backend.limits, self.spec.budget_s, self.spec.cramped, own, original)

    def _crowded(self, plan: Plan, case: Case) -> bool:
        """Whether a case launches far more threads than others may, and than the original does on it."""
        most = CROWD * (self.spec.backend.limits.threads or 0)
        return 0 < most < self.launched_threads(plan, case) > 2 * self.launched_threads(self.spec.baseline.plan, case)

    def waits(self, case: Case) -> bool:
        """Whether so many threads run for a case, the original's too, that only what is promoted meets it."""
        most = CROWD * (self.spec.backend.limits.threads or 0)
        return 0 < most < self.launched_threads(self.spec.baseline.plan, case)

    def launches(self, case: Case) -> bool:
        """Whether the original has anything to do on a case. A size of 0 may be the first of many steps."""
        return self.launched_threads(self.spec.baseline.plan, case) > 0

    def launched_threads(self, plan: Plan, case: Case) -> int:
        """Threads of all launches of a plan on a case."""
        launches = launched(self.contract, plan, case)
        return sum(math.prod(launch.grid) * math.prod(launch.block) for launch in launches)

    def timed(self, sets: int = 1) -> list[tuple[Case, CaseData]]:
        """The first ``sets`` (at most 3) input sets of every timed configuration, built once, as formulas where the
        device draws; the arrays are read-only, which tells the device that it may keep a copy of its own."""
        cases = case_lists.timed_cases(self.contract, self.spec.seed, TIMED_SETS)
        return [(case, self.timed_data(case)) for i, case in enumerate(cases) if i % TIMED_SETS < sets]

    def timed_data(self, case: Case) -> CaseData:
        """Those of one such case, or of one beside the timed sizes."""
        if case not in self._timed:  # of large ones each takes seconds and gigabytes, and a prediction wants but one
            data = build(self.contract, case, TIMED_POISON, drawn=can_judge(self.device))
            for name in data.arrays.keys() - data.draws.keys():
                data.arrays[name].flags.writeable = False
            self._timed[case] = data
        return self._timed[case]

    def drawn(self, case: Case, poison_seed: int) -> CaseData:
        """The data of a case, as formulas where a device draws; what was made of the last case is kept: a function of
        the user's takes longer than all runs."""
        if self._drawn is None or self._drawn[0] != case:
            self._drawn = case, poison_seed, build(self.contract, case, poison_seed, drawn=True)
        _, seed, data = self._drawn
        return data if seed == poison_seed else repoisoned(self.contract, case, data, poison_seed)

    def recorder(self) -> RecordingDevice:
        """The host device, also beside a GPU. Raises MissingToolError."""
        host = self.host()
        assert can_record(host)
        return host

    def hosts(self) -> Hosts | None:
        """Host devices beside the session's own, on idle cores; None on the host device, and where cores are few."""
        if self._hosts is None and not self.spec.backend.records and (count := idle_hosts()):
            self._hosts = Hosts(count)
        return self._hosts

    def close(self) -> None:
        """Close the devices."""
        if self._hosts is not None:
            self._hosts.close()
        self.device.close()
        if self._host is not None and self._host is not self.device:
            self._host.close()
        if self._lock is not None:
            self._lock.release()


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
