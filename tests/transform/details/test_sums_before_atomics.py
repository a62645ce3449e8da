"""Atomics of a loop on one place are added up in a register; what somebody could tell stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.transform.details.promoted_atomics import SumsBeforeAtomics

ACTION = SumsBeforeAtomics()
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// m = {min = 0, max = 64, timed = 32}
// [args]
// x = {role = "in", shape = ["n"]}
// p = {role = "in", dtype = "int32", shape = ["n"], low = 0, high = "n - 1"}
// y = {role = "inout", shape = ["n"]}
// v = {role = "inout", shape = ["n", 3]}
// c = {role = "inout", dtype = "int32", shape = ["n"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n * m + 1"
// ///
"""
SIGNATURE = "__global__ void k(const float *x, const int *p, float *y, float3 *v, int *c, int n, int m)"
START = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
SIZES = ({"n": 1, "m": 0}, {"n": 70, "m": 5}, {"n": 130, "m": 33})
PLAIN = START + "if (i < n) for (int j = 0; j < m; j++) if (x[(i + j) % n] > 0.0f) atomicAdd(&y[i], x[(i + j) % n]);"


def kernel(body: str, before: str = "") -> str:
    """The text of a kernel with its contract."""
    return f"{HEAD}{before}{SIGNATURE} {{\n{body}\n}}\n"


KEPT = {
    "under conditions": (PLAIN, "y_sum += "),
    "a thread beyond the end has none": (
        START + "for (int j = 0; j < m; j++) if (i < n) atomicAdd(&y[i], x[i]);", "if (y_any) {",
    ),
    "of nested loops the outermost": (
        START + "if (i >= n) return; for (int a = 0; a < 3; a++) for (int j = 0; j < m; j++)"
        " atomicAdd(y + i, x[j % n]);",
        "for (int a = 0",
    ),
    "members": (
        START + "if (i >= n) return; for (int j = 0; j < m; j++) { float3 d = make_float3(x[j % n], 1.0f, x[i]);"
        " atomicAdd(&v[p[i]].x, d.x); atomicAdd(&v[p[i]].z, d.z); }", "v_z += static_cast<float>(d.z);",
    ),
    "the largest": (
        START + "if (i >= n) return; int k = 0; while (k < m) { atomicMax(&c[p[i]], p[k % n]); k++; }",
        "c_sum = max(c_sum, ",
    ),
    "beside atomics on places that change": (
        START + "if (i >= n) return; for (int j = 0; j < m; j++) { atomicAdd(&y[i], 1.0f);"
        " atomicAdd(&y[p[j % n]], 2.0f); }",
        "atomicAdd(&y[p[j % n]], 2.0f)",
    ),
    "in shared memory": (
        "__shared__ float s[2]; int t = threadIdx.x; if (t < 2) s[t] = 0; __syncthreads();" + START
        + "for (int j = t; j < n; j += 64) atomicAdd(&s[t % 2], x[j]); __syncthreads(); if (t < 2 && i < n)"
        " atomicAdd(&y[i], s[t]);", "s_sum += ",
    ),
    "differences": (
        START + "if (i >= n) return; for (int j = 0; j < m; j++) atomicSub(&c[p[i]], j);", "atomicSub(&c[p[i]], c_sum)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_sums_in_registers_are_the_same(name: str, subject_from, runner) -> None:
    body, told = KEPT[name]
    subject = subject_from(kernel(body))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert told in made.source
    for sizes in SIZES:
        given = {"p": np.arange(sizes["n"])[::-1] // 2}
        want, got = (runner.outputs(c, subject.contract, sizes, given=given) for c in (subject.candidate, made))
        for array in want:
            np.testing.assert_allclose(got[array], want[array], rtol=1e-4, atol=1e-4, err_msg=f"{array} {sizes}")
        seen = runner.outputs(made, subject.contract, sizes, given=given, instrumented=True)
        assert not seen["faults"].size


LEFT = {
    "its result is used": ("atomicAdd(&y[i], x[(i + j) % n])", "c[i] = (int)atomicAdd(&y[i], x[(i + j) % n])"),
    "the place changes": ("&y[i]", "&y[(i + j) % n]"),
    "it is read in the loop": ("> 0.0f", "> y[i]"),
    "another kind beside it": ("atomicAdd(&y[i], x[(i + j) % n])", "{ atomicAdd(&y[i], 1.0f); y[p[j % n]] = 2.0f; }"),
    "another operation beside it": (
        "atomicAdd(&y[i], x[(i + j) % n])", "{ atomicAdd(&c[i], 1); atomicMax(&c[p[j % n]], 3); }",
    ),
    "its place is data that is written": (
        "atomicAdd(&y[i], x[(i + j) % n])", "{ c[i] = 0; atomicAdd(&y[c[i]], 1.0f); }",
    ),
    "threads meet in the loop": ("if (x[", "__syncwarp(); if (x["),
    "it waits for others": ("if (x[", "while (*(volatile int *)c == 0) { } if (x["),
    "it leaves in the middle": ("if (x[", "if (j == 3) return; if (x["),
    "a function of the same name": ("atomicAdd(&y[i],", "atomic_add(&y[i],"),
    "no loop": ("for (int j = 0; j < m; j++)", "int j = 0;"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_somebody_could_tell_stays(name: str, subject_from) -> None:
    old, new = LEFT[name]
    assert old in PLAIN
    before = "__device__ void atomic_add(float *a, float b) { atomicAdd(a, b); }\n"
    assert list(ACTION.moves(subject_from(kernel(PLAIN, before))))
    assert not list(ACTION.moves(subject_from(kernel(PLAIN.replace(old, new), before))))


def test_contracts_decide(subject_from) -> None:
    """Floating sums come in another order; a buffer that may be another one could be read there."""
    plain = kernel(PLAIN)
    exact = plain.replace('// sum_length = "n * m + 1"', "// exact = true")
    assert exact != plain
    assert not list(ACTION.moves(subject_from(exact)))
    shared = plain.replace('// entry = "k"\n', '// entry = "k"\n// aliasing = [["x", "y"]]\n')
    assert shared != plain
    assert not list(ACTION.moves(subject_from(shared)))
