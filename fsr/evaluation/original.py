"""The kernel that candidates are held against: its binary, and what it answers to the cases.

Its answers stay in this process's memory, never in the address space of a candidate.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from fsr.backends.own_types import KNOWN
from fsr.backends.protocol import Array, Device, DeviceFault
from fsr.errors import BaselineError, ContractError, MissingToolError
from fsr.evaluation.baseline_error import baseline_error, is_large
from fsr.evaluation.compiling import build as compile_candidate
from fsr.evaluation.judging_pace import growth
from fsr.evaluation.lighter import Lighter
from fsr.evaluation.quickened import Quickened
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.telling import Telling
from fsr.evaluation.testing import BASELINE_TIMEOUT_S, DataShelf, Runnable, Stopwatch, run_once
from fsr.evaluation.unfused import Unfused
from fsr.evaluation.widened import Widened
from fsr.records import Candidate, Case, CaseKind, CompileFailure, Fault, FaultKind, Image
from fsr.source.tokens import tokenize
from fsr.testgen.bounds import has_free_integers
from fsr.testgen.compare import TIMES_LESS_ACCURATE, adds, compare
from fsr.testgen.corners import LOWEST, OVERFLOWING
from fsr.testgen.families import FREE
from fsr.testgen.fitting import elements, halved, room
from fsr.testgen.oracle import Asking, Expected, Once, WideRun, expect
from fsr.testgen.parts import Part, alone, chosen_blocks
from fsr.testgen.placing import launched
from fsr.testgen.structured import are_written, layouts_of
from fsr.testgen.values import CaseData, changed, outputs, same_bits

FIRST_TIMEOUT_S = 10.0  # its first case is a small one: a kernel that hangs is told soon
LARGE_S = 0.3  # what it may take on a large case: candidates meet it twice, and bounds cost more
ANSWER_SHARE = 0.005  # of the run's budget, for one answer at more than ordinary sizes: each is asked for several times
RUN_S, RUN_SHARE = 0.03, 0.0005  # one run of it, and of the run's budget: some fifty cases take four each and more
AS_DRAWN = 3  # cases that take longer and are run as they were drawn, beside the largest
FORESEEN, MUCH = 1 << 15, 10.0  # elements from which on that is asked before; so many times as long is not run
DEAR_S = 0.2  # an answer that takes this long is not asked for twice
ERROR_LINES = 8  # of a compiler, shown

_LOOKS = 2  # runs in whole that tell whether data decides where a block writes


class Original:
    """The original on one device. ``host`` opens the host device. ``answer_s``: what it takes for the first case, which
    is as small as any.

    Raises BaselineError when it does not compile."""

    def __init__(self, spec: SessionSpec, device: Device, host: Callable[[], Device]) -> None:
        self.spec, self.contract, self.device, self.host = spec, spec.contract, device, host
        self.binaries = _compiled(spec)
        self.stopwatch = Stopwatch(spec.backend.limits.least_s)
        self.shelf = DataShelf()
        self.widened, self.unfused = Widened(spec, device, host, spec.smoke_case), Unfused(spec, device)
        self.answer_s = 0.0
        self._data_s = 0.0  # what the data of a case took to make
        self._expected: dict[Case, Expected] = {}
        self._parts: dict[Case, Part] = {}
        self._placed_by_data, self._looked = False, 0
        self._counts: dict[Case, bool] = {}
        self._ahead: tuple[CaseData, Mapping[str, Array]] | None = None  # its answer where it was only to be timed
        self._late: list[dict[str, int]] = []  # sizes that take it longer than candidates can wait for
        self._checked: Image | bool | None = None
        self._ran = self._dear = False  # whether it ran at all; whether its first answer, of two runs, took long
        self._lighter = Lighter(spec.contract, spec.baseline.plan, max(RUN_S, RUN_SHARE * spec.budget_s))
        self._answerable: dict[Case, Case] = {}
        self.whole: frozenset[Case] = frozenset()  # cases that are run as they were drawn, whatever they take
        self.build = Quickened(spec, spec.baseline, self.binaries.run)
        self.telling = Telling(spec.told)

    # ------------------------------------------------------------ answers

    def expected(self, case: Case) -> Expected:
        """Its answer to a case; computed once. Raises BaselineError when it fails the case."""
        with self.telling.at(case.sizes):
            return self._answered(case)

    def _answered(self, case: Case) -> Expected:
        if case not in self._expected:
            started = time.monotonic()
            if not self._data_s:
                self.shelf(self.contract, case, 0)
                self._data_s = time.monotonic() - started
            if self._expected and self.build.due:
                self._quicken()
            found = self._asked(case)
            if not self._expected and self.build.image is not self.binaries.run and not found.steady:
                self.build.stay()  # the other build may have answered something else
                found = self._asked(case)
            self._dear = self._dear or (not self._expected and time.monotonic() - started >= 2 * DEAR_S)
            found.instrumented = self.build.image.instrumented
            self._expected[case] = found
        return self._expected[case]

    def _quicken(self) -> None:
        """Go on with the plain build, if that answers as the other did what was asked first."""
        case, known = next(iter(self._expected.items()))
        self.build.switch()
        try:
            got = self._run(case, self.shelf(self.contract, case, 0))
        except BaselineError:
            return self.build.stay()
        plain = self.build.image
        self.build.stay()  # what is known of its errors comes from the build that answered
        if not compare(self.contract, case, known.part.picked(got) if known.part else got, known):
            self.build.image = plain
        return None

    def _asked(self, case: Case) -> Expected:
        formless = any(layout.wide_bytes == 0 for layout in layouts_of(self.contract).values())
        wide = self.contract.reference is None and not case.kind.timed and not formless
        part = self.part(case) if case.parts else None
        blocks = part.blocks if part else ()

        def widened(noisy: int) -> WideRun | None:
            return partial(self.widened.answer, noisy=noisy, blocks=blocks) if wide else None

        loud, unfused = widened(int(TIMES_LESS_ACCURATE)), partial(self.unfused.answer, blocks=blocks) if wide else None
        how = Asking(Path(self.spec.folder), part, self.shelf, adds(self.spec.baseline.source), loud, unfused)
        return expect(
            self.contract, case, Once(self._run) if self.repeats() else self._run, precise=widened(noisy=0),
            noisy=widened(noisy=1), how=how,
        )  # fmt: skip

    def part(self, case: Case) -> Part:
        """What is judged of a case in parts: what the chosen blocks write on its data, or on ordinary ones, since an
        element may keep its value on one."""
        if case not in self._parts:
            usual = self.spec.smoke_case()
            plain = usual if case.sizes == usual.sizes else replace(case, family=usual.family)
            blocks = chosen_blocks(case, self._grid(case))
            written = self._written(case, blocks)
            if not case.aliased and case != plain:
                more = self._written(plain, blocks)
                extra = {name: np.setdiff1d(at, written[name]) for name, at in more.items()}
                if any(map(len, extra.values())) and not self._scatters(case, extra):
                    written = {name: np.union1d(at, more[name]) for name, at in written.items()}
            self._parts[case] = Part(blocks, written)
        return self._parts[case]

    def _written(self, case: Case, blocks: tuple[int, ...]) -> dict[str, Array]:
        """The elements of each output that some blocks change, of all blocks where none are given."""
        data = self.shelf(self.contract, case, 1)
        try:
            got = run_once(self._runnable(blocks), case, data, 1, BASELINE_TIMEOUT_S)
        except DeviceFault as fault:
            raise self.error(case, fault.fault) from None
        return {name: changed(got[name], data.arrays[name]) for name in outputs(self.contract, case)}

    def _scatters(self, case: Case, others: Mapping[str, Array]) -> bool:
        """Whether data decides where a block writes: whether elements that these blocks leave alone in a case, but not
        on other data, are other blocks' there. Looked for a few times, as it takes a run in whole."""
        if not self._placed_by_data and self._looked < _LOOKS:
            self._looked += 1
            whole = self._written(case, ())
            self._placed_by_data = any(np.intersect1d(whole[name], at).size for name, at in others.items())
        return self._placed_by_data

    def _grid(self, case: Case) -> int:
        """Blocks of its only launch; 0 where there is none or several."""
        grids = [math.prod(one.grid) for one in launched(self.contract, self.spec.baseline.plan, case)]
        return grids[0] if len(grids) == 1 else 0

    @property
    def case_s(self) -> float:
        """What a case costs at the least: its answer, or its data where that takes longer to make."""
        return max(self.answer_s, self._data_s)

    @property
    def divides(self) -> bool:
        """Whether cases may be judged in parts, and are the cheaper for it: its blocks' results are their own, a few of
        them are a part, and running it takes longer than making the data."""
        return self.answer_s > self._data_s and self._has_parts

    @cached_property
    def _has_parts(self) -> bool:
        case = self.spec.smoke_case()
        divides = self.spec.backend.records and alone(self.spec.baseline) and not are_written(self.contract)
        return divides and bool(chosen_blocks(case, self._grid(case)))

    def _runnable(self, blocks: tuple[int, ...]) -> Runnable:
        """The build that answers, to be run."""
        plan, build = self.spec.baseline.plan, self.build
        return Runnable(self.device, build.image, plan, self.contract, blocks=blocks, took=build.took)

    def answers_alike(self, case: Case, data: CaseData, got: Mapping[str, Array]) -> bool:
        """Whether it gives these very bits on the data: then they are right, and what else is known of the case (how
        far it may itself be off) need not be found out, which costs seconds at timed sizes."""
        wanted = self._run(case, data)
        names = outputs(self.contract, case)
        return all(bool(same_bits(got[name], wanted[name]).all()) for name in names)

    # ------------------------------------------------------------ running it

    def repeats(self) -> bool:
        """Whether it need not be asked twice: it has no small cases, asking is dear, and all that it was asked first it
        said twice to the bit, leaving no element out."""
        first = self._expected.get(self.spec.smoke_case()) if self._dear and self.spec.cramped else None
        return first is not None and first.steady

    def _run(self, case: Case, data: CaseData) -> Mapping[str, Array]:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] is data:
            return ahead[1]
        try:
            return self._timed(case, data)
        except DeviceFault as fault:
            if fault.fault.kind == FaultKind.MEMORY:
                raise
            raise self.error(case, fault.fault) from None

    def _timed(self, case: Case, data: CaseData) -> Mapping[str, Array]:
        """One run, with a note of what it took. What began with the very first, as the device's own process, and what a
        build without instruments saves, shows in the second, which another build answers where the first was dear."""
        first, self._ran = not self._ran, True
        soon = not self._expected and not is_large(self.spec, case)
        got = self.run_limited(case, data, FIRST_TIMEOUT_S if soon else BASELINE_TIMEOUT_S)
        took = self.stopwatch.last_s
        if case == self.spec.smoke_case():
            self.answer_s = min(took, self.answer_s or took)
        elif not case.parts:
            self._lighter.took(case, took)
        if first and took >= 2 * DEAR_S and self.spec.backend.records:
            self.build.switch()
        return got

    def run_limited(self, case: Case, data: CaseData, limit_s: float) -> Mapping[str, Array]:
        """One run, that candidates' time-outs follow. Raises DeviceFault."""
        blocks = self.part(case).blocks if case.parts else ()
        started = time.monotonic()
        try:
            with self.telling.at(case.sizes):
                return run_once(self._runnable(blocks), case, data, 0, limit_s)
        finally:
            self.stopwatch.note(case, started)

    def error(self, case: Case, fault: Fault) -> BaselineError:
        """The error where it fails one of its own cases."""
        return baseline_error(self.spec, case, fault)

    # ------------------------------------------------------------ whether a case says anything

    def counts(self, case: Case) -> bool:
        """Whether a case says anything: it answers the case in time, does not overflow on the way and stays within its
        buffers. Cases of ordinary size and values do; found out once for others."""
        if case not in self._counts:
            self._counts[case] = self._soon(case) and self._defined(case)
        return self._counts[case]

    def _soon(self, case: Case) -> bool:
        if not case.kind.unusual or not self.spec.backend.limits.threads:
            return True
        return self._within(case, LARGE_S if case.kind is CaseKind.LARGE else BASELINE_TIMEOUT_S)

    def _within(self, case: Case, limit_s: float) -> bool:
        """Whether it answers a case in time. What it answered is its first run on the case, where it is asked next."""
        if self._expected and self.build.due:
            self._quicken()
        data = self.shelf(self.contract, case, 0)
        try:
            self._ahead = data, self.run_limited(case, data, limit_s)
        except DeviceFault as fault:
            if fault.fault.kind in (FaultKind.HANG, FaultKind.MEMORY):
                return False
            raise self.error(case, fault.fault) from None
        return True

    def answerable(self, case: Case) -> Case:
        """The case, or one of its values at smaller sizes where it would take the original long: what that does may
        grow faster than its elements. The same for all that meet the case."""
        if case not in self._answerable:
            self._answerable[case] = self._held_out_in_time(self._light(case))
        return self._answerable[case]

    def _light(self, case: Case) -> Case:
        """One that should not take long, after some that did, or a smaller one that says so."""
        drawn = case.kind.unusual or case.kind.timed or case.parts or case in self._expected
        if drawn or self.spec.cramped or self.spec.fixed or not self._expected:
            return case
        few = case in self.whole or self._lighter.noted < AS_DRAWN
        return case if few and self._foreseen_s(case) < MUCH * self._lighter.long_s else self._lighter.smaller(case)

    def _foreseen_s(self, case: Case) -> float:
        """What one run on a large case is expected to take, by a quarter of it and how that grew from a sixteenth: a
        row of as many elements as there are is one thread's, say, and what goes over all of it for each takes seconds
        on a GPU, too."""
        asked = case.kind is CaseKind.HELD_OUT and self.spec.backend.limits.threads  # and stopped, as a CPU can be
        if asked or elements(self.contract, case.size_map()) < FORESEEN:
            return 0.0
        quarter = self._quartered(case)
        sixteenth = self._quartered(quarter)
        try:
            took, before = self._least_s(quarter), self._least_s(sixteenth)
        except (DeviceFault, BaselineError):
            return 0.0  # who meets such a case tells more of it
        size, part, least = (elements(self.contract, c.size_map()) for c in (case, quarter, sixteenth))
        if least == part:
            return took
        return float(took * (size / part) ** growth(before, took, part / least))

    def _quartered(self, case: Case) -> Case:
        """The same values at a quarter of the largest sizes, or less of one where there is none."""
        sizes = case.size_map()
        for _ in range(2):
            sizes = halved(self.contract, sizes) or sizes
        return replace(case, sizes=tuple(sizes.items()))

    def _least_s(self, case: Case) -> float:
        """What a run takes, of two: what else the machine does makes one longer."""
        data, took = self.shelf(self.contract, case, 0), list[float]()
        for _ in range(2):
            self._run(case, data)
            took.append(self.stopwatch.last_s)
        return min(took)

    def _held_out_in_time(self, case: Case) -> Case:
        """Those that decide promotion go past ordinary sizes where one of them must be large."""
        limits = self.spec.backend.limits
        usual = room(self.contract, limits.elements)
        if case.kind is not CaseKind.HELD_OUT or not limits.threads or case.parts or self.spec.cramped:
            return case
        while elements(self.contract, case.size_map()) > usual and not self._in_time(case):
            less = halved(self.contract, case.size_map())
            if less is None:
                break
            case = replace(case, sizes=tuple(less.items()))
        return case

    def _in_time(self, case: Case) -> bool:
        sizes = case.size_map()
        if case in self._expected:
            return True
        if any(all(sizes[name] >= value for name, value in late.items()) for late in self._late):
            return False
        if self._within(case, max(LARGE_S, ANSWER_SHARE * self.spec.budget_s)):
            return True
        self._late.append(sizes)
        return False

    def _defined(self, case: Case) -> bool:
        """Whether none of its signed integers overflows on the case, as far as can be told: its answer would be
        undefined."""
        if case.family not in FREE and case.family not in OVERFLOWING:
            return True
        if case.family != LOWEST and not has_free_integers(self.contract):  # floats may be cast to one, the lowest too
            return True
        if self._checked is None:
            self._checked = _built_checked(self.spec.baseline)
        if not isinstance(self._checked, Image):  # nothing here can tell: rather refuse a right one than take a wrong
            return case.family in FREE  # but an index that is no index would end the run
        data = self.shelf(self.contract, case, 1)
        try:
            blocks = self.part(case).blocks if case.parts else ()
            plan = self.spec.baseline.plan
            run_once(Runnable(self.host(), self._checked, plan, self.contract, blocks=blocks), case, data)
            if self.contract.reference is not None and case.family in OVERFLOWING:
                self.expected(case)
        except (DeviceFault, BaselineError, ContractError):
            return False
        return True


def _compiled(spec: SessionSpec) -> Binaries:
    built = compile_candidate(spec, spec.baseline)
    if isinstance(built, Binaries):
        return built
    detail = built.log if isinstance(built, CompileFailure) else built.detail
    line = built.line if isinstance(built, CompileFailure | Fault) else None
    if unknown := _unknown_in_entry(spec.baseline, detail):
        entry, word = unknown
        raise BaselineError(
            f"the kernel does not compile for {spec.device}: {word} in the entry {entry!r} is nothing that kernels see",
            expected="numbers, and types, constants and macros of one meaning that stand in the file outside functions",
            fix=f"write in entry what {word} stands for; if it is a macro, name it with defines in the contract, or -D",
        )
    raise BaselineError(
        f"the kernel does not compile for {spec.device}:\n{first_error(detail)}",
        where=f"line {line}" if line else "",
        fix=_give_way(detail) or "correct the kernel, or name what it needs in the contract",
    )


def _give_way(log: str) -> str:
    """What to do about a type that every compilation has under the name of one of the file's; '' for other errors."""
    error = first_error(log)
    name = next((word for word in re.findall(r"\w+", error) if word in KNOWN), "")
    if not name or not _REDECLARED.search(error):
        return ""
    return (
        f"leave out the declaration of {name}, which every file has (as nvcc gives it from <cstdint>), or let it stand "
        "at file scope and under no #if, where it may be another type"
    )


def _unknown_in_entry(candidate: Candidate, log: str) -> tuple[str, str] | None:
    """The entry, and the word among its template arguments, that a compiler's first error says is not declared."""
    told = _UNDECLARED.search(log)
    if told is None or (not told["entries"] and told["word"] in {t.text for t in tokenize(candidate.source)}):
        return None  # some other use of it may be meant
    entries = (e for e in candidate.plan.entries if told["word"] in {t.text for t in tokenize(e.partition("<")[2])})
    entry = next(entries, None)
    return None if entry is None else (entry, told["word"])


# NVRTC and the host's compiler say where they stand, nvcc what is undefined alone.
_UNDECLARED = re.compile(
    r"^(?P<entries>__nv_name_map|entries of the plan)?[^\n]*error: "
    r"[^\n]*?(?:identifier|unknown type name) ['\"](?P<word>\w+)['\"]",
    re.MULTILINE,
)


_REDECLARED = re.compile(r"redeclaration of type name|typedef redefinition|conflicting declaration")


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
