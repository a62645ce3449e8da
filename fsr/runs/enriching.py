"""Finding out more about elites while the device times others.

Beside a GPU, idle compile workers record elites on the host device, and counters are read on the GPU for the original
and for each new best, within a share of the time (COUNTERS_SHARE). What is found raises the moves that aim at it; a run
goes on the same where nothing can be found.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fsr.evaluation.spec import Binaries, CompileRequest, Enriched, EnrichRequest, SessionSpec
from fsr.search.proposal import Proposal
from fsr.workers.protocol import Completion, Pool, Task, Workers

COMPILE = "fsr.evaluation.jobs:compile_task"
RECORD: tuple[Pool, str] = ("compile", "fsr.evaluation.enriching:record_task")
COUNT: tuple[Pool, str] = ("device", "fsr.evaluation.enriching:counters_task")
TIMEOUT_S: dict[Pool, float] = {"compile": 40.0, "device": 40.0}
COUNTERS_SHARE = 0.05  # of the seconds since the search began, so that the promise holds whenever it ends
COUNTERS_FIRST_S = 2.5  # what reading them is taken to cost before it was seen
ORIGINAL = 0
RECORDERS = 4  # compile workers for each that may record
LAST_LOOK_S = 10.0  # a winner without a cause is still a winner


@dataclass(slots=True)
class Enricher:
    """Decides whom to look at more closely, and when. ``counting_s``: seconds of the device spent on counters."""

    workers: Workers
    spec: SessionSpec
    clock: Callable[[], float] = time.monotonic
    counting_s: float = 0.0
    _began: float | None = None
    _to_record: deque[tuple[int, EnrichRequest]] = field(default_factory=deque)
    _to_count: deque[tuple[int, EnrichRequest]] = field(default_factory=deque)
    _flying: dict[int, tuple[int, Pool]] = field(default_factory=dict)
    _original: int | None = None  # the ticket of its compilation
    _one_count_s: float = COUNTERS_FIRST_S
    _given_up: set[Pool] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.spec.backend.records:  # a device that records does so with all that it runs
            self._given_up |= {"compile", "device"}

    def begin(self) -> None:
        """The search begins: have the original compiled, whose features are wanted first."""
        self._began = self.clock()
        if not self._given_up:
            request = CompileRequest(self.spec, self.spec.baseline)
            self._original = self.workers.submit("compile", Task(COMPILE, request, TIMEOUT_S["compile"]))

    def offer(self, proposal: Proposal, binaries: Binaries, *, best: bool) -> None:
        """An elite; ``best``: the fastest so far, or the original."""
        request = EnrichRequest(self.spec, proposal.candidate, binaries, proposal.untrusted)
        self._offer(proposal.id, request, best=best)

    def _offer(self, proposal: int, request: EnrichRequest, *, best: bool) -> None:
        self._to_record.append((proposal, request))
        if best:  # the newest is counted first, then the original; those in between are overtaken
            kept = [one for one in self._to_count if one[0] == ORIGINAL]
            self._to_count = deque([*kept, (proposal, request)])

    def dispatch(self, *, device: bool = True) -> None:
        """Submit what idle workers can take now, the newest first: older elites may be none any more. ``device``:
        whether it is the run's turn there. Only some workers record at a time, which takes seconds each: what is
        compiled next must not wait for it."""
        recording = sum(pool == "compile" for _, pool in self._flying.values())
        most = max(1, self.workers.size("compile") // RECORDERS) - recording
        idle = min(self.workers.size("compile") - self.workers.pending("compile"), most)
        while idle > 0 and self._to_record and "compile" not in self._given_up:
            self._submit(RECORD, *self._to_record.pop())
            idle -= 1
        counting = any(pool == "device" for _, pool in self._flying.values())
        if device and self._to_count and not counting and "device" not in self._given_up and self._may_count():
            self._submit(COUNT, *self._to_count.pop())

    def _may_count(self) -> bool:
        assert self._began is not None
        return self.counting_s + self._one_count_s <= COUNTERS_SHARE * (self.clock() - self._began)

    def _submit(self, job: tuple[Pool, str], proposal: int, request: EnrichRequest) -> None:
        pool, function = job
        self._flying[self.workers.submit(pool, Task(function, request, TIMEOUT_S[pool]))] = proposal, pool

    def take(self, completion: Completion) -> tuple[int, Enriched] | None:
        """(proposal, what was found) of a completion that was asked for here; None for any other. A worker that failed
        found nothing: nobody's fault, and no more than that."""
        if completion.ticket == self._original and isinstance(completion.result, Binaries):
            self._offer(ORIGINAL, EnrichRequest(self.spec, self.spec.baseline, completion.result), best=True)
        if completion.ticket not in self._flying:
            return None
        proposal, pool = self._flying.pop(completion.ticket)
        if pool == "device":
            self.counting_s += completion.seconds
            self._one_count_s = completion.seconds
        found = completion.result if isinstance(completion.result, Enriched) else Enriched()
        if found.never:
            self._given_up.add(pool)
        return proposal, found

    def last_look(self, proposal: Proposal, binaries: Binaries) -> Task | None:
        """What to run for a winner that nobody has recorded; None where that is no use."""
        if "compile" in self._given_up:
            return None
        return Task(RECORD[1], EnrichRequest(self.spec, proposal.candidate, binaries, proposal.untrusted), LAST_LOOK_S)

    def clear(self) -> None:
        """Forget what was asked for and not answered."""
        self._flying.clear()
        self._to_record.clear()
        self._to_count.clear()
