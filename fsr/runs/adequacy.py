"""How adequate the tests of a kernel are: mutants of a candidate, judged on idle compile workers, and what that says.

Beside a promotion they run while the device works on it, so that they cost no time of their own; whatever is not done
soon after it is told as not tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fsr.evaluation.mutation import EQUIVALENT, KILLED, NO_CODE, SURVIVED, UNTRIED, MutantsReport, MutantsRequest
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Json
from fsr.workers.protocol import Completion, Task, Workers

TASK = "fsr.evaluation.mutation:mutants_task"
PART = 12  # mutants of a task: they share a compilation
OVER_S = 10.0  # a task ends by itself; this much later it is killed
TICK_S = 0.1


@dataclass
class Adequacy:
    """The mutants of one candidate. ``seconds``: that each task may take."""

    workers: Workers
    spec: SessionSpec
    candidate: Candidate
    count: int
    seconds: float
    untrusted: bool = False
    _began: float = field(default_factory=time.monotonic)
    _open: set[int] = field(default_factory=set)
    _reports: list[MutantsReport] = field(default_factory=list)

    def begin(self) -> None:
        """Submit them, in parts."""
        parts = max(1, math.ceil(self.count / PART))
        for part in range(parts):
            request = MutantsRequest(
                self.spec, self.candidate, self.count, self.spec.seed, part, parts, self.seconds, self.untrusted
            )
            self._open.add(self.workers.submit("compile", Task(TASK, request, self.seconds + OVER_S)))

    def take(self, completion: Completion) -> bool:
        """Whether a completion is one of these; then it is counted."""
        if completion.ticket not in self._open:
            return False
        self._open.remove(completion.ticket)
        if isinstance(completion.result, MutantsReport):
            self._reports.append(completion.result)
        else:
            error = getattr(completion.result, "error", None)
            self._reports.append(MutantsReport(note=str(error or completion.result.detail).splitlines()[0]))
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

    def to_json(self) -> dict[str, Json]:
        """The score, and every mutant that is no kill by name. ``score``: killed of killed and survived, None where
        none was judged."""
        fates = [dict(f) for r in self._reports for f in r.fates]
        of = {kind: [f for f in fates if f["kind"] == kind] for kind in (KILLED, EQUIVALENT, SURVIVED, NO_CODE)}
        judged = len(of[KILLED]) + len(of[SURVIVED])
        tried = judged + len(of[EQUIVALENT])
        planted = tried + len(of[NO_CODE]) + sum(f["kind"] == UNTRIED for f in fates)
        notes = sorted({r.note for r in self._reports if r.note})
        if self._open or tried + len(of[NO_CODE]) < planted:
            notes.append(f"{tried} mutants of {max(planted, self.count)} tried: out of time")
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
