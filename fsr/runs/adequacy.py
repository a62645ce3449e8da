"""How adequate the tests of a kernel are: mutants of a candidate, judged on idle compile workers, and what that says.

Beside a promotion they run while the device works on it, so that they cost no time of their own; whatever is not done
soon after it is told as not tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fsr.evaluation.mutation import EQUIVALENT, KILLED, NO_CODE, SURVIVED, UNTRIED, MutantsReport, MutantsRequest
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Json, Outcome, Status
from fsr.workers.protocol import Completion, Task, WorkerFault, Workers

TASK = "fsr.evaluation.mutation:mutants_task"
PART = 8  # mutants of a task: they share a compilation
OVER_S = 10.0  # a task ends by itself; this much later it is killed
TICK_S = 0.1
INADEQUATE = "inadequate tests"  # the kind of a refusal
LEAST_SCORE, FEWEST = 0.9, 20  # a share of killed mutants, and how many must be judged before it counts


@dataclass
class Adequacy:
    """The mutants of one candidate. ``seconds``: that all may take. ``most``: tasks at a time; None: all workers."""

    workers: Workers
    spec: SessionSpec
    candidate: Candidate
    count: int
    seconds: float
    untrusted: bool = False
    most: int | None = None
    _began: float = field(default_factory=time.monotonic)
    _parts: list[int] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _reports: list[MutantsReport] = field(default_factory=list)
    _lost: bool = False

    def begin(self) -> None:
        """Submit them, in parts."""
        self._parts = list(range(max(1, math.ceil(self.count / PART))))
        for _ in range(self.most or self.workers.size("compile")):
            self._submit()

    def _submit(self) -> None:
        left_s = self._began + self.seconds - time.monotonic()
        if not self._parts or left_s <= 0:
            return
        part, parts = self._parts.pop(0), max(1, math.ceil(self.count / PART))
        request = MutantsRequest(
            self.spec, self.candidate, self.count, self.spec.seed, part, parts, left_s, self.untrusted
        )
        self._open.add(self.workers.submit("compile", Task(TASK, request, left_s + OVER_S)))

    @property
    def under_way(self) -> bool:
        """Whether a task runs or waits."""
        return bool(self._open)

    def take(self, completion: Completion) -> bool:
        """Whether a completion is one of these; then it is counted."""
        if completion.ticket not in self._open:
            return False
        self._open.remove(completion.ticket)
        if isinstance(completion.result, MutantsReport):
            self._reports.append(completion.result)
        else:
            fault = completion.result
            assert isinstance(fault, WorkerFault)
            if fault.kind != "timed_out":  # which is told as what was not tried
                self._reports.append(MutantsReport(note=f"not available: {str(fault.error or fault.detail)[:300]}"))
            self._lost = True
        self._submit()
        return True

    def wait(self, seconds: float, tick: Callable[[], None] = lambda: None) -> None:
        """Until all are done or the seconds are over."""
        until = time.monotonic() + seconds
        while self._open and time.monotonic() < until:
            for completion in self.workers.wait(TICK_S):
                self.take(completion)
            tick()

    @property
    def failure(self) -> Mapping[str, Json] | None:
        """Evidence that the candidate itself is wrong, on a case that a mutant led to."""
        return next((r.failure for r in self._reports if r.failure is not None), None)

    def weighed(self, promoted: Outcome) -> Outcome:
        """A promotion's outcome with the score in its evidence; no win where a mutant led to a case that the candidate
        fails, or where the tests let more of its mutants live than they may."""
        told = self.to_json()
        evidence: dict[str, Json] = {**promoted.evidence, "adequacy": told}
        if self.failure is not None:
            return replace(promoted, status=Status.WRONG, evidence={**evidence, **self.failure})
        if told["killed"] + told["survived"] >= FEWEST and told["score"] < LEAST_SCORE:
            detail = f"the tests find {100 * told['score']:.0f} % of the faults planted in it"
            evidence |= {"kind": INADEQUATE, "detail": detail}
            return replace(promoted, status=Status.CORRECT, evidence=evidence)
        return replace(promoted, evidence=evidence)

    def to_json(self) -> dict[str, Any]:
        """The score, and every mutant that is no kill by name. ``score``: killed of killed and survived, None where
        none was judged."""
        fates = [dict(f) for r in self._reports for f in r.fates]
        of = {kind: [f for f in fates if f["kind"] == kind] for kind in (KILLED, EQUIVALENT, SURVIVED, NO_CODE)}
        judged = len(of[KILLED]) + len(of[SURVIVED])
        tried = judged + len(of[EQUIVALENT])
        planted = tried + len(of[NO_CODE]) + sum(f["kind"] == UNTRIED for f in fates)
        notes = sorted({r.note for r in self._reports if r.note})
        if self._lost or self._open or self._parts or tried + len(of[NO_CODE]) < planted:
            notes.append(f"{tried} mutants of {self.count} tried: out of time")
        elif planted < self.count and not notes:
            notes.append(f"the kernel has no more than {planted} mutants")
        told: dict[str, Any] = {
            "score": len(of[KILLED]) / judged if judged else None,
            "mutants": planted, "tried": tried, "killed": len(of[KILLED]), "survived": len(of[SURVIVED]),
            "equivalent": len(of[EQUIVALENT]), "not_compiled": len(of[NO_CODE]),
            "operators": len({f["operator"] for f in fates}), "added_cases": sum(len(r.added) for r in self._reports),
            "survivors": of[SURVIVED], "equivalents": of[EQUIVALENT], "note": "; ".join(notes),
            "seconds": round(time.monotonic() - self._began, 2),
        }  # fmt: skip
        return told


class Beside:
    """Workers as another sees them who also waits for theirs: ``take`` is offered each completion first."""

    def __init__(self, workers: Workers, take: Callable[[Completion], bool]) -> None:
        self._workers, self._take = workers, take

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workers, name)

    def wait(self, timeout_s: float) -> list[Completion]:
        """As Workers.wait, without what was taken."""
        return [done for done in self._workers.wait(timeout_s) if not self._take(done)]
