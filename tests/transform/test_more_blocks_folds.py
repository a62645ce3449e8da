"""more-blocks where turns add atomically, or gather in variables that are added afterwards: turns go to other blocks,
or blocks to another grid, only where each step behind the turns is the same for any share of them."""

from __future__ import annotations

import pytest

from fsr.transform.turns.action import MoreBlocks

SIZES = [{"b": 1, "n": 1, "c": 1}, {"b": 3, "n": 700, "c": 3}, {"b": 2, "n": 5000, "c": 2}]


def contract(body: str, *, grid: str = '"b"', block: str = "128", head: str = "", more: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// b = {{min = 1, max = 16, timed = 4}}
// n = {{min = 1, max = 65536, timed = 32768}}
// c = {{min = 1, max = 32, timed = 16}}
// [args]
// x = {{role = "in", shape = ["b", "c", "n"]}}
// at = {{role = "in", shape = ["b", "n"], low = 0, high = 4}}
// sums = {{role = "inout", shape = ["b", "c", 16]}}
// hits = {{role = "inout", shape = ["b", 16]}}
// n = {{value = "n"}}
// c = {{value = "c"}}
// [launch]
// grid = {grid}
// block = {block}
{more}// ///
{head}
__global__ void k(const float *x, const int *at, float *sums, unsigned int *hits, int n, int c)
{{
{body}
}}
"""


SCATTER = """
    const int *mine = at + blockIdx.x * n;
    float *out = sums + blockIdx.x * c * 16;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int to = mine[i] & 15;
        for (int j = 0; j < c; ++j) atomicAdd(out + j * 16 + to, x[(blockIdx.x * c + j) * n + i]);
        atomicMax(&hits[blockIdx.x * 16 + to], (unsigned int)i);
    }
"""
WHILE = """
    int i = threadIdx.x;
    while (i < n) {
        atomicAdd(&sums[blockIdx.x * c * 16 + (at[blockIdx.x * n + i] & 15)], 1.0f);
        i += blockDim.x;
    }
"""
MACRO = WHILE.replace("&sums[blockIdx.x * c * 16 + (at[blockIdx.x * n + i] & 15)]",
                      "&SLOT(sums, at[blockIdx.x * n + i] & 15)")  # fmt: skip
TREE = """
    __shared__ float part[128];
    float own = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) own += x[blockIdx.x * c * n + i];
    part[threadIdx.x] = own;
    __syncthreads();
    for (int s = 64; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&sums[blockIdx.x * c * 16], part[0]);
"""
GROUPS = """
    unsigned int own[16] = {0}, top = 0u;
    float sum = 0.0f;
    const unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        own[at[i] & 15]++;
        sum += x[i];
        top = max(top, i);
    }
    for (int g = 0; g < 16; ++g) if (own[g] != 0) atomicAdd(&hits[g], own[g]);
    atomicAdd(sums, sum);
    atomicMax(&hits[15], top);
"""
GROUPS = GROUPS.replace("atomicMax(&hits[15], top);", "")  # one operation on one buffer
BINS = """
    __shared__ unsigned int own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0u;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[at[i] & 15], 2u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(hits + threadIdx.x, own[threadIdx.x]);
"""
COLUMNS = """
    float own = 0.0f;
    for (int r = blockIdx.x; r < n / 16; r += gridDim.x) own += x[r * 16 + threadIdx.x];
    atomicAdd(sums + threadIdx.x, own);
"""
MAP = """
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < b16(c); i += gridDim.x * blockDim.x) sums[i] += 1.0f;
""".replace("b16(c)", "c * 16")
OWN = """
__device__ unsigned long atomicAdd(unsigned long *address, unsigned long value)
{
    if (sizeof(unsigned long) == sizeof(unsigned long long))
        return atomicAdd(reinterpret_cast<unsigned long long *>(address), value);
    else return 0;
}
"""
GUARDED = """
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    if (first >= n) return;
    unsigned int own = 0u;
    for (int i = first; i < n; i += gridDim.x * blockDim.x) own += at[i] & 3;
    atomicAdd(hits, own);
"""
WRAPPED = GUARDED.replace("if (first >= n) return;", "if (first < n) {") + "    }\n"
SEGMENT = """
    const int first = (at[blockIdx.x] & 7) * 8, last = min(first + 500, n);
    float own = 0.0f;
    for (int i = first + threadIdx.x; i < last; i += 128) own += x[i];
    for (int d = 16; d; d >>= 1) own += __shfl_xor_sync(~0u, own, d);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[blockIdx.x], own);
"""
FEW = "min(ceil_div(n, 16384), 4)"
SHARED = {
    "scatter": contract(SCATTER),
    "while": contract(WHILE),
    "macro": contract(MACRO, head="#define SLOT(base, to) (base)[(to)]\n"),
    "tree": contract(TREE),
    "segment": contract(SEGMENT),
}
GRIDS = {
    "groups": contract(GROUPS, grid=f'"{FEW}"'),
    "bins": contract(BINS, grid="3"),
    "columns": contract(COLUMNS, grid="2", block="16"),
    "map": contract(MAP, grid="1", block="32"),
    "guarded": contract(GUARDED, grid="3"),
    "wrapped": contract(WRAPPED, grid="3"),
}


@pytest.mark.parametrize("name", [*SHARED, *GRIDS])
def test_each_turn_is_done_once(name: str, subject_from, runner) -> None:
    subject, action = subject_from({**SHARED, **GRIDS}[name]), MoreBlocks()
    moves = list(action.moves(subject))
    assert any(("parts" if name in SHARED else "blocks") in dict(m.params) for m in moves)
    for move in moves[:: max(1, len(moves) // 4)]:
        runner.check(subject, action.apply(subject, move), *SIZES)


def test_an_inner_loop_is_shared_too(subject_from, runner) -> None:
    subject, action = (
        subject_from(
            contract(SCATTER.replace("atomicMax", "// ")),
        ),
        MoreBlocks(),
    )
    inner = [m for m in action.moves(subject) if m.region == "loop:j"]
    assert inner
    changed = action.apply(subject, inner[1])
    assert changed.plan.launches[0].grid == ("b", "1", "4")
    runner.check(subject, changed, *SIZES)


def test_a_grid_never_gets_fewer_blocks(subject_from) -> None:
    subject, action = subject_from(GRIDS["groups"]), MoreBlocks()
    changed = action.apply(subject, next(action.moves(subject)))
    assert changed.plan.launches[0].grid[0].startswith(f"max({FEW}, ")
    assert changed.source == subject.candidate.source


def test_sums_of_floats_keep_their_order_where_results_are_exact(subject_from) -> None:
    exact = "// [tolerance]\n// exact = true\n"
    for body, grid in ((SCATTER, '"b"'), (TREE, '"b"'), (GROUPS, f'"{FEW}"')):
        assert not list(MoreBlocks().moves(subject_from(contract(body, grid=grid, more=exact))))
    assert list(MoreBlocks().moves(subject_from(contract(BINS, grid="3", more=exact))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("atomicMax(&hits[blockIdx.x * 16 + to], (unsigned int)i)", "atomicExch(&hits[to], (unsigned int)i)"),
        ("atomicMax(&hits[blockIdx.x * 16 + to], (unsigned int)i)", "hits[blockIdx.x * 16 + to] = i"),
        ("atomicMax(&hits[blockIdx.x * 16 + to], (unsigned int)i)",
         "if (atomicAdd(&hits[to], 1u) == 0u) atomicAdd(out, 1.0f)"),
        ("atomicMax(&hits[blockIdx.x * 16 + to], (unsigned int)i)", "atomicMax(hits, 1u); atomicMin(hits, 2u)"),
        ("mine[i] & 15;", "(mine[i] + (int)hits[0]) & 15;"),
        ("x[(blockIdx.x * c + j) * n + i]);", "out[0]);"),
        ("for (int i =", "float s = 0.0f; for (int i ="),
        ("const int *mine", "atomicAdd(hits, 1u); const int *mine"),
        ("const int *mine", "if (hits[0] > 3u) return; const int *mine"),
    ],
)  # fmt: skip
def test_turns_stay_where_their_order_or_number_shows(old: str, new: str, subject_from) -> None:
    text = SCATTER
    if "float s" in new:
        text = text.replace("const int to = mine[i] & 15;", "const int to = (mine[i] + (int)s) & 15; s += 1.0f;")
    assert old in text
    assert not list(MoreBlocks().moves(subject_from(contract(text.replace(old, new)))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum = 0.0f", "sum = 1.0f"),
        ("sum += x[i];", "sum = sum * 0.5f + x[i];"),
        ("sum += x[i];", "if (sum < 3.0f) sum += x[i];"),
        ("own[at[i] & 15]++;", "own[at[i] & 15]++; own[own[0] & 15]++;"),
        ("own[at[i] & 15]++;", "own[at[i] & 15]++; own[3] = 2u;"),
        ("own[at[i] & 15]++;", "own[at[i] & 15]++; own[3] *= 2u;"),
        ("if (own[g] != 0)", "if (own[g] > 2)"),
        ("if (own[g] != 0)", "if (gridDim.x > 1)"),
        ("atomicAdd(sums, sum);", "atomicAdd(sums, sum * sum);"),
        ("atomicAdd(sums, sum);", "sums[threadIdx.x] = sum;"),
        ("atomicAdd(sums, sum);", "atomicAdd(sums + blockIdx.x, sum);"),
        ("atomicAdd(sums, sum);", "atomicAdd(sums, sum); atomicAdd(hits, 1u);"),
        ("atomicAdd(sums, sum);", "atomicMax((int *)sums, (int)sum);"),
        ("sum += x[i];", "sum += x[i] + blockIdx.x;"),
        ("sum += x[i];", "sum += x[i] / gridDim.x;"),
        ("i < n;", "i < n / gridDim.x;"),
        ("i += stride", "i += stride + 1"),
        ("i = blockIdx.x * blockDim.x + threadIdx.x", "i = threadIdx.x"),
        ("i < n;", "i < hits[0];"),
        ("unsigned int i =", "unsigned short i ="),
    ],
)
def test_a_grid_stays_where_something_else_knows_of_it(old: str, new: str, subject_from) -> None:
    assert old in GROUPS
    text = contract(GROUPS.replace(old, new), grid=f'"{FEW}"')
    assert not [m for m in MoreBlocks().moves(subject_from(text)) if "blocks" in dict(m.params)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("first >= n", "first >= n / 2"),
        ("first >= n", "first > n"),
        ("first >= n", "first == 0"),
        ("i < n;", "i < n - 1;"),
        ("unsigned int own = 0u;", "unsigned int own = 0u; __syncthreads();"),
        ("return;", "{ atomicAdd(hits + 1, 1u); return; }"),
    ],
)
def test_a_guard_that_is_not_the_loops_tells_blocks_apart(old: str, new: str, subject_from) -> None:
    assert old in GUARDED
    assert not list(MoreBlocks().moves(subject_from(contract(GUARDED.replace(old, new), grid="3"))))


def wide(head: str) -> str:
    """Groups whose counts are of a type that CUDA has no atomic addition for."""
    text = contract(GROUPS.replace("unsigned int own[16] = {0}, top", "unsigned long own[16] = {0}; unsigned int top"),
                    grid=f'"{FEW}"', head=head)  # fmt: skip
    return text.replace("unsigned int *hits", "unsigned long *hits")


def test_an_overload_that_hands_on_is_the_atomic_it_calls(subject_from, runner) -> None:
    subject, action = subject_from(wide(OWN)), MoreBlocks()
    moves = list(action.moves(subject))
    assert moves
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)


def test_a_narrow_count_may_not_wrap_later(subject_from) -> None:
    text = wide(OWN).replace("unsigned long own[16] = {0}; unsigned int top", "unsigned int own[16] = {0}, top")
    assert not list(MoreBlocks().moves(subject_from(text)))
