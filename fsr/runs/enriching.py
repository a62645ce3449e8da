"""Finding out more about elites while the device times others.

Beside a GPU, idle compile workers record elites on the host device, and counters are read on the GPU for the original
and for each new best, within a share of the run's time. What is found raises the moves that aim at it; a run goes on
the same where nothing can be found.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from importlib.util import find_spec

from fsr.evaluation.spec import Binaries, CompileRequest, EnrichRequest, SessionSpec
from fsr.features.schema import Features
from fsr.records import Candidate
from fsr.workers.protocol import Completion, Pool, Task, Workers

COMPILE = "fsr.evaluation.jobs:compile_task"
RECORD: tuple[Pool, str] = ("compile", "fsr.evaluation.enriching:record_task")
COUNT: tuple[Pool, str] = ("device", "fsr.evaluation.enriching:counters_task")
TIMEOUT_S = {"compile": 60.0, "device": 20.0}
COUNTERS_SHARE = 0.04  # of the run's seconds
COUNTERS_FIRST_S = 1.0  # what reading them is taken to cost before it was seen


@dataclass(slots=True)
class Enricher:
    """Decides whom to look at more closely, and when. ``budget_s``: of the run."""

    workers: Workers
    spec: SessionSpec
    budget_s: float
    _to_record: deque[tuple[int, EnrichRequest]] = field(default_factory=deque)
    _to_count: deque[tuple[int, EnrichRequest]] = field(default_factory=deque)
    _flying: dict[int, tuple[int, Pool]] = field(default_factory=dict)
    _original: int | None = None  # the ticket of its compilation
    _counting_s: float = 0.0
    _one_count_s: float = COUNTERS_FIRST_S
    _given_up: set[Pool] = field(default_factory=set)

    def __post_init__(self) -> None:
        # A device that records does so with all that it runs.
        if self.spec.backend.records or find_spec("fsr.evaluation.enriching") is None:
            self._given_up |= {"compile", "device"}

    def begin(self) -> None:
        """Have the original compiled, whose features are wanted first."""
        if not self._given_up:
            request = CompileRequest(self.spec, self.spec.baseline)
            self._original = self.workers.submit("compile", Task(COMPILE, request, TIMEOUT_S["compile"]))

    def offer(self, proposal: int, candidate: Candidate, binaries: Binaries, *, best: bool) -> None:
        """An elite; ``best``: the fastest so far, or the original."""
        request = EnrichRequest(self.spec, candidate, binaries)
        self._to_record.append((proposal, request))
        if best:
            self._to_count.append((proposal, request))

    def dispatch(self) -> None:
        """Submit what idle workers can take now, the newest first: older elites may be none any more."""
        idle = self.workers.size("compile") - self.workers.pending("compile")
        while idle > 0 and self._to_record and "compile" not in self._given_up:
            self._submit(RECORD, *self._to_record.pop())
            idle -= 1
        counting = any(pool == "device" for _, pool in self._flying.values())
        if counting or not self._to_count or "device" in self._given_up:
            return
        if self._counting_s + self._one_count_s <= COUNTERS_SHARE * self.budget_s:
            self._submit(COUNT, *self._to_count.pop())
            self._to_count.clear()

    def _submit(self, job: tuple[Pool, str], proposal: int, request: EnrichRequest) -> None:
        pool, function = job
        self._flying[self.workers.submit(pool, Task(function, request, TIMEOUT_S[pool]))] = proposal, pool

    def take(self, completion: Completion) -> tuple[int, Features] | None:
        """(proposal, features) of a completion that was asked for here; None for any other. A worker that failed gives
        no features: nobody's fault, and no more than that."""
        if completion.ticket == self._original and isinstance(completion.result, Binaries):
            self.offer(0, self.spec.baseline, completion.result, best=True)
        if completion.ticket not in self._flying:
            return None
        proposal, pool = self._flying.pop(completion.ticket)
        if pool == "device":
            self._counting_s += completion.seconds
            self._one_count_s = completion.seconds
        found = completion.result if isinstance(completion.result, Features) else Features()
        if completion.result == Features():
            self._given_up.add(pool)
        return proposal, found

    def clear(self) -> None:
        """Forget what was asked for and not answered."""
        self._flying.clear()
        self._to_record.clear()
        self._to_count.clear()
