"""Which candidate is promoted next when one was refused."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fsr.evaluation.faults import OriginalFails
from fsr.evaluation.mutation import MutantsReport, MutantsRequest
from fsr.evaluation.spec import (
    BaselineReport,
    Binaries,
    EvaluateRequest,
    PromoteRequest,
    RefuteRequest,
    SessionSpec,
    WhereRequest,
)
from fsr.identity import candidate_hash
from fsr.records import DeviceInfo, Image, Json, Outcome, Status
from fsr.runs.budget import Budget
from fsr.runs.context import RunContext
from fsr.runs.control import Control
from fsr.runs.enriching import Enricher
from fsr.runs.lease import Leases
from fsr.runs.log import EventLog, read_events
from fsr.runs.promoting import Promoter, reason
from fsr.runs.state import RunState
from fsr.search.proposal import Trial
from fsr.search.refinement import Refinement
from fsr.workers.protocol import Completion, Task, WorkerFault
from tests.search.scripted import BASELINE, CONTRACT, Knob, deterministic, timed


@dataclass
class Judges:
    """Device workers that promote what starts with none of these moves."""

    refused: dict[str, str]
    asked: list[tuple[str, ...]] = field(default_factory=list)
    done: list[Completion] = field(default_factory=list)
    mutants: MutantsReport = field(default_factory=MutantsReport)
    original_fails_from: int | None = None  # elements
    owed: int = 0  # full tests of the search that were asked for
    refuting: list[tuple[int, ...]] = field(default_factory=list)  # what was asked before a promotion
    wrong: str = ""  # a move that makes what has it wrong
    slower: str = ""  # and one that makes it slower at other sizes
    where: str = ""  # a condition under which it is not
    told: int = 0
    promotions: int = 0

    def submit(self, pool: str, task: Task) -> int:
        actions = task.payload.candidate.actions
        if isinstance(task.payload, MutantsRequest):
            result: Any = self.mutants
        elif isinstance(task.payload, WhereRequest):
            found = Status.CORRECT if self.where else Status.SLOW
            result = Outcome(found, "promotion", evidence={"where": self.where, "at": []} if self.where else {})
        elif pool == "compile":
            result = Binaries(Image("cubin", "sm_90", b"", {}, {}))
        else:
            self.asked.append(actions)
            owed = isinstance(task.payload, EvaluateRequest)
            self.owed += owed
            kind = next((kind for start, kind in self.refused.items() if actions[0].startswith(start)), None)
            promoting = isinstance(task.payload, PromoteRequest)
            split = any(move.startswith("by-size@") for move in actions)
            kind = None if split else kind
            kind = "slower elsewhere" if promoting and self.slower in actions and not split else kind
            kind = "value" if self.wrong in actions else kind
            evidence: dict[str, Json] = {} if kind is None else {"kind": kind, "detail": "slower at n = 3", "seed": 77}
            again = isinstance(task.payload, RefuteRequest)
            self.promotions += promoting
            self.refuting += [task.payload.seeds] if again else []
            refused = Status.WRONG if kind == "value" else Status.CORRECT
            stands = Status.CORRECT if owed or again else Status.PROMOTED
            stage, cases = ("tests", 7) if owed else ("promotion", 0)
            result = Outcome(stands if kind is None else refused, stage, cases, cases, evidence=evidence)
            if self.original_fails_from is not None and not again and task.payload.below != self.original_fails_from:
                error = OriginalFails(self.original_fails_from, "n=65536", "an illegal memory access")
                result = WorkerFault("raised", "", pickle.loads(pickle.dumps(error)))
        self.done.append(Completion(len(self.done), result, 0, 0.1))
        return len(self.done) - 1

    def wait(self, timeout_s: float) -> list[Completion]:
        fresh, self.told = self.done[self.told :], len(self.done)
        return fresh

    def size(self, pool: str) -> int:
        return 1

    def cancel_all(self) -> None:
        pass

    def busy_share(self, pool: str) -> float:
        return 0.0


TIMES = {"tile@kernel[v=8]": 100.0, "unroll@kernel[v=2]": 900.0}


@pytest.fixture
def refinement() -> Refinement:
    """Told of all combinations: those with the tile are the fastest."""
    found = deterministic((Knob("tile", (8,)), Knob("unroll", (2,))), seed=3)
    while (proposal := found.ask()) is not None:
        time_ns = 1000.0
        for move in proposal.candidate.actions:
            time_ns = min(time_ns, TIMES[move]) - 1.0
        tiled = any(move.startswith("tile") for move in proposal.candidate.actions)
        found.tell(proposal.id, timed(time_ns, threads_per_block=64 if tiled else 1))  # elites of two cells
    return found


HOST = DeviceInfo("host", "a CPU", "x86_64", None, 1 << 34)


def promoted(
    refinement: Refinement, judges: Judges, folder: Path, device: str = "cuda:0", state: RunState | None = None
) -> Trial | None:
    spec = SessionSpec(CONTRACT, BASELINE, device, "sm_90", 0)
    with EventLog(folder / "run") as log:
        context = RunContext(
            spec, judges, log, state or RunState("r", "k", 60.0), Budget(60.0), Control(), Leases().lease(()),  # type: ignore[arg-type]
        )  # fmt: skip
        enricher = Enricher(judges, spec)  # type: ignore[arg-type]
        return Promoter(context, refinement, {}, lambda candidate, outcome: None, enricher).promote()


def test_the_fastest_is_promoted(refinement: Refinement, tmp_path: Path) -> None:
    winner = promoted(refinement, Judges({}), tmp_path)
    assert winner is not None
    assert winner.proposal.hash == candidate_hash(refinement.ranked()[0].proposal.candidate)


def test_what_no_prediction_calls_faster_is_told_so_without_a_test(tmp_path: Path) -> None:
    found, judges = deterministic((Knob("tile", (8,)),), seed=3), Judges({})
    for time_ns in (100.0, 90.0):
        found.tell(found.ask().id, timed(time_ns))  # type: ignore[union-attr]
    state = RunState("r", "k", 60.0, baseline=BaselineReport(timed(100.0), HOST))
    assert promoted(found, judges, tmp_path, "host", state) is None
    assert not judges.asked
    assert [outcome.evidence["kind"] for _, outcome in state.refusals] == ["ambiguous"]


@pytest.mark.parametrize(("time_ns", "found"), [(99.5, False), (98.0, True), (100.0, False)])
def test_a_difference_that_makes_none_does_not_end_a_search(time_ns: float, found: bool, tmp_path: Path) -> None:
    search = deterministic((Knob("tile", (8,)),), seed=3)
    for told in (100.0, time_ns):
        search.tell(search.ask().id, timed(told))  # type: ignore[union-attr]
    spec = SessionSpec(CONTRACT, BASELINE, "cuda:0", "sm_90", 0)
    state = RunState("r", "k", 60.0, baseline=BaselineReport(timed(100.0), HOST), best=search.archive.best)
    with EventLog(tmp_path / "run") as log:
        context = RunContext(
            spec, Judges({}), log, state, Budget(60.0), Control(), Leases().lease(()),  # type: ignore[arg-type]
        )  # fmt: skip
        assert context.found is found


def fates(**kinds: int) -> MutantsReport:
    told: list[dict[str, Json]] = [
        {"name": f"{kind}@{n}:1", "operator": "bound-short", "line": n, "kind": kind, "by": "", "why": "", "diff": ""}
        for kind, count in kinds.items()
        for n in range(count)
    ]
    return MutantsReport(tuple(told))


def test_how_many_of_its_mutants_died_is_in_the_evidence(refinement: Refinement, tmp_path: Path) -> None:
    winner = promoted(refinement, Judges({}, mutants=fates(killed=19, survived=1, untried=10)), tmp_path)
    assert winner is not None
    adequacy: Any = winner.outcome.evidence["adequacy"]
    assert adequacy["score"] == 0.95
    parts = adequacy["mutants"] // 30
    assert adequacy["killed"] == 19 * parts
    assert adequacy["note"] == f"{20 * parts} mutants of 60 tried: out of time"


def test_one_whose_mutants_live_is_not_promoted(refinement: Refinement, tmp_path: Path) -> None:
    assert promoted(refinement, Judges({}, mutants=fates(killed=19, survived=11)), tmp_path) is None


def test_one_that_is_wrong_where_a_mutant_led_is_not_promoted(refinement: Refinement, tmp_path: Path) -> None:
    failure: dict[str, Json] = {"case": "aimed 0 3", "kind": "value"}
    judges = Judges({}, mutants=MutantsReport(failure=failure))
    assert promoted(refinement, judges, tmp_path) is None
    assert len(judges.asked) > 1


def test_without_a_host_device_a_win_says_that_no_mutant_was_tried(refinement: Refinement, tmp_path: Path) -> None:
    winner = promoted(refinement, Judges({}, mutants=MutantsReport(note="not available: no compiler")), tmp_path)
    assert winner is not None
    adequacy: Any = winner.outcome.evidence["adequacy"]
    assert adequacy["score"] is None
    assert adequacy["note"].startswith("not available: no compiler")


def test_siblings_of_one_that_was_slower_elsewhere_wait(refinement: Refinement, tmp_path: Path) -> None:
    judges = Judges({"tile": "slower elsewhere"})
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions[0].startswith("unroll")
    assert [actions[0].split("@")[0] for actions in judges.asked] == ["tile", "unroll"]


def test_flags_of_one_that_was_slower_elsewhere_are_to_blame(refinement: Refinement, tmp_path: Path) -> None:
    """They act where the original was left as it is; the same moves without them come next, not last. Why others were
    wrong is another matter: what lacks the move that made them so is not suspected for both."""
    first = refinement.ranked()[0].proposal
    moves = ("tile@kernel[v=8]", "fast@plan"), ("tile@kernel[v=8]", "compile-flags@plan[set=b]"), ("tile@kernel[v=8]",)
    for number, path in enumerate(moves):
        proposal = replace(first, id=100 + number, hash=str(number), candidate=replace(first.candidate, actions=path))
        refinement._trials[proposal.id] = Trial(proposal, timed(50.0 + number))
    judges = Judges({})
    judges.wrong, judges.slower = "fast@plan", "compile-flags@plan[set=b]"
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions == moves[2]
    assert judges.asked == [moves[0], moves[1], moves[1], moves[2], moves[2]]  # with the first one's case before each


def test_of_one_that_was_wrong_the_last_move_is_suspected_first(refinement: Refinement, tmp_path: Path) -> None:
    """What lacks it is tried before what begins otherwise; where that is wrong too, the beginning is to blame."""
    judges = Judges({"tile": "value"})
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions[0].startswith("unroll")
    paths = [tuple(move.split("@")[0] for move in actions) for actions in judges.asked]
    assert paths == [("tile", "unroll"), ("tile",), ("unroll", "tile"), ("unroll", "tile")]
    assert judges.refuting == [(77,), (77,)]
    assert judges.promotions == 2  # what fails where another did is never promoted


def test_candidates_that_fail_where_one_did_are_no_tries(refinement: Refinement, tmp_path: Path) -> None:
    """Each takes a moment, so that more of them are gone through than are promoted."""
    first = refinement.ranked()[0].proposal
    for number in range(12):
        moves = (f"tile@kernel[v={number}]", "flag@plan[mode=fast]", f"hint@kernel[n={number}]")
        proposal = replace(first, id=100 + number, hash=str(number), candidate=replace(first.candidate, actions=moves))
        refinement._trials[proposal.id] = Trial(proposal, timed(50.0 + number))
    judges = Judges({"tile": "value"})
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions[0].startswith("unroll")
    assert judges.promotions == 2


def test_what_has_all_moves_of_one_that_was_wrong_waits(refinement: Refinement, tmp_path: Path) -> None:
    """A fast flag that makes an answer wrong does so beside any other flag."""
    path = ("tile@kernel[v=8]", "flag@plan[mode=fast]")
    first, more = refinement.ranked()[0].proposal, (*path, "hint@kernel")
    for number, moves in enumerate((more, path, (*path, "unroll@loop"), ("tile@kernel[v=4]", path[1]))):
        candidate = replace(first.candidate, actions=moves)
        proposal = replace(first, id=100 + number, hash=str(number), candidate=candidate, move=moves[-1])
        refinement._trials[proposal.id] = Trial(proposal, timed(50.0 + number))
    judges = Judges({})
    judges.wrong = "flag@plan[mode=fast]"
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert winner.proposal.id == first.id
    assert judges.asked == [more, path, first.candidate.actions, first.candidate.actions]


@pytest.mark.parametrize(("time_ns", "first"), [(50.5, "tile"), (52.0, "round")])
def test_of_two_that_are_as_fast_the_one_without_what_was_wrong_goes_first(
    time_ns: float, first: str, refinement: Refinement, tmp_path: Path
) -> None:
    """Rounding otherwise made another candidate wrong; it gains less here than what it may cost."""
    base = refinement.ranked()[0].proposal
    wrong = replace(timed(10.0), status=Status.WRONG, timing=None)
    made = [
        (("unroll@kernel[v=2]", "round@kernel"), wrong),
        (("round@kernel", "tile@kernel[v=8]"), timed(50.0)),
        (("tile@kernel[v=8]", "hint@kernel"), timed(time_ns)),
    ]
    for number, (moves, outcome) in enumerate(made):
        candidate = replace(base.candidate, actions=moves)
        proposal = replace(
            base, id=100 + number, hash=str(number), candidate=candidate, move=moves[-1], origin="action"
        )
        refinement._trials[proposal.id] = Trial(proposal, outcome)
    winner = promoted(refinement, Judges({}), tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions[0].startswith(first)


def test_ambiguous_ones_are_followed_by_the_next_fastest(refinement: Refinement, tmp_path: Path) -> None:
    judges = Judges({"tile": "ambiguous"})
    promoted(refinement, judges, tmp_path)
    assert [actions[0].split("@")[0] for actions in judges.asked][:2] == ["tile", "tile"]


def test_behind_a_tie_those_that_look_a_little_faster_have_no_final(tmp_path: Path) -> None:
    found, judges = deterministic((Knob("tile", (8,)), Knob("unroll", (2,))), seed=3), Judges({"tile": "same"})
    times = {(): 1000.0, ("tile",): 900.0, ("unroll",): 985.0}
    while (proposal := found.ask()) is not None:
        actions = tuple(move.split("@")[0] for move in proposal.candidate.actions)
        found.tell(proposal.id, timed(times.get(actions, 2000.0), threads_per_block=len(actions)))
    assert promoted(found, judges, tmp_path) is None
    assert [actions[0].split("@")[0] for actions in judges.asked] == ["tile"]


def test_a_prediction_that_is_ambiguous_is_not_asked_again(refinement: Refinement, tmp_path: Path) -> None:
    judges = Judges({"": "ambiguous"})
    assert promoted(refinement, judges, tmp_path, "host") is None
    assert len(judges.asked) == 1


def test_why_one_was_not_promoted() -> None:
    verdict: Json = {"kind": "ambiguous", "speedup": 1.0123, "ci95": [0.991, 1.04], "pairs": 30, "basis": "measured"}

    def said(**evidence: Json) -> str:
        return reason(Outcome(Status.CORRECT, "promotion", evidence=evidence))

    assert said(verdict=verdict, kind="ambiguous") == "ambiguous, 1.01x [0.991, 1.04]"
    assert said(verdict=verdict, kind="slower elsewhere", detail="slower at n = 3") == "slower at n = 3"
    assert said(case="held-out 3", kind="race") == "race on held-out 3"
    assert said() == "correct"


@pytest.fixture
def lonely() -> Refinement:
    """Told of one candidate."""
    found = deterministic((Knob("tile", (8,)),), seed=3)
    for time_ns in (1000.0, 100.0):
        found.tell(found.ask().id, timed(time_ns))  # type: ignore[union-attr]
    return found


def test_one_that_was_slower_elsewhere_is_used_where_it_is_not(lonely: Refinement, tmp_path: Path) -> None:
    refinement, judges = lonely, Judges({"tile": "slower elsewhere"}, where="n % 4 == 0")
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions[-1] == "by-size@plan[where=n%4==0]"
    assert [launch.grid[0] for launch in winner.proposal.candidate.plan.launches] == [
        "(1) if n % 4 == 0 else 0", "0 if n % 4 == 0 else (1)",
    ]  # fmt: skip
    assert judges.owed == 1  # the full tests of the search, which its parent passed, not it
    kinds = [event["kind"] for event in read_events(tmp_path / "run")]
    assert kinds == ["promote", "ask", "tell", "settle", "promote"]


@pytest.mark.parametrize("where", ["n >= 8", ""], ids=["it can be told", "it cannot"])
def test_one_that_is_used_at_the_timed_sizes_is_used_at_more_if_that_can_be_told(
    lonely: Refinement, tmp_path: Path, where: str
) -> None:
    slow = replace(timed(50.0), status=Status.SLOW, evidence={"kind": "slower elsewhere"})
    first = lonely.ranked()[0].proposal
    parent = replace(first, id=100, hash="100", candidate=replace(first.candidate, actions=("wide@kernel",)))
    moves = ("wide@kernel", "by-size@plan[where=(n==10)]")
    alone = replace(parent, id=101, hash="101", parent=100, origin="by-size")
    alone = replace(alone, candidate=replace(first.candidate, actions=moves))
    lonely._trials |= {100: Trial(parent, slow), 101: Trial(alone, timed(50.0))}
    winner = promoted(lonely, Judges({}, where=where), tmp_path)
    assert winner is not None
    told = f"by-size@plan[where={where.replace(' ', '') or '(n==10)'}]"
    assert winner.proposal.candidate.actions == ("wide@kernel", told)


def test_one_that_is_as_fast_everywhere_goes_first(lonely: Refinement, tmp_path: Path) -> None:
    refinement = lonely
    first = refinement.ranked()[0].proposal
    candidate = replace(first.candidate, actions=("other@kernel",))
    refinement._trials[100] = Trial(replace(first, id=100, hash="100", candidate=candidate), timed(101.0))
    winner = promoted(refinement, Judges({"tile": "slower elsewhere"}, where="n % 4 == 0"), tmp_path)
    assert winner is not None
    assert winner.proposal.candidate.actions == ("other@kernel",)


@pytest.mark.parametrize(("time_ns", "split"), [(50.0, True), (97.0, False)])
def test_so_is_one_that_a_glance_gave_up_if_it_is_clearly_faster(
    lonely: Refinement, tmp_path: Path, time_ns: float, split: bool
) -> None:
    refinement = lonely
    first = refinement.ranked()[0].proposal
    candidate = replace(first.candidate, actions=("wide@kernel",))
    evidence: dict[str, Json] = {"kind": "slower elsewhere", "detail": "slower at n=3: 0.60x"}
    given_up = replace(timed(time_ns), status=Status.SLOW, evidence=evidence)
    refinement._trials[100] = Trial(replace(first, id=100, hash="100", candidate=candidate), given_up)
    winner = promoted(refinement, Judges({}, where="n >= 8"), tmp_path)
    assert winner is not None
    assert (winner.proposal.candidate.actions == ("wide@kernel", "by-size@plan[where=n>=8]")) is split


def test_when_all_were_slower_elsewhere_nothing_is_promoted(refinement: Refinement, tmp_path: Path) -> None:
    judges = Judges({"": "slower elsewhere"})
    assert promoted(refinement, judges, tmp_path) is None
    assert len(judges.asked) == len(set(judges.asked)) == len(refinement.trials) - 1


def test_where_the_original_itself_fails_nothing_is_held_against_a_candidate(
    refinement: Refinement, tmp_path: Path
) -> None:
    judges = Judges({}, original_fails_from=1 << 31)
    winner = promoted(refinement, judges, tmp_path)
    assert winner is not None
    assert judges.asked == [winner.proposal.candidate.actions] * 2  # the fastest, once more below those sizes


@pytest.mark.parametrize("kind", ["", "tile"])
def test_what_was_screened_only_has_its_full_tests_first(refinement: Refinement, tmp_path: Path, kind: str) -> None:
    """What fails them is refused as what fails its promotion is."""
    fastest, state = refinement.ranked()[0], RunState("r", "k", 60.0)
    refinement._trials[fastest.proposal.id] = Trial(
        fastest.proposal, replace(fastest.outcome, status=Status.SCREENED, stage="screening")
    )
    judges = Judges({kind: "value"} if kind else {})
    winner = promoted(refinement, judges, tmp_path, state=state)
    assert winner is not None
    kinds = [event["kind"] for event in read_events(tmp_path / "run")]
    assert judges.owed == 1
    if kind:
        assert winner.proposal.hash != fastest.proposal.hash
        assert refinement.trial(fastest.proposal.id).outcome.status is Status.WRONG
        assert "settle" not in kinds
    else:
        assert winner.proposal.hash == fastest.proposal.hash
        assert winner.outcome.cases == fastest.outcome.cases + 7
        assert kinds == ["settle", "promote"]
