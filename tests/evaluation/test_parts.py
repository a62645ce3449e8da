"""Cases that are judged on a few blocks: which, what of them counts, and that nothing is told that is not so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.model import Argument, Constraints, Contract
from fsr.evaluation.compiling import build
from fsr.evaluation.owners import BlockMap
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure, Runnable
from fsr.records import Candidate, Case, Launch, Plan, Role
from fsr.testgen.parts import BLOCKS, chosen_blocks

SIDE = 72
ORIGINAL = """__global__ void k(const float *a, float *b) {
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float sum = b[y * 72 + x];
    for (int j = 0; j < 72; ++j) sum += a[y * 72 + j] * a[j * 72 + x];
    b[y * 72 + x] = sum > 0.0f ? sum : 0.0f;
}
"""
PLAN = Plan((Launch("k", ("9", "9", "1"), ("8", "8", "1"), "0", ("a", "b")),))
TALL = Plan((Launch("k", ("9", "18", "1"), ("8", "4", "1"), "0", ("a", "b")),))
IN_BANDS = ORIGINAL.replace("* 8 + threadIdx.y", "* 4 + threadIdx.y")
TURNED = IN_BANDS.replace("blockIdx.y * 4", "(blockIdx.y * 5 + blockIdx.x) % 18 * 4")
ROLE = {"b": Role.INOUT}


def opened(folder: Path, text: str, plan: Plan = PLAN, roles: dict[str, Role] = ROLE) -> Session:
    args = tuple(Argument(n, "float32", roles.get(n, Role.IN), (str(SIDE), str(SIDE))) for n in "ab")
    return Session(SessionSpec(Contract("k", (), args, plan), Candidate(text, plan), "host", "", 5, str(folder)))


@pytest.fixture(name="session")
def dear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Of an original of which every answer counts as dear."""
    monkeypatch.setattr("fsr.evaluation.original.DEAR_S", 0.0)
    monkeypatch.setattr("fsr.evaluation.session.CHEAP_S", 1e-9)
    monkeypatch.setattr("fsr.evaluation.session.CASES_SHARE", 0.0)
    monkeypatch.setattr("fsr.evaluation.original.Original.divides", True)
    found = opened(tmp_path, ORIGINAL)
    yield found
    found.close()


def judged(session: Session, candidate: Candidate, cases: list[Case]) -> tuple[int, CaseFailure | None]:
    built = build(session.spec, candidate)
    assert isinstance(built, Binaries)
    return session.first_failure(built.run, candidate, cases)


def owners(session: Session, candidate: Candidate) -> BlockMap:
    built = build(session.spec, candidate)
    assert isinstance(built, Binaries)
    case, contract = session.spec.smoke_case(), session.contract
    what = Runnable(session.device, built.run, candidate.plan, contract)
    return BlockMap.guessed(what, case, session.original.shelf(contract, case, 1))


def test_all_cases_stay_but_for_the_first_in_parts(session: Session) -> None:
    cases = session.search_cases()
    assert len(cases) > 20
    assert all(case.parts for case in cases)
    assert [note for note in session.notes if f"on {BLOCKS} blocks" in note]
    held_out = session.held_out_cases()
    assert not held_out[0].parts
    assert held_out[-1].parts


def test_a_part_is_what_the_chosen_blocks_write_whatever_the_values(session: Session) -> None:
    """Most of this output keeps the zeros it began with where the case's values are zeros."""
    case = replace(session.spec.smoke_case(), family="zeros", parts=True)
    part = session.original.part(case)
    assert part.blocks == chosen_blocks(case, 81)
    assert {0, 80} <= set(part.blocks)
    own = {(y // 8) * 9 + x // 8 for y, x in (divmod(int(at), SIDE) for at in part.places["b"])}
    assert own == set(part.blocks)


def test_of_a_candidate_the_blocks_run_that_write_the_same(session: Session) -> None:
    part = session.original.part(replace(session.spec.smoke_case(), parts=True))
    found = owners(session, Candidate(IN_BANDS, TALL)).blocks(part)
    assert set(found) == {18 * (b // 9) + half * 9 + b % 9 for b in part.blocks for half in (0, 1)}
    assert owners(session, Candidate(TURNED, TALL)).blocks(part) == ()  # no such order is guessed


@pytest.mark.parametrize("text", [IN_BANDS, TURNED], ids=["in bands", "turned"])
def test_right_ones_pass_and_wrong_ones_do_not(session: Session, text: str) -> None:
    cases = [session.spec.smoke_case(), *session.search_cases()]
    passed, failure = judged(session, Candidate(text, TALL), cases)
    assert failure is None
    assert passed > len(cases) // 2
    wrong = text.replace("sum > 0.0f ?", "sum > 1e30f ? 0.0f : sum > 0.0f ?")
    passed, failure = judged(session, Candidate(wrong, TALL), cases)
    assert passed
    assert failure is not None
    assert failure.case.parts
    assert failure.mismatch is not None
    assert len(failure.mismatch.index) == 2  # of the whole output
    assert failure.mismatch.total < SIDE * SIDE


def test_what_is_wrong_elsewhere_alone_is_not_held_against_a_part(session: Session) -> None:
    """In whole it is found, as the first case always is."""
    case = replace(session.spec.smoke_case(), parts=True)
    spared = next(b for b in range(81) if b not in session.original.part(case).blocks)
    wrong = ORIGINAL.replace(
        "float sum = b", f"if (blockIdx.y * 9 + blockIdx.x == {spared}) return;\n    float sum = b"
    )
    assert judged(session, Candidate(wrong, PLAN), [case]) == (1, None)
    assert judged(session, Candidate(wrong, PLAN), [replace(case, parts=False)])[1] is not None


def test_a_block_that_is_left_out_is_told_where_it_is_judged(session: Session) -> None:
    case = replace(session.spec.smoke_case(), parts=True)
    wrong = ORIGINAL.replace("float sum = b", "if (blockIdx.x == 8 && blockIdx.y == 8) return;\n    float sum = b")
    _, failure = judged(session, Candidate(wrong, PLAN), [case])
    assert failure is not None
    assert failure.mismatch is not None
    assert min(failure.mismatch.index) >= 64


ADDING = ORIGINAL.replace("b[y * 72 + x] = sum > 0.0f ? sum : 0.0f;", "atomicAdd(b + y * 72 + x, sum);")
TWICE = replace(PLAN, launches=PLAN.launches * 2)


@pytest.mark.parametrize(
    ("text", "plan", "data_s", "divides"),
    [
        (ORIGINAL, PLAN, 0.0, True),
        (ADDING, PLAN, 0.0, False),
        (ORIGINAL, TWICE, 0.0, False),
        (ORIGINAL, PLAN, 1e3, False),
    ],
    ids=["alone", "adding", "two launches", "data are dearer"],
)
def test_only_where_blocks_stand_alone_and_running_is_what_takes_long(
    text: str, plan: Plan, data_s: float, divides: bool, tmp_path: Path
) -> None:
    found = opened(tmp_path, text, plan)
    found.original.expected(found.spec.smoke_case())
    found.original._data_s = data_s
    assert found.original.divides is divides
    found.close()


RANKED = """__global__ void k(const int *a, int *b) {
    int i = blockIdx.x * 64 + threadIdx.x;
    b[a[i]] = i;
}
"""


def test_where_data_decides_what_a_block_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What blocks write on other data is not theirs, and other blocks write it: nothing is missing there."""
    monkeypatch.setattr("fsr.evaluation.original.DEAR_S", 0.0)
    monkeypatch.setattr("fsr.evaluation.session.CHEAP_S", 1e-9)
    monkeypatch.setattr("fsr.evaluation.session.CASES_SHARE", 0.0)
    monkeypatch.setattr("fsr.evaluation.original.Original.divides", True)
    count, grid = SIDE * 64, (str(SIDE), "1", "1")
    plan = Plan((Launch("k", grid, ("64", "1", "1"), "0", ("a", "b")),))
    places = Constraints(low="0", high=str(count - 1), unique=True)
    args = (Argument("a", "int32", Role.IN, (str(count),), constraints=places),
            Argument("b", "int32", Role.OUT, (str(count),)))  # fmt: skip
    original = Candidate(RANKED, plan)
    session = Session(SessionSpec(Contract("k", (), args, plan), original, "host", "", 5, str(tmp_path)))
    try:
        cases = [c for c in session.search_cases() if c.parts]
        assert cases
        wide = Plan((Launch("k", (str(SIDE // 2), "1", "1"), ("128", "1", "1"), "0", ("a", "b")),))
        right = Candidate(RANKED.replace("* 64", "* 128"), wide)
        assert judged(session, right, cases)[1] is None
        wrong = replace(right, source=right.source.replace("= i;", "= i + 1;"))
        assert judged(session, wrong, cases)[1] is not None
    finally:
        session.close()
