"""Literals that make a float kernel compute in double."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsr.transform.details.float_literals import FloatLiterals
from tests.transform.conftest import subject_of

ACTION = FloatLiterals()
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"], dtype = "DTYPE"}
// y = {role = "out", shape = ["n"], dtype = "DTYPE"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const TYPE *x, TYPE *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;  // 2.0 stays in words
  double s = x[i < n ? i : 0] * 2.0 + 1e-3 + .25f;
  if (i < n) y[i] = s - 3. / 7;
}"""
SINGLE = TEXT.replace("DTYPE", "float32").replace("TYPE", "float")


def test_literals_and_variables(runner):
    subject = subject_of(SINGLE)
    moves = {m.name: m for m in ACTION.moves(subject)}
    assert list(moves) == ["float-literals@kernel[mode=literals]", "float-literals@kernel[mode=all]"]
    some, every = (ACTION.apply(subject, m) for m in moves.values())
    assert "* 2.0f + 1e-3f + .25f" in some.source
    assert "s - 3.f / 7" in some.source
    assert "// 2.0 stays in words" in some.source
    assert "double s" in some.source
    assert "double" not in every.source
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, every))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_nothing_for_doubles_and_for_exact_contracts():
    assert list(ACTION.moves(subject_of(TEXT.replace("DTYPE", "float64").replace("TYPE", "double")))) == []
    subject = subject_of(SINGLE)
    exact = replace(subject.contract, tolerance=replace(subject.contract.tolerance, exact=True))
    assert list(ACTION.moves(replace(subject, contract=exact))) == []


def test_what_soon_overflows_stays_in_double():
    steep = SINGLE.replace("x[i < n ? i : 0] * 2.0", "exp(1.0 * x[i < n ? i : 0]) / 3.0")
    assert list(ACTION.moves(subject_of(steep))) == []


BOUNDED = SINGLE.replace('shape = ["n"], dtype = "float32"}\n// y', 'shape = ["n"], low = -4, high = 4}\n// y')


def test_what_overflows_may_be_in_float_where_the_contract_says_how_large_inputs_are(runner):
    steep = BOUNDED.replace("x[i < n ? i : 0] * 2.0", "exp(-0.5 * pow(x[i < n ? i : 0], 2)) / 3.0")
    subject = subject_of(steep)
    *_, every = (ACTION.apply(subject, m) for m in ACTION.moves(subject))
    assert "exp(-0.5f * powf(x[i < n ? i : 0], 2)) / 3.0f" in every.source
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, every))
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_macros_that_are_doubles_and_functions_of_the_kernels_own(runner):
    text = BOUNDED.replace(
        "__global__",
        """#define TURN 6.28318530717958647692
#define TWICE(a) (2.0 * (a))
static __device__ double wave(double a) { return TURN * a + 1.0; }
__global__""",
    ).replace("x[i < n ? i : 0] * 2.0", "wave(x[i < n ? i : 0]) + M_PI * TURN")
    subject = subject_of(text)
    some, every = (ACTION.apply(subject, m) for m in ACTION.moves(subject))
    assert "double wave(double a) { return TURN * a + 1.0; }" in some.source
    assert "float wave(float a) { return float(TURN) * a + 1.0f; }" in every.source
    assert "+ float(M_PI) * float(TURN)" in every.source
    assert list(ACTION.moves(replace(subject, candidate=every))) == []
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, every))
    np.testing.assert_allclose(got, want, rtol=2e-6)
