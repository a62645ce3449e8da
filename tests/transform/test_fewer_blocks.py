"""fewer-blocks: several blocks' points folded by each thread before the block's fold, in whatever form that is."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.records import ScalarArgument
from fsr.transform.fewer.action import FewerBlocks
from fsr.transform.registry import all_actions

ACTION = FewerBlocks()
SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (63, 2), (64, 3), (1000, 5), (4099, 1)]]
HEAD = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4194304, timed = 1048576}
// m = {min = 1, max = 64, timed = 64}
// [args]
// x = {dtype = "TYPE", role = "in", shape = ["m", "n"]}
// y = {dtype = "TYPE", role = "inout", shape = ["m", "n"]}
// to = {dtype = "TYPE", role = "inout", shape = ["66"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = GRID
// block = BLOCK
// shared_bytes = SHARED
// [tolerance]
// EXACT
// ///
"""
START = "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;"
TREE = """for (int w = 32; w > 0; w /= 2) {
        if (t < w) s[t] += s[t + w];
        __syncthreads();
    }"""
LANES = "for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(~0u, v, d);"
POINT = "T v = 0; if (i < n) { v = x[i] * x[i]; y[i] += v; }"


def kernel(body: str, *, before: str = "", type_: str = "float", **launch: str) -> str:
    head = HEAD.replace("GRID", launch.get("grid", '"ceil_div(n, 64)"')).replace("BLOCK", launch.get("block", "64"))
    head = head.replace("SHARED", launch.get("shared", "0")).replace("EXACT", launch.get("exact", ""))
    types = {"float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32"}
    text = f"typedef {type_} T;\n{before}\n__global__ void k(const T *x, T *y, T *to, int n, int m) {{\n{body}\n}}\n"
    return head.replace("TYPE", types[type_]) + text


ADD_UP = f"""
__device__ void add_up(T v, int t, T *s, T *to) {{
    s[t] = v;
    __syncthreads();
    {TREE}
    if (t == 0) atomicAdd(to, s[0]);
}}
__device__ T in_warps(T v) {{
    static __shared__ T held[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    {LANES}
    if (lane == 0) held[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? held[lane] : T(0);
    if (warp == 0) {{ {LANES} }}
    return v;
}}
__device__ static float atomicMax(float *address, float val) {{
    int *bits = (int *)address;
    int old = *bits, seen;
    do {{
        seen = old;
        old = ::atomicCAS(bits, seen, __float_as_int(fmaxf(val, __int_as_float(seen))));
    }} while (seen != old);
    return __int_as_float(old);
}}
"""
SHARED = "__shared__ T s[64];"
KERNELS = {
    "a tree": f"{SHARED} {START} {POINT} s[t] = v; __syncthreads(); {TREE} if (t == 0) atomicAdd(&to[3], s[0]);",
    "elements of shared memory": f"""{SHARED} {START} s[t] = 0; if (i < n) s[t] += x[i] - 1; __syncthreads(); {TREE}
    if (t == 0) atomicAdd(to, s[0] * 2);""",
    "a function": f"{SHARED} {START} {POINT} add_up(v * 2, t, s, &to[1]);",
    "a function's result": f"{START} {POINT} v = in_warps(v); if (threadIdx.x == 0) atomicAdd(to + 2, v / 4);",
    "a warp": f"{START} {POINT} {LANES} if (t % 32 == 0 && v != 0) atomicAdd(to, v);",
    "one thread": f"""{SHARED} {START} s[t] = i < n ? x[i] : T(1); __syncthreads();
    if (t == 0) {{ T all = 0; for (int j = 0; j < 64; j++) all += s[j]; atomicAdd(to, all); }}""",
    "atomics of the block": f"""__shared__ T sum_all; if (threadIdx.x == 0) sum_all = 0; __syncthreads(); {START}
    if (i < n && x[i] > 0) atomicAdd(&sum_all, x[i]);
    __syncthreads(); if (t == 0) atomicAdd(to, sum_all);""",
    "atomics of threads": f"{START} if (i >= n) return; y[i] += 1; if (x[i] > 1) atomicAdd(&to[4], x[i]);",
    "two folds": f"""{SHARED} __shared__ T r[64]; {START} {POINT} s[t] = v; r[t] = i < n ? x[i] : T(-9);
    __syncthreads();
    for (int w = 32; w > 0; w /= 2) {{
        if (t < w) {{ s[t] += s[t + w]; if (r[t] < r[t + w]) r[t] = r[t + w]; }}
        __syncthreads();
    }}
    if (t == 0) {{ atomicAdd(to, s[0]); atomicMax(&to[1], r[0]); }}""",
    "memory between": f"""T v = 0; {SHARED} {START} if (i < n && i % 3) v = x[i];
    s[t] = v; __syncthreads(); {TREE} if (t == 0) atomicAdd(to, s[0]);""",
    "a variable in between": f"""{SHARED} T v = 0; T w_ = 0; {START} if (i < n && i % 3) {{ v = x[i]; w_ += v; }}
    s[t] = v + w_; __syncthreads(); v = s[63 - t]; w_ = s[t]; __syncthreads(); {TREE}
    if (t == 0) atomicAdd(to, s[0] + 2 * w_); if (t == 1) atomicAdd(to, v);""",
    "a name used again": f"""{SHARED} int t = threadIdx.x, i; i = blockIdx.x * blockDim.x + t;
    T v = i < n ? x[i] : T(0); s[t] = v; __syncthreads(); i = blockDim.x / 2;
    while (i != 0) {{ if (t < i) s[t] += s[t + i]; __syncthreads(); i /= 2; }}
    if (t == 0) atomicAdd(to, s[0]);""",
    "a last warp": f"""{SHARED} {START} T v = i < n ? x[i] : T(0); s[t] = v; __syncthreads();
    for (i = 32; i > 16; i >>= 1) {{ if (t < i) s[t] += s[t + i]; __syncthreads(); }}
    if (t < 32) {{ v = s[t]; for (i = 16; i; i >>= 1) v += __shfl_xor_sync(~0u, v, i); }}
    if (t == 0) atomicAdd(to, v);""",
    "both in one array": f"""__shared__ T all[128]; T *s = all, *r = all + 64; {START} {POINT}
    s[t] = v; r[t] = i < n ? x[i] : T(0); __syncthreads(); {TREE}
    if (t == 0) {{ T more = 0; for (int j = 0; j < 64; j++) more += r[j];
        atomicAdd(to, s[0]); atomicAdd(to + 1, more); }}""",
    "a stride of the grid": f"""{SHARED} {START} T v = 0;
    for (int j = i; j < n; j += gridDim.x * blockDim.x) v += x[j];
    s[t] = v; __syncthreads(); {TREE} if (t == 0) atomicAdd(to, s[0]);""",
    "a table": f"""{SHARED} __shared__ T table[64]; table[threadIdx.x] = threadIdx.x; __syncthreads(); {START}
    s[t] = i < n ? x[i] * table[63 - t] : T(0); __syncthreads(); {TREE} if (t == 0) atomicAdd(to, s[0]);""",
}  # fmt: skip


def check(text: str, subject_from, runner, least: int = 3) -> list[str]:
    subject = subject_from(text)
    moves = list(ACTION.moves(subject))
    assert len(moves) >= least
    made = [ACTION.apply(subject, m) for m in moves]
    assert made == [ACTION.apply(subject, m) for m in moves]
    for one in made[-2:]:  # with a given number of blocks there is one of before for each at these sizes
        runner.check(subject, one, *SIZES)
    assert runner.faults(made[-1], subject.contract, {"n": 1000, "m": 2}) == []
    return [m.name for m in moves]


@pytest.mark.parametrize("name", KERNELS)
def test_each_thread_folds_several_points_first(name: str, subject_from, runner) -> None:
    check(kernel(KERNELS[name], before=ADD_UP), subject_from, runner)


@pytest.mark.parametrize("type_", ["int", "unsigned", "double"])
def test_whatever_is_folded(type_: str, subject_from, runner) -> None:
    exact = "" if type_ == "double" else "exact = true"
    check(kernel(KERNELS["a tree"], type_=type_, exact=exact), subject_from, runner)
    if type_ != "double":
        least = KERNELS["a tree"].replace("s[t] += s[t + w]", "s[t] = min(s[t], s[t + w])").replace("Add", "Min")
        check(kernel(least, type_=type_, exact=exact), subject_from, runner)
        bits = KERNELS["a tree"].replace("s[t] += s[t + w]", "s[t] |= s[t + w]").replace("atomicAdd", "atomicOr")
        check(kernel(bits, type_=type_, exact=exact), subject_from, runner)


def test_blocks_of_two_dimensions_and_those_of_a_batch(subject_from, runner) -> None:
    plane = f"""{SHARED} int t = threadIdx.y * 16 + threadIdx.x, i = blockIdx.x * 16 + threadIdx.x;
    int j = blockIdx.y * 4 + threadIdx.y; T v = 0;
    if (i < n && j < m) {{ v = x[j * n + i]; y[j * n + i] = v; }}
    s[t] = v; __syncthreads(); {TREE} if (t == 0) atomicAdd(to, s[0]);"""
    grid = '["n // 16 + 1", "(m + 3) // 4"]'
    check(kernel(plane, grid=grid, block="[16, 4]"), subject_from, runner)
    batch = f"""extern __shared__ T s[]; {START} int j = blockIdx.y; const T *row = x + j * n;
    s[t] = i < n ? row[i] : T(0); __syncthreads(); {TREE} if (t == 0) atomicAdd(&to[j], s[0]);"""
    text = kernel(batch, grid='["ceil_div(n, 64)", "m"]', shared='"4 * 64"')
    check(text, subject_from, runner)
    only = [ACTION.apply(subject_from(text), m) for m in ACTION.moves(subject_from(text))]
    assert {c.plan.launches[0].grid[1] for c in only} == {"m"}


def test_magnitudes_as_bits(subject_from, runner) -> None:
    text = KERNELS["a tree"].replace("s[t] += s[t + w]", "s[t] = fmaxf(s[t], s[t + w])")
    text = text.replace("atomicAdd(&to[3], s[0])", "atomicMax((int *)to, __float_as_int(s[0]))")
    check(kernel(text), subject_from, runner)
    for old, new in (("v = x[i] * x[i]", "v = x[i]"), ("T v = 0", "T v = -1")):
        assert old in text
        assert not list(ACTION.moves(subject_from(kernel(text.replace(old, new)))))


def test_it_goes_on_behind_other_moves_and_on_kernels_launched_again(subject_from, runner) -> None:
    shuffles = next(a for a in all_actions() if a.name == "shuffle-trees")
    subject = subject_from(kernel(KERNELS["a tree"]))
    before = shuffles.apply(subject, next(shuffles.moves(subject)))
    after = subject_from(kernel(KERNELS["a tree"]).split("typedef")[0] + before.source)
    move = list(ACTION.moves(after))[-1]
    runner.check(subject, ACTION.apply(after, move), *SIZES)

    text = kernel(KERNELS["a function"].replace("&to[1]", "&to[m]"), before=ADD_UP)
    launch = '// [[launch]]\n// entry = "k"\n// grid = "ceil_div(n, 64)"\n// block = 64\n'
    old = text[text.index("// [launch]\n") : text.index("// [tolerance]")]
    twice = "".join(f'{launch}// args = ["x", "y", "to", "n", "{m}"]\n' for m in (1, 2))
    text = text.replace(old, twice).replace('// entry = "k"\n// [sizes]', "// [sizes]")
    text = text.replace('// n = {value = "n"}\n// m = {value = "m"}\n', "")
    subject, one = subject_from(text), next(a for a in all_actions() if a.name == "one-launch")
    moves = [m for m in one.moves(subject) if "fewer-blocks" in m.name]
    made = one.apply(subject, moves[-1])
    assert [x.grid[0] for x in made.plan.launches] == ["ceil_div(ceil_div(n, 64), 16)"] * 2
    assert made.plan.launches[1].args[-1] == ScalarArgument("uint32", "ceil_div(n, 64)")
    runner.check(subject, made, *SIZES)


def test_few_blocks_stay_as_they_are(subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(KERNELS["a tree"], grid='"min(ceil_div(n, 64), 264)"'))))
    assert not list(ACTION.moves(subject_from(kernel(KERNELS["a tree"]), keep_launch=True)))
    assert not list(ACTION.moves(subject_from(kernel(KERNELS["a tree"], exact="exact = true"))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("atomicAdd(&to[3], s[0])", "y[0] = s[0]"),
        ("atomicAdd(&to[3], s[0])", "y[0] = atomicAdd(&to[3], s[0])"),
        ("atomicAdd(&to[3], s[0])", "atomicAdd(&to[3], s[0] + 1)"),
        ("atomicAdd(&to[3], s[0])", "atomicAdd(&to[3], s[0] * s[0])"),
        ("atomicAdd(&to[3], s[0])", "atomicAdd(&to[3], sqrtf(s[0]))"),
        ("atomicAdd(&to[3], s[0])", "atomicAdd(&to[3], (int)s[0])"),
        ("atomicAdd(&to[3], s[0])", "atomicMax((int *)to, (int)s[0])"),
        ("atomicAdd(&to[3], s[0])", "atomicAdd(&to[blockIdx.x % 4], s[0])"),
        ("atomicAdd(&to[3], s[0])", "atomicAdd(&to[3], s[0] / gridDim.x)"),
        ("atomicAdd(&to[3], s[0])", "{ atomicAdd(&to[3], s[0]); atomicAdd(&to[4], 1); }"),
        ("if (t == 0)", "if (s[0] > 3)"),
        ("if (t == 0)", "if (i == 0)"),
        ("if (t < w)", "if (t < w && i + w < n)"),
        ("s[t] += s[t + w]", "s[t] *= s[t + w]"),
        ("s[t] += s[t + w]", "s[t] += fabsf(s[t + w])"),
        ("s[t] += s[t + w]", "s[t] = fmaxf(s[t], s[t + w])"),
        ("s[t] = v;", "s[63 - i % 64] = v;"),
        ("s[t] = v;", "s[t] = v; if (i >= n) return;"),
        ("s[t] = v;", "v += __shfl_sync(~0u, x[i % n], 0); s[t] = v;"),
        ("y[i] += v;", "y[i] += to[3];"),
        ("y[i] += v;", "asm volatile(\"\");"),
    ],
)  # fmt: skip
def test_nothing_is_offered_where_it_would_show(old: str, new: str, subject_from) -> None:
    text = kernel(KERNELS["a tree"])
    assert old in text
    assert list(ACTION.moves(subject_from(text)))
    assert not list(ACTION.moves(subject_from(text.replace(old, new))))


def test_what_points_change_is_not_taken_for_the_same(subject_from, runner) -> None:
    """A variable that a function of the file gets by reference, an array, and a name that is declared once more."""
    before = "__device__ void more(T &v, T by) { v += by; }"
    body = f"""{SHARED} T v = 0, own[2] = {{0}}; {START} if (i < n) {{ more(v, x[i]); own[0] += x[i]; y[i] = own[0]; }}
    s[t] = v; __syncthreads(); {TREE} if (t == 0) atomicAdd(to, s[0]);"""
    check(kernel(body, before=before), subject_from, runner)
    hidden = f"""int at = 1; {START} if (i < n) {{ int at = i % 7; atomicAdd(&to[at], x[i]); }}
    T v = i < n ? x[i] : T(0); {LANES} if (t % 32 == 0) atomicAdd(&to[8 + at], v);"""
    assert not list(ACTION.moves(subject_from(kernel(hidden))))


PAIRS = """
// /// fsr
// entry = "pairs"
// [sizes]
// n = {min = 1, max = 4096, timed = 2048}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = ["n"], value = 0}
// [launch]
// grid = ["ceil_div(n, 64)", "ceil_div(n, 4)"]
// block = [64, 4]
// [tolerance]
// sum_length = "n"
// ///
__global__ void pairs(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n && i != j) {
        float d = x[i] - x[j];
        if (d > 0.0f) atomicAdd(&y[i], d);
    }
}
"""


def test_what_no_point_adds_to_is_left_alone(subject_from, runner) -> None:
    """A thread whose place lies behind the buffer adds nothing, not even nothing at all."""
    subject = subject_from(PAIRS)
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert "y_any = true;" in made.source
    assert "if (y_any)" in made.source
    for n in (1, 3, 63, 65, 100):
        want, got = (runner.outputs(c, subject.contract, {"n": n})["y"] for c in (subject.candidate, made))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        assert not runner.faults(made, subject.contract, {"n": n})


def test_narrow_sums_do_not_overflow(subject_from) -> None:
    text = kernel(KERNELS["a tree"], type_="unsigned", exact="exact = true")
    wide = text.replace("atomicAdd(&to[3], s[0])", "atomicAdd((unsigned long long *)to, (unsigned long long)s[0])")
    assert list(ACTION.moves(subject_from(text)))
    assert not list(ACTION.moves(subject_from(wide)))
