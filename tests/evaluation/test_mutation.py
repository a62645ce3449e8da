"""Mutants judged: the tests' kills, what is equivalent, what is told of a candidate that is wrong itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fsr.evaluation.mutation import EQUIVALENT, KILLED, NO_CODE, UNTRIED, Bench, Fate
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.mutation.mutants import Mutant
from fsr.runs.kernel import load_kernel

HISTOGRAM = """// /// fsr
// entry = "count"
// [sizes]
// n = {min = 0, max = 100000, timed = 4096}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n"], low = "0", high = "15"}
// y = {role = "inout", dtype = "int32", shape = ["16"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void count(const int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] < 16) atomicAdd(&y[x[i]], 1);
}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = tmp_path_factory.mktemp("count") / "count.cu"
    path.write_text(HISTOGRAM)
    kernel = load_kernel(path, None)
    opened = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 1, str(path.parent)))
    yield opened
    opened.close()


def planted(session: Session, old: str, new: str, name: str = "a fault") -> Mutant:
    original = session.spec.baseline
    assert old in original.source
    return Mutant(name, 4, 9, old, new, replace(original, source=original.source.replace(old, new)))


def fates(session: Session, *found: Mutant, until: float = float("inf")) -> dict[str, Fate]:
    bench = Bench(session, session.spec.baseline, until)
    return {fate.mutant.operator: fate for fate in bench.fates(found)}


def test_mutants_die_where_they_are_wrong_and_what_cannot_is_named(session: Session) -> None:
    told = fates(
        session,
        planted(session, "i < n", "i < n - 1", "lost"),
        planted(session, "atomicAdd", "atomicAdd_block", "narrowed"),
        planted(session, " && x[i] < 16", "", "idle guard"),
        planted(session, "threadIdx.x;", "threadIdx.x + 0;", "same"),
        planted(session, "i < n", "i < nothing", "no code"),
        planted(session, "i < n", "i < n && n != 4321", "one size"),
        planted(session, "i < n", "i < n && blockIdx.x < 512", "far blocks"),
    )
    assert {name: fate.kind for name, fate in told.items()} == {
        "lost": KILLED, "narrowed": KILLED, "idle guard": EQUIVALENT, "same": EQUIVALENT, "no code": NO_CODE,
        "one size": KILLED, "far blocks": KILLED,
    }  # fmt: skip
    assert told["narrowed"].by.startswith("watched")
    assert told["same"].why == "it compiles to the same instructions"
    assert "the same bits in" in told["idle guard"].why
    assert "nothing" in told["no code"].why


def test_what_comes_too_late_is_told_as_not_tried(session: Session) -> None:
    told = fates(session, planted(session, "i < n", "i < n - 1"), until=0.0)
    assert [fate.kind for fate in told.values()] == [UNTRIED]


def test_a_mutant_of_a_wrong_candidate_leads_to_the_candidates_own_fault(session: Session) -> None:
    original = session.spec.baseline
    # What is added to is not evaluated for a test of its own: this one is met on the way to another.
    condition = "unsigned m = n; m *= n; if (i < n && m != 74701449"
    wrong = replace(original, source=original.source.replace("if (i < n", condition))
    idle = replace(wrong, source=wrong.source.replace("x[i] < 16", "x[i] < 4321"))
    bench = Bench(session, wrong)
    list(bench.fates([Mutant("idle", 4, 9, "x[i] < 16", "x[i] < 4321", idle)]))
    assert bench.failure is not None
    assert bench.failure.case.size_map() == {"n": 8643}  # 2 * 4321 + 1
