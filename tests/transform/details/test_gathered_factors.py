"""gather-factors: the same numbers with fewer divisions and exponentials; nothing where a factor is no such number."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from fsr.transform.details.gathered_factors import GatherFactors

ACTION = GatherFactors()
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"], dtype = "float32", low = 0.5, high = 3.0}
// y = {role = "out", shape = ["n"], dtype = "float32"}
// s = {low = 0.5, high = 2.0}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
#define WIDTH 2.5f
__device__ float bell(float x, float s) { return expf(-0.5f * x * x / (s * s)) / (s * WIDTH); }
__device__ float kept(float x, float *y) { *y = x; return expf(x); }
__global__ void k(const float *x, float *y, float s, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float a = fabsf(x[i]) + 0.5f, b = fabsf(x[n - 1 - i]) + 0.5f;
  BODY
}"""


def changed(body: str, subject_from):
    subject = subject_from(TEXT.replace("BODY", body))
    moves = list(ACTION.moves(subject))
    return subject, [ACTION.apply(subject, m) for m in moves]


def same(subject, candidate, runner) -> None:
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, candidate))
    np.testing.assert_allclose(got, want, rtol=5e-6)


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("y[i] = expf(-a) * expf(-b);", "y[i] = expf(-(a + b));"),
        ("y[i] = exp2f(a) * exp2f(b) / expf(s);", "y[i] = exp2f(a + b) * "),
        ("y[i] = exp(a) * exp(b);", "y[i] = exp(a + b);"),
        ("y[i] = pow(10.0f, a) * s / pow(10.0f, b);", "y[i] = pow(10.0f, a - b) * s;"),
        (
            "float p = powf(10, -a), q = powf(10.f, b / s); if (a < b) y[i] = q * p * p; else y[i] = s;",
            "10.f, b / s - (a + a)",
        ),
        ("float p = expf(a); float q = a; if (b > 1) q += b; y[i] = p * expf(-b) * q;", "y[i] = expf(a - b) * q;"),
        ("y[i] = expf(a) / expf(b) * s;", "y[i] = expf(a - b) * s;"),
        ("y[i] = a / s * (b / (a + 1.0f));", "y[i] = a * b / (s * (a + 1.0f));"),
        ("y[i] = a / s / b;", "y[i] = a / (s * b);"),
        ("y[i] = -a / (s / b / 3);", "y[i] = -(a * b * 3 / s);"),
        ("y[i] = 1.0f / a / b;", "y[i] = 1.0f / (a * b);"),
        (
            "y[i] = bell(a, s) * bell(b, s);",
            "y[i] = expf(-((0.5f * a * a + 0.5f * b * b) / (s * s))) / (s * WIDTH * s * WIDTH);",
        ),
        (
            "float near = expf(-a * a / s); float alike = expf(-b / s);\n  float w = near * alike; y[i] = w + w * a;",
            "float w = expf(-((a * a + b) / s));",
        ),
        ("float w = a / s; a += 1.0f; y[i] = expf(w / b) * expf(-a);", "y[i] = expf(w / b - a);"),
    ],
)
def test_products_have_one_of_each(body: str, new: str, subject_from, runner) -> None:
    subject, candidates = changed(body.replace("\\\n", "\n"), subject_from)
    assert new in candidates[0].source
    same(subject, candidates[0], runner)


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = expf(a) + expf(b);",
        "y[i] = expf(a) * b;",
        "y[i] = a / s * b;",
        "y[i] = i / 3 / n * a;",
        "y[i] = (float)(i / n / 2) * a;",
        "float t; y[i] = kept(a, &t) * kept(b, &t) * t;",
        "float w = expf(a); a = 1.0f; w += 1.0f; y[i] = w * expf(b);",
        "y[i] = a / 2.0f / 3.0f;",
    ],
)
def test_other_products_stay(body: str, subject_from) -> None:
    assert changed(body, subject_from)[1] == []


def test_a_variable_is_not_written_out_behind_a_change_of_what_it_is_made_of(subject_from, runner) -> None:
    subject, candidates = changed("float w = expf(a); a = b; y[i] = w * expf(b) * expf(a);", subject_from)
    assert "y[i] = expf(b + a) * w;" in candidates[0].source
    same(subject, candidates[0], runner)


@pytest.mark.parametrize(
    ("between", "stays"), [("float t = fabsf(b);", False), ("float t = atomicAdd(&other[i], b);", True)]
)
def test_a_read_is_not_moved_behind_an_atomic(between: str, stays: bool, subject_from, runner) -> None:
    body = f"float *other = y; y[i] = b; float w = expf(y[i] - b - a); {between} y[i] = w * expf(-b) / (a + t) / b;"
    subject, (candidate,) = changed(body, subject_from)
    assert ("float w" in candidate.source) == stays
    same(subject, candidate, runner)


def test_nothing_under_an_exact_contract(subject_from) -> None:
    subject = subject_from(TEXT.replace("BODY", "y[i] = a / s / b;"))
    exact = replace(subject.contract, tolerance=replace(subject.contract.tolerance, exact=True))
    assert list(ACTION.moves(replace(subject, contract=exact))) == []


def composed(rng: random.Random, depth: int) -> str:
    """A product of what stands in a kernel."""
    leaf = rng.choice(
        ["a", "b", "s", "2.0f", "(a + 1.0f)", "expf(-a * 0.1f / s)", "expf(-0.2f * b)", "bell(a, s)", "sqrtf(b)"]
    )
    if not depth:
        return leaf
    left, right = composed(rng, depth - 1), composed(rng, depth - rng.randint(1, depth))
    return f"{rng.choice(['', '-'])}({left}) {rng.choice('*/')} ({right})"


@pytest.mark.parametrize("seed", range(12))
def test_composed_products_keep_their_values(seed: int, subject_from, runner) -> None:
    rng = random.Random(seed)
    body = "\n".join(f"float v{n} = {composed(rng, 3)};" for n in range(3))
    use = " ".join(f"y[i] += {composed(rng, 2)} * v{n};" for n in range(3)) + " y[i] += v0 * v1;" * (seed % 2)
    subject, candidates = changed(f"{body} y[i] = 0.0f; {use}".replace("\\\n", "\n"), subject_from)
    for candidate in candidates:
        want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, candidate))
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-4 * float(np.abs(want).max()))
