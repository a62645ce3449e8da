"""Where threads go in memory: exact where their numbers decide it, at most where data do, nothing said where unsure."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.analysis.visits import visits
from fsr.source.parse import parse_kernels

THREADS = 8


def elements(body: str, helpers: str = "", **known: int) -> dict[str, set[int] | None] | None:
    """By buffer and kind of access the elements; None for those that are not known."""
    source = f"{helpers}\n__global__ void k(float *x, const int *y, int n, int s)\n{{\n{body}\n}}\n"
    ids = {"threadIdx.x": np.arange(THREADS), "blockIdx.x": 0, "blockDim.x": THREADS, "gridDim.x": 1}
    found = visits(source, parse_kernels(source)["k"], {"n": 8, "s": 1, **ids, **known}, THREADS, {})
    if found is None:
        return None
    told: dict[str, set[int] | None] = {}
    for visit in found:
        name = f"{visit.array} {visit.kind}"
        own = None if visit.offsets is None else set(visit.offsets[visit.lanes].tolist())
        before = told.get(name, set())
        told[name] = None if own is None or before is None else own | before
    return told


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("x[threadIdx.x ^ s] = 1;", {0, 1, 2, 3, 4, 5, 6, 7}),
        ("int i = threadIdx.x; if (i >= 3) return; x[i * 2] = 1;", {0, 2, 4}),
        ("unsigned i = threadIdx.x; if (i - 1 < 3u) x[i] = 1;", {1, 2, 3}),  # 0 - 1 is large
        ("int i = threadIdx.x; while (i > 1) i >>= 1; x[i] = 1;", {0, 1}),
        ("int i = threadIdx.x; for (int j = 0; j < 9; ++j) { if (j == i) break; if (j < 2) continue; x[j] = 1; }",
         {2, 3, 4, 5, 6}),
        ("long a[2]; for (int j = 0; j < 2; ++j) a[j] = threadIdx.x * 2 + j; x[a[1]] = 1;",
         set(range(1, 16, 2))),
        ("int a[2] = {threadIdx.x, 20}; x[a[1]] = 1;", {20}),
        ("float *p = x + 4; p += s; *p = 1; p[threadIdx.x & 1] = 2;", {5, 6}),
        ("int i = threadIdx.x, &j = i; j = 3; x[i] = 1;", {3}),
        ("int i = 0; i = (char)300; x[i] = 1;", {44}),
        ("x[threadIdx.x < 2 ? 5 : 6] = 1;", {5, 6}),
        ("if (s > 0 && n / s > 3) x[n / s] = 1;", {8}),
        ("unsigned long long one = 1ULL << 40; x[(one >> 38) | threadIdx.x % 2] = 1;", {4, 5}),
        ("if (y[0] > 0) return; x[1] = 1;", {1}),  # perhaps
        ("int i = 1; if (y[0] > 0) i = 1; x[i] = 1;", {1}),
        ("x[min(threadIdx.x, 2u)] = 1;", {0, 1, 2}),
    ],
)  # fmt: skip
def test_elements_are_those_that_threads_write(body: str, written: set[int]) -> None:
    assert elements(body) == {**(elements(body) or {}), "x write": written}


@pytest.mark.parametrize(
    ("helpers", "body", "written"),
    [
        ("__device__ int f(int i, int b) { if (i < b) return i; return 2 * i; }", "x[f(threadIdx.x, 4)] = 1;",
         {0, 1, 2, 3, 8, 10, 12, 14}),
        ("__device__ void f(int i, int &a, int &b) { a = i; b = i + 8; }",
         "int a, b; f(threadIdx.x % 2, a, b); x[a] = 1; x[b] = 1;", {0, 1, 8, 9}),
        ("__device__ void f(float *p) { p[1] = 1; *p = 2; }", "f(x + threadIdx.x); f(&x[20]);", {*range(9), 20, 21}),
        ("namespace a { __device__ unsigned char f(int i) { return i + 250; } }", "x[a::f(threadIdx.x)] = 1;",
         {250, 251, 252, 253, 254, 255, 0, 1}),
        ("#define AT(p, i) (p)[(i)]", "AT(x, threadIdx.x % 3) = 1;", {0, 1, 2}),
    ],
)  # fmt: skip
def test_functions_are_gone_through(helpers: str, body: str, written: set[int]) -> None:
    found = elements(body, helpers)
    assert found is not None
    assert found["x write"] == written


@pytest.mark.parametrize(
    "body",
    [
        "x[y[0]] = 1;",
        "int i = 0; if (y[0] > 0) i = 1; x[i] = 1;",
        "int i = 8; while (y[i] > 0) i -= 1; x[i] = 1;",
        "for (int j = 0; j < y[0]; ++j) x[j] = 1;",
        "for (int j = 0; j < 9; ++j) { if (y[j]) break; s = j; } x[s] = 1;",
        "float v = threadIdx.x; x[(int)v] = 1;",
        "x[n / (s - 1)] = 1;",
    ],
)
def test_what_data_decide_is_not_known(body: str) -> None:
    found = elements(body)
    assert found is not None
    assert found["x write"] is None


@pytest.mark.parametrize(
    "body",
    [
        "float4 *p = (float4 *)x; p[0].x = 1;",
        "float *p = x; if (y[0] > 0) p = (float *)y; p[0] = 1;",
        "table[threadIdx.x] = 1;",
        "float *p[2]; p[0] = x; p[s][3] = 1;",
        "View v; v.p = x + 1; v.p[threadIdx.x] = 1;",
        "View v = {x, 1}; v.p[threadIdx.x] = 1; v = View{x, 2};",
        "int i = 1; { int i = 2; x[i] = 1; } x[i] = 1;",
        "for (int s = 0; s < 3; ++s) x[s] = 1; x[s] = 1;",
        "here: x[0] = 1;",
        "__shared__ float t[8]; t[threadIdx.x] = 1;",
    ],
)
def test_nothing_is_said_where_it_is_not_sure(body: str) -> None:
    found = elements(body, "struct View { float *p; int n; };\n__device__ float table[8];")
    assert found is None or found["x other"] is None


def test_loads_by_functions_are_told_apart() -> None:
    assert elements("float a = __ldg(x + threadIdx.x % 2);") == {"x other": {0, 1}}
