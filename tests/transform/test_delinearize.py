"""delinearize: threads keep the numbers that they had whatever way people take them apart, and no move where the parts
are not the axes of a box."""

from __future__ import annotations

import random

import pytest

from fsr.transform.axes.delinearize import Delinearize

SIZES = [{"n": 1, "c": 1, "h": 1, "w": 1}, {"n": 2, "c": 3, "h": 5, "w": 33}, {"n": 3, "c": 1, "h": 17, "w": 40}]


def kernel(body: str, *, grid: str = "ceil_div(n * c * h * w, 128)", more: str = "", macros: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 8, timed = 4}}
// c = {{min = 1, max = 64, timed = 32}}
// h = {{min = 1, max = 128, timed = 64}}
// w = {{min = 1, max = 128, timed = 64}}
// [args]
// a = {{role = "in", shape = ["n", "c", "h", "w"], dtype = "int32", low = -1000, high = 1000}}
// v = {{role = "inout", shape = ["n", "c", "h", "w"], dtype = "int32", low = -1000, high = 1000}}
// count = {{value = "n * c * h * w"}}
// C = {{value = "c"}}
// H = {{value = "h"}}
// W = {{value = "w"}}
// [launch]
// grid = "{grid}"
// block = 128
// ///
{macros}
__global__ void k(const int *a, int *v, int count, int C, int H, int W)
{{
{more}{body}
}}
"""


USE = "v[((image * C + channel) * H + y) * W + x] += a[i] * (x + 3 * y + 7 * channel + 11 * image);"
ID = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= count) return;\n"
WAYS = {
    "in turn": "int d = i; int x = d % W; d /= W; int y = d % H; d /= H; int channel = d % C; d /= C; int image = d;",
    "at once": "int x = i % W, y = (i / W) % H, channel = (i / (W * H)) % C, image = i / (C * H * W);",
    "caffe": "const int x = i % W; const int y = (i / W) % H; const int channel = (i / W / H) % C; "
    "const int image = i / W / H / C;",
    "from the top": "int image = i / (C * H * W), left = i % (C * H * W); int channel = left / (H * W); "
    "int plane = left % (H * W); int y = plane / W, x = plane % W;",
    "rows": "int row = i / W, x = i % W; int y = row % H; int plane = row / H; "
    "int image = plane / C, channel = plane % C;",
    "named": "const int area = H * W; int image = i / (C * area); int channel = (i / area) % C; int y = i % area / W; "
    "int x = (int)(i % (unsigned)W);",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_take_a_number_apart(way: str, subject_from, runner) -> None:
    subject, action = subject_from(kernel(ID + WAYS[way] + USE)), Delinearize()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        changed = action.apply(subject, move)
        (launch,) = changed.plan.launches
        assert launch.grid[1] != "1"
        assert "i / W" not in changed.source
        assert "% W" not in changed.source
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)


def test_every_shape_of_blocks(subject_from, runner) -> None:
    subject, action = subject_from(kernel(ID + WAYS["caffe"] + USE)), Delinearize()
    for move in action.moves(subject):
        runner.check(subject, action.apply(subject, move), *SIZES[1:])


def test_numbers_that_are_composed(subject_from, runner) -> None:
    """How far each part is told from which, drawn by seeds: from the number, from what is left, from a part of it."""
    drawn = random.Random(11)
    for _ in range(6):
        lines, left = list[str](), "i"
        extents = [("x", "W"), ("y", "H"), ("channel", "C")]
        done = list[str]()
        for at, (name, extent) in enumerate(extents):
            whole = " * ".join(done) or "1"
            style = drawn.choice(["left", "number", "step"])
            if style == "number":
                lines.append(f"int {name} = i / ({whole}) % {extent};")
            else:
                lines.append(f"int {name} = {left} % {extent};")
            done.append(extent)
            if style == "step":
                lines.append(f"int left{at} = {left}; left{at} /= {extent};")
            else:
                lines.append(f"int left{at} = i / ({' * '.join(drawn.sample(done, len(done)))});")
            left = f"left{at}"
        lines.append(f"int image = {left};")
        subject, action = subject_from(kernel(ID + "\n".join(lines) + USE)), Delinearize()
        move = next(iter(action.moves(subject)))
        runner.check(subject, action.apply(subject, move), *SIZES[1:])


def test_loops_over_the_grid_that_no_thread_goes_through_twice(subject_from, runner) -> None:
    macro = (
        "#define EVERY(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)"
    )
    body = "EVERY(i, count) { " + WAYS["caffe"] + " if (x == 3) continue; " + USE + " }"
    subject, action = subject_from(kernel(body, macros=macro)), Delinearize()
    moves = list(action.moves(subject))
    assert moves
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)
    fewer = subject_from(kernel(body, macros=macro, grid="min(ceil_div(n * c * h * w, 128), 64)"))
    assert list(action.moves(fewer)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i % W", "i % 7"),  # not an axis of what the threads are
        ("% H", "% (H + 1)"),
        ("/ W", "/ (W - 1)"),
        ("int i =", "__shared__ int s; s = 0; int i ="),
        ("const int x", "i += 1; const int x"),
        ("% C", "% (a[0] | 1)"),
    ],
)
def test_no_move_of_what_is_no_box(old: str, new: str, subject_from, runner) -> None:
    body = ID + WAYS["caffe"] + "v[i] += x + y + channel + image;"
    assert old in body
    subject, action = subject_from(kernel(body.replace(old, new))), Delinearize()
    for move in list(action.moves(subject))[:1]:
        runner.check(subject, action.apply(subject, move), *SIZES[1:])  # what is left of it is right
    if new in ("i % 7", "__shared__ int s; s = 0; int i ="):
        assert list(action.moves(subject)) == []


def test_no_move_where_the_launch_stays_or_a_grid_is_too_large(subject_from) -> None:
    text = kernel(ID + WAYS["caffe"] + USE)
    assert list(Delinearize().moves(subject_from(text))) != []
    assert list(Delinearize().moves(subject_from(text, keep_launch=True))) == []
    assert (
        list(Delinearize().moves(subject_from(text.replace("n = {min = 1, max = 8", "n = {min = 1, max = 8000")))) == []
    )


def test_short_rows_share_an_axis(subject_from, runner) -> None:
    text = kernel(ID + WAYS["in turn"] + USE).replace(
        "w = {min = 1, max = 128, timed = 64}", "w = {min = 1, max = 40, timed = 3}"
    )
    subject, action = subject_from(text), Delinearize()
    moves = list(action.moves(subject))
    assert "h" in action.apply(subject, moves[0]).plan.launches[0].grid[0]
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)
