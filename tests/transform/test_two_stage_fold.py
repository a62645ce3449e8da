"""two-stage-fold: turns that a block folds in strides are shared by many blocks, whose partial states are merged as the
author merges threads'; no move where a part of the turns would not do, or its state is no state of the fold."""

from __future__ import annotations

import pytest

from fsr.source.emit import emit_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.registry import all_actions
from fsr.transform.two_stage.action import TwoStageFold

SIZES = [{"rows": 1, "n": n} for n in (1, 31, 200, 257, 5000, 40000)]
ROWS = [{"rows": 1, "n": 3}, {"rows": 5, "n": 700}, {"rows": 3, "n": 40001}]
EXACT = "// [tolerance]\n// exact = true\n"


def contract(
    body: str, *, grid: str = "1", block: str = "256", head: str = "", more: str = "", entry: str = "k",
    real: str = "float", template: str = "",
) -> str:  # fmt: skip
    dtype = {"float": "float32", "double": "float64"}[real]
    return f"""
// /// fsr
// entry = "{entry}"
// [sizes]
// rows = {{min = 1, max = 16, timed = {4 if "rows" in grid else 1}}}
// n = {{min = 1, max = 1048576, timed = 1048576}}
// [args]
// x = {{role = "in", shape = ["rows", "n"], dtype = "{dtype}"}}
// w = {{role = "in", shape = ["n"]}}
// n = {{value = "n"}}
// out = {{role = "inout", shape = ["rows", 4], dtype = "{dtype}"}}
// at = {{role = "inout", shape = ["rows", 4]}}
// [launch]
// grid = {grid}
// block = {block}
{more}// ///
{head}
{template}__global__ void k(const {"T" if template else real} *x, const int *w, int n, {"T" if template else real} *out,
                  int *at)
{{
{body}
}}
"""


FIRST_LEAST = """
    __shared__ float s_v[256];
    __shared__ int s_i[256];
    __shared__ char s_seen[256];
    const int tid = threadIdx.x;
    float v = 1e30f;
    int place = 0;
    bool seen = false;
    for (int i = tid; i < n; i += blockDim.x) {
        const float a = x[i];
        if (w[i] == 0) continue;
        if (!seen || a < v) { v = a; place = i; seen = true; }
    }
    s_v[tid] = seen ? v : 1e30f;
    s_i[tid] = seen ? place : -1;
    s_seen[tid] = seen ? 1 : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            if (s_seen[tid + s] && (!s_seen[tid] || s_v[tid + s] < s_v[tid])) {
                s_v[tid] = s_v[tid + s];
                s_i[tid] = s_i[tid + s];
                s_seen[tid] = 1;
            }
        }
        __syncthreads();
    }
    if (tid == 0) { out[0] = s_v[0]; at[0] = s_i[0]; at[1] = s_seen[0]; }
"""
BY_SHUFFLES = """
    __shared__ float best_of[32];
    __shared__ int place_of[32];
    float best = -INFINITY;
    int place = n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const float v = x[i];
        if (v > best || (v == best && i < place)) { best = v; place = i; }
    }
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int o = 16; o > 0; o >>= 1) {
        const float other = __shfl_down_sync(0xffffffffu, best, o);
        const int its = __shfl_down_sync(0xffffffffu, place, o);
        if (other > best || (other == best && its < place)) { best = other; place = its; }
    }
    if (lane == 0) { best_of[warp] = best; place_of[warp] = place; }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int j = 1; j < blockDim.x / 32; ++j)
            if (best_of[j] > best || (best_of[j] == best && place_of[j] < place)) {
                best = best_of[j];
                place = place_of[j];
            }
        out[0] = best;
        at[0] = place;
    }
"""
WELFORD = """
    extern __shared__ float shared[];
    float *s_mean = shared, *s_m2 = shared + blockDim.x;
    int *s_n = (int *)&shared[2 * blockDim.x];
    float mean = 0.0f, m2 = 0.0f;
    int count = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        ++count;
        const float delta = x[i] - mean;
        mean += delta / count;
        m2 += delta * (x[i] - mean);
    }
    s_mean[threadIdx.x] = mean;
    s_m2[threadIdx.x] = m2;
    s_n[threadIdx.x] = count;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) {
            const int na = s_n[threadIdx.x], nb = s_n[threadIdx.x + s], both = na + nb;
            if (both > 0) {
                const float delta = s_mean[threadIdx.x + s] - s_mean[threadIdx.x];
                s_m2[threadIdx.x] += s_m2[threadIdx.x + s] + delta * delta * na * nb / both;
                s_mean[threadIdx.x] += delta * nb / both;
                s_n[threadIdx.x] = both;
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) { out[0] = s_mean[0]; out[1] = s_m2[0]; at[0] = s_n[0]; }
"""
MIN_MAX_COUNT = """
    __shared__ float lo[256], hi[256], many[256];
    float low = INFINITY, high = -INFINITY, count = 0.0f;
    int i = threadIdx.x;
    while (i < n) {
        const float v = x[blockIdx.x * n + i];
        low = fminf(low, v);
        high = v > high ? v : high;
        if (v > 0.0f) count += 1.0f;
        i += blockDim.x;
    }
    lo[threadIdx.x] = low; hi[threadIdx.x] = high; many[threadIdx.x] = count;
    __syncthreads();
    if (threadIdx.x < 128) {
        lo[threadIdx.x] = fminf(lo[threadIdx.x], lo[threadIdx.x + 128]);
        hi[threadIdx.x] = fmaxf(hi[threadIdx.x], hi[threadIdx.x + 128]);
        many[threadIdx.x] += many[threadIdx.x + 128];
    }
    __syncthreads();
    for (int s = 64; s > 0; s /= 2) {
        if (threadIdx.x < s) {
            lo[threadIdx.x] = fminf(lo[threadIdx.x], lo[threadIdx.x + s]);
            hi[threadIdx.x] = fmaxf(hi[threadIdx.x], hi[threadIdx.x + s]);
            many[threadIdx.x] += many[threadIdx.x + s];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) { out[blockIdx.x * 4] = lo[0]; out[blockIdx.x * 4 + 1] = hi[0];
                            out[blockIdx.x * 4 + 2] += many[0]; }
"""
BEST_TWO = """
    __shared__ float s1[256], s2[256];
    float b1 = 1e30f, b2 = 1e30f;
    for (int i = threadIdx.x; i < n; i += 256) {
        const float v = x[i];
        if (v < b1) { b2 = b1; b1 = v; }
        else if (v < b2) b2 = v;
    }
    s1[threadIdx.x] = b1;
    s2[threadIdx.x] = b2;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) {
            const float o1 = s1[threadIdx.x + s], o2 = s2[threadIdx.x + s];
            if (o1 < s1[threadIdx.x]) {
                s2[threadIdx.x] = fminf(s1[threadIdx.x], o2);
                s1[threadIdx.x] = o1;
            } else {
                s2[threadIdx.x] = fminf(s2[threadIdx.x], o1);
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) { out[0] = s1[0]; out[1] = s2[0]; }
"""
SOFTMAX = """
    __shared__ float s_m[256], s_d[256];
    const float *row = x + blockIdx.x * n;
    float m = -1e30f, d = 0.0f;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        const float top = fmaxf(m, row[j]);
        d = d * expf(m - top) + expf(row[j] - top);
        m = top;
    }
    s_m[threadIdx.x] = m;
    s_d[threadIdx.x] = d;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) {
            const float top = fmaxf(s_m[threadIdx.x], s_m[threadIdx.x + s]);
            s_d[threadIdx.x] = s_d[threadIdx.x] * expf(s_m[threadIdx.x] - top)
                             + s_d[threadIdx.x + s] * expf(s_m[threadIdx.x + s] - top);
            s_m[threadIdx.x] = top;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) { out[blockIdx.x * 4] = s_m[0]; out[blockIdx.x * 4 + 1] = s_d[0]; }
"""
ONE_AFTER_OTHER = """
    __shared__ float s_v[256];
    float low = INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { low = fminf(low, x[i]); sum += x[i]; }
    float mine = low;
    if (n < 0) mine = 0.0f;
    for (int o = 16; o > 0; o >>= 1) mine = fminf(mine, __shfl_down_sync(0xffffffffu, mine, o));
    if (threadIdx.x % 32 == 0) s_v[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) { for (int j = 1; j < 8; ++j) mine = fminf(mine, s_v[j]); out[0] = mine; }
    __syncthreads();
    s_v[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) s_v[threadIdx.x] += s_v[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[1] = s_v[0];
"""
CALLED = """
    float low = INFINITY;
    for (int i = threadIdx.x; i < n; i += blockDim.x) low = fminf(low, x[i]);
    low = least(low);
    if (threadIdx.x == 0) out[0] = low;
"""
LEAST = """
__device__ float least(float v)
{
    __shared__ float part[32];
    for (int o = 16; o > 0; o >>= 1) v = fminf(v, __shfl_xor_sync(0xffffffffu, v, o));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int j = 1; j < 8; ++j) v = fminf(v, part[j]);
    return v;
}
"""
PLANE = FIRST_LEAST.replace("const int tid = threadIdx.x;", "const int tid = threadIdx.y * blockDim.x + threadIdx.x;")
PLANE = PLANE.replace("+= blockDim.x", "+= blockDim.x * blockDim.y").replace("s = blockDim.x / 2", "s = 128")
ROW = FIRST_LEAST.replace("x[i]", "x[blockIdx.x * n + i]").replace("out[0]", "out[4 * blockIdx.x]")
ROW = ROW.replace("at[0]", "at[4 * blockIdx.x]").replace("at[1]", "at[4 * blockIdx.x + 1]")
FLAT_ROW = ROW.replace("int i = tid; i < n;", "int i = blockIdx.x * n + tid; i < (blockIdx.x + 1) * n;").replace(
    "x[blockIdx.x * n + i]", "x[i]").replace("w[i]", "w[i - blockIdx.x * n]")  # fmt: skip
BY_T = FIRST_LEAST.replace("float", "T").replace("1e30f", "T(1e30)")

SAME = {
    "first-least": contract(FIRST_LEAST, more=EXACT),
    "by-shuffles": contract(BY_SHUFFLES, more=EXACT),
    "min-max-count": contract(MIN_MAX_COUNT, more=EXACT, grid='"rows"'),
    "best-two": contract(BEST_TWO, more=EXACT),
    "one-after-other": contract(ONE_AFTER_OTHER),
    "plane": contract(PLANE, block="[32, 8]", more=EXACT),
    "row": contract(ROW, grid='"rows"', more=EXACT),
    "flat-row": contract(FLAT_ROW, grid='"rows"', more=EXACT),
    "wide": contract(FIRST_LEAST.replace("[256]", "[1024]"), block="1024", more=EXACT),
    "template": contract(BY_T, real="double", entry="k<double>", template="template <typename T>\n", more=EXACT),
    "unrolled": contract(FIRST_LEAST.replace("blockDim.x)", "2 * blockDim.x)"), more=EXACT),
}
CLOSE = {
    "welford": contract(WELFORD, more="// shared_bytes = 3072\n"),
    "softmax": contract(SOFTMAX, grid='"rows"'),
}


@pytest.mark.parametrize("name", SAME)
def test_results_are_the_same_ties_and_all(name: str, subject_from, runner) -> None:
    subject, action = _subject(SAME[name], subject_from), TwoStageFold()
    moves = list(action.moves(subject))
    assert [m.param("parts") for m in moves] == [8, 32, 128]
    for move in moves[::2]:
        changed = action.apply(subject, move)
        assert [launch.grid[2] for launch in changed.plan.launches] == [str(move.param("parts")), "1"]
        runner.check(subject, changed, *(ROWS if "row" in name or "count" in name else SIZES))


@pytest.mark.parametrize("name", CLOSE)
def test_sums_are_close(name: str, subject_from, close_outputs) -> None:
    subject, action = subject_from(CLOSE[name]), TwoStageFold()
    moves = list(action.moves(subject))
    assert moves
    close_outputs(subject, action.apply(subject, moves[1]), ROWS if name == "softmax" else SIZES)
    assert not list(action.moves(subject_from(CLOSE[name].replace("// ///\n\n", f"{EXACT}// ///\n\n"))))


def _subject(text: str, subject_from):
    from dataclasses import replace

    from fsr.transform.instantiated import instantiated, kernels_of

    subject = subject_from(text)
    candidate = instantiated(subject.candidate)
    return replace(subject, candidate=candidate, kernels=kernels_of(candidate.source))


def test_nothing_is_read_that_no_part_wrote(subject_from, runner) -> None:
    subject, action = subject_from(SAME["row"]), TwoStageFold()
    changed = action.apply(subject, list(action.moves(subject))[1])
    assert runner.faults(changed, subject.contract, {"rows": 2, "n": 300}) == []
    assert runner.faults(changed, subject.contract, {"rows": 2, "n": 9000}) == []


def test_functions_that_fold_are_written_out(subject_from, runner) -> None:
    subject = subject_from(contract(CALLED, head=LEAST, more=EXACT))
    action = next(a for a in all_actions() if a.name == "two-stage-fold")
    moves = list(action.moves(subject))
    assert moves
    runner.check(subject, action.apply(subject, moves[0]), *SIZES)


def test_each_launch_has_what_it_needs(subject_from) -> None:
    subject, action = subject_from(SAME["first-least"]), TwoStageFold()
    changed = action.apply(subject, next(action.moves(subject)))
    parts, merged = (emit_kernel(kernel) for kernel in parse_kernels(changed.source).values())
    assert "__shared__" not in parts
    assert "out[" not in parts
    assert "x[i]" not in merged
    assert "bool seen" not in merged
    assert [s.dtype for s in changed.plan.scratch] == ["int8", "float32", "int32"]
    assert not list(action.moves(subject_from(SAME["first-least"].replace("timed = 1048576", "timed = 4096"))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("at[1] = s_seen[0]", "at[1] = seen"),  # state read behind the fold
        ("place = i; seen", "place = i; at[2] = i; seen"),  # a turn writes
        ("const float a = x[i];", "const float a = x[i] + out[3];"),  # what the kernel writes
        ("const float a = x[i];", "const float a = x[i]; __syncthreads();"),
        ("const float a = x[i];", "const float a = x[i]; atomicAdd(at + 3, 1);"),
        ("if (w[i] == 0) continue;", "if (w[i] == 0) break;"),
        ("if (w[i] == 0) continue;", "if (w[i] == 0) return;"),
        ("if (w[i] == 0) continue;", "s_v[tid] = a;"),
        ("i += blockDim.x", "i += 1"),
        ("int i = tid; i < n; i += blockDim.x", "int i = tid * n / 256; i < (tid + 1) * n / 256; ++i"),
        ("int i = tid; i < n;", "int i = tid; i < n - tid;"),
        ("if (s_seen[tid + s] && (!s_seen[tid] || s_v[tid + s] < s_v[tid])) {", "{"),  # the last one's
        ("if (s_seen[tid + s] && (!s_seen[tid] || s_v[tid + s] < s_v[tid])) {", "if (s_seen[tid + s]) {"),
        ("!seen || a < v", "w[i] > 1"),  # that of the last turn
        ("if (!seen || a < v) {", "if (a < v && i % 7 == tid % 7) { at[3] = 1;"),
        ("s_v[tid + s] < s_v[tid])) {", "s_v[tid + s] < s_v[tid]) && tid % 3 != 1) {"),
        ("int place = 0;", "float2 p; int place = 0;"),  # a member of a record
        ("float v = 1e30f;", "float v = x[tid % n];"),  # each thread begins otherwise
        ("s_i[tid] = seen ? place : -1;", "s_i[tid] = seen ? place : -1; out[1] = s_i[tid];"),
        ("if (tid == 0) {", "if (tid == 0 && place >= 0) {"),
        ("const int tid = threadIdx.x;", "const int tid = threadIdx.x; out[3] = 1.0f;"),
        ("const int tid = threadIdx.x;", "const int tid = threadIdx.x; s_v[tid] = 0.0f; __syncthreads();"),
        ("s_seen[tid] = seen ? 1 : 0;", "if (tid < n) s_seen[tid] = seen ? 1 : 0;"),
        ("s_seen[tid] = seen ? 1 : 0;", "s_seen[255 - tid] = seen ? 1 : 0;"),
        ("at[0] = s_i[0];", "at[0] = s_i[0] + gridDim.z + gridDim.y;"),
    ],
)
def test_turns_stay_together_where_parts_would_not_do(old: str, new: str, subject_from) -> None:
    assert old in FIRST_LEAST
    body = FIRST_LEAST.replace(old, new)
    if "float2" in new:
        body = body.replace("v = a;", "p.x = a;").replace("seen ? v :", "seen ? p.x :").replace("a < v", "a < p.x")
    assert not list(TwoStageFold().moves(subject_from(contract(body))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("count = 0.0f", "count = 1.0f"),  # added once a part
        ("count += 1.0f", "count += v"),  # floats, in the order of turns
        ("count += 1.0f", "count += 0.5f"),
        ("count += 1.0f", "count = 1.0f"),  # the last one's, added
        ("if (v > 0.0f)", "if (v > high)"),  # asks what the merge does not know
        ("if (v > 0.0f)", "if (count < 3.0f)"),
        ("low = fminf(low, v);", "low = low * 0.5f + v;"),
        ("float low", "float last = 0.0f, low"),  # the element before
        ("many[threadIdx.x] += many[threadIdx.x + 128];", "many[threadIdx.x] *= many[threadIdx.x + 128];"),
        ("many[threadIdx.x] += many[threadIdx.x + 128];", "many[threadIdx.x] = many[threadIdx.x + 128];"),
        ("many[threadIdx.x] += many[threadIdx.x + 128];", "many[threadIdx.x] += 1.0f;"),
        ("many[threadIdx.x] = count;", "many[threadIdx.x] = count + 1.0f;"),
        ("many[threadIdx.x] = count;", "many[threadIdx.x] = count * count;"),
        ("lo[threadIdx.x] = low;", "lo[threadIdx.x] = -low;"),
        ("many[threadIdx.x] += many[threadIdx.x + 128];", "many[threadIdx.x] -= many[threadIdx.x + 128];"),
        ("count += 1.0f", "count = 1.0f - count"),
    ],
)
def test_states_that_are_no_fold_stay(old: str, new: str, subject_from) -> None:
    body = MIN_MAX_COUNT
    assert old in body
    body = body.replace(old, new)
    if "last = " in new:
        body = body.replace("if (v > 0.0f) count += 1.0f;", "if (v > last) count += 1.0f; last = v;")
    assert list(TwoStageFold().moves(subject_from(contract(MIN_MAX_COUNT, more=EXACT))))
    found = list(TwoStageFold().moves(subject_from(contract(body, more=EXACT))))
    assert not found


def test_grids_that_fill_the_gpu_stay(subject_from) -> None:
    text = contract(ROW, grid='"rows"').replace("max = 16, timed = 4", "max = 4096, timed = 2048")
    assert not list(TwoStageFold().moves(subject_from(text)))
    from dataclasses import replace

    subject = subject_from(contract(FIRST_LEAST))
    assert list(TwoStageFold().moves(subject))
    assert not list(TwoStageFold().moves(replace(subject, keep_launch=True)))
