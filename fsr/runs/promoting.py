"""After the search: the fastest candidates are judged one after the other until one stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from fsr.evaluation.faults import OriginalFails
from fsr.evaluation.promotion import joined
from fsr.evaluation.spec import (
    Binaries,
    CompileRequest,
    Enriched,
    EvaluateRequest,
    PromoteRequest,
    PromotionPart,
    RefuteRequest,
)
from fsr.identity import to_json
from fsr.records import Json, Outcome, Status, VerdictKind
from fsr.runs.adequacy import Adequacy, Beside
from fsr.runs.awaiting import completed
from fsr.runs.by_size import WORTH, glanced_at, used_where_faster
from fsr.runs.context import RunContext
from fsr.runs.engine import CLEARLY, COMPILE_TIMEOUT_S, EVALUATE_TIMEOUT_S, outcome_of, settle
from fsr.runs.enriching import Enricher
from fsr.runs.refusals import Refusals
from fsr.runs.resuming import demoted
from fsr.search.defects import defects_of
from fsr.search.proposal import Proposal, Trial
from fsr.search.proposers.deterministic import BY_SIZE
from fsr.search.refinement import Refinement
from fsr.workers.protocol import Workers

PROMOTE_TIMEOUT_S = 240.0
MUTANTS, MUTANTS_S = 60, 120.0  # of a candidate that is promoted, and the seconds they may take at most
GRACE_S = 3.0  # that they may take longer than the promotion itself
TRIES = 6  # promotions; those that fail where others did are refused before one
REFUSALS = 24  # of these and of those
CUT = 1.5  # one that was cut short would have taken this much of what it was given, at the least
AS_GOOD = 1.02  # times so near that which candidate is promoted first is decided by what may be wrong with it
AFTER_STOP_S = 30.0  # when a run was stopped, no further try begins later than this: a first refusal may take 10


@dataclass(slots=True)
class Promoter:
    """Promotes the fastest candidate of a refinement that stands. ``binaries``: of proposals that were compiled."""

    context: RunContext
    refinement: Refinement
    binaries: dict[int, Binaries]
    on_failure: Callable[[str, Outcome], None]
    enricher: Enricher
    _refusals: Refusals = field(default_factory=Refusals)
    _below: int | None = None  # elements at which the original itself was seen to fail
    _tries: int = 0
    _tied: bool = False  # whether one that looked faster was no faster in its final
    _split: Trial | None = None  # one that is used where it is faster, to be judged next
    _widening: set[int] = field(default_factory=set)  # proposals used at the timed sizes that were to be used at more

    def promote(self) -> Trial | None:
        """The winner; None when no candidate stands, or time does not suffice (then the state says so)."""
        state, budget = self.context.state, self.context.budget
        state.phase = "promotion"
        stopped_at = budget.elapsed_s
        if (faster := glanced_at(self.refinement)) is not None and budget.enough_to_promote():
            self._split_by_size(faster, faster.outcome)
        for attempt in range(REFUSALS):
            if self._tries >= TRIES:
                return None
            trial, self._split = self._split or self._widened(self._next()), None
            if trial is None or (attempt and state.stopped and budget.elapsed_s - stopped_at > AFTER_STOP_S):
                return None
            foreseen = self._foreseen(trial)
            if foreseen is None and not budget.enough_to_promote():
                state.unjudged = trial
                return None
            outcome = foreseen or self._judged(trial)
            if outcome is None:
                state.unjudged = trial
                return None
            self.context.log.append("promote", id=trial.proposal.id, outcome=to_json(outcome))
            if outcome.status is Status.PROMOTED:
                if unrun := outcome.evidence.get("unrun"):
                    state.notes.append(str(unrun))
                return Trial(trial.proposal, self._whole(self.refinement.trial(trial.proposal.id), outcome))
            if self._refuse(trial, outcome):
                return None
        return None

    def _foreseen(self, trial: Trial) -> Outcome | None:
        """What promotion would say of a candidate whose predicted time is known not to be enough, tests or no tests."""
        verdict = self.context.verdict_on(trial)
        if verdict is None or verdict.kind is VerdictKind.FASTER:
            return None
        evidence: dict[str, Json] = {"verdict": to_json(verdict), "kind": verdict.kind.value}
        return Outcome(Status.CORRECT, "promotion", timing=trial.outcome.timing, evidence=evidence)

    def _refuse(self, trial: Trial, outcome: Outcome) -> bool:
        """Note that a candidate does not stand; whether no other will either."""
        state = self.context.state
        state.refusals.append((trial, outcome))
        state.notes.append(f"{trial.proposal.move}: not promoted: {reason(outcome)}")
        self._refusals.note(trial, outcome)
        self._tied |= outcome.evidence.get("kind") in (VerdictKind.SAME.value, VerdictKind.AMBIGUOUS.value)
        if outcome.status < Status.SLOW:
            self.on_failure(trial.proposal.hash, outcome)
        self.refinement.demote(trial.proposal.id, demoted(outcome))
        if outcome.slower_elsewhere:
            self._split_by_size(trial, outcome)
        state.best = self.refinement.archive.best
        # A prediction does not vary: all that are slower are ambiguous too.
        return self.context.spec.predicted and outcome.evidence.get("kind") == VerdictKind.AMBIGUOUS.value

    def _widened(self, trial: Trial | None) -> Trial | None:
        """One that is used at the timed sizes alone as one that is used wherever it is faster, if that can be told and
        leaves the time to promote either."""
        if trial is None or trial.proposal.origin != BY_SIZE or trial.proposal.id in self._widening:
            return trial
        self._widening.add(trial.proposal.id)
        if trial.proposal.parent is None or self.context.budget.promotion_left_s < 2 * self.context.budget.promotion_s:
            return trial
        parent = self.refinement.trial(trial.proposal.parent)
        binaries = self._built(parent.proposal)
        self.context.take_device()
        found = None
        if isinstance(binaries, Binaries):
            found = used_where_faster(self.context, self.refinement, parent, binaries, parent.outcome)
        return found or trial

    def _split_by_size(self, trial: Trial, outcome: Outcome) -> None:
        """Make of a candidate that is faster at some sizes alone one that is used there, unless another that may stand
        everywhere is nearly as fast and there is time to promote either."""
        if self.refinement.space.rules.keep_launch:
            return
        binaries, other, baseline = self._built(trial.proposal), self._next(), self.refinement.trials[0].time_ns
        time_ns = trial.measured_ns
        if not isinstance(binaries, Binaries) or time_ns is None or baseline is None or time_ns * WORTH > baseline:
            return
        rival = other if other is not None and not self._refusals.suspect(other) else None
        budget = self.context.budget
        last = budget.promotion_left_s < 2 * budget.promotion_s
        if rival is None or last or time_ns * WORTH < (rival.time_ns or time_ns):
            self.context.take_device()
            self._split = used_where_faster(self.context, self.refinement, trial, binaries, outcome)

    def _built(self, proposal: Proposal) -> Binaries | Outcome | None:
        """A candidate's binaries, or why there are none; None when the budget ended first."""
        binaries = self.binaries.get(proposal.id)
        if binaries is not None:
            return binaries
        request = CompileRequest(self.context.spec, proposal.candidate, proposal.untrusted)
        done, cut = self.context.awaited("compile", "jobs:compile_task", lambda _: request, COMPILE_TIMEOUT_S)
        if isinstance(done.result, Binaries):
            return done.result
        return None if cut else outcome_of(done, "compile", self.context.state)

    def _whole(self, trial: Trial, promoted: Outcome) -> Outcome:
        """The winner's outcome: what the search knew of it, what promotion found, and what holds it back now."""
        searched, features = trial.outcome, trial.outcome.features.merged(promoted.features)
        binaries = self.binaries.get(trial.proposal.id)
        if not features.bottlenecks and binaries is not None and self.context.budget.promotion_left_s > 0:
            task = self.enricher.last_look(trial.proposal, binaries)
            if task is not None:
                task = replace(task, timeout_s=min(task.timeout_s, self.context.budget.promotion_left_s))
                found = completed(self.context.workers, "compile", task, self.context.tick).result
                features = features.merged(found.features) if isinstance(found, Enriched) else features
        cases, passed = searched.cases + promoted.cases, searched.passed + promoted.passed
        return replace(promoted, cases=cases, passed=passed, features=features)

    def _next(self) -> Trial | None:
        """The fastest candidate that beats the original; one that has not all moves of one that was wrong, nor the
        first of one that was slower at held-out sizes, goes first, since siblings share what was held against them."""
        baseline = self.refinement.trials[0].time_ns if self.refinement.trials else None
        if baseline is None:
            return None
        # Where one that looked faster is not, others that look a little faster are not either: 6 s each to be told so.
        limit = baseline / CLEARLY if self._tied else baseline
        faster = [t for t in self.refinement.ranked() if t.proposal.id and (t.time_ns or baseline) < limit]
        others = [t for t in faster if not self._refusals.suspect(t)]
        return self._safest(others or faster) if faster else None

    def _safest(self, trials: list[Trial]) -> Trial:
        """Of those that are as good as the first, one with as few as can be of the actions that made others of this run
        wrong: a reciprocal that flips the choice of one comparison in a million passes many a test, and what it gains
        is not worth a promotion, of which a short budget has one."""
        wrong = {action for action, counts in defects_of(self.refinement.trials).items() if "wrong" in counts}
        limit = (trials[0].time_ns or 0.0) * AS_GOOD

        def risk(trial: Trial) -> int:
            return sum(move.partition("@")[0] in wrong for move in trial.proposal.candidate.actions)

        return min((t for t in trials if (t.time_ns or 0.0) <= limit), key=risk)

    def _judged(self, trial: Trial) -> Outcome | None:
        """What promotion says of a candidate; None when the budget ended first."""
        context, proposal = self.context, trial.proposal
        binaries = self._built(proposal)
        if not isinstance(binaries, Binaries):  # of what was told in an earlier life of this run there are none yet
            return binaries
        context.take_device()
        asked = [self._refuted] if self._refusals.seeds else []
        asked += [self._tested] if trial.outcome.status is Status.SCREENED else []
        for ask in asked:
            answer = ask(proposal, binaries)
            if answer is None or answer.status is not Status.CORRECT:
                return answer
        self._tries += 1
        whole = partial(
            PromoteRequest, context.spec, proposal.candidate, binaries, untrusted=proposal.untrusted,
            own_tested="own_cases" in trial.outcome.evidence, below=self._below,
        )  # fmt: skip
        shared = context.spec.predicted and context.workers.size("device") > 1
        parts = (PromotionPart.TESTS, PromotionPart.TIMES) if shared else (PromotionPart.WHOLE,)
        mutants = self._mutants(proposal)
        aside = replace(context, workers=cast(Workers, Beside(context.workers, mutants.take)))
        judged, cut = aside.judged([partial(whole, part=part) for part in parts], PROMOTE_TIMEOUT_S)
        took_s = max(one.seconds for one in judged)
        context.budget.promotion_took(CUT * took_s if cut else took_s)
        if cut:
            return None
        try:
            found = [outcome_of(one, "promotion", context.state) for one in judged]
        except OriginalFails as limit:
            context.workers.cancel_all()
            context.state.notes.append(str(limit))
            self._below = limit.elements
            return self._judged(trial)
        outcome = joined(*found) if len(found) > 1 else found[0]
        if outcome.status is Status.PROMOTED:
            mutants.wait(min(GRACE_S, context.budget.promotion_left_s), context.tick)
            outcome = mutants.weighed(outcome)
        if mutants.under_way:  # what comes too late would be in the way of the next
            context.workers.cancel_all()
        return outcome

    def _refuted(self, proposal: Proposal, binaries: Binaries) -> Outcome | None:
        """What is wrong with a candidate where others were wrong; None when the budget ended first."""
        request = RefuteRequest(self.context.spec, proposal.candidate, binaries, tuple(self._refusals.seeds))
        done, cut = self.context.awaited("device", "refuting:refute_task", lambda _: request, EVALUATE_TIMEOUT_S)
        return None if cut else outcome_of(done, "promotion", self.context.state)

    def _tested(self, proposal: Proposal, binaries: Binaries) -> Outcome | None:
        """What the full tests of the search say of one that was screened only; None when the budget ended first."""
        owed = EvaluateRequest(self.context.spec, proposal.candidate, binaries, owed=True)
        done, cut = self.context.awaited("device", "jobs:evaluate_task", lambda _: owed, EVALUATE_TIMEOUT_S)
        if cut:
            return None
        outcome = outcome_of(done, "tests", self.context.state)
        # One that failed is demoted as any that promotion refuses.
        return (
            settle(self.context, self.refinement, proposal.id, outcome) if outcome.status is Status.CORRECT else outcome
        )

    def _mutants(self, proposal: Proposal) -> Adequacy:
        """Mutants of a candidate, begun on compile workers that have nothing else to do while it is promoted."""
        context = self.context
        seconds = min(MUTANTS_S, context.budget.promotion_s + GRACE_S, context.budget.promotion_left_s)
        most = max(1, context.workers.size("compile") // 2)
        found = Adequacy(context.workers, context.spec, proposal.candidate, MUTANTS, seconds, proposal.untrusted, most)
        found.begin()
        return found


def reason(outcome: Outcome) -> str:
    """Why a candidate was not promoted, in words."""
    found = outcome.evidence
    if found.get("case"):
        return f"{found.get('kind', 'wrong')} on {found['case']}"
    match found.get("verdict"):
        case {"kind": kind, "speedup": float(speedup), "ci95": [float(low), float(high)]} if kind == found.get("kind"):
            return f"{kind}, {speedup:.3g}x [{low:.3g}, {high:.3g}]"
    return str(found.get("detail") or found.get("kind") or outcome.status.name.lower())
