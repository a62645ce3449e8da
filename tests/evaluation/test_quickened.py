"""Which build tests run on the host device, and how often the original is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.contract.model import Argument, Contract, Size
from fsr.evaluation import quickened
from fsr.evaluation.compiling import build
from fsr.evaluation.lighter import Lighter
from fsr.evaluation.original import AS_DRAWN
from fsr.evaluation.quickened import polls
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import Stopwatch
from fsr.evaluation.widened import Widened
from fsr.records import Candidate, Case, CaseKind, Fault, FaultKind, Launch, Plan, Role
from fsr.testgen.fitting import elements

KERNEL = """__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) sum += x[j] * 0.5f;
    y[i] = sum + x[i];
}
"""
PLAN = Plan((Launch("k", ("ceil_div(n, 64)", "1", "1"), ("64", "1", "1"), "0", ("x", "y", "n")),))
ORIGINAL = Candidate(KERNEL, PLAN)
ARGS = (
    Argument("x", "float32", Role.IN, ("n",)),
    Argument("y", "float32", Role.OUT, ("n",)),
    Argument("n", "int32", Role.SCALAR, (), value="n"),
)


@pytest.fixture(name="session")
def opened(tmp_path: Path) -> Iterator[Session]:
    contract = Contract("k", (Size("n", 1, 1 << 20, (4096,)),), ARGS, PLAN)
    found = Session(SessionSpec(contract, ORIGINAL, "host", "", 5, str(tmp_path), budget_s=60.0))
    yield found
    found.close()


def built(session: Session, candidate: Candidate) -> Binaries:
    found = build(session.spec, candidate)
    assert isinstance(found, Binaries)
    return found


def runs_of_original(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """The cases that it is run on from now on."""
    seen: list[Case] = []
    run = session.original.run_limited

    def counted(case: Case, *given: Any) -> Any:
        seen.append(case)
        return run(case, *given)

    monkeypatch.setattr(session.original, "run_limited", counted)
    return seen


def test_who_waits_for_a_volatile_variable_is_told_from_assembly() -> None:
    assert polls("__device__ volatile int flag;")
    assert polls("#define FLAG(p) (*(volatile int *)(p))")
    assert not polls('asm volatile("cp.async.wait_all;"); __asm__ __volatile__("");')


def test_dear_tests_go_on_with_the_plain_build(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quickened, "BUILD_S", 0.0)
    image = built(session, ORIGINAL).run
    cases = session.search_cases()[:3]
    assert session.first_failure(image, ORIGINAL, cases) == (3, None)
    assert not session.quickened(image, ORIGINAL).image.instrumented
    assert not session.original.build.image.instrumented
    wrong = replace(ORIGINAL, source=KERNEL.replace("j < n;", "j < n - (n == 67);"))
    image = built(session, wrong).run
    at = replace(cases[0], sizes=(("n", 67),), family="normal")
    assert session.first_failure(image, wrong, [replace(at, sizes=(("n", 66),)), at])[0] == 1
    assert not session.quickened(image, wrong).image.instrumented


def test_cheap_tests_and_those_of_who_polls_do_without_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    image = built(session, ORIGINAL).run
    session.first_failure(image, ORIGINAL, session.search_cases()[:1])
    assert session.quickened(image, ORIGINAL).image is image
    monkeypatch.setattr(quickened, "BUILD_S", 0.0)
    polling = replace(ORIGINAL, source=KERNEL.replace("float sum", "volatile float sum"))
    image = built(session, polling).run
    session.first_failure(image, polling, session.search_cases()[:2])
    assert session.quickened(image, polling).image is image


def test_an_original_whose_plain_build_answers_otherwise_keeps_its_own(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(ORIGINAL, source=KERNEL.replace("0.5f", "0.25f"))
    monkeypatch.setattr(quickened, "BUILD_S", 0.0)
    monkeypatch.setattr(quickened, "settled", lambda *_: other)
    smoke = session.spec.smoke_case()
    session.original.expected(smoke)
    found = session.original.expected(replace(smoke, seed=1))
    assert session.original.build.image is session.baseline.run
    assert found.steady


def test_the_run_that_times_an_answer_is_the_first_of_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.original.expected(session.spec.smoke_case())
    named = Case("named", (("n", 300),), "normal", 3, kind=CaseKind.NAMED)
    seen = runs_of_original(session, monkeypatch)
    assert session.original.counts(named)
    assert session.original.expected(named).steady
    assert seen == [named, named]  # on different memory


def test_what_takes_the_original_long_comes_at_smaller_sizes(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.original.expected(session.spec.smoke_case())
    monkeypatch.setattr("fsr.evaluation.original.LARGE_S", 0.05)
    monkeypatch.setattr("fsr.evaluation.original.ANSWER_SHARE", 0.0)
    case = Case("spread", (("n", 1 << 17),), "normal", 3, kind=CaseKind.HELD_OUT)
    seen = runs_of_original(session, monkeypatch)
    less = session.original.answerable(case)
    assert replace(less, sizes=case.sizes) == case
    assert less.size_map()["n"] < 1 << 17
    tried = len(seen)
    again = session.original.answerable(replace(case, seed=4, sizes=(("n", 1 << 18),)))
    assert len(seen) <= tried + 2  # sizes that took too long are not tried again, nor larger ones
    assert elements(session.contract, again.size_map()) <= elements(session.contract, less.size_map()) * 2
    search = replace(case, kind=CaseKind.SEARCH)
    assert session.original.answerable(search).size_map()["n"] < 1 << 17


def test_after_runs_that_took_long_cases_are_smaller(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    original, cases = session.original, session.search_cases()
    original.expected(session.spec.smoke_case())
    monkeypatch.setattr(original, "_lighter", Lighter(session.contract, session.spec.baseline.plan, 1e-9))
    monkeypatch.setattr(original, "_answerable", {})
    new = [replace(cases[0], sizes=(("n", 4001 + k),)) for k in range(AS_DRAWN + 1)]
    for case in new[:AS_DRAWN]:
        assert original.answerable(case) == case
        original.expected(case)
    less = original.answerable(new[-1])
    assert elements(session.contract, less.size_map()) < elements(session.contract, new[-1].size_map())
    assert original.answerable(new[-1]) is less
    (largest, *_) = original.whole
    assert original.answerable(largest) == largest
    named = replace(new[-1], kind=CaseKind.NAMED)
    assert original.answerable(named) == named


def test_what_a_quarter_says_to_take_long_is_not_run(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    original = session.original
    original.expected(session.spec.smoke_case())
    seen = runs_of_original(session, monkeypatch)
    large = Case("large", (("n", 1 << 17),), "normal", 3)
    monkeypatch.setattr(original, "_lighter", Lighter(session.contract, session.spec.baseline.plan, 1e9))
    assert original.answerable(large) == large
    assert {case.size_map()["n"] for case in seen} == {(1 << 15) + 1, (1 << 13) + 1}  # a quarter and a sixteenth, odd
    monkeypatch.setattr(original, "_lighter", Lighter(session.contract, session.spec.baseline.plan, 1e-9))
    assert original.answerable(replace(large, seed=4)).size_map()["n"] < 1 << 12
    assert max(case.size_map()["n"] for case in seen) <= (1 << 15) + 1


def test_a_wide_form_that_hangs_is_asked_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Case]()

    def hangs(what: object, case: Case, *more: object) -> None:
        asked.append(case)
        raise DeviceFault(Fault(FaultKind.HANG, "no end"))

    monkeypatch.setattr("fsr.evaluation.widened.run_once", hangs)
    wide = Widened(session.spec, session.device, session.host, session.spec.smoke_case)
    for case in session.search_cases()[:3]:
        assert wide.answer(case, session.original.shelf(session.contract, case, 0), noisy=False) is None
    assert len(asked) == 1


def test_a_slower_build_has_longer(session: Session) -> None:
    watch, case = Stopwatch(2.0), session.spec.smoke_case()
    watch.note(case, time.monotonic() - 1.0)
    assert watch.limit_s(case, 8.0) >= 8 * 30.0 > watch.limit_s(case) >= 30.0
