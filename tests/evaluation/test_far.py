"""Sizes beyond memory: a few blocks on buffers of holes tell what only goes wrong there, and let right kernels be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.far import far_failure
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.records import Candidate, Plan

CONTRACT = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 1048576, timed = 64}
// cols = {min = 1, max = 8192, timed = 256}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// b = {role = "in", shape = ["rows"]}
// y = {role = "out", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// ///
"""
HEAD = "__global__ void k(const float *x, const float *b, float *y, int rows, int cols) {{ {} }}\n"
WIDE = "long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, n = (long long)rows * cols; "
ORIGINAL = HEAD.format(WIDE + "if (i < n) y[i] = x[i] + b[i / cols];")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = Path(tmp_path_factory.mktemp("far"), "k.cu")
    path.write_text(CONTRACT + ORIGINAL)
    contract = load_contract(path)
    opened = Session(SessionSpec(contract, Candidate(ORIGINAL, contract.plan), "host", "sm_90", seed=3))
    yield opened
    opened.close()


def judged(session: Session, body: str, grid: str = "") -> tuple[int, CaseFailure | None]:
    plan = session.contract.plan
    if grid:
        plan = Plan((replace(plan.launches[0], grid=(grid, "1", "1")),))
    candidate = Candidate(HEAD.format(body), plan)
    built = build(session.spec, candidate)
    assert isinstance(built, Binaries), built
    return far_failure(session, candidate, built.run, 1000.0)


@pytest.mark.parametrize(
    "body",
    [
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * cols) y[i] = x[i] + b[i / cols];",
        WIDE + "if (i < n) y[i] = x[i] + b[(long long)((float)i / (float)cols)];",
        WIDE + "i &= 0x7fffffff; if (i < n) y[i] = x[i] + b[i / cols];",
        WIDE + "if (i < n && blockIdx.x < 3000000) y[i] = x[i] + b[i / cols];",
    ],
    ids=["index in an int", "row in a float", "index cut to 31 bits", "grid capped"],
)
def test_what_only_large_sizes_show_is_found(session: Session, body: str) -> None:
    assert judged(session, body)[1] is not None


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        (WIDE + "i = (long long)(gridDim.x - 1 - blockIdx.x) * 256 + threadIdx.x;"
         "if (i < n) y[i] = x[i] + b[i / cols];", ""),
        (WIDE + "for (long long j = 4 * i; j < 4 * i + 4 && j < n; j++) y[j] = x[j] + b[j / cols];", ""),
        (WIDE + "for (long long j = 8 * i; j < 8 * i + 8 && j < n; j++) y[j] = x[j] + b[j / cols];",
         "ceil_div(rows * cols, 2048)"),
        ("for (int r = blockIdx.x; r < rows; r += gridDim.x) for (int c = threadIdx.x; c < cols; c += 256)"
         "y[(size_t)r * cols + c] = x[(size_t)r * cols + c] + b[r];", "rows"),
        (WIDE + "for (; i < n; i += 256ll * gridDim.x) y[i] = x[i] + b[i / cols];",
         "min(ceil_div(rows * cols, 256), 65536)"),
    ],
    ids=["blocks from the end", "blocks that idle", "fewer blocks", "a row a block", "blocks in steps"],
)  # fmt: skip
def test_right_kernels_of_other_shapes_pass(session: Session, body: str, grid: str) -> None:
    cases, failure = judged(session, body, grid)
    assert failure is None
    assert cases >= 1


STRIDED = "unsigned n = (unsigned)rows * cols; for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < n; i += 16384u) "


def test_few_blocks_that_go_over_all_are_run_in_whole(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsr.evaluation.far.WHOLE_S", 300.0)
    body = STRIDED + "y[i] = x[i] + b[min(rows - 1, (int)((float)i / (float)cols))];"
    failure = judged(session, body, "64")[1]
    assert failure is not None
    assert failure.case.name == "far, in whole"


RUNS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 1000000, timed = 5000}
// [args]
// x = {role = "in", shape = ["n"], low = 0, high = 9}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
BEFORE = """__global__ void k(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = i;
    if (i >= n) return;
    while (j + 1 < n && x[j + 1] == x[i]) j++;
    while (i > 0 && x[i - 1] == x[j]) i--;
    y[blockIdx.x * blockDim.x + threadIdx.x] = j - i;
}
"""


def test_long_lines_that_the_original_takes_too_long_for_are_run_in_parts(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(RUNS + BEFORE)
    contract = load_contract(tmp_path / "k.cu")
    session = Session(SessionSpec(contract, Candidate(BEFORE, contract.plan), "host", "sm_90", seed=3))
    try:
        for body, right in ((BEFORE.replace("= j - i", "= (j - i) & 0x7fff"), False),
                            (BEFORE.replace("j++", "++j"), True)):  # fmt: skip
            candidate = Candidate(body, contract.plan)
            built = build(session.spec, candidate)
            assert isinstance(built, Binaries), built
            assert (far_failure(session, candidate, built.run, 50.0)[1] is None) == right
    finally:
        session.close()
