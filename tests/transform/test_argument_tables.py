"""shared-tables: small buffers that data looks up are read from a block's copy; what is streamed or hidden stays."""

from __future__ import annotations

import random

import pytest

from fsr.guard.check import guard
from fsr.transform.details.shared_tables import SharedTables

ACTION = SharedTables()
SIZES = [{"n": n, "m": m} for n, m in ((1, 1), (33, 40), (200, 17), (100, 9000))]


def kernel(
    work: str, *, extent: str = '"m"', params: str = "", more: str = "", launch: str = "", shared: str = ""
) -> str:
    """A kernel that reads a table ``t``: of m numbers, or of as many as ``extent`` says."""
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// m = {{min = 1, max = 20000, timed = 512}}
// [args]
// x = {{role = "in", shape = ["n"], dtype = "int32"}}
// t = {{role = "in", shape = [{extent}], dtype = "int32"}}
// y = {{role = "out", shape = ["n"], dtype = "int32"}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
{launch or "//"}
// ///
{more}
__global__ void k(const int *__restrict__ x, {params or "const int *t"}, int *y, int n, int m)
{{
    {shared}
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    {work}
}}
"""


PLACE = "(x[at] & 1023) % m"
LOOK_UP = f"y[at] = t[{PLACE}];"
BINARY = """int lo = 0, hi = m;
    while (lo < hi) {
        int mid = (lo + hi) >> 1;
        if (t[mid] <= x[at]) lo = mid + 1; else hi = mid;
    }
    y[at] = lo;"""
OF_FUNCTIONS = """
template <typename T> __device__ T one(const T *__restrict__ own, int i) { return own[i]; }
__device__ __forceinline__ int two(const int *table, int m, int i)
{
    switch (i & 1) { case 0: i = 3; break; default: i += 2; }
    return one(table, (i & 1023) % m) + one(&table[i % m], 0) + one(table + (i & 15) % m, 0);
}
"""
BY_POINTER = """
__device__ int least(int a, const int *t, int m) { return a - t[(a & 255) % m]; }
template <typename F> __device__ int with(F f, const int *t, int a, int m) { return f(a, t, m); }
"""
LOOKED_UP = {
    "a place from memory": {"work": LOOK_UP},
    "as many as the contract says": {"work": LOOK_UP.replace("m", "256"), "extent": "256"},
    "of two dimensions": {"work": "y[at] = t[16 * (x[at] & 15) + (at & 15)];", "extent": "16, 16"},
    "as many as sizes say": {"work": LOOK_UP.replace("m", "(m + 1)"), "extent": '"m + 1"'},
    "a binary search": {"work": BINARY},
    "a look-up of a look-up": {"work": "y[at] = t[(t[(x[at] & 7) % m] & 1023) % m];"},
    "by a load of its own kind": {"work": f"y[at] = __ldg(t + {PLACE}) + __ldg(&t[{PLACE}]) * 2;"},
    "by a macro": {"work": f"y[at] = LDG(t, {PLACE});", "more": "#define LDG(p, i) __ldg((p) + (i))"},
    "a loop of the data's": {"work": "int s = 0; for (int j = 0; j < (x[at] & 7) && j < m; j++) s += t[j]; y[at] = s;"
                                      f" y[at] += *(t + {PLACE});"},
    "of no const": {"work": LOOK_UP, "params": "int *__restrict__ t"},
    "through functions": {"work": "y[at] = two(t, m, x[at] & 1023);", "more": OF_FUNCTIONS},
    "through a function that is an argument": {"work": "y[at] = with(least, t, x[at], m);", "more": BY_POINTER},
    "in a block that shares": {
        "work": "y[at] = own[threadIdx.x] + t[(own[threadIdx.x] & 63) % m];",
        "shared": "__shared__ int own[64]; own[threadIdx.x] = blockIdx.x * 64 + threadIdx.x < n ? "
               "x[blockIdx.x * 64 + threadIdx.x] : 0; __syncthreads();",
    },
}  # fmt: skip
STAYING = {
    "what is streamed": {"work": "y[at] = x[at] + t[at % 8];", "extent": "64"},
    "one place": {"work": "y[at] = x[at] + t[0];"},
    "a loop that all threads go through": {"work": "int s = 0; for (int j = 0; j < m; j++) s += t[j]; y[at] = s;"},
    "a large one": {"work": LOOK_UP, "extent": '"m", 64'},
    "records": {"work": f"y[at] = reinterpret_cast<const int2 *>(t)[{PLACE} / 2].x;", "extent": '"m + 1"'},
    "one whose address is kept": {"work": f"const int *p = t + {PLACE}; y[at] = *p;"},
    "one that moves": {"work": f"t += {PLACE}; y[at] = *t;"},
    "a load in a function": {
        "work": f"y[at] = one(t, {PLACE});", "more": "__device__ int one(const int *t, int i) { return __ldg(t + i); }",
    },
    "a load in a function, by a flag": {
        "work": f"y[at] = one(t, {PLACE});",
        "more": """#ifndef READ_ONLY
#define READ_ONLY 0
#endif
__device__ int one(const int *t, int i)
{
#if READ_ONLY
    return __ldg(t + i);
#else
    return t[i];
#endif
}""",
    },
    "a pointer that a function keeps": {
        "work": f"y[at] = one(t, {PLACE});",
        "more": "__device__ int one(const int *t, int i) { const int *p = t + i; return *p; }",
    },
    "one of two functions": {
        "work": f"y[at] = one(t, {PLACE});",
        "more": "__device__ int one(const int *t, int i) { return t[i]; }\n"
             "__device__ int one(const int *t, long i) { return __ldg(t + i); }",
    },
    "machine code": {
        "work": f'int v; asm("ld.global.nc.s32 %0, [%1];" : "=r"(v) : "l"(t + {PLACE})); y[at] = v;'
    },
    "a macro that names it": {"work": f"y[at] = AT({PLACE});", "more": "#define AT(i) __ldg(t + i)"},
}  # fmt: skip


@pytest.mark.parametrize("case", LOOKED_UP.values(), ids=LOOKED_UP)
def test_a_block_looks_up_its_own_copy(case: dict[str, str], subject_from, runner) -> None:
    _check(subject_from(kernel(**case)), runner)


@pytest.mark.parametrize("case", STAYING.values(), ids=STAYING)
def test_others_stay_where_they_are(case: dict[str, str], subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(**case))))


def test_the_launch_that_stays_gives_no_memory(subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(LOOK_UP), keep_launch=True)))
    fixed = kernel(LOOK_UP.replace("m", "256"), extent="256")
    assert list(ACTION.moves(subject_from(fixed, keep_launch=True)))


def test_a_buffer_that_may_be_the_output_stays(subject_from) -> None:
    aliased = kernel(LOOK_UP).replace("// entry", '// aliasing = [["t", "y"]]\n// entry')
    assert not list(ACTION.moves(subject_from(aliased)))


@pytest.mark.parametrize("seed", range(12))
def test_composed(seed: int, subject_from, runner) -> None:
    _check(subject_from(_composed(random.Random(seed))), runner)


def _check(subject, runner) -> None:
    moves = [m for m in ACTION.moves(subject) if dict(m.params).get("of") == "t"]
    assert moves
    changed = ACTION.apply(subject, moves[0])
    assert "t_shared" in changed.source
    assert guard(changed, subject.candidate) is None
    runner.check(subject, changed, *SIZES)


def _composed(rng: random.Random) -> str:
    """Look-ups one into another, in the kernel or in functions of functions, in tables of either kind of length."""
    length, extent = rng.choice([("m", '"m"'), ("300", "300"), ("(m + 5)", '"m + 5"'), ("128", "8, 16")])
    depth, more = rng.randint(0, 3), ""
    for level in range(depth):
        inner = f"f{level - 1}(p, i + {rng.randint(1, 9)}, m)" if level else f"p[(i & 511) % {length}]"
        type_ = rng.choice(["const int *", "const int *__restrict__ ", "const int *const "])
        more += f"__device__ int f{level}({type_}p, int i, int m) {{ return {inner} + {rng.randint(0, 3)}; }}\n"
    value = "x[at]"
    for _ in range(rng.randint(1, 3)):
        index = f"(({value}) & {rng.choice([7, 63, 1023])}) % {length}"
        ways = [f"t[{index}]", f"*(t + {index})", f"__ldg(&t[{index}])"]
        ways += [f"f{depth - 1}(t, {index}, m)"] if depth else []
        value = f"{rng.choice(ways)} {rng.choice('+-^')} {rng.choice(['at', '3', 'x[at]'])}"
    inside = rng.choice([f"y[at] = {value};", f"int s = 0; for (int r = 0; r < 3; r++) s += r * ({value}); y[at] = s;"])
    return kernel(inside, extent=extent, more=more)
