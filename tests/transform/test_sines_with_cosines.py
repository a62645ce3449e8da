"""sines-with-cosines: one call for both, where nothing changes the angle between them; no move anywhere else."""

from __future__ import annotations

import pytest

from fsr.transform.details.sines_with_cosines import SinesWithCosines


def kernel(body: str, *, real: str = "float", before: str = "", tolerance: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 4096}}
// [args]
// x = {{role = "in", shape = ["n"], low = -20, high = 20}}
// y = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
{tolerance}// ///
{before}
__global__ void k(const {real} *x, {real} *y, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {real} a = x[i], b = 0;
{body}
    y[i] = b;
}}
"""


PAIRS = {
    "b = sinf(a) * 2 + cosf(a);": "sincosf(a, &sine, &cosine);",
    "b = cos(a * 0.5f) - sin(a * 0.5f) * sin(a * 0.5f);": "sincosf(a * 0.5f, &sine, &cosine);",
    "b = __sinf(a); b += __cosf(a);": "__sincosf(a, &sine, &cosine);",
    "b = sinpif(a); { b += cospif(a + 1); } b += cospif(a);": "sincospif(a, &sine, &cosine);",
    "for (int t = 0; t < 3; ++t) { float c = cosf(a), s = sinf(a); b += c * s; a += s; }": "sincosf(a,",
    "a = sinf(a) + cosf(a); b = a;": "sincosf(a, &sine, &cosine);",
    "b = cosf(a); if (i > 3) b += 1; b *= sinf(a);": "sincosf(a, &sine, &cosine);",
}
NO_PAIRS = {
    "other angles": "b = sinf(a) + cosf(a + 1);",
    "it changes": "b = sinf(a); a += 1; b += cosf(a);",
    "it changes in a branch": "b = sinf(a); if (i > 3) a = 0; b += cosf(a);",
    "memory": "b = sinf(x[i]) + cosf(x[i]);",
    "a call": "b = sinf(sqrtf(a)) + cosf(sqrtf(a));",
    "one alone": "b = sinf(a) + sinf(a);",
    "a branch": "if (i > 3) { b = sinf(a); } else { b = cosf(a); }",
    "fast and not": "b = __sinf(a) + cosf(a);",
    "shared": "__shared__ float s; s = a; __syncthreads(); b = sinf(s); __syncthreads(); b += cosf(s);",
    "another name": "b = sinf(a); { float a = 2; b += cosf(a); }",
}


@pytest.mark.parametrize("body", PAIRS)
def test_both_are_asked_in_one_call(body: str, subject_from, apply_move, runner) -> None:
    subject = subject_from(kernel(body))
    changed = apply_move(SinesWithCosines(), subject, "")
    assert PAIRS[body] in changed.source
    runner.check(subject, changed, {"n": 1}, {"n": 777})


def test_doubles_have_theirs(subject_from, apply_move, runner) -> None:
    subject = subject_from(kernel("b = sin(a) / 3 + cos(a);", real="double"))
    changed = apply_move(SinesWithCosines(), subject, "")
    assert "sincos(a, &sine, &cosine);" in changed.source
    runner.check(subject, changed, {"n": 300})


@pytest.mark.parametrize("body", NO_PAIRS.values(), ids=NO_PAIRS)
def test_nothing_is_joined_that_may_differ(body: str, subject_from) -> None:
    assert not list(SinesWithCosines().moves(subject_from(kernel(body))))


def test_nothing_is_offered_under_an_exact_contract(subject_from) -> None:
    exact = kernel(next(iter(PAIRS)), tolerance="// [tolerance]\n// exact = true\n")
    assert not list(SinesWithCosines().moves(subject_from(exact)))
