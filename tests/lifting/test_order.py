"""Sums keep the order of the source: what is made of them has its bits, and leaves its type's range where it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.evaluation.jobs import compile_task, evaluate_task
from fsr.evaluation.session import close_sessions
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, SessionSpec
from fsr.lifting.lift import lift
from fsr.records import Status
from tests.transform.computed.test_families import FAMILY
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

STENCIL = """// /// fsr
// entry = "k"
// [sizes]
// ny = {min = 1, max = 5000, timed = 600}
// nx = {min = 1, max = 5000, timed = 800}
// [args]
// u = {role = "in", shape = ["ny", "nx"]}
// v = {role = "out", shape = ["ny", "nx"]}
// ny = {value = "ny"}
// nx = {value = "nx"}
// [launch]
// grid = ["ceil_div(nx, 32)", "ceil_div(ny, 8)"]
// block = [32, 8]
// ///
__global__ void k(const float* u, float* v, int ny, int nx) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= nx || y >= ny) return;
  int i = y * nx + x;
  bool inner = x > 0 && y > 0 && x < nx - 1 && y < ny - 1;
  v[i] = inner ? ORDER : u[i];
}
"""


@pytest.mark.parametrize("family", ["pack-elements", "register-tile"])
@pytest.mark.parametrize(
    "order", ["u[i + 1] - u[i - nx] + u[i - 1] - u[i + nx]", "u[i + nx] + u[i - 1] + u[i] - u[i + 1]"]
)
def test_sums_keep_the_order_of_the_source(tmp_path, family, order):
    subject = subject_of(STENCIL.replace("ORDER", order))
    found = lift(subject.contract, subject.candidate, limit_s=60)
    assert found.computation is not None, found.why
    subject = replace(subject, computation=found.computation)
    made = FAMILY[family].apply(subject, next(FAMILY[family].moves(subject)))
    spec = SessionSpec(subject.contract, subject.candidate, "host", "sm_90", 5, str(tmp_path))
    try:
        built = compile_task(CompileRequest(spec, made))
        assert isinstance(built, Binaries), built
        outcome = evaluate_task(EvaluateRequest(spec, made, built))
    finally:
        close_sessions()
    assert outcome.status is Status.CORRECT, outcome.evidence
