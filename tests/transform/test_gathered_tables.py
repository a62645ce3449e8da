"""shared-atomics where the sizes say how large a table is: the same totals at all, gathered where there is room."""

from __future__ import annotations

import pytest

from fsr.backends.cuda.compiler import cuda_toolchain
from fsr.records import Image
from fsr.transform.atomics.shared_atomics import SharedAtomics

SHARED = SharedAtomics()

MEANS = """
// /// fsr
// entry = "nearest"
// [sizes]
// nb = {min = 1, max = 4096, timed = 2048}
// k = {min = 1, max = 64, timed = 16}
// d = {min = 1, max = 64, timed = 8}
// [args]
// means = {role = "in", shape = ["k", "d"]}
// sums = {role = "inout", shape = [8, "k", "d"], value = 0}
// data = {role = "in", shape = ["256 * nb", "d"]}
// counts = {role = "inout", shape = [8, "k"], value = 0}
// nearest_of = {role = "out", shape = ["256 * nb"]}
// k = {value = "k"}
// d = {value = "d"}
// [launch]
// grid = "nb"
// block = [32, 8]
// [tolerance]
// sum_length = "256 * nb"
// ///
#include <limits.h>
__global__ void nearest(const float *means, float *sums, const float *data, unsigned *counts, unsigned *nearest_of,
                        int k, int d)
{
    unsigned id = threadIdx.x + threadIdx.y * blockDim.x + blockIdx.x * blockDim.x * blockDim.y;
    float least = 1e30f;
    int best = -1;
    for (int i = 0; i < k; ++i) {
        float distance = 0;
        for (int j = 0; j < d; ++j) {
            float off = means[i * d + j] - data[id * d + j];
            distance += off * off;
        }
        if (least > distance) { least = distance; best = i; }
    }
    if (best != -1) {
        atomicInc(&counts[threadIdx.y * k + best], INT_MAX);
        nearest_of[id] = best;
        for (int j = 0; j < d; ++j)
            ADDED
    }
}
"""
ADDED = {
    "several terms": "atomicAdd(&sums[threadIdx.y * k * d + best * d + j], data[id * d + j]);",
    "steps of a pointer": "atomicAdd(sums + threadIdx.y * k * d + best * d + j, data[id * d + j]);",
    "a pointer's own": "{ float *mine = &sums[(size_t)threadIdx.y * k * d]; float *at = mine + best * d; "
    "atomicAdd(&at[j], data[id * d + j]); }",
}
MEANS_SIZES = [{"nb": nb, "k": k, "d": d} for nb, k, d in [(1, 1, 1), (3, 16, 8), (2, 64, 64), (2, 64, 17)]]


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
def test_sums_and_counts_of_means(added: str, subject_from, runner) -> None:
    subject = subject_from(MEANS.replace("ADDED", added))
    moves = list(SHARED.moves(subject))
    assert {m.param("to") for m in moves} == {"counts", "sums", "counts+sums"}
    assert max(moves, key=lambda m: m.gain).param("to") == "counts+sums"
    assert {dict(m.params).get("blocks") for m in moves} == {None, 528, 264}
    for move in moves:
        changed = SHARED.apply(subject, move)
        runner.check(subject, changed, *MEANS_SIZES)
        if move.param("to") != "counts":
            assert "sums_held != 0" in changed.source  # too large at the largest sizes


def test_no_race_and_nothing_out_of_bounds(subject_from, runner) -> None:
    subject = subject_from(MEANS.replace("ADDED", ADDED["several terms"]))
    for move in list(SHARED.moves(subject))[:4]:
        changed = SHARED.apply(subject, move)
        for sizes in MEANS_SIZES[:3]:
            assert runner.faults(changed, subject.contract, sizes) == []


GROUPS = """
// /// fsr
// entry = "by_group"
// [sizes]
// rows = {min = 0, max = 100000, timed = 100000}
// cols = {min = 0, max = 9000, timed = 4}
// groups = {min = 1, max = 3000, timed = 100}
// [args]
// key = {role = "in", shape = ["rows"], dtype = "uint32", low = 0, high = "groups - 1"}
// x = {role = "in", shape = ["rows", "cols"]}
// least = {role = "inout", shape = ["groups"], dtype = "int32"}
// total = {role = "inout", shape = ["cols", "groups"], dtype = "DTYPE"}
// many = {role = "inout", shape = ["groups"], dtype = "int32"}
// rows = {dtype = "uint64", value = "rows"}
// cols = {dtype = "uint64", value = "cols"}
// groups = {dtype = "uint64", value = "groups"}
// [launch]
// grid = [3, "ceil_div(rows, 192)"]
// block = [16, 2, 2]
// [tolerance]
// sum_length = "rows"
// ///
__global__ void by_group(const unsigned *key, const float *x, int *least, TYPE *total, int *many, size_t rows,
                         size_t cols, size_t groups)
{
    const size_t row = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 64 + threadIdx.z * 32 + threadIdx.y * 16
                       + threadIdx.x;
    if (row >= rows) return;
    const size_t group = key[row] % groups;
    if (group == 1) return;
    for (size_t j = 0; j < cols; ++j)
        atomicAdd(total + (j * groups + group), x[row * cols + j]);
    atomicMin(&least[group], (int)row);
    atomicAdd(&many[group], 1);
}
"""
ROWS = [
    {"rows": r, "cols": c, "groups": g}
    for r, c, g in [(0, 1, 1), (70, 0, 3), (70, 3, 1), (1000, 4, 100), (300, 2, 3000)]
]


@pytest.mark.parametrize(("type_", "dtype"), [("double", "float64"), ("float", "float32")])
def test_three_tables_of_two_types_in_one_memory(type_: str, dtype: str, subject_from, runner) -> None:
    subject = subject_from(GROUPS.replace("DTYPE", dtype).replace("TYPE", type_))
    moves = [m for m in SHARED.moves(subject) if m.param("to") == "total+least+many"]
    assert [m.param("copies") for m in moves if "blocks" not in dict(m.params)] == [1, 4]
    for move in moves:
        changed = SHARED.apply(subject, move)
        assert changed.plan.launches[0].shared_bytes != "0"
        runner.check(subject, changed, *ROWS)
    assert runner.faults(SHARED.apply(subject, moves[0]), subject.contract, ROWS[3]) == []


BINS = """
// /// fsr
// entry = "bins_of"
// [sizes]
// n = {min = 0, max = 10000000, timed = 10000000}
// bins = {min = 1, max = MOST, timed = TIMED}
// [args]
// x = {role = "in", shape = ["n"], dtype = "int32"}
// out = {role = "inout", shape = ["bins"], dtype = "uint32"VALUE}
// n = {value = "n"}
// bins = {value = "bins"}
// [launch]
// grid = "ceil_div(n, 32)"
// block = 32
// [tolerance]
// exact = true
// ///
FIRST
__global__ void bins_of(const int *x, unsigned *out, int n, int bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { WORK }
}
"""


def bins_of(work: str, *, most: int = 100000, timed: int = 256, value: str = ", value = 0", first: str = "") -> str:
    return (
        BINS.replace("MOST", str(most)).replace("TIMED", str(timed)).replace("VALUE", value).replace("WORK", work)
        .replace("FIRST", first)
    )  # fmt: skip


def test_blocks_that_take_turns_add_once(subject_from, runner) -> None:
    subject = subject_from(bins_of("if (x[i] == 3) return; atomicAdd(&out[abs(x[i]) % bins], 2u);"))
    assert not list(SHARED.moves(subject))  # a thread may end within a branch
    subject = subject_from(bins_of("if (x[i] != 3) atomicAdd(&out[abs(x[i]) % bins], 2u);"))
    turns = [m for m in SHARED.moves(subject) if "blocks" in dict(m.params)]
    assert turns
    for move in turns:
        changed = SHARED.apply(subject, move)
        assert changed.plan.launches[0].grid[0] == f"min(ceil_div(n, 32), {move.param('blocks')})"
        many = 32 * (int(move.param("blocks")) + 3)
        runner.check(subject, changed, *({"n": n, "bins": b} for n, b in [(0, 1), (many, 7), (65, 9000)]))
    assert all("blocks" not in dict(m.params) for m in SHARED.moves(subject_from(waiting())))


def waiting() -> str:
    """Threads that wait for their block."""
    return bins_of("").replace("if (i < n) {  }", "__syncthreads(); if (i < n) atomicAdd(&out[x[i] & 1], 1u);")


COUNTED = {
    "no count reaches it": ("atomicInc(&out[abs(x[i]) % bins], 20000000u);", ", value = 0", True),
    "an unsigned word's all": ("atomicInc(&out[abs(x[i]) % bins], 0xffffffffu);", "", True),
    "an unsigned word's all, negated": ("for (int j = 0; j < 9; ++j) atomicInc(&out[j % bins], ~0u);", "", True),
    "down": ("atomicDec(&out[abs(x[i]) % bins], (unsigned)-1);", "", True),
    "at two places": ("atomicInc(&out[0], 0x7fffffff); atomicInc(&out[bins - 1], 20000100);", ", value = 0", True),
    "at two places, too often": ("atomicInc(out, 2147483647); atomicInc(out, 19999999);", ", value = 0", False),
    "from what it holds": ("atomicInc(&out[abs(x[i]) % bins], 20000000u);", "", False),
    "from too much": ("atomicInc(&out[abs(x[i]) % bins], 20000000u);", ", low = 0, high = 19999999", False),
    "in a loop": ("for (int j = 0; j < bins; ++j) atomicInc(&out[j], 20000000u);", ", value = 0", False),
    "beside other work": ("atomicInc(out, 20000000u); atomicAdd(out, 1u);", ", value = 0", False),
    "up to a size": ("atomicInc(&out[abs(x[i]) % bins], n);", ", value = 0", False),
    "down to nothing": ("atomicDec(&out[abs(x[i]) % bins], 20000000u);", ", value = 0", False),
}  # fmt: skip


@pytest.mark.parametrize(("work", "value", "taken"), COUNTED.values(), ids=COUNTED)
def test_counting_is_adding_where_no_count_reaches_the_limit(
    work: str, value: str, taken: bool, subject_from, runner
) -> None:
    subject = subject_from(bins_of(work, value=value))
    moves = list(SHARED.moves(subject))
    assert bool(moves) is taken
    for move in moves[:2]:
        runner.check(subject, SHARED.apply(subject, move), {"n": 1000, "bins": 7}, {"n": 70, "bins": 20000})


ADD = "atomicAdd(&out[abs(x[i]) % bins], 1u);"
LEFT = {
    "large where it is timed": bins_of(ADD, timed=10000),
    "a function of that name": bins_of(ADD, first="__device__ void atomicAdd(unsigned *p, unsigned v) { *p = v; }"),
    "a macro beside": bins_of(ADD + " ALSO;", first="#define ALSO out[0] = 3u"),
    "a macro that ends threads": bins_of("END; " + ADD, first="#define END if (x[i] == 3) return"),
    "a pointer that is read": bins_of("unsigned *own = out + 1; if (own[0] == 7u) atomicAdd(&own[x[i] & 3], 1u);"),
    "a pointer that moves": bins_of("unsigned *own = out; if (x[i] > 1) own += 1; atomicAdd(&own[x[i] & 3], 1u);"),
    "dynamic memory": bins_of("extern __shared__ int own[]; own[threadIdx.x] = i; " + ADD).replace(
        "// block = 32", "// block = 32\n// shared_bytes = 128"
    ),
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_tables_that_are_left_alone(text: str, subject_from) -> None:
    assert not list(SHARED.moves(subject_from(text)))


def test_a_launch_that_stays_has_no_memory_that_the_sizes_tell(subject_from) -> None:
    assert not list(SHARED.moves(subject_from(bins_of(ADD), keep_launch=True)))
    small = subject_from(bins_of(ADD, most=2000), keep_launch=True)
    for move in SHARED.moves(small):
        assert SHARED.apply(small, move).plan == small.candidate.plan


def test_what_is_gathered_compiles_for_the_gpu(subject_from) -> None:
    for text in (
        MEANS.replace("ADDED", ADDED["a pointer's own"]),
        GROUPS.replace("DTYPE", "float64").replace("TYPE", "double"),
    ):
        subject = subject_from(text)
        for move in list(SHARED.moves(subject))[:4]:
            built = cuda_toolchain().compile(SHARED.apply(subject, move))
            assert isinstance(built, Image), built.log
