"""A plan watched on the host device in other orders of blocks and threads: what depends on them is wrong.

The cases are small. Where a contract fixes sizes too large for that, chosen blocks run, each with its neighbours, and
only what happens inside them can be judged; so they do after the first cases of a kernel that takes seconds for one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property, partial

from fsr.backends.protocol import Array, BlockOrder, Buffer, DeviceFault, RecordingDevice
from fsr.backends.toolchain import Toolchain
from fsr.contract.model import Contract
from fsr.errors import MissingToolError
from fsr.evaluation.compiling import settled
from fsr.evaluation.hosts import Hosts
from fsr.evaluation.lighter import WATCHED_LONG_S, Lighter
from fsr.evaluation.orders import ORDERS
from fsr.evaluation.original import first_error
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.hardware.dtypes import numpy_dtype
from fsr.hardware.gpus import closest_target
from fsr.records import Candidate, Case, CaseKind, ConcreteLaunch, Fault, FaultKind, Image, Role, Sizes
from fsr.testgen.cases import HOST_ELEMENTS, divisible, families_of, new_case, smallest_alignment, stream
from fsr.testgen.compare import Mismatch, compare, flushes
from fsr.testgen.corner_cases import beginnings
from fsr.testgen.corners import CONSTANT
from fsr.testgen.echoes import ECHO
from fsr.testgen.fitting import clip, elements
from fsr.testgen.legal import outnumbers
from fsr.testgen.placing import launched, place
from fsr.testgen.structured import apart
from fsr.testgen.values import CaseData, build, same_bits

NAMED_CASES = 3  # watched, of the sizes that the candidate names
PLAIN_CASES = 12
AHEAD = 6  # cases whose runs begin before they are judged
EVERY_S = 1.0  # for all other small sizes of the tests, 4 ms each where there is little to do
# Threads: of orders in which all blocks go on by turns, 131,072 took 1.4 s, and of others four million 2.3 s.
SIDE_BY_SIDE, ONE_BY_ONE = 1 << 16, 1 << 20
FEW = 3  # a size beside the one that is launched in two blocks
LET_IN = 2  # blocks let in at once, where a launch can have more than a GPU holds
CHOSEN_BLOCKS, CHOSEN_ACCESSES, CHOSEN_RESIDENT = 24, 2_000_000, 6
# A watched run; one that is dear; and dear ones in whole, behind which parts of the others tell.
WATCH_S, DEAR_S, WHOLE_S = 10.0, 2.0, 6.0
# What the original does as well is not held against a candidate: it works where it was written. Shared memory that was
# never set holds something else in each of two runs, so that a result it reaches differs.
TOLERATED = (FaultKind.STATE, FaultKind.UNDEFINED, FaultKind.STARVED, FaultKind.UNSET)
Seen = tuple[tuple[Fault, ...], Mapping[str, Array]]
SILENT = "silent"  # what a tool says that ran to the end and found nothing
TELLING = ("normal", "uniform")  # value families
TIES = "repeated"  # the family whose values stand many times: what two threads do only when they find the same
LAST_HIGH = CONSTANT  # the family whose last whole number is at its limit: what is read past an end only there
_POISON = 5
_DEAD = "the kernel reads shared memory that nothing was written to, which no result depends on"


def watched_images(toolchain: Toolchain, spec: SessionSpec, candidate: Candidate) -> tuple[Image | None, Image | None]:
    """A candidate and the original as :func:`watch` takes them, built by a watching toolchain; None where that cannot
    be."""
    both = [toolchain.compile(settled(spec, one)) for one in (candidate, spec.baseline)]
    first, second = (one if isinstance(one, Image) else None for one in both)
    return first, second


def watch(
    session: Session, candidate: Candidate, cases: list[Case], image: Image | None = None, original: Image | None = None
) -> tuple[CaseFailure | None, str]:
    """Watch a candidate, or the original itself, on some of the cases: the first failure, and what watching says:
    'silent', or 'not available: why'. ``image`` and ``original``: binaries to be watched, where they are built."""
    try:
        watcher = _Watcher(session, candidate, image, original)
    except MissingToolError as missing:
        return None, f"not available: {missing.what}"
    if watcher.image is None:
        return None, f"not available: the host device cannot execute it{watcher.why}"
    two = ((case, ORDERS[1]) for case in in_two_blocks(session, candidate))
    walk = _Walk(watcher, [*_matched(session, cases), *two])
    try:
        failure, said = walk.failure()
    finally:
        watcher.drop()
    failure = failure or (_at_every_size(watcher, cases, walk.seen, walk.pace) if said == SILENT else None)
    return failure, said


class _Walk:
    """Through cases, each with an order, one after the other; beside a GPU the next ones are run on other cores while
    one is judged."""

    def __init__(self, watcher: _Watcher, asked: list[tuple[Case, BlockOrder]]) -> None:
        self.watcher, self.asked = watcher, asked
        self.pace = Lighter(watcher.session.contract, watcher.candidate.plan, WATCHED_LONG_S)
        self.seen: set[Sizes] = set()  # watched in whole
        self._whole, self._spent_s, self._begun = 0, 0.0, 0

    def failure(self) -> tuple[CaseFailure | None, str]:
        """The first failure, and what is said."""
        said = "not available: no case has anything to launch"
        for number in range(len(self.asked)):
            self._begin(number + AHEAD)
            case, order, dear = self._as_watched(number)
            started = time.monotonic()
            with self.watcher.session.original.telling.at(case.sizes):
                failure, said = self.watcher.failure(case, order) or (None, said)
            if failure is not None:
                return failure, said
            if not dear:
                took_s = time.monotonic() - started
                self._whole, self._spent_s = self._whole + 1, self._spent_s + took_s
                self.pace.took(case, max(took_s, self.watcher.ran_s))
                self.seen.add(case.sizes)
        return None, said

    def _as_watched(self, number: int) -> tuple[Case, BlockOrder, bool]:
        """What is watched of a case, by what others took, and whether it is a dear one of which parts do."""
        usual, order = self.asked[number]
        case = self.pace.smaller(self.pace.fewer(usual, SIDE_BY_SIDE if order.quantum else ONE_BY_ONE))
        enough = self._whole >= len(ORDERS) or self._spent_s >= WHOLE_S
        dear = enough and self.pace.seconds(case) >= DEAR_S  # small as it is, and much to do
        return case, _in_part(order) if dear else order, dear

    def _begin(self, end: int) -> None:
        """Begin the runs of the next cases, as they would be watched by what is known now."""
        for number in range(self._begun, min(end, len(self.asked))):
            self.watcher.begin(*self._as_watched(number)[:2])
        self._begun = max(self._begun, end)


def watched_fault(session: Session, case: Case) -> Fault | None:
    """What the original does wrong on a case, with the line and the thread that watching tells: a guard zone only says
    that somebody wrote there. None where watching finds nothing, or cannot be done."""
    try:
        failure, _ = _Watcher(session, session.spec.baseline).failure(case, BlockOrder()) or (None, "")
    except MissingToolError:
        return None
    return failure.fault if failure is not None else None


def _at_every_size(watcher: _Watcher, cases: list[Case], seen: Set[Sizes], pace: Lighter) -> CaseFailure | None:
    """The failure at one of the small sizes of the tests that were not watched, in the usual order, the cheapest first
    as long as there is time: what lies just behind a buffer is found by watching alone, as it may be read there."""
    session, began = watcher.session, time.monotonic()
    others: dict[Sizes, Case] = {}
    for case in (*session.search_cases(), *cases):
        if case.sizes not in seen and session.launches(case):
            others.setdefault(case.sizes, replace(case, parts=False))
    costs = {case: elements(session.contract, case.size_map()) for case in others.values()}
    for case in sorted(costs, key=lambda c: costs[c]):
        if costs[case] > HOST_ELEMENTS or pace.seconds(case) >= DEAR_S or time.monotonic() - began > EVERY_S:
            break
        failure, _ = watcher.failure(case, BlockOrder()) or (None, "")
        if failure is not None:
            return failure
    return None


def _in_part(order: BlockOrder) -> BlockOrder:
    """The same for chosen blocks alone."""
    return replace(order, chosen=CHOSEN_BLOCKS, budget=CHOSEN_ACCESSES, resident=CHOSEN_RESIDENT)


def _matched(session: Session, cases: list[Case]) -> list[tuple[Case, BlockOrder]]:
    """Cases, each with an order: of the small ones, for every order one whose values all differ, so that what is moved
    shows, and one of any kind, one of them with the same values in many places; then each pointer alone at an address
    that a vector does not stand at; a few of the sizes that the candidate names, since there it may do something else,
    one whose buffers share memory, and several of other sizes in the usual order, since at some alone may something not
    be aligned; or parts of one that is not small."""
    usable = [replace(case, parts=False) for case in cases if session.launches(case)]
    fitting = [c for c in usable if elements(session.contract, c.size_map()) <= HOST_ELEMENTS]
    small = [c for c in fitting if c.kind is not CaseKind.NAMED]
    if small:
        named = sorted((c for c in fitting if c.kind is CaseKind.NAMED), key=lambda c: math.prod(c.size_map().values()))
        telling = [c for c in small if c.family in TELLING] or small
        shifted = [_shifted(session, case, i) for i, case in enumerate(_with_ties(session, _largest(small[::-1])))]
        pairs = zip(_largest(telling), shifted, ORDERS, strict=False)
        matched = [(case, order) for first, other, order in pairs for case in (first, other)]
        matched += [(replace(case, family=LAST_HIGH), ORDERS[0]) for case in telling[:1] if _limited(session.contract)]
        matched += [(case, ORDERS[i % len(ORDERS)]) for i, case in enumerate(named[:NAMED_CASES])]
        matched += [(_in_blocks(session.contract, case, small), ORDERS[1]) for case in small if case.aliased][:1]
        matched += [(case, BlockOrder()) for case in small[:: max(len(small) // PLAIN_CASES, 1)][:PLAIN_CASES]]
        matched += [(case, BlockOrder()) for case in _beginnings(session)]
        return matched + [(case, BlockOrder()) for case in small if case.apart]
    return [(case, _in_part(order)) for case in usable[:1] for order in ORDERS[:2]]


def _beginnings(session: Session) -> list[Case]:
    """An array that ends before it differs from what it is compared with: what goes on reads past its end."""
    rng = stream("beginnings", session.contract, session.spec.seed)
    return [new_case("beginning", sizes, ECHO, rng) for sizes in beginnings(session.contract, rng)]


def in_two_blocks(session: Session, candidate: Candidate) -> Iterator[Case]:
    """For each size the smallest case that is launched in two blocks, the others so small that both come upon the same
    elements: a kernel may do something else where there are few, which must not race either."""
    contract, rng = session.contract, stream("two blocks", session.contract, session.spec.seed)
    few = {s.name: clip(s, FEW) for s in contract.sizes}
    for size in contract.sizes:
        for value in dict.fromkeys(clip(size, v) for power in range(1, 17) for v in (1 << power, (3 << power) // 2)):
            case = new_case(f"two blocks {size.name}", few | {size.name: value}, TELLING[1], rng)
            if elements(contract, case.size_map()) > HOST_ELEMENTS:
                break
            launches = launched(contract, candidate.plan, case)
            if max((math.prod(launch.grid) for launch in launches), default=0) == 2:
                yield case
                break


def _limited(contract: Contract) -> bool:
    """Whether some whole numbers are at most what the contract says: lengths, indices."""
    arrays = [a for a in contract.drawn() if a.role is not Role.SCALAR]
    return any(a.constraints.high is not None and numpy_dtype(a.dtype).kind in "iu" for a in arrays)


def _with_ties(session: Session, cases: list[Case]) -> list[Case]:
    """The cases, the second with values that repeat, where none has such values by chance."""
    if TIES not in families_of(session.contract) or any(case.family == TIES for case in cases):
        return cases
    return [replace(case, family=TIES) if i == 1 else case for i, case in enumerate(cases)]


def _shifted(session: Session, case: Case, number: int) -> Case:
    """The case on pointers that are aligned no better than the contract promises, or at 4 or 8 bytes; at each of these
    once at sizes that vectors divide, since paths for whole vectors are taken there only."""
    least = smallest_alignment(session.contract)
    steps = sorted({least, *(step for step in (4, 8) if step > least)})
    step = steps[-1 - number % len(steps)]
    if case.aliased or step >= 256:
        return case
    sizes = divisible(session.contract, case) if number < len(steps) else case.sizes
    return replace(case, alignment_bytes=step, sizes=sizes)


def _in_blocks(contract: Contract, case: Case, small: list[Case]) -> Case:
    """A case of shared memory at the largest of the small sizes where what shares is alike: of several blocks one may
    come upon what another has written."""
    sizes = _largest(small)[0].sizes
    alike = len({contract.shape(contract.argument(name), dict(sizes)) for name in case.aliased}) == 1
    return replace(case, sizes=sizes) if alike else case


def _largest(cases: list[Case]) -> list[Case]:
    """As many as there are orders, the largest first; again from the first where there are fewer."""
    ranked = sorted(cases, key=lambda case: math.prod(case.size_map().values()), reverse=True)
    return [ranked[i % len(ranked)] for i in range(len(ORDERS))]


class _Watcher:
    """Watches one candidate. ``image`` is None where it cannot be executed."""

    def __init__(
        self, session: Session, candidate: Candidate, image: Image | None = None, original: Image | None = None
    ) -> None:
        self.session, self.candidate, self.recorder = session, candidate, session.recorder()
        self._built_original = original
        target, own = closest_target(session.spec.target), candidate != session.spec.baseline
        self._crowded = own and outnumbers(session.contract, candidate.plan, target)
        built = image or self.recorder.watching_toolchain().compile(settled(session.spec, candidate))
        self.image = built if isinstance(built, Image) else None
        self.why = "" if isinstance(built, Image) else f": {first_error(built.log).partition(chr(10))[0]}"
        self.ran_s = 0.0  # what the last run took
        self._begun: dict[tuple[Case, BlockOrder], Future[tuple[Seen, float]]] = {}
        self._made: dict[Case, CaseData] = {}  # of cases whose runs have begun

    @cached_property
    def original(self) -> _Watcher | None:
        """The original's watcher; None for the original itself."""
        baseline = self.session.spec.baseline
        return None if self.candidate == baseline else _Watcher(self.session, baseline, self._built_original)

    def begin(self, case: Case, order: BlockOrder) -> None:
        """Run a case, and the original for its answer, on cores that are idle beside a GPU."""
        hosts, order = self.session.hosts(), self._let_in(order)
        if hosts is None or self.image is None:
            return
        with self.session.original.telling.at(case.sizes):
            data = self._made[case] = self._data(case)
            self._begin(hosts, case, data, order)
            answers = self.original or self
            if not order.chosen and (answers is not self or order != BlockOrder()):
                answers._begin(hosts, case, data, BlockOrder())

    def _begin(self, hosts: Hosts, case: Case, data: CaseData, order: BlockOrder) -> None:
        launches, buffers = place(self.session.contract, self.candidate.plan, case, data, _POISON)
        if launches and self.image is not None and (case, order) not in self._begun:
            work = partial(_watched, self.image, launches, buffers, order)
            self._begun[case, order] = hosts.submit(work)

    def _data(self, case: Case) -> CaseData:
        """The case's data, which may have been made to begin its run."""
        return self._made.pop(case, None) or build(self.session.contract, case, _POISON)

    def drop(self) -> None:
        """Forget what was begun and is not asked for."""
        for begun in self._begun.values():
            begun.cancel()
        self._begun.clear()
        self._made.clear()
        if self.session.hosts() is not None and self.original is not None:  # on the host device it may not be built
            self.original.drop()

    def run(self, case: Case, data: CaseData, order: BlockOrder) -> Seen | None:
        """Faults and buffers; None where nothing is launched or could be. Raises DeviceFault."""
        begun = self._begun.pop((case, order), None)
        if begun is None:
            launches, buffers = place(self.session.contract, self.candidate.plan, case, data, _POISON)
            if not launches or self.image is None:
                return None
            seen, self.ran_s = _watched(self.image, launches, buffers, order, self.recorder)
        else:
            seen, self.ran_s = begun.result()
        return seen

    def _let_in(self, order: BlockOrder) -> BlockOrder:
        """The order, in which few blocks are under way where a launch can have more than a GPU holds."""
        alone = self._crowded and not (order.chosen or order.quantum)
        return replace(order, resident=LET_IN) if alone else order

    def failure(self, case: Case, order: BlockOrder) -> tuple[CaseFailure | None, str] | None:
        """The failure of one case in one order, and what is said of it; None where nothing is launched."""
        data, order = self._data(case), self._let_in(order)
        try:
            ran = self.run(case, data, order)
        except DeviceFault as stopped:
            if stopped.fault.kind is FaultKind.HANG:  # what waits in vain is told as a fault: this was only slow
                return None, f"not available: {stopped.fault.detail}"
            return CaseFailure(case, fault=stopped.fault), SILENT
        if ran is None:
            return None
        faults, arrays = ran
        if any(fault.kind is FaultKind.UNSUPPORTED for fault in faults):
            return None, f"not available: {next(f.detail for f in faults if f.kind is FaultKind.UNSUPPORTED)}"
        fault = self._worst(faults, case, data, order)
        if fault is not None:
            return CaseFailure(case, fault=fault), SILENT
        mismatch = None if order.chosen else self._mismatch(case, data, order, arrays)
        return (CaseFailure(case, mismatch=mismatch) if mismatch else None), SILENT

    def _worst(self, faults: Sequence[Fault], case: Case, data: CaseData, order: BlockOrder) -> Fault | None:
        hard = [fault for fault in faults if fault.kind not in TOLERATED]
        if self.original is None:
            unset = next((f.detail for f in faults if f.kind is FaultKind.UNSET), None)
            if unset is not None and not any(_DEAD in note for note in self.session.notes):
                self.session.notes.append(f"{_DEAD}: {unset}")
        if hard or not faults or self.original is None:
            return next(iter(hard), None)
        ran = self.original.run(case, data, order)
        known = {fault.kind for fault in ran[0]} if ran else set()
        return next((fault for fault in faults if fault.kind not in known), None)

    def _mismatch(self, case: Case, data: CaseData, order: BlockOrder, got: Mapping[str, Array]) -> Mismatch | None:
        """The worst mismatch that the original does not show as well. Beside a GPU, whose functions round otherwise,
        the original's answer is the host device's."""
        expected, contract = self.session.original.expected(case), self.session.contract
        if not self.session.spec.backend.records:
            if self.original is None and order == BlockOrder():  # it would be asked the same once more
                return None
            ran = (self.original or self).run(case, data, BlockOrder())
            if ran is None:
                return None
            expected = expected.answered(ran[1])
        flushed = flushes(self.candidate, self.session.spec.baseline)
        found = compare(contract, case, got, expected, data.arrays, flushes=flushed)
        if found and self.original is not None:
            ran = self.original.run(case, data, order)
            if ran is None or compare(contract, case, ran[1], expected, data.arrays, flushes=flushed):
                return None
        if found and self.original is None and self._alike(case, data, order, got):
            return None
        return found[0] if found else None

    def _alike(self, case: Case, data: CaseData, order: BlockOrder, got: Mapping[str, Array]) -> bool:
        """Whether another order of the same build answers the same: then the answer depends on how it was built alone,
        as one does that rounding decides."""
        ran = self.run(case, data, BlockOrder() if order != BlockOrder() else ORDERS[0])
        if ran is None:
            return False
        one, other = (apart(arrays, data.layouts) for arrays in (got, ran[1]))
        return all(same_bits(one[name], array).all() for name, array in other.items())


def _watched(
    image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], order: BlockOrder,
    host: RecordingDevice,
) -> tuple[Seen, float]:  # fmt: skip
    """What a run shows, and the seconds that it took. Raises DeviceFault."""
    started = time.monotonic()
    return host.watch(image, launches, buffers, order, WATCH_S), time.monotonic() - started
