"""The stages of a run, one after the other: original, search, promotion, what is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fsr.errors import BaselineError, StorageError
from fsr.evaluation.spec import SessionSpec
from fsr.identity import to_json
from fsr.lifting.found import Lifting
from fsr.llm.replaying import Replayed
from fsr.records import Basis, Outcome
from fsr.runs.baseline import TIMEOUT_S, qualify
from fsr.runs.budget import Budget
from fsr.runs.caching import RunCache, open_store
from fsr.runs.context import RunContext
from fsr.runs.control import Control, StopNow
from fsr.runs.engine import Engine
from fsr.runs.enriching import Enricher
from fsr.runs.fleet import open_fleet
from fsr.runs.kernel import Kernel, kernel_of
from fsr.runs.learning import Learning, learning_of
from fsr.runs.lease import LEASES, Leases
from fsr.runs.lifting_beside import has_cores_to_spare
from fsr.runs.log import EventLog
from fsr.runs.meant import as_it_stands_or_was_meant, notes_on
from fsr.runs.models import open_models, reports, require_models
from fsr.runs.options import RefineOptions, default_output
from fsr.runs.outputs import published, render_files, require_writable, write_outputs
from fsr.runs.promoting import Promoter
from fsr.runs.restating import Restating
from fsr.runs.result import Result, result_of
from fsr.runs.resuming import RunStart, asked, replay_into
from fsr.runs.state import Ended, Progress, RunState
from fsr.runs.why import why
from fsr.search.defects import defects_of
from fsr.search.proposal import Rules, Space, Trial
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Proposer
from fsr.search.refinement import Refinement
from fsr.settings import Settings
from fsr.transform.registry import all_actions


@dataclass(slots=True)
class Job:
    """What a run is given. folder: of its log. earlier: its start, when it is resumed; the options are then its own.
    proposers: beside the deterministic one. listener: told of every event; progress: of how the run stands. since_s:
    what of its budget is gone already; patience_s: how much longer a verdict may take."""

    options: RefineOptions
    settings: Settings
    folder: Path
    earlier: RunStart | None = None
    proposers: Sequence[Proposer] = ()
    leases: Leases = field(default_factory=lambda: LEASES)
    control: Control = field(default_factory=Control)
    listener: Callable[[Mapping[str, Any]], None] = lambda event: None
    progress: Progress = lambda state: None
    since_s: float = 0.0
    patience_s: float = 0.0


def carry_out(job: Job) -> Result:
    """Refine a kernel. Raises StopNow when it is stopped before its original was tested, and FsrError."""
    options, earlier = job.options, job.earlier
    spent_s = job.since_s + (earlier.seconds if earlier is not None else 0.0)
    budget = Budget(options.budget_s, spent_s, patience_s=job.patience_s)
    output = options.output or default_output(options.kernel)
    require_writable(output, options.kernel)
    require_models(options, job.settings)
    kernel = kernel_of(options) if earlier is None else earlier.kernel()
    with ExitStack() as stack:
        workers = options.workers or job.settings.workers
        fleet = stack.enter_context(open_fleet(options, workers, modules=kernel.modules))
        log = stack.enter_context(EventLog(job.folder, job.listener))
        state = RunState(job.folder.name, kernel.contract.entry, options.budget_s, notes=list(fleet.notes))
        lease = stack.enter_context(job.leases.lease(fleet.leased))
        spec = fleet.spec(kernel, options)
        context = RunContext(spec, fleet.workers, log, state, budget, job.control, lease, job.progress)
        kernel, restating = _begun(context, kernel, stack, resumed=earlier is not None)
        cache = None
        if options.use_cache:
            assert state.baseline is not None
            store = stack.enter_context(open_store(job.settings.cache))
            cache = RunCache(store, kernel, context.spec, state.baseline.device)
        job = replace(job, proposers=[*job.proposers, *stack.enter_context(_models(job, kernel, context))])
        refining = Refining(job, kernel, context, cache, restating)
        stack.callback(refining.refinement.close)
        return refining.finish(refining.winner(), output)


def _begun(context: RunContext, kernel: Kernel, stack: ExitStack, *, resumed: bool) -> tuple[Kernel, Restating]:
    """Qualify the original, and find out meanwhile what it computes: the kernel as it stands, or as it was meant."""

    def qualified(kernel: Kernel, spec: SessionSpec) -> Restating:
        context.spec = spec
        restating = Restating(kernel, context.budget, predicted=spec.predicted, beside=has_cores_to_spare())
        stack.callback(restating.close)
        try:
            _qualify(context, kernel, resumed=resumed)
        except BaselineError:
            restating.close()  # the cores are for what comes next
            raise
        return restating

    kernel, _, restating = as_it_stands_or_was_meant(kernel, context.spec, qualified)
    context.state.notes.extend(notes_on(kernel))
    return kernel, restating


def _qualify(context: RunContext, kernel: Kernel, *, resumed: bool) -> None:
    """Test and time the original, and learn from it what the rest will cost. Raises BaselineError and BudgetError."""
    state, budget, spec = context.state, context.budget, context.spec
    budget.predicted, budget.sanitized = spec.predicted, spec.backend.sanitizes
    context.take_device()
    began = budget.elapsed_s
    # One that is resumed has spent its budget in part, and must be judged all the same.
    limit_s = TIMEOUT_S if resumed else max(1.0, min(TIMEOUT_S, budget.left_s))

    def tick() -> None:
        context.tick()
        if context.control.stopped:  # there is nothing yet that could be judged
            raise StopNow(context.control.why)

    state.baseline = qualify(context.workers, spec, kernel, tick, limit_s)
    state.notes.extend(state.baseline.notes)
    timing = state.baseline.outcome.timing
    measured = timing is not None and timing.basis is Basis.MEASURED
    budget.baseline_took(budget.elapsed_s - began, timing.median_ns / 1e9 if timing and measured else 0.0)
    context.tick()


def _known(rules: Rules, found: Lifting | None) -> Rules:
    """The rules with what a lifting found out."""
    return rules if found is None else replace(rules, computation=found.computation, alone=found.alone)


@contextmanager
def _models(job: Job, kernel: Kernel, context: RunContext) -> Iterator[Sequence[Proposer]]:
    """The models of a run; how they stand is part of its state, from now on."""
    state, shown = context.state, context.progress
    assert state.baseline is not None
    features = state.baseline.outcome.features
    models = open_models(job.options, job.settings, job.folder, features, predicted=context.spec.predicted)

    def progress(told: RunState) -> None:
        told.models = reports(models)
        shown(told)

    if models:
        context.progress = progress
    try:
        yield models
    finally:
        for model in models:
            model.close()


class Refining:
    """The search of one run, set up anew or from its log, and what follows it."""

    def __init__(
        self, job: Job, kernel: Kernel, context: RunContext, cache: RunCache | None, restating: Restating
    ) -> None:
        self.job, self.kernel, self.context, self.cache = job, kernel, context, cache
        self._restating = restating
        options, state = job.options, context.state
        start, folder = job.earlier, context.log.folder
        if start is None:
            given = cache.start() if cache is not None else None
            known, learned = tuple(sorted(cache.failures())) if cache is not None else (), ""
            if options.replay is not None:
                folder = Path(job.settings.runs) / options.replay
                first = RunStart.read(folder)
                given, known, learned = first.given, first.known, first.learned
            start = replace(RunStart.new(options, kernel, given, known, state), learned=learned)
        rules = _known(
            Rules(kernel.contract, options.keep_launch, context.spec.target),
            restating.lifted(context.tick, state.notes),
        )
        start = self._learn(start, folder, rules)
        prior = None if self.learning is None else self.learning.prior
        own = Deterministic(options.seed, () if start.given is None else (start.given,), prior)
        self.refinement = Refinement(
            kernel.baseline, Space(rules, all_actions(), state.action_failed),
            [*(p for p in job.proposers if not isinstance(p, Replayed)), own], known=start.known,
            punctual=[p for p in job.proposers if isinstance(p, Replayed)], on_fault=state.proposer_failed,
        )  # fmt: skip
        if job.earlier is None:
            self._begin(start)
        else:
            context.log.append("resume")
            replay_into(self.refinement, context.log.folder, state)
            self._tell_original()
        state.best = self.refinement.archive.best
        context.budget.found = context.found

    def _learn(self, start: RunStart, folder: Path, rules: Rules) -> RunStart:
        """Find out what earlier runs know: for a new run from the cache, else as it stands in the folder of the run
        that is resumed or replayed. The start, with what the run's own folder holds of it now."""
        state, own = self.context.state, self.context.log.folder
        self.learning: Learning | None = None
        with worth_a_note(state, "nothing is known of earlier runs"):
            if start.learned:
                self.learning = Learning.read(folder, start.learned)
            elif self.job.earlier is None:
                self.learning = learning_of(self.context, start, rules, self.cache)
            if self.learning is not None and self.job.earlier is None:
                start = replace(start, learned=self.learning.write(own))
        if start.learned and self.learning is None:
            state.notes.append("what this run knew of earlier ones is gone: it goes on without")
        elif self.learning is not None and (note := self.learning.note()):
            state.notes.append(note)
        return start

    def _begin(self, start: RunStart) -> None:
        self.context.log.append("start", **start.to_json())
        self._tell_original()

    def _tell_original(self) -> None:
        """The original was judged before the search, so its outcome is no candidate's; a run that was killed before it
        stood in the log has it told when it goes on."""
        if self.refinement.trials:
            return
        log, state = self.context.log, self.context.state
        assert state.baseline is not None
        original = self.refinement.ask()
        if original is not None:
            log.append("ask", **asked(original))
        log.append("tell", id=0, outcome=to_json(state.baseline.outcome))
        self.refinement.tell(0, state.baseline.outcome)

    def winner(self) -> Trial | None:
        """Search, then promote."""
        context, state = self.context, self.context.state
        enricher = Enricher(context.workers, context.spec)
        engine = Engine(context, self.refinement, self._remember, enricher, self._look_again)
        promoter = Promoter(context, self.refinement, engine.binaries, self._remember, enricher)
        state.phase, state.search_started_s = "search", context.budget.elapsed_s
        try:
            if state.told or context.budget.enough_to_try():
                state.ended = engine.search(self.job.options.evaluations)
            else:
                state.ended = Ended.TOO_SHORT
            state.search_ended_s, state.stopped = context.budget.elapsed_s, context.control.stopped
            self._restating.given_up(state.notes)
            engine.clear()
            return promoter.promote()
        except StopNow:  # asked twice: leave without a winner
            state.ended, state.stopped = Ended.STOPPED, True
            state.notes.append("interrupted during promotion: nothing was promoted")
            return None

    def _look_again(self) -> bool:
        """Let the search know what the kernel computes, once that was found; whether it still may be."""
        found = self._restating.late(self.context.state.notes)
        if found is not None:
            self.context.log.append("lifted")
            space = self.refinement.space
            self.refinement.space = space.under(_known(space.rules, found))
        return self._restating.thinking

    def _remember(self, candidate: str, outcome: Outcome) -> None:
        if self.cache is not None:
            with worth_a_note(self.context.state, "failures are not remembered"):
                self.cache.remember(candidate, outcome)

    def finish(self, winner: Trial | None, output: Path) -> Result:
        """Write what was found: the files, the cache, the end of the log."""
        context, state, target = self.context, self.context.state, self.context.spec.target
        state.elapsed_s, state.needed_s = context.budget.elapsed_s, context.budget.needed_s()
        state.defects, state.models = defects_of(self.refinement.trials), reports(self.job.proposers)
        if self.cache is not None and self.learning is not None:
            with worth_a_note(state, "what was learned is not kept"):
                self.learning.leave(self.refinement.trials, state.run, self.cache)
        state.note_unstated()
        said = why(state, winner, actions=len(all_actions()), predicted=context.spec.predicted)
        result = result_of(state, self.kernel, target, winner, {}, said)
        if winner is not None:
            handed = published(self.kernel, winner.proposal.candidate)
            shown = Trial(replace(winner.proposal, candidate=handed), winner.outcome)
            result = result_of(state, self.kernel, target, shown, {"source": str(output)}, said)
            rendered = render_files(self.kernel, handed, result.to_json(), output.stem)
            files = write_outputs(rendered, result.to_json(), output)
            if self.cache is not None:
                evidence = result_of(state, self.kernel, target, shown, files, said).to_json()
                assert winner.outcome.timing is not None
                with worth_a_note(state, "the winner is not in the cache"):
                    self.cache.publish(winner.proposal.candidate, rendered, evidence, winner.outcome.timing.basis)
            result = result_of(state, self.kernel, target, shown, files, said)
        context.log.append("end", result=result.to_json(), defects=to_json(state.defects))
        state.phase = "done"
        context.progress(state)
        return result


@contextmanager
def worth_a_note(state: RunState, lost: str) -> Iterator[None]:
    """A cache that cannot be written (any more) costs what it would have kept, never the run."""
    try:
        yield
    except StorageError as fault:
        note = f"{lost}: {fault.what}"
        if note not in state.notes:
            state.notes.append(note)
