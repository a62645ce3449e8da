"""The loop between search and workers: ask, compile, evaluate, tell; steady state.

Nothing here knows what a kernel is. Every ask and tell is in the run's log before the search moves on, so that
a kill at any moment loses no outcome. With one compile worker and one device, outcomes are told in the order of asking,
so that equal seeds give equal runs; with more they are told as they come.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fsr.evaluation.faults import outcome_of_fault
from fsr.evaluation.jobs import too_fast
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest
from fsr.features.schema import Features
from fsr.identity import to_json
from fsr.records import Outcome, Status
from fsr.runs.awaiting import TICK_S, died
from fsr.runs.context import RunContext
from fsr.runs.enriching import Enricher
from fsr.runs.resuming import asked
from fsr.runs.state import Ended, RunState
from fsr.search.proposal import Proposal
from fsr.search.refinement import Refinement
from fsr.workers.protocol import Completion, Task, WorkerFault

CLEARLY = 1.02  # better by this factor is a gain to go on from; less is a flag here and a hint there
AHEAD_S = 0.5  # so long the search may think of what to try next; a device has as much to do meanwhile
# Where an evaluation takes long, the device waits for what is being compiled and promises so much more than all that is
# there: short texts are compiled first, and the first that was there had it for 3 to 5 s (attention, 64 ms a run).
HELD_S, HELD_FOR = 3.0, math.log(1.5)
MOST_AHEAD = 8  # evaluations that a device has at a time: they are told what is best when they are given to it
COMPILE_TIMEOUT_S = 90.0
EVALUATE_TIMEOUT_S = 120.0


@dataclass(slots=True)
class Engine:
    """Drives one refinement until its time or its evaluations are used up, the space ends, or somebody stops it.

    ``on_failure`` is told of candidates that failed; ``widening`` is asked at each turn whether the space of moves may
    still grow; ``binaries`` are of those that did not fail, by proposal."""

    context: RunContext
    refinement: Refinement
    on_failure: Callable[[str, Outcome], None]
    enricher: Enricher
    widening: Callable[[], bool] = lambda: False
    binaries: dict[int, Binaries] = field(default_factory=dict)
    _compiling: dict[int, Proposal] = field(default_factory=dict)
    _since: dict[int, float] = field(default_factory=dict)  # when what is being compiled was handed over, by ticket
    _compiled: list[Proposal] = field(default_factory=list)  # and waiting for the device
    _evaluating: dict[int, Proposal] = field(default_factory=dict)
    _order: deque[int] = field(default_factory=deque)  # ids asked and not told, where outcomes are told in order
    _early: dict[int, tuple[Proposal, Outcome]] = field(default_factory=dict)  # outcomes that wait for their turn
    _incumbents: dict[int, float | None] = field(default_factory=dict)  # the best time when a proposal was asked for
    _settling: set[int] = field(default_factory=set)  # screened and told before, now under way to their full tests
    _tried_again: set[int] = field(default_factory=set)
    _turn_s: float | None = None  # what an evaluation takes of its device; a mean that follows

    # ------------------------------------------------------------ the search

    def search(self, evaluations: int | None) -> Ended:
        """Evaluate proposals, at most so many in the whole run; why it ended. Raises StopNow."""
        for left in self.refinement.open:  # left open by the run that is being resumed
            self._begin(left)
        self.enricher.begin()
        while True:
            self.context.tick()
            if self.context.control.stopped:
                return Ended.STOPPED
            if self.context.budget.search_left_s <= 0:
                return Ended.BUDGET
            self._feed()  # first: to think of what to try next may take a second and more
            widening = self.widening()
            full = self._fill(evaluations)
            if not self._flying() and (full or self.context.control.paused):
                used_up = self._used_up(evaluations)  # whoever still thinks would think in vain
                if not self.context.control.paused and (used_up or not (widening or self.refinement.thinking)):
                    return Ended.EVALUATIONS if used_up else Ended.SPACE
                self._idle()
                continue
            self._feed()
            self._collect(evaluations)

    def clear(self) -> None:
        """Give up what is under way; outcomes that are there are told."""
        self.context.workers.cancel_all()
        for number in sorted(self._early):
            self._tell(*self._early[number])
        self._since.clear()
        for waiting in (self._compiling, self._compiled, self._evaluating, self._order, self._early, self._settling):
            waiting.clear()
        self.enricher.clear()

    def _flying(self) -> int:
        return len(self._compiling) + len(self._compiled) + len(self._evaluating) + len(self._early)

    def _used_up(self, evaluations: int | None) -> bool:
        return evaluations is not None and self.context.state.told + self._flying() - len(self._settling) >= evaluations

    @property
    def _in_order(self) -> bool:
        workers = self.context.workers
        return workers.size("compile") == 1 == workers.size("device")

    def _fill(self, evaluations: int | None) -> bool:
        """Ask until enough is under way; whether there was nothing to ask for."""
        workers, budget = self.context.workers, self.context.budget
        ahead = 1 if self._in_order else self._ahead
        depth = workers.size("compile") + (1 + ahead) * workers.size("device")
        while self._flying() < depth and not self.context.control.paused:
            if self._used_up(evaluations):
                return True
            left = None if evaluations is None else evaluations - self.context.state.told
            proposal = self.refinement.ask(budget.search_left_s, left)
            if proposal is None:
                return True
            self.context.log.append("ask", **asked(proposal))
            if proposal.parent is not None:
                self._require_tests(proposal.parent)
            self._begin(proposal)
        return False

    def _require_tests(self, parent: int) -> None:
        """Have the full tests run of what is built on, where it was screened only; what is made of it need not wait,
        since it has tests of its own."""
        trial = self.refinement.trial(parent)
        if trial.outcome.status is not Status.SCREENED or parent in self._settling:
            return
        self._settling.add(parent)
        if self._in_order:
            self._order.append(parent)
        if parent in self.binaries:
            self._compiled.insert(0, trial.proposal)
        else:  # told in an earlier life of this run
            self._compile(trial.proposal)

    def _idle(self) -> None:
        """Nothing is under way: a pause, or a proposer that thinks. The device is others' meanwhile."""
        self.context.lease.give_back()
        paused = self.context.control.paused
        if paused:
            self.context.budget.pause()
            if self.context.state.phase != "paused":
                self.context.state.phase = "paused"
                self.context.log.append("pause")
        self.context.control.wait(TICK_S)
        if paused and not self.context.control.paused:
            self.context.budget.go_on()
            self.context.log.append("go on")
            self.context.state.phase = "search"

    def _feed(self) -> None:
        """Give the device what was compiled, while it is this run's turn."""
        lease, workers = self.context.lease, self.context.workers
        if lease.due():
            if not self._evaluating:
                lease.give_back()
            return
        free = bool(self._compiled) and lease.take()
        while free and self._compiled and len(self._evaluating) < self._ahead * workers.size("device"):
            if self._better_comes():
                break
            self._evaluate(self._most_promising())
        self.enricher.dispatch(device=lease.take() if self._evaluating else False)

    @property
    def _ahead(self) -> int:
        """How many evaluations a device has at a time."""
        return min(MOST_AHEAD, 1 + int(AHEAD_S / max(self._one_s, 1e-3)))

    @property
    def _one_s(self) -> float:
        """What an evaluation is expected to take of its device."""
        return self.context.budget.evaluation_s if self._turn_s is None else self._turn_s

    def _better_comes(self) -> bool:
        """Whether what is being compiled is worth waiting for, rather than what waits for the device."""
        if self._in_order or self._one_s < AHEAD_S or self._settling:
            return False
        now = self.context.budget.clock()
        coming = [p.worth for t, p in self._compiling.items() if p.worth is not None and now - self._since[t] < HELD_S]
        worths = [math.inf if p.worth is None else p.worth for p in self._compiled]
        return max(coming, default=-math.inf) > max(worths) + HELD_FOR

    def _most_promising(self) -> Proposal:
        """What the device takes next: where outcomes are told in order the first, else the one that promises most, not
        the one that was compiled soonest; the first of equals."""
        first = 0
        if not self._in_order:
            worths = [math.inf if p.worth is None or p.id in self._settling else p.worth for p in self._compiled]
            first = worths.index(max(worths))
        return self._compiled.pop(first)

    def _collect(self, evaluations: int | None) -> None:
        if not self._compiling and not self._evaluating:  # all that is under way waits for its turn on the device
            self.context.lease.wait()
            return
        for completion in self.context.workers.wait(max(0.0, min(TICK_S, self.context.budget.search_left_s))):
            self._take(completion)
            while self._order and self._order[0] in self._early:
                self._tell(*self._early.pop(self._order.popleft()))
                self._fill(evaluations)

    # ------------------------------------------------------------ one proposal

    def _begin(self, proposal: Proposal) -> None:
        if self._in_order:
            self._order.append(proposal.id)
            self._incumbents[proposal.id] = self._best_ns()
        self._compile(proposal)

    def _best_ns(self) -> float | None:
        best = self.context.state.best
        return best.time_ns if best is not None else None

    def _compile(self, proposal: Proposal) -> None:
        request = CompileRequest(self.context.spec, proposal.candidate, proposal.untrusted)
        task = Task("fsr.evaluation.jobs:compile_task", request, COMPILE_TIMEOUT_S)
        ticket = self.context.workers.submit("compile", task)
        self._compiling[ticket], self._since[ticket] = proposal, self.context.budget.clock()

    def _evaluate(self, proposal: Proposal) -> None:
        best = self._incumbents.pop(proposal.id) if proposal.id in self._incumbents else self._best_ns()
        owed = proposal.id in self._settling
        request = EvaluateRequest(self.context.spec, proposal.candidate, self.binaries[proposal.id], best, owed)
        task = Task("fsr.evaluation.jobs:evaluate_task", request, EVALUATE_TIMEOUT_S)
        self._evaluating[self.context.workers.submit("device", task)] = proposal

    def _take(self, completion: Completion) -> None:
        compiled = self._compiling.pop(completion.ticket, None)
        self._since.pop(completion.ticket, None)
        evaluated = self._evaluating.pop(completion.ticket, None)
        if compiled is not None:
            if isinstance(completion.result, Binaries):
                self.binaries[compiled.id] = completion.result
                self._compiled.append(compiled)
            elif self._again(compiled, completion):
                self._compile(compiled)
            else:
                self._done(compiled, outcome_of(completion, "compile", self.context.state))
        elif evaluated is not None:
            if self._again(evaluated, completion):
                self._compiled.insert(0, evaluated)
                return
            outcome = outcome_of(completion, "tests", self.context.state)
            if outcome.status >= Status.SLOW:  # what fails at once says nothing of what others take
                before = completion.seconds if self._turn_s is None else self._turn_s
                self._turn_s = 0.8 * before + 0.2 * completion.seconds
            if outcome.status is Status.TIMED_OUT and self.context.budget.search_left_s <= TICK_S:
                return  # the run's end and not the candidate's doing; it stays open
            if outcome.status is Status.CORRECT:
                self.context.budget.evaluation_took(completion.seconds)
            self._done(evaluated, outcome)
        else:
            self._enrich(completion)

    def _again(self, proposal: Proposal, completion: Completion) -> bool:
        """Whether to try once more: the worker's process died, which need not be the candidate's doing."""
        if not died(completion) or proposal.id in self._tried_again:
            return False
        self._tried_again.add(proposal.id)
        return True

    def _done(self, proposal: Proposal, outcome: Outcome) -> None:
        if self._in_order:
            self._early[proposal.id] = proposal, outcome
        else:
            self._tell(proposal, outcome)

    def _tell(self, proposal: Proposal, outcome: Outcome) -> None:
        if proposal.id in self._settling:
            self._settle(proposal, outcome)
            return
        state = self.context.state
        self.context.log.append("tell", id=proposal.id, outcome=to_json(outcome))
        before = self._best_ns()
        trial = self.refinement.tell(proposal.id, outcome)
        state.count(outcome)
        state.best = self.refinement.archive.best
        if before is not None and (self._best_ns() or before) * CLEARLY < before:
            self.context.budget.gained()
        self.context.budget.found = self.context.found
        state.shares = self.refinement.sharing.accounts
        if trial.time_ns is None:
            self.binaries.pop(proposal.id, None)
        elif self.refinement.archive.holds(proposal.id):
            best = state.best is trial
            self.enricher.offer(proposal, self.binaries[proposal.id], best=best)
        if outcome.status < Status.SLOW:
            self.on_failure(proposal.hash, outcome)

    def _settle(self, proposal: Proposal, tests: Outcome) -> None:
        self._settling.remove(proposal.id)
        outcome = settle(self.context, self.refinement, proposal.id, tests)
        if outcome.status < Status.SCREENED:
            self.binaries.pop(proposal.id, None)
            self.on_failure(proposal.hash, outcome)

    def _enrich(self, completion: Completion) -> None:
        found = self.enricher.take(completion)
        if found is None:
            return
        proposal_id, enriched = found
        state = self.context.state
        state.counting_s = self.enricher.counting_s
        if enriched.note and enriched.note not in state.notes:
            state.notes.append(enriched.note)
        if enriched.features != Features():
            self.context.log.append("enrich", id=proposal_id, features=to_json(enriched.features))
            self.refinement.enrich(proposal_id, enriched.features)
            if proposal_id == 0 and state.baseline is not None:
                state.baseline = replace(state.baseline, outcome=self.refinement.trials[0].outcome)
            state.best = self.refinement.archive.best


def settle(context: RunContext, refinement: Refinement, number: int, tests: Outcome) -> Outcome:
    """Note what the full tests say of a screened candidate: in the log, then in the search. Its outcome now."""
    outcome, held = tests, refinement.trial(number).outcome
    if tests.status is Status.CORRECT:
        outcome = replace(
            held, status=tests.status, stage=tests.stage, cases=held.cases + tests.cases,
            passed=held.passed + tests.passed, seconds=held.seconds + tests.seconds,
        )  # fmt: skip
    context.log.append("settle", id=number, outcome=to_json(outcome))
    refinement.settle(number, outcome)
    context.state.settle(outcome)
    context.state.best = refinement.archive.best
    return outcome


def outcome_of(completion: Completion, stage: str, state: RunState) -> Outcome:
    """What a completion says of its candidate; a time below what moving the bytes allows is no time. Raises what is
    fsr's own fault or the user's."""
    result = completion.result
    if isinstance(result, WorkerFault):
        return outcome_of_fault(result.kind, result.detail, result.error, stage, completion.seconds)
    assert isinstance(result, Outcome)
    if state.baseline is not None and result.status >= Status.SCREENED and too_fast(result, state.baseline):
        evidence = {**result.evidence, "detail": "faster than moving its bytes allows"}
        return Outcome(Status.WRONG, "screening", result.cases, result.passed, evidence=evidence)
    return result
