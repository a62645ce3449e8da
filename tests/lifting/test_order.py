"""Sums and products keep the source's order: what is made of them has its bits, and leaves its type's range where it
does."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.device import open_host_device
from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.evaluation.jobs import compile_task, evaluate_task
from fsr.evaluation.session import close_sessions
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, SessionSpec
from fsr.lifting.lift import lift
from fsr.records import Candidate, Status
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY
from tests.transform.conftest import Runner, subject_of

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


def made_by(family: str, text: str) -> tuple[Subject, Candidate]:
    """A kernel, and what the first move of a family makes of its computation."""
    subject = subject_of(text)
    found = lift(subject.contract, subject.candidate, limit_s=60)
    assert found.computation is not None, found.why
    subject = replace(subject, computation=found.computation)
    return subject, FAMILY[family].apply(subject, next(FAMILY[family].moves(subject)))


@pytest.mark.parametrize("family", ["pack-elements", "register-tile"])
@pytest.mark.parametrize(
    "order", ["u[i + 1] - u[i - nx] + u[i - 1] - u[i + nx]", "u[i + nx] + u[i - 1] + u[i] - u[i + 1]"]
)
def test_sums_keep_the_order_of_the_source(tmp_path, family, order):
    subject, made = made_by(family, STENCIL.replace("ORDER", order))
    spec = SessionSpec(subject.contract, subject.candidate, "host", "sm_90", 5, str(tmp_path))
    try:
        built = compile_task(CompileRequest(spec, made))
        assert isinstance(built, Binaries), built
        outcome = evaluate_task(EvaluateRequest(spec, made, built))
    finally:
        close_sessions()
    assert outcome.status is Status.CORRECT, outcome.evidence


PRODUCT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 5000, timed = 600}
// [args]
// a = {role = "in", shape = ["n"]}
// b = {role = "in", shape = ["n"]}
// c = {role = "in", shape = ["n"]}
// d = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float* a, const float* b, const float* c, const float* d, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = FACTORS;
}
"""
FACTORS = ("a[i]", "b[i]", "c[i]", "d[i]", "(a[i] - b[i])", "(c[i] + d[i])", "fabsf(b[i])")


def multiplied(rng: random.Random, factors: list[str]) -> str:
    """The factors in brackets drawn at random."""
    if len(factors) == 1:
        return factors[0]
    cut = rng.randrange(1, len(factors))
    return f"({multiplied(rng, factors[:cut])} * {multiplied(rng, factors[cut:])})"


@pytest.fixture(scope="module")
def runner():
    device = open_host_device()
    yield Runner(device)
    device.close()


@pytest.mark.parametrize("seed", range(8))
def test_products_keep_the_order_of_the_source(seed, runner):
    """Which shows in their bits, and in which of them are infinite."""
    rng = random.Random(seed)
    factors = multiplied(rng, rng.sample(FACTORS, rng.choice((3, 4, 5))))
    subject, made = made_by("pack-elements", PRODUCT.replace("FACTORS", factors))
    data, shape = np.random.default_rng(seed), (1000,)
    given = {
        name: (data.uniform(1, 2, shape) * 2.0 ** data.integers(-90, 90, shape)).astype(np.float32) for name in "abcd"
    }
    want, got = (runner.outputs(c, subject.contract, {"n": 1000}, given=given)["y"] for c in (subject.candidate, made))
    assert np.isinf(want).any()
    np.testing.assert_array_equal(got, want, err_msg=factors)


WEIGHTED = PRODUCT.replace("if (i < n) y[i] = FACTORS;", "if (i >= n) return;\n  float LOADS;\n  y[i] = TERMS;")


@pytest.mark.parametrize("seed", range(8))
def test_sums_keep_the_order_of_the_source_whatever_is_read_first(seed, runner):
    """A compiler writes ``x + w * a`` as ``w * a + x`` where ``a`` was read before the rest: the bits tell."""
    rng = random.Random(seed)
    terms = [f"{w}f * {name}_" for w, name in zip(("0.299", "0.587", "0.114", "1.7"), "abcd", strict=True)]
    rng.shuffle(terms)
    loads = ", ".join(f"{name}_ = {name}[i]" for name in rng.sample("abcd", 4))
    text = WEIGHTED.replace("LOADS", loads).replace("TERMS", " + ".join(terms))
    subject, made = made_by("pack-elements", text)
    data, shape = np.random.default_rng(seed), (4000,)
    given = {name: data.uniform(-255, 255, shape).astype(np.float32) for name in "abcd"}
    want, got = (runner.outputs(c, subject.contract, {"n": 4000}, given=given)["y"] for c in (subject.candidate, made))
    np.testing.assert_array_equal(got, want, err_msg=f"{loads}: {terms}")


SCALED = """// /// fsr
// [sizes]
// rows = {min = 1, max = 500, timed = 200}
// cols = {min = 1, max = 500, timed = 300}
// [args]
// x = {dtype = "float16", role = "in", shape = ["rows", "cols"], low = -30, high = 30}
// w = {dtype = "float16", role = "in", shape = ["cols"], low = -4, high = 4}
// y = {dtype = "float16", role = "out", shape = ["rows", "cols"]}
// inverse = {dtype = "float32", value = "1 / cols"}
// [[launch]]
// entry = "squares"
// grid = "rows"
// block = 32
// args = ["x", "sums", "cols"]
// [[launch]]
// entry = "scaled"
// grid = ["ceil_div(cols, 64)", "rows"]
// block = 64
// args = ["x", "w", "y", "sums", "inverse", "cols"]
// [scratch.sums]
// dtype = "float32"
// count = "rows"
// zeroed = true
// ///
#include <cuda_fp16.h>
__global__ void squares(const half *x, float *sums, int cols) {
  float own = 0;
  for (int k = threadIdx.x; k < cols; k += 32) {
    float v = __half2float(x[blockIdx.x * cols + k]);
    own = fma(v, v, own);
  }
  atomicAdd(&sums[blockIdx.x], own);
}
__global__ void scaled(const half *x, const half *w, half *y, const float *sums, float inverse, int cols) {
  int k = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y;
  if (k >= cols) return;
  half by = __float2half_rn(rsqrtf(sums[row] * inverse + 1e-5f));
  y[row * cols + k] = __hmul(__hmul(x[row * cols + k], by), w[k]);
}
"""


def test_products_of_16_bits_keep_the_order_of_the_source(tmp_path):
    """Each of their roundings counts; one factor is what a fold gives."""
    subject, made = made_by("fold-rows", SCALED)
    assert len(made.plan.launches) == 1
    spec = SessionSpec(subject.contract, subject.candidate, "host", "sm_90", 5, str(tmp_path))
    try:
        built = compile_task(CompileRequest(spec, made))
        assert isinstance(built, Binaries), built
        outcome = evaluate_task(EvaluateRequest(spec, made, built))
    finally:
        close_sessions()
    assert outcome.status is Status.CORRECT, outcome.evidence
