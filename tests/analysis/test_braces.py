"""Values in braces are assigned to members one by one, where that is the same."""

from __future__ import annotations

import pytest

from fsr.analysis.braces import with_members_set
from fsr.analysis.functions import functions_of
from fsr.source.emit import emit_kernel
from fsr.source.parse import parse_kernels

SOURCE = """
struct Move { int dx; int dy; float cost; };
struct Held { int n; float d[2]; };
struct One { int n; };
typedef float2 pair;
__global__ void k(Move *out, pair *p, Held *h, float *x, int n) {
  int i = threadIdx.x;
  float4 v;
  Move best;
  BODY
}
"""


def told(body: str) -> str:
    source = SOURCE.replace("BODY", body)
    return emit_kernel(with_members_set(parse_kernels(source)["k"], source))


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("out[i] = {n, i + 1, x[i]};", ["out[i].dx = n;", "out[i].dy = i + 1;", "out[i].cost = x[i];"]),
        ("p[i] = {x[i], -1.0f};", ["p[i].x = x[i];", "p[i].y = -1.0f;"]),
        ("v = {x[0], 0, fmaxf(x[1], 2.0f), 1};", ["v.x = x[0];", "v.z = fmaxf(x[1], 2.0f);", "v.w = 1;"]),
        ("best = {1, 2, 3.0f}; out[i] = best;", ["best.dx = 1;", "best.cost = 3.0f;", "out[i] = best;"]),
        ("const Move m = {n, i, x[i]}; out[i] = m;", ["Move m;", "m.dx = n;", "m.dy = i;", "m.cost = x[i];"]),
        ("if (n > 3) { out[n - i] = {n, n, 0.5f}; }", ["out[n - i].dx = n;"]),
    ],
)
def test_members_are_set_one_by_one(body: str, new: list[str]) -> None:
    found = told(body)
    assert all(line in found for line in new)
    assert "{n" not in found


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = {n, i};",  # the third is 0
        "out[i] = {out[0].dy, 1, 2.0f};",  # read after the first is set
        "v = {v.y, v.x, 0, 0};",
        "h[i] = {1, {2.0f, 3.0f}};",
        "h[i] = {1, 2.0f};",
        "out[atomicAdd(&n, 1)] = {1, 2, 3.0f};",
        "other[i] = {1, 2, 3};",
        "Move m = {n};",
        "static Move m = {n, i, 0.5f};",
        "const Move &m = {n, i, 0.5f};",
        "Move m = {n, i, m.cost};",
        "One m = {One()};",  # a copy
        "Move m[1] = {{n, i, 0.5f}};",
    ],
)
def test_what_is_not_the_same_stays(body: str) -> None:
    assert "{" in told(body).split("threadIdx.x;")[1].split("best;")[1].replace("{\n", "")


FUNCTIONS = """
struct Move { int dx; int dy; float cost; };
struct Made { Made(int); int n; };
__device__ Move plain(int a, float f) { return {a, a + 1, f > 0.5f ? f : 1.0f}; }
__device__ Move fewer(const Move &m) { const Move own = {m.dy, m.dx, m.cost}; return {own.dx}; }
__device__ Move of_memory(const Move *m, int at) { return {m[at].dy, m->dx, 0.0f}; }
__device__ Made made(int a) { return {a}; }
__device__ Move many(int a) { return {a, a, 0.0f, a}; }
__device__ Move counts(int *at) { return {atomicAdd(at, 1), 0, 0.0f}; }
__device__ Move lanes(int a) { return {__shfl_sync(~0u, a, 0), 0, 0.0f}; }
__device__ Move outside(int a) { return {a, elsewhere(a), 0.0f}; }
__device__ auto any(int a) { return {a, a, 0.0f}; }
"""


def test_functions_that_return_braces_compute_where_their_values_do() -> None:
    found = functions_of(FUNCTIONS)
    assert {"plain", "fewer"} <= found.pure
    assert "of_memory" in found.local - found.pure
    assert not {"made", "many", "outside", "any", "counts", "lanes"} & found.pure
    assert not {"outside", "lanes"} & found.local
