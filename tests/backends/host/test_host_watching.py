"""What a watched run finds beyond a recorded one, and that right kernels stay silent in every order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import BlockOrder, Buffer
from fsr.evaluation.orders import ORDERS
from fsr.records import OTHER_AT, Candidate, ConcreteLaunch, Image, Launch, Plan, Role, ScalarValue

ONE = ("1", "1", "1")
HEAD = "__device__ int calls;\n__constant__ float table[4] = {1, 2, 3, 4};\n"
FOUND = {
    "misaligned": "y[t] = ((const float4*)(x + 1))->y;",
    "misaligned pair": "y[t] = *(const int*)((const short*)x + 1 + 2 * t);",
    "undefined": "y[t] = 1 << (t + (int)x[0] + 20);",
    "undefined cast": "y[t] = (unsigned char)(x[t] - 100.0f);",
    "undefined ldg": "y[t] = 1; float v = __ldg(y + t); y[t] = v + 1;",
    "input-changed": "float v = x[t]; ((float*)x)[t] = 0; y[t] = v; ((float*)x)[t] = v;",
    "state": "calls = t; y[t] = 1;",
    "state static": "static int n; if (t == 0) n++; y[t] = 1;",
    "state constant": "((float*)table)[0] = 2; y[t] = 1;",
    "out-of-bounds": "__shared__ float a[32], b[32]; float* p = a; p[t] = b[t % 32] = 1; __syncthreads(); y[t] = p[t];",
}


def watched(host, body: str, order: BlockOrder = ORDERS[0]):
    source = f"{HEAD}__global__ void k(const float* x, float* y) {{\n int t = threadIdx.x;\n {body}\n}}"
    image = HostToolchain(watched=True).compile(Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),))))
    assert isinstance(image, Image), image
    buffers = [Buffer("x", np.arange(80, dtype="f4"), Role.IN), Buffer("y", np.zeros(64, "f4"), Role.OUT)]
    return host.watch(image, [ConcreteLaunch("k", (1, 1, 1), (64, 1, 1), 0, ("x", "y"))], buffers, order)


@pytest.mark.parametrize("kind", FOUND)
def test_what_is_wrong_on_a_gpu_alone_is_found(host, kind):
    faults, _ = watched(host, FOUND[kind])
    assert (kind.split()[0], 5) in {(fault.kind, fault.line) for fault in faults}


def test_a_local_that_was_never_set_is_no_zero(host):
    faults, arrays = watched(host, "float v; if (t < 60) v = x[t]; y[t] = v;")
    assert faults == ()
    assert not np.isfinite(arrays["y"][60:]).any()


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.seed)
def test_a_right_kernel_is_silent(host, order):
    body = (
        "__shared__ float s[64]; s[t] = x[t]; __syncthreads(); "
        "for (int d = 32; d; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); } y[t] = s[0] + table[t % 4] - 1;"
    )
    faults, arrays = watched(host, body, order)
    assert faults == ()
    assert (arrays["y"] == 2016 + np.arange(64) % 4).all()


@pytest.mark.parametrize("grid", [(1184, 1, 1), (1, 1184, 1), (8, 10, 1), (37, 32, 1)], ids=str)
def test_of_blocks_that_are_picked_none_runs_twice(host, grid):
    """What one adds to its own elements, a second run of it would read and write again."""
    source = (
        "__global__ void k(float* y) {\n"
        "  unsigned i = (blockIdx.y * gridDim.x + blockIdx.x) * 32 + threadIdx.x; y[i] += 1; }"
    )
    image = HostToolchain(watched=True).compile(Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),))))
    assert isinstance(image, Image), image
    buffers = [Buffer("y", np.zeros(32 * grid[0] * grid[1], "f4"), Role.INOUT)]
    order = replace(ORDERS[0], chosen=24, resident=6)
    faults, arrays = host.watch(image, [ConcreteLaunch("k", grid, (32, 1, 1), 0, ("y",))], buffers, order)
    assert faults == ()
    assert set(arrays["y"]) == {0.0, 1.0}
    assert 20 * 32 <= arrays["y"].sum() <= 24 * 32  # most groups keep their three


@pytest.mark.parametrize("blocks", [1184, 40, 3])  # 24 are picked of many, all of few, until they have done enough
@pytest.mark.parametrize("order", [replace(o, chosen=24, resident=6) for o in ORDERS], ids=lambda order: order.seed)
def test_what_a_later_launch_reads_was_written_also_by_blocks_that_are_not_watched(host, order, blocks):
    source = (
        "__global__ void make(float* kept) { unsigned i = blockIdx.x * 32 + threadIdx.x; kept[i] = i; }\n"
        "__global__ void turn(const float* kept, float* y, int n) {\n"
        "  unsigned i = blockIdx.x * 32 + threadIdx.x; y[i] = kept[n - 1 - i]; }"
    )
    plan = Plan((Launch("make", ONE, ONE, "0", ()), Launch("turn", ONE, ONE, "0", ())))
    image = HostToolchain(watched=True).compile(Candidate(source, plan))
    assert isinstance(image, Image), image
    n = 32 * blocks
    empty = np.full(n, np.nan, "f4")
    buffers = [Buffer("kept", empty, Role.OUT), Buffer("y", empty.copy(), Role.OUT)]
    launches = [
        ConcreteLaunch("make", (blocks, 1, 1), (32, 1, 1), 0, ("kept",)),
        ConcreteLaunch("turn", (blocks, 1, 1), (32, 1, 1), 0, ("kept", "y", ScalarValue("int32", n))),
    ]
    faults, arrays = host.watch(image, launches, buffers, replace(order, budget=300 if blocks < 72 else 0))
    assert faults == ()
    written = ~np.isnan(arrays["y"])
    assert 5 * 32 <= written.sum() <= 24 * 32 or blocks < 72
    assert written.any()
    assert (arrays["y"] == n - 1 - np.arange(n))[written].all()


def test_a_race_is_told_with_both_of_its_places(host):
    """Whichever of the two came first."""
    body = "__shared__ float s[64];\n s[t] = x[t];\n float v = 0;\n v = s[63 - t];\n y[t] = v;"
    places = set()
    for order in ORDERS:
        faults, _ = watched(host, body, order)
        races = [f for f in faults if f.kind == "race"]
        places |= {(f.line, int(f.detail.split(f"{OTHER_AT} ")[1].rstrip(")"))) for f in races}
    assert places == {(6, 8), (8, 6)}
