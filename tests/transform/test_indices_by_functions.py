"""Launches whose contiguous axis is another than x, the index told by functions, members and arrays by name: threads
are dealt along it, and every one does what it did."""

from __future__ import annotations

import random

import pytest

from fsr.transform.launch.deal_threads import DealThreads

FUNCTIONS = """
typedef float Pair[2];
typedef Pair Complex;
struct Three { float a, b, c; };
__device__ inline int by_extents(int i, int j, int k, dim3 n) { return i * n.y * n.z + j * n.z + k; }
__device__ inline int by_reference(const int i, int j, int k, const dim3 &n) { return (i * n.y + j) * n.z + k; }
__device__ int by_steps(int i, int j, int k, int3 n)
{
    const int plane = n.y * n.z;
    int at = i * plane;
    at += j * n.z;
    return at + k;
}
__device__ int by_place(int3 p, int3 n) { return p.z + n.z * (p.y + n.y * p.x); }
template <typename T> __device__ T of_any(T i, T j, T k, T ny, T nz) { return (i * ny + j) * nz + k; }
__device__ void wave(dim3 &w, dim3 n) { if (w.x > n.x / 2) w.x -= n.x; if (w.z > n.z / 2) w.z -= n.z; }
__device__ void scaled(float *v, int i, int j, int k, int3 n, float f)
{
    const int at = by_steps(i, j, k, n);
    v[at] *= f;
}
"""
INDICES = [
    "const int at = by_extents(i, j, k, n);",
    "const int at = by_reference(i, j, k, n);",
    "int at = by_steps(i, j, k, make_int3(n.x, n.y, n.z));",
    "int3 p = make_int3(i, j, k), m = make_int3(n.x, n.y, n.z); const int at = by_place(p, m);",
    "int3 p = {i, j, k}; const int3 m = {(int)n.x, (int)n.y, (int)n.z}; const int at = by_place(p, m);",
    "int3 p; p.x = i; p.y = j; p.z = k; const int at = (p.x * n.y + p.y) * n.z + p.z;",
    "const int at = of_any<int>(i, j, k, n.y, n.z);",
    "const int at = of_any(i, j, k, (int)n.y, (int)n.z);",
]
ELEMENTS = {
    "Complex *": ("[2]", ["v[at][0] *= f; v[at][1] -= f;", "v[at][1] = u[at][0] + f;"]),
    "float2 *": ("[2]", ["v[at].x *= f; v[at].y -= f;", "float2 e = u[at]; e.x += f; v[at] = e;"]),
    "Three *": ("[3]", ["v[at].b *= f;", "v[at].c = u[at].a + f;"]),
    "float * ": ("[3]", ["v[at * 3] *= f; v[at * 3 + 1] = f;", "v[3 * at + 2] -= u[3 * at];"]),
    "float *": (
        "",
        [
            "v[at] *= f;",
            "scaled(v, i, j, k, make_int3(n.x, n.y, n.z), f);",
            "v[at] = u[at] - f;",
            "float *one = v + at; *one *= f;",
            "float *one = v + i * n.y * n.z; one[j * n.z + k] *= f;",
        ],
    ),
}


def composed(seed: int, index: str) -> str:
    draw = random.Random(seed)
    type_, (inner, uses) = draw.choice(list(ELEMENTS.items()))
    member = "" if not inner else f", {inner[1]}"
    wide = draw.choice(["64", "32"])
    ids = draw.choice(
        [
            "int i = threadIdx.x + blockIdx.x * blockDim.x, j = blockIdx.y, k = blockIdx.z;",
            "const int i = blockIdx.x * blockDim.x + threadIdx.x; const int j = blockIdx.y; const int k = blockIdx.z;",
        ]
    )
    waves = draw.choice(["", "w.x += i; w.y += j; w.z += k; wave(w, n); f += (float)(w.x * w.x + w.z);"])
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n0 = {{min = 1, max = 256, timed = 128}}
// n1 = {{min = 1, max = 192, timed = 128}}
// n2 = {{min = 1, max = 192, timed = 128}}
// [args]
// v = {{dtype = "float32", role = "inout", shape = ["n0", "n1", "n2"{member}]}}
// u = {{dtype = "float32", role = "in", shape = ["n0", "n1", "n2"{member}]}}
// w = {{value = 1}}
// n = {{value = ["n0", "n1", "n2"]}}
// f = {{low = 1e-6, high = 1}}
// [launch]
// grid = ["ceil_div(n0, {wide})", "n1", "n2"]
// block = {wide}
// ///
{FUNCTIONS}
__global__ void k({type_}v, const {type_}u, dim3 w, dim3 n, float f)
{{
    {ids}
    if (i >= n.x) return;
    {waves}
    {index}
    {draw.choice(uses)}
}}
"""


SIZES = [{"n0": a, "n1": b, "n2": c} for a, b, c in [(1, 1, 1), (5, 3, 7), (70, 2, 9)]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_threads_are_dealt_along_the_axis_of_the_index(index, seed, subject_from, runner) -> None:
    subject, action = subject_from(composed(seed, index)), DealThreads()
    moves = list(action.moves(subject))
    assert {str(m.param("order")) for m in moves} == {"zxy", "zyx"}
    runner.check(subject, action.apply(subject, moves[seed % 2]), *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n.z + j * n.z + k;", "n.z + j * n.z + k + threadIdx.x * 0;"),
        ("i * n.y * n.z + j * n.z + k", "i + n.x * (j + n.y * k)"),
        ("i * n.y * n.z + j * n.z + k", "elsewhere(i, j, k)"),
    ],
    ids=["asks for its thread", "x is contiguous", "unknown"],
)
def test_nothing_is_dealt_where_the_index_does_not_tell(old, new, subject_from) -> None:
    text = composed(0, INDICES[0])
    assert old in text
    assert list(DealThreads().moves(subject_from(text)))
    assert not list(DealThreads().moves(subject_from(text.replace(old, new))))
