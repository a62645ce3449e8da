"""integer-powers: the same numbers by products, in every function of the file; nothing where the exponent is not
known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.transform.details.integer_powers import IntegerPowers

ACTION = IntegerPowers()
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"], dtype = "float32", low = 0.0, high = 3.0}
// y = {role = "out", shape = ["n"], dtype = "float32"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
// pow(x, 2) stays in words
inline __device__ float bell(float x, float s) { return expf(-pow(x - 1.0f, 2) / (2 * powf(s, 2.0f))); }
__global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float a = x[i];
  y[i] = BODY;
}"""


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("bell(a, 2.0f)", "fsr_power<2>(x - 1.0f)"),
        ("std::pow(a, 3.0) + pow(i % 7, 2)", "fsr_power<3>(a) + fsr_power<2>(i % 7)"),
        ("pow(a + 1.0f, 0.5f)", "sqrt(a + 1.0f)"),
        ("pow(fmaxf(a, 0.5f), 4)", "fsr_power<4>(fmaxf(a, 0.5f))"),
        ("powf(a, 2)", "fsr_power<2>((float)(a))"),
        ("pow(pow(a, 2), 3)", "fsr_power<3>(pow(a, 2))"),
    ],
)
def test_powers_are_products(body: str, new: str, subject_from, runner) -> None:
    subject = subject_from(TEXT.replace("BODY", body))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert new in changed.source
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, changed))
    np.testing.assert_allclose(got, want, rtol=2e-6)


@pytest.mark.parametrize(
    "body", ["pow(a, 2.5f)", "pow(a, i)", "pow(2, a)", "a", "pow(a, 9)", "pow(a, -1)", "t.pow(a, 2)"]
)
def test_other_powers_stay(body: str, subject_from) -> None:
    plain = TEXT.replace("pow(x - 1.0f, 2)", "x").replace("powf(s, 2.0f)", "s")
    assert not list(ACTION.moves(subject_from(plain.replace("BODY", body))))


def test_nothing_for_exact_contracts(subject_from) -> None:
    subject = subject_from(TEXT.replace("BODY", "pow(a, 2)"))
    exact = replace(subject.contract, tolerance=replace(subject.contract.tolerance, exact=True))
    assert not list(ACTION.moves(replace(subject, contract=exact)))
