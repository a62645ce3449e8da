"""The loop between search and workers: ask, compile, evaluate, tell; steady state.

Nothing here knows what a kernel is. Every ask and tell is in the run's log before the search moves on, so that
a kill at any moment loses no outcome.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fsr.evaluation.faults import outcome_of_fault
from fsr.evaluation.jobs import too_fast
from fsr.evaluation.promotion import SLOWER_ELSEWHERE
from fsr.evaluation.spec import Binaries, CompileRequest, Enriched, EvaluateRequest, PromoteRequest, SessionSpec
from fsr.features.schema import Features
from fsr.identity import to_json
from fsr.records import Outcome, Status, VerdictKind
from fsr.runs.awaiting import TICK_S, completed, died
from fsr.runs.enriching import Enricher
from fsr.runs.log import EventLog
from fsr.runs.resuming import asked
from fsr.runs.state import Progress, RunState
from fsr.search.proposal import Proposal, Trial
from fsr.search.refinement import Refinement
from fsr.workers.protocol import Completion, Task, WorkerFault, Workers

COMPILE_TIMEOUT_S = 90.0
EVALUATE_TIMEOUT_S = 120.0
PROMOTE_TIMEOUT_S = 240.0


@dataclass(slots=True)
class Engine:
    """Drives one refinement until its deadline, its limit of evaluations, or the end of the space."""

    spec: SessionSpec
    refinement: Refinement
    workers: Workers
    log: EventLog
    state: RunState
    progress: Progress
    started: float
    on_failure: Callable[[str, Outcome], None]
    enricher: Enricher | None = None
    _compiling: dict[int, Proposal] = field(default_factory=dict)
    _evaluating: dict[int, Proposal] = field(default_factory=dict)
    _binaries: dict[int, Binaries] = field(default_factory=dict)
    _tried_again: set[int] = field(default_factory=set)
    _slower_elsewhere: set[tuple[str, ...]] = field(default_factory=set)

    # ------------------------------------------------------------ the search

    def search(self, deadline: float, evaluations: int | None) -> None:
        """Evaluate proposals until ``deadline`` (time.monotonic). Raises KeyboardInterrupt as it comes."""
        depth = self.workers.size("compile") + 2 * self.workers.size("device")
        for left in self.refinement.open:  # left open by the run that is being resumed
            self._compile(left)
        if self.enricher is not None:
            self.enricher.begin()
        while time.monotonic() < deadline:
            exhausted = False
            while self._flying() < depth and not exhausted:
                limit = evaluations is not None and self.state.told + self._flying() >= evaluations
                proposal = None if limit else self.refinement.ask()
                if proposal is None:
                    exhausted = True
                else:
                    self._ask(proposal)
            if not self._flying():
                return
            if self.enricher is not None:
                self.enricher.dispatch()
            for completion in self.workers.wait(min(TICK_S, max(0.0, deadline - time.monotonic()))):
                self._take(completion)
            self._show()

    def _flying(self) -> int:
        return len(self._compiling) + len(self._evaluating)

    def _ask(self, proposal: Proposal) -> None:
        self.log.append("ask", **asked(proposal))
        self._compile(proposal)

    def _compile(self, proposal: Proposal) -> None:
        request = CompileRequest(self.spec, proposal.candidate, proposal.untrusted)
        task = Task("fsr.evaluation.jobs:compile_task", request, COMPILE_TIMEOUT_S)
        self._compiling[self.workers.submit("compile", task)] = proposal

    def _take(self, completion: Completion) -> None:
        compiled = self._compiling.pop(completion.ticket, None)
        if compiled is not None:
            if self._again(compiled, completion):
                self._compile(compiled)
            else:
                self._compiled(compiled, completion)
            return
        evaluated = self._evaluating.pop(completion.ticket, None)
        if evaluated is None:
            self._enrich(completion)
            return
        if self._again(evaluated, completion):
            self._evaluate(evaluated, self._binaries[evaluated.id])
        else:
            self._tell(evaluated, self._outcome(completion, "tests"))

    def _enrich(self, completion: Completion) -> None:
        found = self.enricher.take(completion) if self.enricher is not None else None
        if found is None:
            return
        proposal_id, enriched = found
        if enriched.note and enriched.note not in self.state.notes:
            self.state.notes.append(enriched.note)
        if enriched.features != Features():
            self.log.append("enrich", id=proposal_id, features=to_json(enriched.features))
            self.refinement.enrich(proposal_id, enriched.features)
            if proposal_id == 0 and self.state.baseline is not None:
                self.state.baseline = replace(self.state.baseline, outcome=self.refinement.trials[0].outcome)
            self.state.best = self.refinement.archive.best

    def _again(self, proposal: Proposal, completion: Completion) -> bool:
        """Whether to try once more: the worker's process died, which need not be the candidate's doing."""
        if not died(completion) or proposal.id in self._tried_again:
            return False
        self._tried_again.add(proposal.id)
        return True

    def _compiled(self, proposal: Proposal, completion: Completion) -> None:
        result = completion.result
        if not isinstance(result, Binaries):
            self._tell(proposal, self._outcome(completion, "compile"))
            return
        self._binaries[proposal.id] = result
        self._evaluate(proposal, result)

    def _evaluate(self, proposal: Proposal, binaries: Binaries) -> None:
        best = self.state.best.time_ns if self.state.best is not None else None
        request = EvaluateRequest(self.spec, proposal.candidate, binaries, best, EVALUATE_TIMEOUT_S)
        task = Task("fsr.evaluation.jobs:evaluate_task", request, EVALUATE_TIMEOUT_S)
        self._evaluating[self.workers.submit("device", task)] = proposal

    def _outcome(self, completion: Completion, stage: str) -> Outcome:
        result = completion.result
        if isinstance(result, WorkerFault):
            return outcome_of_fault(result.kind, result.detail, result.error, stage, completion.seconds)
        assert isinstance(result, Outcome)
        report = self.state.baseline
        if report is not None and result.status >= Status.CORRECT and too_fast(result, report):
            evidence = {**result.evidence, "detail": "faster than moving its bytes allows"}
            return Outcome(Status.WRONG, "screening", result.cases, result.passed, evidence=evidence)
        return result

    def _tell(self, proposal: Proposal, outcome: Outcome) -> None:
        self.log.append("tell", id=proposal.id, outcome=to_json(outcome))
        trial = self.refinement.tell(proposal.id, outcome)
        self.state.count(outcome)
        self.state.best = self.refinement.archive.best
        if trial.time_ns is None:
            self._binaries.pop(proposal.id, None)
        elif self.enricher is not None and self.refinement.archive.holds(proposal.id):
            best = self.state.best is trial
            self.enricher.offer(proposal, self._binaries[proposal.id], best=best)
        if outcome.status < Status.SLOW:
            self.on_failure(proposal.hash, outcome)

    def _show(self) -> None:
        self.state.elapsed_s = time.monotonic() - self.started
        self.state.device_busy = self.workers.busy_share("device")
        self.state.counting_s = self.enricher.counting_s if self.enricher is not None else 0.0
        self.progress(self.state)

    # ------------------------------------------------------------ promotion

    def promote(self, deadline: float, tries: int = 6) -> Trial | None:
        """Promote the fastest candidate that stands; None when none does. Past the deadline no new try starts,
        but there is always a first."""
        self.state.phase = "promotion"
        self.workers.cancel_all()
        self._compiling.clear()
        self._evaluating.clear()
        if self.enricher is not None:
            self.enricher.clear()
        for attempt in range(tries):
            trial = self._next_to_promote()
            if trial is None or (attempt and time.monotonic() > deadline):
                return None
            outcome = self._promotion(trial, max(4.0, deadline - time.monotonic()))
            self.log.append("promote", id=trial.proposal.id, outcome=to_json(outcome))
            if outcome.status is Status.PROMOTED:
                return Trial(trial.proposal, self._whole(trial, outcome))
            self.state.notes.append(f"{trial.proposal.move}: not promoted: {reason(outcome)}")
            if outcome.evidence.get("kind") == SLOWER_ELSEWHERE:
                self._slower_elsewhere.add(trial.proposal.candidate.actions[:1])
            if outcome.status < Status.SLOW:
                self.on_failure(trial.proposal.hash, outcome)
            demoted = Outcome(min(outcome.status, Status.SLOW), "promotion", evidence=outcome.evidence)
            self.refinement.demote(trial.proposal.id, demoted)
            self.state.best = self.refinement.archive.best
            if self.spec.predicted and outcome.evidence.get("kind") == VerdictKind.AMBIGUOUS.value:
                return None  # a prediction does not vary: all that are slower are ambiguous too
        return None

    def _whole(self, trial: Trial, promoted: Outcome) -> Outcome:
        """The winner's outcome: what the search knew of it, what promotion found, and what holds it back now."""
        searched, features = trial.outcome, trial.outcome.features.merged(promoted.features)
        binaries = self._binaries.get(trial.proposal.id)
        if not features.bottlenecks and self.enricher is not None and binaries is not None:
            task = self.enricher.last_look(trial.proposal, binaries)
            found = completed(self.workers, "compile", task, self._show).result if task is not None else None
            features = features.merged(found.features) if isinstance(found, Enriched) else features
        cases, passed = searched.cases + promoted.cases, searched.passed + promoted.passed
        return replace(promoted, cases=cases, passed=passed, features=features)

    def _next_to_promote(self) -> Trial | None:
        """The fastest candidate that beats the original; one that begins with another move than those that were slower
        at held-out sizes goes first, since siblings share what slowed them."""
        baseline = self.refinement.trials[0].time_ns if self.refinement.trials else None
        if baseline is None:
            return None
        faster = [t for t in self.refinement.ranked() if t.proposal.id and (t.time_ns or baseline) < baseline]
        others = [t for t in faster if t.proposal.candidate.actions[:1] not in self._slower_elsewhere]
        return next(iter([*others, *faster]), None)

    def _promotion(self, trial: Trial, budget_s: float) -> Outcome:
        binaries = self._binaries.get(trial.proposal.id)
        if binaries is None:  # told in an earlier life of this run
            request = CompileRequest(self.spec, trial.proposal.candidate, trial.proposal.untrusted)
            compile_ = Task("fsr.evaluation.jobs:compile_task", request, COMPILE_TIMEOUT_S)
            done = completed(self.workers, "compile", compile_, self._show, tries=2)
            if not isinstance(done.result, Binaries):
                return self._outcome(done, "compile")
            binaries = done.result
        promotion = PromoteRequest(
            self.spec, trial.proposal.candidate, binaries, min(20.0, budget_s / 2), untrusted=trial.proposal.untrusted
        )
        task = Task("fsr.evaluation.promotion:promote_task", promotion, PROMOTE_TIMEOUT_S, fresh=True)
        return self._outcome(completed(self.workers, "device", task, self._show, tries=2), "promotion")


def reason(outcome: Outcome) -> str:
    """Why a candidate was not promoted, in words."""
    found = outcome.evidence
    if found.get("case"):
        return f"{found.get('kind', 'wrong')} on {found['case']}"
    match found.get("verdict"):
        case {"kind": kind, "speedup": float(speedup), "ci95": [float(low), float(high)]} if kind == found.get("kind"):
            return f"{kind}, {speedup:.3g}x [{low:.3g}, {high:.3g}]"
    return str(found.get("detail") or found.get("kind") or outcome.status.name.lower())
