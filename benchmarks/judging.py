"""Judges many candidates of one kernel on the host device by the search's own cases, compiled in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.kernels.sources import Subject
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import DeviceFault
from fsr.errors import FsrError
from fsr.evaluation.batches import images
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Case, FaultKind, Image, Plan
from fsr.testgen.fitting import elements
from fsr.testgen.placing import place
from fsr.testgen.values import build

EVERY = 3  # of the search's cases; all of those for alignment and aliasing
RECORDED_ELEMENTS = 2048
TRIES = 3  # of what did not end in time, which on a busy machine says little


@dataclass
class Attempt:
    """One way from a kernel: the moves on it, where it led, and what became of that ('' while undecided)."""

    moves: tuple[str, ...]
    candidate: Candidate | None
    status: str = ""
    detail: str = ""


class Judge:
    """One kernel's session; the original's answers are computed once."""

    def __init__(self, subject: Subject, target: str, seed: int = 1) -> None:
        spec = SessionSpec(subject.contract, subject.candidate, "host", target, seed, subject.folder)
        self.failed = ""
        try:
            self.session = Session(spec)
            self.cases = self._cases()
            for case in self.cases:
                self.session.original.expected(case)
            self.failed = self._own_fault(subject.candidate)
        except (FsrError, DeviceFault) as error:
            self.failed = str(error).splitlines()[0]

    def _cases(self) -> list[Case]:
        found = [c for i, c in enumerate(self.session.search_cases())
                 if i % EVERY == 0 or c.name.startswith(("alignment", "aliased"))]  # fmt: skip
        return [self.session.spec.smoke_case(), *found]

    def decide(self, attempts: Sequence[Attempt]) -> None:
        """Set each attempt's status: 'right', 'wrong', 'not compiled' (for the host) or 'not judged' (the original
        itself does not run here)."""
        if self.failed:
            for attempt in attempts:
                attempt.status, attempt.detail = "not judged", self.failed
            return
        try:
            self._tested(attempts)
            self._recorded([a for a in attempts if a.status == "right"])
        finally:
            self.session.close()

    def _tested(self, attempts: Sequence[Attempt]) -> None:
        candidates = [a.candidate for a in attempts if a.candidate is not None]
        for index, built in images(HostToolchain(), candidates).items():
            attempt = attempts[index]
            if not isinstance(built, tuple):
                attempt.status, attempt.detail = "not compiled", f"for the host: {built.log[:300]}"
                continue
            attempt.status, attempt.detail = self._verdict(candidates[index], *built)

    def _verdict(self, candidate: Candidate, image: Image, plan: Plan) -> tuple[str, str]:
        cases = [*self.cases, *self.session.candidate_cases(candidate)]
        candidate, told = replace(candidate, plan=plan), ""
        for _ in range(TRIES):
            try:
                _passed, failure = self.session.first_failure(image, candidate, cases)
            except DeviceFault as fault:
                return "wrong", f"{fault.fault.kind}: {fault.fault.detail}"
            if failure is None:
                return "right", ""
            told = _told(failure.evidence())
            if failure.fault is None or failure.fault.kind is not FaultKind.HANG:
                break
            cases = [failure.case, *(c for c in cases if c is not failure.case)]
        return "wrong", told

    def _own_fault(self, original: Candidate) -> str:
        """Of an original that races, or reads what was never written, nothing else can be said to be wrong."""
        case = self._recorded_case()
        built = images(_Instrumented(), [original])[0] if case is not None else None
        fault = self._fault(case, *built) if case is not None and isinstance(built, tuple) else ""
        return f"the kernel itself: {fault}" if fault else ""

    def _recorded_case(self) -> Case | None:
        """The largest case that the recorder takes."""
        small = [c for c in self.cases if elements(self.session.contract, c.size_map()) <= RECORDED_ELEMENTS]
        return max(small, key=lambda c: elements(self.session.contract, c.size_map()), default=None)

    def _recorded(self, attempts: Sequence[Attempt]) -> None:
        """Races, reads of what was never written and accesses out of bounds, which a right answer may hide."""
        case = self._recorded_case()
        if not attempts or case is None:
            return
        candidates = [a.candidate for a in attempts if a.candidate is not None]
        for index, built in images(_Instrumented(), candidates).items():
            if isinstance(built, tuple):
                fault = self._fault(case, *built)
                if fault:
                    attempts[index].status, attempts[index].detail = "wrong", fault

    def _fault(self, case: Case, image: Image, plan: Plan) -> str:
        data = build(self.session.contract, case, 3)
        launches, buffers = place(self.session.contract, plan, case, data)
        try:
            faults = self.session.recorder().record(image, launches, buffers).faults if launches else ()
        except DeviceFault as fault:
            return f"recorded {case.name} {case.size_map()}: {fault.fault.kind}: {fault.fault.detail}"
        return f"recorded {case.name} {case.size_map()}: {faults[0].kind}: {faults[0].detail}" if faults else ""


class _Instrumented(HostToolchain):
    def compile(self, candidate: Candidate, **_options: Any) -> Any:
        """With the recorder's hooks."""
        return super().compile(candidate, instrumented=True, timeout_s=180.0)


def _told(evidence: dict[str, Any]) -> str:
    kept = ("case", "sizes", "family", "kind", "detail", "argument", "index", "got", "want", "allowed", "output")
    return " ".join(f"{k}={evidence[k]}" for k in kept if k in evidence)
