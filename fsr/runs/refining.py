"""``refine``: one kernel in, a faster one out, proven to do the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from fsr.errors import StorageError
from fsr.evaluation.capacity import buffer_bytes
from fsr.evaluation.spec import SessionSpec
from fsr.identity import to_json
from fsr.records import Json, Outcome
from fsr.runs.baseline import qualify
from fsr.runs.caching import RunCache, open_store
from fsr.runs.engine import Engine
from fsr.runs.enriching import Enricher
from fsr.runs.fleet import open_fleet
from fsr.runs.kernel import Kernel, load_kernel
from fsr.runs.log import EventLog
from fsr.runs.options import RefineOptions
from fsr.runs.outputs import default_output, published, render_files, require_writable, write_outputs
from fsr.runs.result import result_of
from fsr.runs.resuming import RunStart, asked, new_run_folder, replay_into
from fsr.runs.state import Progress, RunState
from fsr.search.proposal import Rules, Space, Trial
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.refinement import Refinement
from fsr.settings import Settings, read_settings
from fsr.transform.registry import all_actions
from fsr.workers.protocol import Workers

PROMOTION_SHARE = 0.2  # of the budget, kept for promotion
PROMOTION_MOST_S = 30.0
LARGE_SHARE = 0.4  # where the timed sizes are so large that checking them takes long
# Of buffers at timed sizes, as seen beside an H200: several input sets, held-out sizes, perturbations.
CHECKED_BYTES_PER_S = 20e6


def refine(
    options: RefineOptions,
    *,
    settings: Settings | None = None,
    progress: Progress = lambda state: None,
    resume: str | None = None,
) -> dict[str, Json]:
    """Refine a kernel; returns the object that ``fsr refine --json`` prints.

    ``resume``: the name of a run to go on with; its own options hold, with what is left of its budget. On
    KeyboardInterrupt the best so far is promoted and returned. Raises FsrError."""
    settings = settings or read_settings()
    started = time.monotonic()
    folder = Path(settings.runs) / resume if resume else new_run_folder(Path(settings.runs), options.kernel)
    earlier = RunStart.read(folder) if resume else None
    if earlier is not None:
        options = earlier.options
        started -= earlier.seconds
    output = options.output or default_output(options.kernel)
    require_writable(output, options.kernel)
    kernel = load_kernel(options.kernel, options.entry)
    if earlier is not None:
        earlier.require_same(kernel)
    with ExitStack() as stack:
        fleet = stack.enter_context(open_fleet(options, options.workers or settings.workers))
        log = stack.enter_context(EventLog(folder))
        spec, workers = fleet.spec(kernel, options), fleet.workers
        state = RunState(folder.name, kernel.contract.entry, options.budget_s, notes=list(fleet.notes))

        def tick() -> None:
            state.elapsed_s = time.monotonic() - started
            progress(state)

        state.baseline = qualify(workers, spec, kernel, tick)
        state.notes.extend(state.baseline.notes)
        cache = None
        if options.use_cache:
            cache = RunCache(stack.enter_context(open_store(settings.cache)), kernel, spec, state.baseline.device)
        return _run(options, kernel, spec, workers, log, state, progress, started, cache, earlier, output)


def _run(
    options: RefineOptions, kernel: Kernel, spec: SessionSpec, workers: Workers, log: EventLog, state: RunState,
    progress: Progress, started: float, cache: RunCache | None, earlier: RunStart | None, output: Path,
) -> dict[str, Json]:  # fmt: skip
    assert state.baseline is not None
    if earlier is None:
        begin = cache.start() if cache is not None else None
        known = cache.failures() if cache is not None else {}
        start = RunStart.new(options, kernel, begin, tuple(sorted(known)), state.baseline.outcome)
        log.append("start", **start.to_json())
    else:
        start = earlier
    rules = Rules(kernel.contract, options.keep_launch, spec.target)
    given = () if start.given is None else (start.given,)
    refinement = Refinement(
        kernel.baseline, Space(rules, all_actions(), state.action_failed), [Deterministic(options.seed, given)],
        known=start.known, on_fault=state.proposer_failed,
    )  # fmt: skip
    if earlier is None:
        baseline = refinement.ask()
        assert baseline is not None
        log.append("ask", **asked(baseline))
        log.append("tell", id=0, outcome=to_json(state.baseline.outcome))
        refinement.tell(0, state.baseline.outcome)
    else:
        replay_into(refinement, log.folder, state)
    state.best = refinement.archive.best

    def remember(candidate: str, outcome: Outcome) -> None:
        if cache is not None:
            with _worth_a_note(state, "failures are not remembered"):
                cache.remember(candidate, outcome)

    enricher = Enricher(workers, spec)
    engine = Engine(spec, refinement, workers, log, state, progress, started, remember, enricher)
    winner = _search_and_promote(engine, options, started)
    return _finish(options, kernel, spec, log, state, progress, started, cache, output, winner)


def _search_and_promote(engine: Engine, options: RefineOptions, started: float) -> Trial | None:
    state = engine.state
    state.phase, state.search_started_s = "search", time.monotonic() - started
    end = started + options.budget_s
    reserve = promotion_reserve(engine.spec, options.budget_s)
    try:
        engine.search(end - reserve, options.evaluations)
    except KeyboardInterrupt:
        state.interrupted = True
        end = time.monotonic() + 5.0
    try:
        return engine.promote(end)
    except KeyboardInterrupt:  # asked twice: leave without a winner
        state.interrupted = True
        state.notes.append("interrupted during promotion: nothing was promoted")
        return None


def promotion_reserve(spec: SessionSpec, budget_s: float) -> float:
    """Seconds of the budget that the search leaves to promotion: a share, and more where a GPU's timed sizes are
    large."""
    usual = min(PROMOTION_MOST_S, PROMOTION_SHARE * budget_s)
    if spec.predicted:
        return usual
    timed_bytes = sum(buffer_bytes(spec.contract, sizes) for sizes in spec.contract.timed_sizes())
    return max(usual, min(LARGE_SHARE * budget_s, PROMOTION_MOST_S, timed_bytes / CHECKED_BYTES_PER_S))


@contextmanager
def _worth_a_note(state: RunState, lost: str) -> Iterator[None]:
    """A cache that cannot be written (any more) costs what it would have kept, never the run."""
    try:
        yield
    except StorageError as fault:
        note = f"{lost}: {fault.what}"
        if note not in state.notes:
            state.notes.append(note)


def _finish(
    options: RefineOptions, kernel: Kernel, spec: SessionSpec, log: EventLog, state: RunState, progress: Progress,
    started: float, cache: RunCache | None, output: Path, winner: Trial | None,
) -> dict[str, Json]:  # fmt: skip
    files: dict[str, str] = {}
    seconds = time.monotonic() - started
    result = result_of(state, kernel, spec.target, winner, {}, seconds)
    if winner is not None:
        handed = published(kernel, winner.proposal.candidate)
        shown = Trial(replace(winner.proposal, candidate=handed), winner.outcome)
        result = result_of(state, kernel, spec.target, shown, {"source": str(output)}, seconds)
        rendered = render_files(kernel, handed, result, output.stem)
        files = write_outputs(rendered, result, output)
        result = result_of(state, kernel, spec.target, shown, files, seconds)
        if cache is not None:
            assert winner.outcome.timing is not None
            with _worth_a_note(state, "the winner is not in the cache"):
                cache.publish(winner.proposal.candidate, rendered, result, winner.outcome.timing.basis)
            result["notes"] = list(state.notes)
    log.append("end", result=result)
    state.phase, state.elapsed_s = "done", seconds
    progress(state)
    return result
