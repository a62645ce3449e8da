"""What a kernel answers may depend on how it was built, where rounding decides (a square root of what cancels): its
watched form, which is another build, is told to depend on an order only where two orders of that build differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.evaluation.original import Original
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.watching import watch
from fsr.records import Case
from fsr.runs.kernel import load_kernel
from fsr.testgen.oracle import Expected

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 100000, timed = 4096}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// last = {role = "out", shape = [1]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, float *last, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.5f;
    BODY
}
"""


def failure(tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the original is said to depend on an order, where its usual build answers 1 more everywhere."""
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.replace("BODY", body))
    loaded = load_kernel(path)
    session = Session(SessionSpec(loaded.contract, loaded.baseline, "host", "sm_90", 0))
    own = Original.expected

    def built_otherwise(self: Original, case: Case) -> Expected:
        found = own(self, case)
        return found.answered({**found.arrays, "y": found.arrays["y"] + np.float32(1)})

    monkeypatch.setattr(Original, "expected", built_otherwise)
    try:
        found, _ = watch(session, loaded.baseline, [session.spec.smoke_case()])
        return found is not None
    finally:
        session.close()


def test_what_only_its_build_changes_is_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not failure(tmp_path, "if (i == 0) *last = 1.0f;", monkeypatch)


def test_what_an_order_changes_is_told_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(tmp_path, "if (threadIdx.x == 0) atomicExch(last, 1.0f * blockIdx.x);", monkeypatch)
