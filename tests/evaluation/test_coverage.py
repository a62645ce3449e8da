"""A kernel whose work few data reach: the tests find some that do, and say which lines none reaches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.evaluation import coverage
from fsr.evaluation.compiling import build
from fsr.evaluation.coverage import in_words
from fsr.evaluation.looking import looking
from fsr.evaluation.session import Session, close_sessions, session_of
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.runs.kernel import load_kernel

# What is looked up lies within an image of more than 150 x 150 only.
KERNEL = """// /// fsr
// entry = "project"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// h = {min = 1, max = 600, timed = 480}
// w = {min = 1, max = 600, timed = 480}
// [args]
// at = {role = "in", shape = ["n", 2], low = 150.0, high = 900.0}
// image = {role = "in", shape = ["h", "w"], low = 0.5, high = 1.0}
// sums = {role = "inout", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void project(const float *at, const float *image, float *sums, int n, int h, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int y = (int)at[2 * i], x = (int)at[2 * i + 1];
  if (y >= h || x >= w) return;
  float found = image[y * w + x];
  if (found > 2.0f) {
    sums[i] = 0.0f;
    return;
  }
  sums[i] = sums[i] * 0.5f + found;
}
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    kernel = load_kernel(path)
    yield session_of(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0))
    close_sessions()


def test_a_candidate_that_leaves_the_work_out_is_refused(session: Session) -> None:
    cases = session.coverage_cases()
    assert len(cases) >= 3
    assert all(min(case.size_map()["h"], case.size_map()["w"]) > 150 for case in cases)
    original = session.spec.baseline
    lazy = replace(original, source=original.source.replace("  float found", "  return;\n  float found"))
    built = build(session.spec, lazy)
    assert isinstance(built, Binaries)
    _, failure = session.first_failure(built.run, lazy, cases)
    assert failure is not None
    assert session.first_failure(session.baseline.run, original, cases) == (len(cases), None)


def test_lines_that_no_case_runs_are_told(session: Session) -> None:
    session.coverage_cases()
    assert [
        note
        for note in session.notes
        if note.startswith("no test of up to 262,144 elements runs `sums[i] = 0.0f;` of the kernel")
    ]


@pytest.mark.parametrize("beside", [False, True])
def test_a_promotion_looks_into_both(session: Session, monkeypatch: pytest.MonkeyPatch, beside: bool) -> None:
    """The same whether the host device looks when it is asked, or beside what runs on a GPU."""
    original = session.spec.baseline
    twice = replace(original, source=original.source.replace("found > 2.0f", "found > 3.0f"))
    monkeypatch.setattr(type(session.spec.backend), "sanitizes", beside)
    with looking(session, twice, []) as looked:
        cases, unrun = looked()
    assert unrun == "no test of up to 262,144 elements runs `sums[i] = 0.0f;` of the candidate"
    assert len(cases) >= 3
    assert session.looked
    assert [
        note
        for note in session.notes
        if note.startswith("no test of up to 262,144 elements runs `sums[i] = 0.0f;` of the kernel")
    ]


def test_looking_ends_with_what_it_is_beside(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(session.spec.backend), "sanitizes", True)
    began = time.monotonic()
    with looking(session, session.spec.baseline, []):
        pass  # a failure, say: nobody asks
    assert not session.looked
    assert time.monotonic() - began < 0.5 * coverage.SHARE * session.spec.budget_s


def test_nothing_is_told_of_lines_where_there_was_no_time(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "SHARE", 0.0)
    session.coverage_cases()
    assert not [note for note in session.notes if note.startswith("no test of")]


def test_many_lines_in_words() -> None:
    told = in_words("a;\n  b  = 1;\nc;\nd;\n", (1, 2, 3, 4), "it")
    assert told == "no test of up to 262,144 elements runs `a;`, `b = 1;`, `c;` and 1 more line of it"


def test_a_line_that_stands_twice_is_told_with_the_one_before() -> None:
    told = in_words("if (a)\n  continue;\nif (b)\n  continue;\n", (4,), "it")
    assert told == "no test of up to 262,144 elements runs `if (b) continue;` of it"


def test_brackets_alone_are_told_with_what_they_close() -> None:
    told = in_words("if (a) {\n  b = 1;\n}\n}\n", (3, 4), "it")
    assert told == "no test of up to 262,144 elements runs `b = 1; }`, `b = 1; } }` of it"
