"""share-loop: lanes that share a thread's loops give what it gave, in kernels of many shapes; or no move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fsr.transform.lanes.action import LANES, ShareLoop
from fsr.transform.protocol import Move, Subject

SIZES = [{"n": n, "m": m} for n, m in [(1, 0), (1, 1), (3, 5), (33, 4), (70, 37), (130, 64)]]


def kernel(
    body: str, before: str = "", *, exact: bool = False, grid: str = '"ceil_div(n, 64)"', block: str = "64",
    entry: str = "k", head: str = "__global__ void k",
) -> str:  # fmt: skip
    """A kernel over ``n`` results of rows of ``m`` elements, or of lists that begin at ``ptr[i]``."""
    tolerance = "exact = true" if exact else 'sum_length = "m"'
    return f"""
// /// fsr
// entry = "{entry}"
// [sizes]
// n = {{min = 1, max = 4096, timed = 1024}}
// m = {{min = 0, max = 4096, timed = 128}}
// [args]
// x = {{role = "in", shape = ["n", "m"]}}
// ptr = {{role = "in", dtype = "int32", shape = ["n + 1"]}}
// idx = {{role = "in", dtype = "int32", shape = ["n * m"]}}
// y = {{role = "inout", shape = ["n"]}}
// z = {{role = "inout", shape = ["n", "m"]}}
// w = {{role = "inout", dtype = "int32", shape = ["n"]}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = {grid}
// block = {block}
// [tolerance]
// {tolerance}
// ///
{before}
{head}(const float *x, const int *ptr, const int *idx, float *y, float *z, int *w, int n, int m)
{{
{body}
}}
"""


GUARD = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n"


def given(sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Lists of all lengths, and places that are there."""
    n, m = sizes["n"], sizes["m"]
    rng = np.random.default_rng(n + m)
    lengths = rng.integers(0, m + 1, size=n)
    return {"ptr": np.concatenate([[0], np.cumsum(lengths)]), "idx": rng.integers(0, n, size=n * m)}


def agree(runner, subject: Subject, moves: list[Move], sizes: list[dict[str, int]] = SIZES) -> None:
    """Every move gives what the original gives, without races."""
    for each in sizes:
        want = runner.outputs(subject.candidate, subject.contract, each, given=given(each))
        for move in moves:
            changed = ShareLoop().apply(subject, move)
            got = runner.outputs(changed, subject.contract, each, given=given(each))
            for name in want:
                np.testing.assert_allclose(got[name], want[name], 2e-4, 1e-4, err_msg=f"{move.name} {name} {each}")
    changed = ShareLoop().apply(subject, moves[0])
    told = runner.outputs(changed, subject.contract, sizes[-2], given=given(sizes[-2]), instrumented=True)
    assert [str(f) for f in told["faults"]] == []


KERNELS = {
    "lists": kernel(
        GUARD + """
    float sum = 0.0f;
    for (int e = ptr[i]; e < ptr[i + 1]; ++e)
        if (idx[e] != i) sum += (float)idx[e];
    y[i] = sum;"""
    ),
    "what prints where an index is wrong": kernel(
        GUARD + """
    for (int e = ptr[i]; e < ptr[i + 1]; ++e)
        if (idx[e] < n) atomicAdd(&w[idx[e]], 2);
        else printf("%d is no place\\n", idx[e]);"""
    ),
    "a result for a thread again and again": kernel(
        """
    const unsigned int step = blockDim.x * gridDim.x;
    for (unsigned int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += step) {
        int from = ptr[i], to = ptr[i + 1], near = 0;
        float sum = y[i];
        for (int e = from; e < to; e++) {
            if (idx[e] == (int)i) continue;
            near++;
            if (m) sum += 0.5f * x[idx[e] * m];
        }
        if (near > 2) y[i] = sum / near; else w[i] = near;
    }""",
        grid="2",
    ),
    "mean and variance": kernel(
        GUARD + """
    const float *row = x + (size_t)i * m;
    float mean = 0.f, var = 0.f;
    for (size_t j = 0; j < m; ++j) mean += row[j];
    mean /= max(m, 1);
    for (size_t j = 0; j < m; ++j) { const float d = *(row + j) - mean; var += d * d; }
    y[i] = y[i] * mean + var;
    for (int j = 0; j < m; ++j) z[i * m + j] = (row[j] - mean) * rsqrtf(var + 1e-3f);"""
    ),
    "first and last of the best": kernel(
        GUARD + """
    float best = -1e30f, least = 1e30f; int at = -1, who = -1; float with = 0.0f;
    for (int j = 0; j < m; j++) {
        float v = x[i * m + j];
        if (v > best) { best = v; at = j; with = v + j; }
        if (j != 2 && least >= v) { who = idx[i * m + j]; least = v; }
    }
    y[i] = best + with;
    w[i] = at * 1000 + who;"""
    ),
    "ties told by a second value": kernel(
        GUARD + """
    float best = -1e30f, least = 1e30f; int at = -1, who = -1, turn = -1;
    for (int j = 0; j < m; j++) {
        float v = x[i * m + j];
        int own = idx[i * m + j];
        if (v > best || (v == best && own < at)) { best = v; at = own; turn = j; }
        if ((v == least && own >= who) || least > v) { who = own; least = v; }
    }
    y[i] = best * 10 + turn + least;
    w[i] = at * 1000 + who;"""
    ),
    "sums that turns go on with": kernel(
        GUARD + """
    float all = y[i];
    int kept = 0;
    for (int j = 0; j < m; j++) {
        const float v = x[i * m + j];
        all += v;
        z[i * m + j] = all + v * 0.5f;
    }
    for (int j = 0; j < m; j++)
        if (x[i * m + j] > 0.0f) { kept += 2; atomicAdd(&w[i], kept * j); }
    y[i] = all + kept;"""
    ),
    "flags": kernel(
        GUARD + """
    bool any = false; int all = 1, mask = 0, odd = 0; unsigned int both = ~0u;
    for (int j = m - 1; j >= 0; --j) {
        int v = (int)x[i * m + j];
        if (v == 4) any = true;
        if (v < -2) all = 0;
        mask |= 1 << (v & 7); odd ^= v; both &= v;
    }
    w[i] = any + 2 * all + 4 * mask + (odd << 12) + (both & 3u);"""
    ),
    "a while loop and pointers": kernel(
        """
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        const int *end = ptr + i + 1;
        float lo = 1e30f, hi = -1e30f;
        int e = ptr[i];
        while (e < *end) { float v = x[idx[e] * m]; lo = fminf(lo, v); hi = v > hi ? v : hi; e++; }
        *(y + i) = hi - lo;
    }"""
    ),
    "a template and a function": kernel(
        """
    const int i = blockIdx.x * B + threadIdx.x;
    if (i >= n) return;
    T sum = T(1);
    for (int j = 0; j < m; j += 2) sum -= weight(x[i * m + j], (T)j);
    if (sum < T(0)) { y[i] = -sum; return; }
    y[i] = sum;""",
        "template <typename U> __device__ U half_of(U v) { return v / 2; }\n"
        "__device__ __forceinline__ float weight(float v, float j) { return v * 0.5f + j; }",
        entry="k<64, float>",
        head="template <int B, typename T>\n__global__ void k",
    ),
    "a block of two dimensions": kernel(
        """
    int i = (blockIdx.y * blockDim.y + threadIdx.y) * 16 + blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 16 && i < n) {
        float4 acc = make_float4(0.f, 0.f, 0.f, 1.f);
        for (int j = 0; j < m; j++) { acc.x += x[i * m + j]; acc.y += j; acc.w *= 1.0f; }
        y[i] = acc.x + acc.y * acc.w + acc.z;
    }""",
        grid='["1", "ceil_div(n, 64)"]',
        block="[16, 4]",
    ),
    "macros": kernel(
        """
    int i = GID;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < m; ++j) sum += SQ(AT(x, i, j));
    y[i] = sqrtf(sum);""",
        "#define GID (blockIdx.x * blockDim.x + threadIdx.x)\n#define SQ(v) ((v) * (v))\n"
        "#define AT(p, r, c) (p)[(r) * m + (c)]",
    ),
    "sums in memory": kernel(GUARD + "    for (int j = 0; j < m; ++j) y[i] += x[i * m + j];"),
    "loops in loops": kernel(
        GUARD + """
    int r = 2 + i % 2; float sum = 0.f, most = 0.f;
    for (int a = -r; a <= r; ++a)
        for (int b = -r; b <= r; ++b) {
            int p = i + a, q = b + m / 2;
            if (p < 0 || p >= n || q < 0 || q >= m) continue;
            float v = x[p * m + q];
            for (int t = 0; t < 3; t++) { if (v > 2.f) break; sum += v * (t + 1); }
            most = max(most, fabsf(v));
        }
    y[i] = sum + most;"""
    ),
    "atomics and stores of turns": kernel(
        GUARD + """
    int left = 0;
    for (int j = 0; j < m; j++) {
        float v = x[i * m + j];
        if (v > 0.f) { atomicAdd(&w[(i + j) % n], 1); left++; }
        z[i * m + j] = v * 2.f;
    }
    atomicAdd(&y[0], (float)left);"""
    ),
    "what lanes wrote is read": kernel(
        GUARD + """
    for (int t = 0; t < 3; t++) {
        float sum = 0.f;
        for (int j = 0; j < m; j++) sum += z[i * m + j];
        y[i] = sum * 0.25f;
        for (int j = 0; j < m; j++) z[i * m + j] = z[i * m + j] * 0.5f + y[i];
    }"""
    ),
    "pointers that walk": kernel(
        GUARD
        + """
    const float *a = x + (size_t)i * m;
    int e = i * m + m;
    float sum = 0.f, last = 0.f;
    for (int j = 0; j < m; ++j) { e -= 1; sum += *a * idx[e]; a += 1; last = fmaxf(last, (float)e); }
    const float *b = x;
    for (int j = 1; j < n; j++) { sum += m ? *b : 0.f; b += m; }
    y[i] = sum + last;"""
    ),
    "a place in a list": kernel(
        GUARD
        + """
    int near = 0;
    for (int j = 0; j < m; ++j) near += x[i * m + j] > 0.f;
    if (near > 1) { const int before = atomicOr(&w[i], near); y[i] = near + before; }
    else y[i] = -near;"""
    ),
    "functions that set variables": kernel(
        GUARD
        + """
    float sum = 0.f, low, high;
    ends_of(x, i, m, &low, high);
    for (int j = 0; j < m; ++j) { float v[2]; scaled(x[i * m + j], low, v); sum += v[0] - v[1] + at(x, i, j, m); }
    y[i] = sum + high;""",
        "__device__ float at(const float *p, int r, int c, int m) { return p[r * m + c]; }\n"
        "__device__ void ends_of(const float *p, int r, int m, float *low, float &high)\n"
        "{ *low = m ? at(p, r, 0, m) : 1.f; high = *low + 1.f; }\n"
        "__device__ void scaled(float v, float by, float *to) { to[0] = v * by; to[1] = v + by; }\n",
    ),
    "in whole numbers": kernel(
        GUARD + """
    long long sum = w[i]; unsigned char few = 3;
    for (long j = 0; j < (long)m; j++) { sum += idx[i * m + j]; few += j; }
    w[i] = (int)sum + few;""",
        exact=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_lanes_give_what_the_thread_gave(name: str, subject_from, runner) -> None:
    subject = subject_from(KERNELS[name])
    moves = list(ShareLoop().moves(subject))
    assert {m.param("lanes") for m in moves} == set(LANES) or name in ("loops in loops",)
    assert moves
    agree(runner, subject, moves)


PLAIN = (
    GUARD
    + """
    float sum = 0.0f;
    for (int j = 0; j < m; ++j) sum += x[i * m + j];
    y[i] = sum;
"""
)


ADD_TO = "__device__ void add_to(float *to, float v) { *to += v; }"


def names(subject: Subject) -> Iterator[str]:
    return (m.name for m in ShareLoop().moves(subject))


def test_no_move_where_results_must_be_exact_and_sums_are_not(subject_from) -> None:
    assert list(names(subject_from(kernel(PLAIN, exact=True)))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum += x[i * m + j];", "{ if (x[i * m + j] > 3.f) break; sum += x[i * m + j]; }"),
        ("sum += x[i * m + j];", "{ if (x[i * m + j] > 3.f) return; sum += x[i * m + j]; }"),
        ("sum += x[i * m + j];", "sum = sum * sum + x[i * m + j];"),  # a recurrence
        ("sum += x[i * m + j];", "{ sum += x[i * m + j]; if (j & 1) sum *= 2.f; }"),  # two ways to fold
        ("sum += x[i * m + j];", "{ sum += x[i * m + j]; m -= 1; }"),  # the end moves
        ("sum += x[i * m + j];", "{ sum += x[i * m + j]; j += (int)x[i * m]; }"),
        ("sum += x[i * m + j];", "{ sum += z[i * m + max(j - 1, 0)]; z[i * m + j] = 1.f; }"),  # of the turn before
        ("sum += x[i * m + j];", "{ sum += x[i * m + j]; y[i] = sum; }"),
        ("sum += x[i * m + j];", "{ sum += x[i * m + j]; w[idx[j]] = j; }"),  # the last one stays
        ("sum += x[i * m + j];", "add_to(&sum, x[i * m + j]);"),
        ("sum += x[i * m + j];", "sum += atomicAdd(&w[0], 1);"),  # the order shows
        ("sum += x[i * m + j];", "{ if (x[i * m + j] > sum) { sum = x[i * m + j]; w[i] = j; } }"),
        ("int j = 0; j < m; ++j", "int j = 0; j < 3; ++j"),  # too few turns
        ("int j = 0; j < m; ++j", "int j = n; j != m; ++j"),
        ("int j = 0; j < m; ++j", "unsigned j = m; j > 0; --j"),  # it would wrap
        ("int j = 0; j < m; ++j", "int j = 0 - n; j < (unsigned)m; ++j"),  # negative ones are compared as great ones
        ("for (int j = 0; j < m; ++j)", "int j; for (j = 0; j < m / 2; ++j); for (; j < m; j++)"),
        ("int j = 0; j < m; ++j", "unsigned char j = 0; j < m; ++j"),
        ("int j = 0; j < m; ++j", "int j = threadIdx.x; j < m; j += blockDim.x"),  # dealt out already
        ("float sum = 0.0f;", "__shared__ float s; s = 0.0f; float sum = s;"),
        ("float sum = 0.0f;", "__syncthreads(); float sum = 0.0f;"),
        ("float sum = 0.0f;", "float sum = __shfl_sync(0xffffffffu, 1.0f, 0);"),
        ("float sum = 0.0f;", "float sum = clock();"),
    ],
)
def test_no_move_where_turns_or_threads_depend_on_one_another(old: str, new: str, subject_from) -> None:
    assert old in PLAIN
    assert list(names(subject_from(kernel(PLAIN.replace(old, new), ADD_TO)))) == []


def test_no_move_where_the_launch_stays_or_blocks_are_no_groups(subject_from) -> None:
    assert list(names(subject_from(kernel(PLAIN)))) != []
    assert list(names(subject_from(kernel(PLAIN), keep_launch=True))) == []
    assert list(names(subject_from(kernel(PLAIN, grid='"ceil_div(n, 63)"', block="63")))) == []


def test_the_best_of_turns_that_go_down_is_not_told(subject_from) -> None:
    body = (
        GUARD
        + """
    float best = -1.0f; int at = 0;
    for (int j = m - 1; j >= 0; --j) if (x[i * m + j] > best) { best = x[i * m + j]; at = j; }
    w[i] = at;"""
    )
    assert list(names(subject_from(kernel(body)))) == []


def test_what_a_row_per_warp_does_as_well_promises_less(subject_from) -> None:
    other = PLAIN.replace("threadIdx.x;", "threadIdx.x + 16 * threadIdx.y;").replace("blockDim.x", "64")
    row = max(m.gain for m in ShareLoop().moves(subject_from(kernel(PLAIN))))
    assert row < max(m.gain for m in ShareLoop().moves(subject_from(kernel(other, block="[16, 4]"))))


def test_columns_promise_little(subject_from) -> None:
    many = {"grid": '"ceil_div(n, 64) * 512"'}
    columns = PLAIN.replace("x[i * m + j]", "x[j * n + i]")
    assert max(m.gain for m in ShareLoop().moves(subject_from(kernel(columns, **many)))) < 1.1
