"""Mutants judged by the tests that candidates meet: which of them die, and where.

The stages are those of a candidate, cheapest first, on the host device: search cases (those around the numbers that the
mutant names among them), held-out and large cases, other orders of blocks and threads. A mutant stops at its first
failure. What is left is compared with the right one more deeply, in cases aimed at what the mutant changed.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsr.backends.protocol import Array, DeviceFault
from fsr.backends.select import recording_backend
from fsr.errors import MissingToolError
from fsr.evaluation.batches import images
from fsr.evaluation.sameness import same_code
from fsr.evaluation.session import Session, session_of
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.testing import CaseFailure, Runnable, run_once
from fsr.evaluation.watching import watch
from fsr.hardware.dtypes import doubled, is_float
from fsr.mutation.mutants import Mutant, mutants, sampled
from fsr.records import Candidate, Case, Image, Json, Plan
from fsr.testgen.aimed import aimed_cases
from fsr.testgen.compare import compare, flushes
from fsr.testgen.structured import apart, layouts_of
from fsr.testgen.values import build, outputs, same_bits

TESTED, WATCHED = 24, 8  # mutants in one compilation
TURNS = 2  # rounds of aimed cases
RUN_S = 2.0
LESS_ACCURATE = 2.0  # a mutant with up to so many times the right one's error computes the same, rounded otherwise

KILLED, EQUIVALENT, SURVIVED, UNTRIED, NO_CODE = "killed", "equivalent", "survived", "untried", "not compiled"

Alive = tuple[Mutant, Image, Plan]
"""A mutant that nothing has killed yet, its image, and the plan that launches it there."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant. kind: 'killed', 'equivalent' (as far as seen), 'survived', 'untried' (out of time) or
    'not compiled'. by: the case or tool that killed it. why: how, or why it is taken as equivalent."""

    mutant: Mutant
    kind: str
    by: str = ""
    why: str = ""

    def to_json(self, original: Candidate) -> dict[str, Json]:
        """For people: what it is, where, and what it changed."""
        told: dict[str, Json] = {"name": self.mutant.name, "operator": self.mutant.operator, "line": self.mutant.line}
        told |= {"kind": self.kind, "by": self.by, "why": self.why, "diff": self.mutant.diff(original)}
        return told


@dataclass(frozen=True, slots=True)
class MutantsRequest:
    """Payload of :func:`mutants_task`: of the ``count`` mutants of a candidate that ``seed`` draws, every ``parts``-th
    from ``part`` on. They run on the host device, whatever the specification's is, and until ``seconds`` are over.
    ``untrusted``: a model wrote the candidate."""

    spec: SessionSpec
    candidate: Candidate
    count: int
    seed: int
    part: int = 0
    parts: int = 1
    seconds: float = 600.0
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class MutantsReport:
    """What became of them: the objects of :meth:`Fate.to_json`. ``added``: cases that killed what no ordinary case
    had. ``failure``: evidence of the candidate's own failure on a case that was aimed at a mutant. ``note``: why there
    is nothing."""

    fates: tuple[Mapping[str, Json], ...] = ()
    added: tuple[Case, ...] = ()
    failure: Mapping[str, Json] | None = None
    note: str = ""


def mutants_task(request: MutantsRequest) -> MutantsReport:
    """Judge some mutants of a candidate. Raises BaselineError where the original itself cannot be tested here."""
    until = time.monotonic() + request.seconds
    spec = replace(request.spec, device=recording_backend().name, untrusted=request.untrusted, leased=False)
    chosen = sampled(mutants(request.candidate), request.count, request.seed)[request.part :: request.parts]
    try:
        bench = Bench(session_of(spec), request.candidate, until)
    except MissingToolError as missing:
        return MutantsReport(note=f"not available: {missing.what}")
    fates = tuple(fate.to_json(request.candidate) for fate in bench.fates(chosen))
    failure = bench.failure.evidence() if bench.failure is not None else None
    return MutantsReport(fates, tuple(bench.added), failure)


@dataclass
class Bench:
    """One right candidate and its mutants. ``until``: when to stop, in time.monotonic's seconds. ``added``: the cases
    that killed a mutant which no ordinary case had killed. ``failure``: of the candidate itself, on an aimed case."""

    session: Session
    right: Candidate
    until: float = float("inf")
    added: list[Case] = field(default_factory=list)
    failure: CaseFailure | None = None
    _image: Image | None = None

    def fates(self, chosen: Sequence[Mutant]) -> Iterator[Fate]:
        """The fate of each, in no particular order."""
        for at in range(0, len(chosen), TESTED):
            chunk = chosen[at : at + TESTED]
            if self.late():
                yield from (Fate(m, UNTRIED) for m in chunk)
                continue
            left = yield from self._tested(chunk)
            left = yield from self._watched(left)
            for mutant, image, plan in left:
                yield self._deeply(mutant, image, plan)

    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.until

    # ------------------------------------------------------------ the ordinary tests

    def _tested(self, chunk: Sequence[Mutant]) -> Generator[Fate, None, list[Alive]]:
        """Yields those that the tests kill; returns the others, each with its image and the plan that launches it."""
        toolchain = recording_backend().toolchain(self.session.spec.target)
        built = images(toolchain, [m.candidate for m in chunk], size=TESTED)
        left: list[Alive] = []
        for index, mutant in enumerate(chunk):
            found = built[index]
            if not isinstance(found, tuple):
                yield Fate(mutant, NO_CODE, why=found.log.strip().splitlines()[0][:200] if found.log else "")
            elif self.late():
                yield Fate(mutant, UNTRIED)
            elif (killed := self._killed(mutant, *found)) is not None:
                yield killed
            else:
                left.append((mutant, *found))
        return left

    def _killed(self, mutant: Mutant, image: Image, plan: Plan) -> Fate | None:
        illegal = self.session.illegal(mutant.candidate)
        if illegal is not None:
            return Fate(mutant, KILLED, "launch", illegal.detail)
        for cases in self._stages(mutant):
            if self.late():
                return Fate(mutant, UNTRIED)
            try:
                _, failure = self.session.first_failure(image, replace(mutant.candidate, plan=plan), cases)
            except DeviceFault as fault:
                return Fate(mutant, KILLED, "a test", f"{fault.fault.kind}: {fault.fault.detail}")
            if failure is not None:
                return Fate(mutant, KILLED, failure.case.name, _told(failure))
        return None

    def _stages(self, mutant: Mutant) -> Iterator[list[Case]]:
        session = self.session
        yield [session.spec.smoke_case(), *self.added[-4:]]
        yield [*session.search_cases(), *session.candidate_cases(mutant.candidate)]
        yield session.held_out_cases()
        yield session.corner_cases()
        yield session.coverage_cases()
        yield session.large_cases()

    def _watched(self, left: list[Alive]) -> Generator[Fate, None, list[Alive]]:
        """Yields those that are seen to be wrong in other orders; returns the others."""
        toolchain = self.session.recorder().watching_toolchain()
        kept: list[Alive] = []
        for at in range(0, len(left), WATCHED):
            chunk = left[at : at + WATCHED]
            if self.late():
                yield from (Fate(mutant, UNTRIED) for mutant, _, _ in chunk)
                continue
            built = images(toolchain, [mutant.candidate for mutant, _, _ in chunk], size=WATCHED)
            for index, one in enumerate(chunk):
                found = built[index]
                failure = None
                if isinstance(found, tuple):
                    candidate = replace(one[0].candidate, plan=found[1])
                    failure, _ = watch(self.session, candidate, self.session.held_out_cases(), found[0])
                if failure is not None:
                    yield Fate(one[0], KILLED, f"watched {failure.case.name}", _told(failure))
                else:
                    kept.append(one)
        return kept

    # ------------------------------------------------------------ what no ordinary test kills

    def _deeply(self, mutant: Mutant, image: Image, plan: Plan) -> Fate:
        """Cases aimed at the change, the right one beside it."""
        if same_code(mutant.candidate, self.right, self.session.spec.target):
            return Fate(mutant, EQUIVALENT, why="it compiles to the same instructions")
        seen, near = 0, _Nearness()
        for turn in range(TURNS):
            for case in aimed_cases(self.session.contract, _around(mutant), self.session.spec.seed, turn):
                if self.late():
                    return Fate(mutant, UNTRIED, why=f"like the right one in {seen} further cases")
                killed = self._one(mutant, image, plan, case, near)
                if killed is not None:
                    return killed
                seen += 1
        if not near.where:
            return Fate(mutant, EQUIVALENT, why=f"the same bits in {seen} further cases")
        kind = EQUIVALENT if near.as_near() else SURVIVED
        return Fate(mutant, kind, why=f"differs within rounding in {near.where}: {near.told()}")

    def _one(self, mutant: Mutant, image: Image, plan: Plan, case: Case, near: _Nearness) -> Fate | None:
        """The death of a mutant in one case, None where it stays alive; ``near`` learns of how far it differs."""
        session = self.session
        if not session.original.counts(case):
            return None
        data = build(session.contract, case, 1)
        try:
            wanted = self._answer(case)
            got = run_once(Runnable(session.host(), image, plan, session.contract), case, data, 1, RUN_S)
        except DeviceFault as fault:
            return Fate(mutant, KILLED, case.name, f"{fault.fault.kind}: {fault.fault.detail}")
        layouts = layouts_of(session.contract)
        apart_ = [apart({n: of[n] for n in outputs(session.contract, case)}, layouts) for of in (got, wanted)]
        different = [n for n in apart_[0] if not _alike(apart_[0][n], apart_[1][n])]
        if not different:
            return None
        expected = session.original.expected(case)
        found = compare(session.contract, case, got, expected, data.arrays)
        if found:
            self.added.append(case)
            return Fate(mutant, KILLED, f"{case.name} {case.size_map()} {case.family}", str(found[0]))
        near.where = near.where or f"{different[0]} at {case.size_map()} {case.family}"
        for name in different:
            near.learn(apart_[0][name], apart_[1][name], (expected.precise or {}).get(name))
        return None

    def _answer(self, case: Case) -> Mapping[str, Array]:
        """What the right one gives. A case that it fails is its own failure, which counts more than any mutant."""
        session = self.session
        if self._image is None:
            built = recording_backend().toolchain(session.spec.target).compile(self.right)
            assert isinstance(built, Image)  # it was compiled before it came here
            self._image = built
        data = build(session.contract, case, 1)
        what = Runnable(session.host(), self._image, self.right.plan, session.contract)
        try:
            got = run_once(what, case, data, 1, RUN_S * 5)
        except DeviceFault as fault:
            self.failure = self.failure or CaseFailure(case, fault=fault.fault)
            raise
        if self.right != session.spec.baseline:
            flushed = flushes(self.right, session.spec.baseline)
            found = compare(session.contract, case, got, session.original.expected(case), data.arrays, flushes=flushed)
            if found and self.failure is None:
                self.failure = CaseFailure(case, mismatch=found[0])
        return got


@dataclass
class _Nearness:
    """How far a mutant and the right one are from the float64 answer, where they differ: sums over elements of errors
    in units of the answer. ``where``: the first place."""

    where: str = ""
    mutant: float = 0.0
    right: float = 0.0
    unknown: bool = False

    def learn(self, got: Array, wanted: Array, truth: Array | None) -> None:
        if truth is None or not is_float(got.dtype):
            self.unknown = True
            return
        with np.errstate(all="ignore"):
            exact = doubled(truth)
            unit = np.abs(exact)
            for name, found in (("mutant", got), ("right", wanted)):
                error = np.abs(doubled(found) - exact) / unit
                total = float(np.sum(np.minimum(error[np.isfinite(error)], 1.0)))
                setattr(self, name, getattr(self, name) + total)

    def as_near(self) -> bool:
        """Whether the mutant is about as near to the truth as the right one: then nothing makes it wrong."""
        return not self.unknown and self.mutant <= LESS_ACCURATE * self.right

    def told(self) -> str:
        if self.unknown:
            return "there is no float64 answer to judge it by"
        return f"in all {self.mutant / max(self.right, 1e-300):.2g} times the right one's error"


def _alike(a: Array, b: Array) -> bool:
    """Bit for bit, but that one NaN is like another."""
    same = same_bits(a, b)
    if is_float(a.dtype) and not same.all():
        same = same | (np.isnan(doubled(a)) & np.isnan(doubled(b)))
    return bool(same.all())


def _around(mutant: Mutant) -> str:
    """The change and the line that it is in."""
    lines = mutant.candidate.source.splitlines()
    line = lines[mutant.line - 1] if 0 < mutant.line <= len(lines) else ""
    blocks = " ".join(" ".join(launch.block) for launch in mutant.candidate.plan.launches)
    return f"{mutant.before}\n{mutant.after}\n{line}\n{blocks}"


def _told(failure: CaseFailure) -> str:
    if failure.mismatch is not None:
        return str(failure.mismatch)
    return f"{failure.fault.kind}: {failure.fault.detail}" if failure.fault is not None else ""
