"""fuse-launches where grids differ: the grid of one launch is the larger along each axis, each step runs for its own
blocks alone, and parts of records that no two launches share need no owner."""

from __future__ import annotations

import pytest

from fsr.transform.fuse.action import FuseLaunches


def plan(sizes: str, buffers: str, launches: list[tuple[str, str, str]], code: str, block: str = "32") -> str:
    """A kernel text. ``buffers``: 'name role count' by commas; ``launches``: entry, grid and what is passed."""
    lines = ["/// fsr", f'entry = "{launches[0][0]}"', "[sizes]"]
    lines += [f"{s[0]} = {{min = {s[1:]}, max = 300, timed = 200}}" for s in sizes.split()]
    lines += ["[args]"]
    every = [one.split(None, 2) for one in buffers.split(",")]
    for name, role, count in every:
        if role != "scratch":
            lines.append(f'{name} = {{role = "{role}", dtype = "float32", shape = ["{count}"]}}')
    for name, role, count in every:
        if role == "scratch":
            lines += [f"[scratch.{name}]", 'dtype = "float32"', f'count = "{count}"']
    for entry, grid, passed in launches:
        args = ", ".join(f'"{a}"' for a in passed.split())
        lines += ["[[launch]]", f'entry = "{entry}"', f"grid = {grid}", f"block = {block}", f"args = [{args}]"]
    return "\n".join(f"// {line}" for line in [*lines, "///"]) + "\n" + code


# A lattice: each node's cost of staying and, one row fewer, of going down; by blocks' own numbers, with gridDim told.
LATTICE = plan(
    "w1 h1",
    "cost in 3 * h * w, moves inout 6 * h * w",
    [("stay", '["ceil_div(w, 32)", "h", "3"]', "cost moves w h"),
     ("down", '["ceil_div(w, 32)", "h - 1", "3"]', "cost moves w h")],
    """
__device__ __forceinline__ int place(int z, int y, int x, int w, int h) { return (z * h + y) * w + x; }
__global__ void stay(const float *cost, float *moves, int w, int h)
{
    unsigned int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= w || cost[place(z, y, 0, w, h)] > 3.0f) return;
    moves[2 * place(z, y, x, w, h)] = cost[place(z, y, x, w, h)] + gridDim.y;
}
__global__ void down(const float *cost, float *moves, int w, int h)
{
    unsigned int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= w) return;
    moves[2 * place(z, y, x, w, h) + 1] += cost[place(z, y, x, w, h)] * cost[place(z, y + 1, x, w, h)] + gridDim.y;
}
""",
)  # fmt: skip
# Either may be the larger; lengths that data tell, so that no bound is one of the grid.
EITHER = plan(
    "m0 n0",
    "a in n + m + 1, out inout 3 * (n + m + 1)",
    [("even", '"ceil_div(n, 32)"', "a out n"), ("odd", '"ceil_div(m, 32)"', "a out m")],
    """
__global__ void even(const float *a, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && a[i] < i) out[3 * (n - 1 - i)] = 2 * a[i] + gridDim.x;
}
__global__ void odd(const float *__restrict__ a, float *out, int m)
{
    const int blocks = gridDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    out[i * 3 + 4] = a[i] + blocks;
    out[i * 3 + 2] += a[m - i];
}
""",
)
# A thread's own element, handed on where the second has a thread, through scratch memory that goes.
HANDED = plan(
    "w1 h2",
    "a in h * w, t scratch h * w, b inout h * w",
    [("make", '["ceil_div(w, 32)", "h"]', "a t w"), ("take", '["ceil_div(w, 32)", "h - 1"]', "t b w"),
     ("last", '["ceil_div(w, 32)", "2"]', "a b w")],
    """
__global__ void make(const float *a, float *t, int w)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y;
    if (x < w) t[y * w + x] = 2 * a[y * w + x] + a[x];
}
__global__ void take(const float *t, float *b, int w)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    b[y * w + x] += t[y * w + x];
}
__global__ void last(const float *a, float *b, int w)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y;
    if (x < w) b[y * w + x] *= a[x] + gridDim.y;
}
""",
)  # fmt: skip
# Loops over grids of their own, of other sizes.
LOOPS = plan(
    "n1",
    "a in n, b out 2 * n",
    [("first", '"3"', "a b n"), ("second", '"5"', "a b n")],
    """
__global__ void first(const float *a, float *b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        b[2 * i] = a[i] * gridDim.x;
}
__global__ void second(const float *a, float *b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        b[2 * i + 1] = a[n - 1 - i] * gridDim.x;
}
""",
)
PLANES = [{"w": w, "h": h} for w, h in ((1, 1), (40, 1), (1, 2), (33, 3), (70, 90))]
PAIRS = ((0, 0), (0, 5), (90, 0), (30, 32), (32, 33), (7, 300), (300, 1))
EVERY = {
    "lattice": (LATTICE, PLANES),
    "either": (EITHER, [{"m": m, "n": n} for m, n in PAIRS]),
    "handed": (HANDED, [{"w": w, "h": h} for w, h in ((1, 2), (40, 2), (33, 3), (70, 90))]),
    "loops": (LOOPS, [{"n": n} for n in (1, 90, 300)]),
}  # fmt: skip


def offered(subject) -> list[str]:
    return [str(m.param("launches")) for m in FuseLaunches().moves(subject)]


@pytest.mark.parametrize("name", EVERY)
def test_each_step_runs_for_its_own_blocks(name: str, subject_from, runner) -> None:
    text, sizes = EVERY[name]
    subject, action = subject_from(text), FuseLaunches()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        made = action.apply(subject, move)
        assert len(made.plan.launches) < len(subject.candidate.plan.launches)
        runner.check(subject, made, *sizes)
        assert runner.faults(made, subject.contract, sizes[-1]) == runner.faults(
            subject.candidate, subject.contract, sizes[-1]
        )


def made_of(subject, launches: str):
    action = FuseLaunches()
    return action.apply(subject, next(m for m in action.moves(subject) if m.param("launches") == launches))


def test_the_grid_is_the_larger_one_and_a_count_is_passed(subject_from) -> None:
    made = made_of(subject_from(LATTICE), "0+1")
    (launch,) = made.plan.launches
    assert launch.grid == ("ceil_div(w, 32)", "h", "3")
    assert launch.args[-1].value == "h - 1"
    assert "    stay_thread(cost, moves, w, h);\n    if ((int)blockIdx.y < blocks_y) {\n" in made.source
    assert "+ gridDim.y" in made.source.split("void down_thread")[0]
    assert "+ blocks_y" in made.source.split("void down_thread")[1]


def test_where_either_may_be_larger_the_grid_is_what_is_more(subject_from) -> None:
    made = made_of(subject_from(EITHER), "0+1")
    assert made.plan.launches[0].grid == ("max(ceil_div(n, 32), ceil_div(m, 32))", "1", "1")
    assert made.source.count("if ((int)blockIdx.x < blocks_x") == 2


def test_what_is_handed_on_stays_in_a_register(subject_from) -> None:
    made = made_of(subject_from(HANDED), "0+1+2")
    assert made.plan.scratch == ()
    assert "float t = 0.0f;" in made.source
    assert "if ((int)blockIdx.y < 2) {" in made.source
    assert "last_thread(a, b, w, 2);" in made.source


def test_launches_of_one_grid_are_offered_without_the_others(subject_from) -> None:
    same = LATTICE.replace('"h - 1", "3"]', '"h", "3"]', 1).replace("y + 1", "y")
    third = same.replace("// ///\n", '// [[launch]]\n// entry = "stay"\n// grid = ["ceil_div(w, 32)", "h - 1", "3"]\n'
                         '// block = 32\n// args = ["cost", "moves", "w", "h"]\n// ///\n')  # fmt: skip
    assert offered(subject_from(third))[:2] == ["0+1", "0+1+2"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lattice", "w, h) + 1] +=", "w, h) + 2] +="),  # the next record's first
        ("lattice", "cost[place(z, y + 1, x, w, h)]", "moves[2 * place(z, y + 1, x, w, h)]"),
        ("lattice", "moves[2 * place(z, y, x, w, h) + 1]", "moves[3 * place(z, y, x, w, h) + 1]"),
        ("lattice", "moves[2 * place(z, y, x, w, h) + 1]", "moves[(int)(2 * (0.5f * x)) + 1]"),  # twice a half is odd
        ("lattice", "moves[2 * place(z, y, x, w, h) + 1]", "moves[place(z, y, x, w, h)]"),
        ("either", "out[i * 3 + 4]", "out[i * 3 + 3]"),
        ("either", "out[i * 3 + 4] = a[i] + blocks;", "float *o = out + 2; o[i * 3 + 4] = a[i] + blocks;"),
        ("either", "out[i * 3 + 4]", "out[i * (blocks + 3) + 4]"),
        ("handed", "b[y * w + x] += t[y * w + x];", "b[y * w + x] += t[y * w + w + x];"),  # a row that comes later
        ("handed", "b[y * w + x] += t[y * w + x];", "b[y * w + x] += t[y * w + w - 1 - x];"),
        ("handed", "b[y * w + x] += t[y * w + x];", "b[y * w + x] += t[y * (w - 1) + x];"),
        ("loops", "b[2 * i + 1] = a[n - 1 - i]", "b[2 * i] = b[2 * i]"),  # a turn in another grid is another thread's
    ],
)
def test_launches_stay_apart_where_a_thread_would_need_anothers(name: str, old: str, new: str, subject_from) -> None:
    text = EVERY[name][0]
    assert old in text
    assert not any("0+1" in run for run in offered(subject_from(text.replace(old, new))))


def test_blocks_of_other_shapes_stay_apart(subject_from) -> None:
    text = LATTICE[::-1].replace("block = 32"[::-1], "block = 64"[::-1], 1)[::-1]
    assert offered(subject_from(text)) == []


def test_a_row_and_a_column_are_no_plane_of_blocks(subject_from) -> None:
    row = LATTICE.replace('"h", "3"]', '"1", "3"]').replace('["ceil_div(w, 32)", "h - 1"', '["1", "h - 1"')
    assert offered(subject_from(row)) == []
    assert offered(subject_from(row.replace("max = 300, timed = 200", "max = 300, timed = 32"))) == ["0+1"]
