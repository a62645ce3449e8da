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
        ("pow(pow(a, 2), 3)", "fsr_power<3>(fsr_power<2>(a))"),
        ("2.0f * pow(a + 1.0f, -1)", "2.0f * (1 / fsr_power<1>(a + 1.0f))"),
        ("pow(a + 1.0f, -2) * powf(a + 2.0f, -3.0f)", "(1 / fsr_power<2>(a + 1.0f)) * (1 / fsr_power<3>((float)"),
        ("pow(a + 1.0f, -0.5f)", "rsqrt(a + 1.0f)"),
        ("pow(a + 1.0f, 1.5f)", "fsr_power_and_root<1>(a + 1.0f)"),
        ("pow(a + 1.0f, -2.5f)", "(1 / fsr_power_and_root<2>(a + 1.0f))"),
        ("pow((double)a, 1.0 / 3.0)", "fsr_third_root((double)a, 1.0/3.0)"),
        ("pow(a * 3.0, (1. / 3.))", "fsr_third_root(a * 3.0, (1./3.))"),
        ("powf(a, 0.33333333f)", "fsr_third_root((float)(a), 1.0f)"),
        ("pow(0.0f - a, 1.0f / 3.0f) > 0.0f", "fsr_third_root(0.0f - a, 1.0f/3.0f)"),
        ("pow(10., a - 1.0f)", "fsr_ten_to(10., a - 1.0f)"),
        ("pow(10.0f, a) + powf(2, a)", "fsr_ten_to(10.0f, a) + exp2f(a)"),
        ("pow(2, i % 7)", "fsr_two_to(2, i % 7)"),
        ("powf(10.0f, -a)", "exp10f(-a)"),
    ],
)
def test_powers_are_products(body: str, new: str, subject_from, runner) -> None:
    subject = subject_from(TEXT.replace("BODY", body))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert new in changed.source
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, changed))
    np.testing.assert_allclose(got, want, rtol=2e-6)


OF_RECORDS = """struct P { float x, y; };
__device__ inline float apart(const P *a, const P *b) { return powf(a->x - b->x, 2) + powf(a->y - b->y, 2); }
__device__ float third(float a) { if (a < 1) return 0.5f; else return pow(a, 3); }
__global__"""


def test_a_power_that_a_function_returns_is_a_product_too_and_none_is_left(subject_from, runner) -> None:
    body = "third(a) + apart(&p, &q)"
    points = "float a = x[i]; P p = {a, 1}, q = {2, a};"
    text = TEXT.replace("__global__", OF_RECORDS).replace("float a = x[i];", points)
    subject = subject_from(text.replace("BODY", body))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert "return fsr_power<2>((float)(a->x - b->x)) + fsr_power<2>((float)(a->y - b->y));" in changed.source
    assert "else return fsr_power<3>(a);" in changed.source
    assert not list(ACTION.moves(replace(subject, candidate=changed)))
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, changed))
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_powers_of_powers_are_told_by_the_same_function(subject_from, runner) -> None:
    subject = subject_from(TEXT.replace("BODY", "pow(pow(a, 2), 3)"))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert changed.source.count("fsr_power(T x)") == 1
    assert "fsr_power<3>(fsr_power<2>(a))" in changed.source
    assert not list(ACTION.moves(replace(subject, candidate=changed)))
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, changed))
    np.testing.assert_allclose(got, want, rtol=2e-6)


@pytest.mark.parametrize(
    "body", ["pow(a, 2.7f)", "pow(a, i)", "pow(3, a)", "pow(a, 1 / 3)", "a", "pow(a, 9)", "pow(a, -9)", "t.pow(a, 2)"]
)
def test_other_powers_stay(body: str, subject_from) -> None:
    plain = TEXT.replace("pow(x - 1.0f, 2)", "x").replace("powf(s, 2.0f)", "s")
    assert not list(ACTION.moves(subject_from(plain.replace("BODY", body))))


def test_nothing_for_exact_contracts(subject_from) -> None:
    subject = subject_from(TEXT.replace("BODY", "pow(a, 2)"))
    exact = replace(subject.contract, tolerance=replace(subject.contract.tolerance, exact=True))
    assert not list(ACTION.moves(replace(subject, contract=exact)))
