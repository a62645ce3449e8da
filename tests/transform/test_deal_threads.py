"""deal-threads: every thread keeps its ids whatever its neighbours are, and no move where threads need their block."""

from __future__ import annotations

import random

import pytest

from fsr.transform.launch.deal_threads import DealThreads

SIZES = [{"n": 1, "m": 1}, {"n": 5, "m": 33}, {"n": 70, "m": 7}, {"n": 64, "m": 20}]


def kernel(body: str, grid: str, block: str) -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 1024}}
// m = {{min = 1, max = 256, timed = 128}}
// [args]
// a = {{role = "in", shape = ["n", "m", 3], dtype = "int32", low = -1000, high = 1000}}
// b = {{role = "in", shape = ["n", "m"], dtype = "int32", low = 0, high = "n - 1"}}
// v = {{role = "inout", shape = ["n", "m", 3], dtype = "int32", low = -1000, high = 1000}}
// [launch]
// grid = {grid}
// block = {block}
// ///
__global__ void k(const int *a, const int *b, int *v, int n, int m)
{{
{body}
}}
"""


NEIGHBOURS = """
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, c = threadIdx.y;
    if (i >= n) return;
    int at = (b[i * m + j] + 8) % n;
    if (at == 3) return;
    atomicAdd(v + (at * m + j) * 3 + c, a[i * m * 3 + j * 3 + c]);
"""
PLANES = """
    int i = threadIdx.x + blockIdx.x * blockDim.x, c = threadIdx.y, j = blockIdx.z * 4 + threadIdx.z;
    if (i < n && j < m) v[(i * m + j) * 3 + c] = a[(i * m + j) * 3 + c] * (j + gridDim.z - gridDim.z) + blockDim.y;
"""
ROWS = """
    for (int i = blockIdx.x; i < n; i += gridDim.x)
        for (int j = threadIdx.y; j < m; j += blockDim.y)
            if (threadIdx.x < 3) v[(i * m + j) * 3 + threadIdx.x] += a[(i * m + j) * 3 + threadIdx.x];
"""
BY_NEIGHBOURS = kernel(NEIGHBOURS, '["ceil_div(n, 64)", "m"]', "[64, 3]")
BY_PLANES = kernel(PLANES, '["ceil_div(n, 32)", 1, "ceil_div(m, 4)"]', "[32, 3, 4]")


@pytest.mark.parametrize(
    ("text", "orders"), [(BY_NEIGHBOURS, {"yx"}), (BY_PLANES, {"yxz", "yzx"})], ids=["neighbours", "planes"]
)
def test_every_thread_keeps_its_ids(text, orders, subject_from, runner) -> None:
    subject, action = subject_from(text), DealThreads()
    moves = list(action.moves(subject))
    assert {m.param("order") for m in moves} == orders
    for move in moves:
        changed = action.apply(subject, move)
        (launch,) = changed.plan.launches
        assert launch.block == ("256", "1", "1")
        assert launch.grid[1:] == ("1", "1")
        runner.check(subject, changed, *SIZES)


def test_launches_that_are_composed(subject_from, runner) -> None:
    """What each axis stands for, drawn by seeds: an index over blocks and threads, over blocks alone, over threads."""
    drawn, offered = random.Random(7), 0
    for _ in range(12):
        axes, names = ["x", "y", "z"], ["i", "j", "c"]
        drawn.shuffle(names)
        grid, block, lines = ["1"] * 3, ["1"] * 3, []
        for at, (axis, name) in enumerate(zip(axes, names, strict=True)):
            extent, width = {"i": "n", "j": "m", "c": "3"}[name], drawn.choice([2, 4, 8])
            style = drawn.choice(["both", "both", "blocks", "threads"] if name == "c" else ["both", "blocks"])
            if style == "both":
                grid[at], block[at] = f"ceil_div({extent}, {width})", str(width)
                lines.append(f"int {name} = blockIdx.{axis} * {width} + threadIdx.{axis};")
            elif style == "blocks":
                grid[at] = extent
                lines.append(f"unsigned {name} = blockIdx.{axis};")
            else:
                block[at] = extent
                lines.append(f"const int {name} = threadIdx.{axis};")
        body = [*lines, "if (i >= n || j >= m || c >= 3) return;", "v[(i * m + j) * 3 + c] += a[(i * m + j) * 3 + c];"]
        quoted = [str([f"{g}" for g in part]).replace("'", '"') for part in (grid, block)]
        subject, action = subject_from(kernel("\n".join(body), *quoted)), DealThreads()
        for move in action.moves(subject):
            offered += 1
            assert str(move.param("order"))[0] == axes[names.index("c")]
            runner.check(subject, action.apply(subject, move), *SIZES[1:3])
    assert offered >= 6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int at = (b", "__syncthreads(); int at = (b"),
        ("int at = (b", "__shared__ int s; s = 0; int at = (b"),
        ("int at = (b", "__syncwarp(); int at = (b"),
        ("int at = (b", "dim3 t = threadIdx; int at = (t.z + b"),
        ("[i * m + j] + 8", "[j * n + i] + a[(c * m + j) * n + i] + a[(j * 3 + c) * n + i]"),  # memory runs along x
    ],
)
def test_no_move_where_threads_need_their_block(old: str, new: str, subject_from) -> None:
    assert old in NEIGHBOURS
    assert list(DealThreads().moves(subject_from(BY_NEIGHBOURS.replace(old, new)))) == []


def test_no_move_where_the_launch_stays_or_is_too_large(subject_from) -> None:
    assert list(DealThreads().moves(subject_from(BY_NEIGHBOURS, keep_launch=True))) == []
    large = BY_NEIGHBOURS.replace("max = 4096", "max = 40960000")
    assert list(DealThreads().moves(subject_from(large))) == []
    assert list(DealThreads().moves(subject_from(kernel(ROWS, '["n"]', '["min(m, 4)", 8]')))) == []


def test_the_axis_of_the_largest_buffers_goes_first_through_functions_of_indices(subject_from, runner) -> None:
    before = "__device__ int place(int c, int i, int j, int n, int m) { return (i * m + j) * 3 + c; }\n"
    text = kernel(
        "int c = threadIdx.y, j = blockIdx.y, i = blockIdx.x * 64 + threadIdx.x;\n"
        "if (i >= n || b[i] < 0) return;\n"
        "atomicAdd(&v[place(c, i, j, n, m)], a[place(c, i, j, n, m)]);",
        '["ceil_div(n, 64)", "m"]', "[64, 3]",
    ).replace("__global__", before + "__global__")  # fmt: skip
    subject, action = subject_from(text), DealThreads()
    moves = list(action.moves(subject))
    assert {str(m.param("order"))[0] for m in moves} == {"y"}
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)
