"""Values in braces are assigned to members one by one, where that is the same."""

from __future__ import annotations

import pytest

from fsr.analysis.braces import with_members_set
from fsr.source.emit import emit_kernel
from fsr.source.parse import parse_kernels

SOURCE = """
struct Move { int dx; int dy; float cost; };
struct Held { int n; float d[2]; };
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
    ],
)
def test_what_is_not_the_same_stays(body: str) -> None:
    assert "{" in told(body).split("threadIdx.x;")[1].split("best;")[1].replace("{\n", "")
