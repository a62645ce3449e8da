"""The loop between search and workers: order, turns on the device, pauses, and how a search ends."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.identity import candidate_hash
from fsr.records import Image, Outcome, Status
from fsr.runs.budget import Budget
from fsr.runs.context import RunContext
from fsr.runs.control import Control
from fsr.runs.engine import Engine
from fsr.runs.enriching import Enricher
from fsr.runs.lease import Leases
from fsr.runs.log import EventLog, read_events
from fsr.runs.resuming import replay_into
from fsr.runs.state import Ended, RunState
from fsr.search.proposal import Proposal
from fsr.search.proposers.background import Background
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Proposer, Suggestion
from fsr.workers.protocol import Completion, Task
from tests.conformance.proposers import Scripted, cost, noted, search
from tests.runs.test_lease import FakeLock
from tests.search.scripted import BASELINE, CONTRACT


@dataclass
class Workers:
    """Compiles and evaluates in an order that chance gives; ``compilers`` and one device."""

    chance: random.Random
    compilers: int = 1
    now: list[float] = field(default_factory=lambda: [0.0])
    given: dict[str, list[tuple[int, Task]]] = field(default_factory=lambda: {"compile": [], "device": []})
    tickets: int = 0
    on_device: Callable[[], None] = lambda: None

    def size(self, pool: str) -> int:
        return self.compilers if pool == "compile" else 1

    def pending(self, pool: str) -> int:
        return len(self.given[pool])

    def busy_share(self, pool: str) -> float:
        return 0.5

    def submit(self, pool: str, task: Task) -> int:
        self.tickets += 1
        self.given[pool].append((self.tickets, task))
        if pool == "device":
            self.on_device()
        return self.tickets

    def wait(self, timeout_s: float) -> list[Completion]:
        self.now[0] += 0.1
        done = []
        for pool, queue in self.given.items():
            while queue and self.chance.random() < 0.5:
                ticket, task = queue.pop(0)
                done.append(Completion(ticket, self.result(pool, task), 0, 0.1))
        self.chance.shuffle(done)
        return done

    def result(self, pool: str, task: Task) -> Any:
        candidate = task.payload.candidate
        if pool == "device":
            return cost(candidate)
        if "// unroll=2" in candidate.source:
            return Outcome(Status.COMPILE_FAILED, "compile")
        return Binaries(Image("host", "x86", b"", {}, {}))

    def cancel_all(self) -> None:
        for queue in self.given.values():
            queue.clear()


@dataclass
class Bench:
    engine: Engine
    context: RunContext
    workers: Workers

    def search(self, evaluations: int | None = None) -> Ended:
        return self.engine.search(evaluations)


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    """Makes an engine over scripted workers."""
    logs = []

    def make(workers: Workers, *proposers: Proposer, budget_s: float = 1e6, leases: Leases | None = None) -> Bench:
        refinement = search(*proposers)
        log = EventLog(tmp_path / f"run{len(logs)}")
        logs.append(log)
        budget = Budget(budget_s, clock=lambda: workers.now[0])
        lease = Leases().lease(()) if leases is None else leases.lease(["gpu0"])
        spec = SessionSpec(CONTRACT, BASELINE, "host", "sm_90", 0)
        context = RunContext(spec, workers, log, RunState("r", "k", budget_s), budget, Control(), lease)  # type: ignore[arg-type]
        enricher = Enricher(workers, spec)  # type: ignore[arg-type]
        return Bench(Engine(context, refinement, lambda candidate, outcome: None, enricher), context, workers)

    yield make
    for log in logs:
        log.close()


def deterministic(seed: int = 0) -> Proposer:
    return Deterministic(seed)


def log_of(found: Bench) -> list[tuple[str, int]]:
    return [(event["kind"], event["id"]) for event in read_events(found.context.log.folder)]


def asked(found: Bench) -> list[str]:
    return [event["hash"] for event in read_events(found.context.log.folder) if event["kind"] == "ask"]


def test_with_one_worker_of_each_kind_equal_seeds_give_equal_runs(bench: Any) -> None:
    """However compiling and evaluating overlap."""
    runs = []
    for timing in range(6):
        found = bench(Workers(random.Random(timing)), deterministic(4))
        assert found.search() is Ended.SPACE
        runs.append((asked(found), log_of(found)))
    assert all(run == runs[0] for run in runs)
    told = [number for kind, number in runs[0][1] if kind == "tell"]
    assert told == sorted(told)


def test_a_proposer_that_still_thinks_does_not_keep_a_run_whose_evaluations_are_used_up(bench: Any) -> None:
    script = (Suggestion(noted(number), 0, f"edit {number}", "coder") for number in range(1000))
    found = bench(Workers(random.Random(2)), deterministic(), Scripted("model", script, thinking=True))
    end = threading.Timer(10.0, found.context.control.stop, ("it would wait for ever",))
    end.start()
    try:
        assert found.search(5) is Ended.EVALUATIONS
    finally:
        end.cancel()
    assert len([kind for kind, _ in log_of(found) if kind == "tell"]) == 5


def test_with_several_compilers_outcomes_are_told_as_they_come_and_each_once(bench: Any) -> None:
    found = bench(Workers(random.Random(1), compilers=4), deterministic(4))
    assert found.search() is Ended.SPACE
    told = [number for kind, number in log_of(found) if kind == "tell"]
    assert told != sorted(told)
    assert sorted(told) == list(range(1, len(told) + 1))
    assert found.context.state.told == len(told)


def test_of_what_is_compiled_the_device_takes_what_promises_most_first(bench: Any) -> None:
    """Not what was compiled soonest; what nobody can say anything of goes before."""
    engine = bench(Workers(random.Random(0), compilers=4), deterministic()).engine
    thought = {1: 0.5, 2: 2.0, 3: None, 4: 2.0, 5: -1.0}
    engine._compiled = [Proposal(n, BASELINE, f"h{n}", 0, "m", "action", worth=w) for n, w in thought.items()]
    assert [engine._most_promising().id for _ in thought] == [3, 2, 4, 1, 5]


@pytest.mark.parametrize(
    ("takes_s", "promises", "since_s", "waits"),
    [
        (2.0, 3.0, 1.0, True),
        (0.1, 3.0, 1.0, False),
        (2.0, 2.1, 1.0, False),
        (2.0, 3.0, 3.5, False),
        (2.0, None, 1.0, False),
    ],
)
def test_where_evaluations_take_long_the_device_waits_for_what_promises_much_more(
    bench: Any, takes_s: float, promises: float | None, since_s: float, waits: bool
) -> None:
    engine = bench(Workers(random.Random(0), compilers=4), deterministic()).engine
    engine._turn_s = takes_s
    engine._compiled = [Proposal(1, BASELINE, "h1", 0, "m", "action", worth=2.0)]
    engine._compiling = {7: Proposal(2, BASELINE, "h2", 0, "m", "action", worth=promises)}
    engine._since = {7: engine.context.budget.clock() - since_s}
    assert engine._better_comes() is waits


def test_what_fails_at_once_says_nothing_of_what_others_take(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench(Workers(random.Random(1), compilers=4), deterministic()).engine
    monkeypatch.setattr(type(engine), "_tell", lambda *_: None)
    engine._turn_s = 2.0
    for status, expected in ((Status.WRONG, 2.0), (Status.SLOW, 1.6)):
        engine._evaluating = {9: Proposal(9, BASELINE, "h", 0, "m", "action")}
        engine._take(Completion(9, Outcome(status, "smoke", 1, 0), 0, 0.0))
        assert engine._turn_s == pytest.approx(expected)


@pytest.mark.parametrize(("took_s", "ahead"), [(0.01, 8), (0.1, 6), (0.3, 2), (2.0, 1)])
def test_a_device_has_as_much_to_do_as_the_search_may_think(bench: Any, took_s: float, ahead: int) -> None:
    class Quick(Workers):
        def wait(self, timeout_s: float) -> list[Completion]:
            return [replace(done, seconds=took_s) for done in super().wait(timeout_s)]

    found = bench(Quick(random.Random(1), compilers=20), deterministic())
    given = []
    found.workers.on_device = lambda: given.append(len(found.engine._evaluating) + 1)
    found.search()
    assert min(ahead, 4) <= max(given[8:]) <= ahead  # the first are given before any was seen to end


@dataclass
class Screening(Workers):
    """Screens what is no faster than the best, as a device does. wrong: moves of candidates that fail full tests."""

    wrong: tuple[str, ...] = ()
    owed: list[str] = field(default_factory=list)  # hashes of candidates that had their full tests later

    def result(self, pool: str, task: Task) -> Any:
        found, request = super().result(pool, task), task.payload
        if pool == "compile":
            return found
        best = request.incumbent_ns is None or found.timing.median_ns < request.incumbent_ns
        tested = Status.WRONG if set(self.wrong) & set(request.candidate.actions) else Status.CORRECT
        if request.owed:
            self.owed.append(candidate_hash(request.candidate))
            return Outcome(tested, "tests", 4, 4)
        return replace(found, status=tested if best else Status.SCREENED, cases=1, passed=1)


def screened(bench: Any, chance: int, compilers: int, **told: Any) -> Bench:
    found: Bench = bench(Screening(random.Random(chance), compilers, **told), deterministic(4))
    assert found.search() is Ended.SPACE
    return found


@pytest.mark.parametrize("compilers", [1, 3])
def test_what_was_screened_has_its_full_tests_once_it_is_built_on(bench: Any, compilers: int) -> None:
    found = screened(bench, 1, compilers)
    trials = found.engine.refinement.trials
    parents = {t.proposal.parent for t in trials}
    owed = {t.proposal.hash for t in trials if t.proposal.hash in found.workers.owed}
    assert len(found.workers.owed) == len(owed) > 0
    status = {t.proposal.id: t.outcome.status for t in trials if t.time_ns is not None}
    assert {status[n] for n in status if n in parents} == {Status.CORRECT}
    assert Status.SCREENED in {status[n] for n in status if n not in parents}
    settled = [t.outcome for t in trials if t.proposal.hash in owed]
    assert all((o.stage, o.cases, o.timing is not None) == ("tests", 5, True) for o in settled)
    assert found.context.state.statuses["correct"] == sum(s is Status.CORRECT for s in status.values()) - 1
    assert found.context.state.told == len(trials) - 1


def test_full_tests_that_were_owed_come_in_the_same_order_too(bench: Any) -> None:
    runs = [log_of(screened(bench, chance, 1)) for chance in range(4)]
    assert all(run == runs[0] for run in runs)
    assert "settle" in {kind for kind, _ in runs[0]}


def test_what_fails_the_tests_that_it_was_owed_is_built_on_no_more(bench: Any) -> None:
    right = screened(bench, 1, 1)
    builds = Counter(t.proposal.parent for t in right.engine.refinement.trials)
    first = next(t for t in right.engine.refinement.trials if t.proposal.hash in right.workers.owed)
    failures: list[str] = []
    found = bench(Screening(random.Random(1), wrong=(first.proposal.move,)), deterministic(4))
    found.engine.on_failure = lambda candidate, outcome: failures.append(candidate)
    found.search()
    refinement = found.engine.refinement
    assert refinement.trial(first.proposal.id).outcome.status is Status.WRONG
    assert first.proposal.hash in failures
    assert first.proposal.id not in found.engine.binaries
    assert not refinement.archive.holds(first.proposal.id)
    assert 1 <= Counter(t.proposal.parent for t in refinement.trials)[first.proposal.id] < builds[first.proposal.id]


def test_a_run_that_is_resumed_knows_what_was_settled(bench: Any) -> None:
    found = screened(bench, 1, 1)
    again, state = search(), RunState("r", "k", 1e6)
    replay_into(again, found.context.log.folder, state)
    statuses = [t.outcome.status for t in found.engine.refinement.trials]
    assert [t.outcome.status for t in again.trials] == statuses
    assert +state.statuses == +found.context.state.statuses


def test_a_search_that_is_done_waits_for_moves_that_may_still_come(bench: Any) -> None:
    found = bench(Workers(random.Random(3)), deterministic(4))
    few = found.engine.refinement.space
    found.engine.refinement.space = replace(few, actions=())
    turns = itertools.count()

    def widening() -> bool:
        if next(turns) == 20:
            found.engine.refinement.space = few
        return found.engine.refinement.space is not few

    found.engine.widening = widening
    assert found.search() is Ended.SPACE
    assert found.context.state.told > 5


def test_evaluations_and_budget_end_it(bench: Any) -> None:
    assert (found := bench(Workers(random.Random(1)), deterministic())).search(5) is Ended.EVALUATIONS
    assert found.context.state.told == 5
    found = bench(Workers(random.Random(1)), deterministic(), budget_s=3.0)
    assert found.search() is Ended.BUDGET
    assert found.context.budget.elapsed_s < 3.0


def test_a_stop_ends_it_and_what_was_there_already_is_told(bench: Any) -> None:
    found = bench(Workers(random.Random(1)), deterministic())
    found.workers.on_device = lambda: found.context.control.stop()
    assert found.search() is Ended.STOPPED
    found.engine.clear()
    assert found.workers.given == {"compile": [], "device": []}


def test_a_pause_stops_the_clock_and_gives_the_device_back(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = Leases(FakeLock)
    found = bench(Workers(random.Random(1)), deterministic(), leases=leases)
    control, held = found.context.control, []
    found.workers.on_device = lambda: control.pause() if not held else None

    def wait(seconds: float) -> None:
        found.workers.now[0] += 100.0
        other = leases.lease(["gpu0"])
        held.append(other.take())
        other.give_back()
        if len(held) == 3:
            control.go_on()

    monkeypatch.setattr(control, "wait", wait)
    assert found.search(5) is Ended.EVALUATIONS
    found.context.lease.give_back()
    assert held == [True] * 3
    assert found.context.budget.elapsed_s < 50
    kinds = [event["kind"] for event in read_events(found.context.log.folder)]
    assert (kinds.count("pause"), kinds.count("go on")) == (1, 1)


def test_nothing_is_given_to_a_device_out_of_turn(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = Leases(FakeLock)
    found = bench(Workers(random.Random(1)), deterministic(), leases=leases)
    other, waits = leases.lease(["gpu0"]), []
    assert other.take()
    found.workers.on_device = lambda: waits.append("device")

    def wait() -> None:
        waits.append("wait")
        if len(waits) > 5:
            other.give_back()

    monkeypatch.setattr(found.context.lease, "wait", wait)
    assert found.search(3) is Ended.EVALUATIONS
    found.context.lease.give_back()
    assert waits.index("device") > 5


def test_a_search_waits_for_a_proposer_that_thinks_but_for_no_other(bench: Any) -> None:
    def think(view: Any) -> Any:
        if len(view.trials) < 3:
            yield Suggestion(noted(len(view.trials), tile=8), 0, f"thought {len(view.trials)}", "model")

    found = bench(Workers(random.Random(1)), Background("slow", think))
    assert found.search() is Ended.SPACE
    assert found.context.state.told == 2
    assert {name: a.proposed for name, a in found.context.state.shares.items()} == {"slow": 2}
