"""How many cases a kernel of fixed, large sizes is tested on, and which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fsr.contract.model import Argument, Contract, Size
from fsr.evaluation.jobs import compile_task, evaluate_task
from fsr.evaluation.original import Original, first_error
from fsr.evaluation.promotion import promote_task
from fsr.evaluation.session import CASES_LEAST, Session, session_of
from fsr.evaluation.spec import (
    Binaries,
    CompileRequest,
    EvaluateRequest,
    PromoteRequest,
    PromotionPart,
    SessionSpec,
)
from fsr.records import Candidate, Case, Image, Launch, Plan, Role, Status
from fsr.testgen.values import build

FAMILIES = ["normal", "cancelling", "normal", "denormals", "uniform", "normal", "far rows", "ones", "normal", "wide"]
CASES = [Case(f"c{i}", (("n", 512),), family, i) for i, family in enumerate(FAMILIES * 3)]


def kept(smoke_s: float, *sizes: Size, before: Sequence[Case] = ()) -> tuple[list[Case], list[str]]:
    """``smoke_s``: what the original's first answer, of two runs, took."""
    spec = SimpleNamespace(
        budget_s=60.0, smoke_case=lambda: CASES[0], cramped=all(size.minimum == size.maximum for size in sizes)
    )
    original = SimpleNamespace(case_s=smoke_s / 2, expected=lambda case: None, divides=False)
    session: Any = SimpleNamespace(spec=spec, original=original, notes=[])
    session.note = session.notes.append
    return Session.affordable(session, CASES, before), session.notes


@pytest.mark.parametrize("sizes", [(), (Size("n", 512, 512, (512,)),)])
def test_dear_cases_of_fixed_sizes_are_fewer_and_keep_every_family_they_can(sizes: tuple[Size, ...]) -> None:
    found, notes = kept(4.0, *sizes)
    assert len(found) == CASES_LEAST == len({case.family for case in found})
    assert {"normal", "uniform", "wide"} <= {case.family for case in found}
    assert f"{CASES_LEAST} of 30 test cases" in notes[0]


def test_what_was_tested_before_counts() -> None:
    found, _ = kept(4.0, before=CASES[:1])
    assert len(found) == CASES_LEAST - 1
    assert "normal" not in {case.family for case in found}


@pytest.mark.parametrize(("answer_s", "data_s"), [(0.05, 0.3), (0.3, 0.05)])
def test_what_data_takes_to_make_counts_as_an_answer_does(answer_s: float, data_s: float) -> None:
    original: Any = SimpleNamespace(answer_s=answer_s, _data_s=data_s)
    case_s = Original.case_s.fget
    assert case_s is not None
    assert case_s(original) == 0.3


def test_cheap_ones_all_stay() -> None:
    assert kept(0.15) == (CASES, [])


def test_no_load_of_the_machine_takes_cases_from_a_kernel_that_has_small_sizes() -> None:
    assert kept(60.0, Size("n", 0, 512, (512,))) == (CASES, [])


TEXT = """__global__ void k(const float *a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int j = 0; j < 8; ++j) sum += a[i] * a[(i + j) % 64];
    b[i] = sum;
}
"""


def test_a_dear_original_answers_without_instruments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = (Argument("a", "float32", Role.IN, ("64",)), Argument("b", "float32", Role.OUT, ("64",)))
    plan = Plan((Launch("k", ("2", "1", "1"), ("32", "1", "1"), "0", ("a", "b")),))
    spec = SessionSpec(Contract("k", (), args, plan), Candidate(TEXT, plan), "host", "", 1, str(tmp_path))
    monkeypatch.setattr("fsr.evaluation.original.DEAR_S", 0.0)
    session, asked = Session(spec), list[bytes]()
    prepare = session.device.prepare

    def noted(image: Image, *given: Any) -> Any:
        asked.append(image.data)
        return prepare(image, *given)

    monkeypatch.setattr(session.device, "prepare", noted)
    for case in [session.spec.smoke_case(), *session.search_cases()[:1]]:
        data, answer = build(session.contract, case), session.original.expected(case).arrays["b"]
        a = data.arrays["a"].astype(np.float64)
        want = sum(a * np.roll(a, -j) for j in range(8))
        np.testing.assert_allclose(answer, want, rtol=1e-5, atol=1e-5)
    session.close()
    assert asked[0] == session.baseline.run.data != asked[-1]  # the first answer is the instrumented build's


def test_of_one_fixed_size_a_candidate_gets_no_cases_but_of_other_values(tmp_path: Path) -> None:
    args = (Argument("a", "float32", Role.IN, ("n",)), Argument("b", "float32", Role.OUT, ("n",)))
    plan = Plan((Launch("k", ("2", "1", "1"), ("32", "1", "1"), "0", ("a", "b")),))
    sizes = (Size("n", 64, 64, (64,)),)
    spec = SessionSpec(Contract("k", sizes, args, plan), Candidate(TEXT, plan), "host", "", 1, str(tmp_path))
    session = Session(spec)
    own = session.candidate_cases(
        Candidate(TEXT.replace("b[i] = s", "if (blockIdx.x == 41) sum += 1.0f;\n    b[i] = s"), plan)
    )
    assert [case.family for case in own] == ["outliers"]
    assert not session.large_cases()
    session.close()


def test_of_what_a_compiler_says_the_first_error_is_shown_and_how_many_follow() -> None:
    log = (
        "note: x\nk.cu(3): error: no such name\n  a = b;\n  ^\n\nk.cu(4): error: another\n  c;\n\n2 errors detected.\n"
    )
    assert first_error(log) == "k.cu(3): error: no such name\n  a = b;\n  ^\nand 1 more"
    assert first_error("it died") == "it died"


WIDE = """__global__ void k(const float *a, float *b) {
    if (threadIdx.x == 0) b[blockIdx.x] = a[blockIdx.x] * 2.0f;
}
"""


def test_cases_of_very_many_threads_are_met_by_what_is_promoted(tmp_path: Path) -> None:
    args = (Argument("a", "float32", Role.IN, ("n",)), Argument("b", "float32", Role.OUT, ("n",)))
    plan = Plan((Launch("k", ("n", "1", "1"), ("1024", "1", "1"), "0", ("a", "b")),))
    contract = Contract("k", (Size("n", 1, 9000, (64,)),), args, plan)
    spec = SessionSpec(contract, Candidate(WIDE, plan), "host", "sm_90", 1, str(tmp_path))
    wrong = Candidate(WIDE.replace("* 2.0f", "* (gridDim.x == 4098 ? 3.0f : 2.0f)"), plan)
    binaries = compile_task(CompileRequest(spec, wrong))
    assert isinstance(binaries, Binaries), binaries
    found = evaluate_task(EvaluateRequest(spec, wrong, binaries, None))
    assert (found.status, "own_cases" in found.evidence) == (Status.CORRECT, True)
    request = PromoteRequest(spec, wrong, binaries, part=PromotionPart.TESTS, own_tested=True)
    assert promote_task(request).status is Status.WRONG
    session = session_of(spec)
    waiting = [case for case in session.candidate_cases(wrong) if session.waits(case)]
    assert waiting
    assert not [case for case in waiting if case.family == "outliers"]
