"""interleave-scratch: slices of scratch lie side by side, whatever leads to them; no move where it cannot be told."""

from __future__ import annotations

import pytest

from fsr.guard.check import guard
from fsr.transform.scratch.interleave import InterleaveScratch

SIZES = [{"m": m, "n": n} for m, n in [(1, 1), (1, 5), (37, 2), (64, 8), (130, 33), (257, 17)]]


def kernel(body: str, *, count: str = "m * n", before: str = "", dtype: str = "float32", **other: str) -> str:
    """A kernel over m rows of n, with scratch memory ``w``. ``params``, ``args``, ``entry``, ``grid``, ``block``,
    ``launches`` (behind it), ``head``."""
    params = other.get("params", "const float *x, float *y, float *w, int m, int n")
    args = other.get("args", '"x", "y", "w", "m", "n"')
    return f"""
// /// fsr
// [sizes]
// m = {{min = 1, max = 4096, timed = 4096}}
// n = {{min = 1, max = 512, timed = 128}}
// [args]
// x = {{role = "in", shape = ["m", "n"], dtype = "float32"}}
// y = {{role = "out", shape = ["m", "n"], dtype = "float32"}}
// [[launch]]
// entry = "{other.get("entry", "k")}"
// grid = {other.get("grid", '"ceil_div(m, 64)"')}
// block = {other.get("block", "64")}
// args = [{args}]
{other.get("launches", "//")}
// [scratch.w]
// dtype = "{dtype}"
// count = "{count}"
{other.get("scratch", "//")}
// ///
{before}
{other.get("head", "__global__ void k")}({params})
{{
{body}
}}
"""


DIRECT = """
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= m) return;
    for (int k = 0; k < n; k++) w[tid * n + k] = x[tid * n + k] * 2.0f;
    for (int i = n - 1; i > 0; i--) w[(size_t)tid * n + i] -= w[(size_t)tid * n + i - 1];
    for (int i = 0; i < n; i++) y[tid * n + i] = w[tid * n + n - 1 - i];
"""
POINTER = """
    const unsigned int row = threadIdx.x + blockIdx.x * blockDim.x;
    if (row < m) {
        float *__restrict__ own = &w[row * n];
        const float *mine = x + row * n;
        float *p = own, *end = own + n;
        while (p < end) *p++ = *mine++;
        for (float *q = own; q != end; ++q) *q += (float)(q - own);
        int left = n;
        again: { left--; own[left] *= 0.5f; } if (left > 0 && left < n) goto again;
        left = n;
        switch (left & 1) { case 0: *own += 1.0f; break; default: halve(own + left / 2, left - left / 2); }
        for (long i = 0; i < n; ++i) y[row * n + i] = own[i] + *(end - 1) + (own + n)[-1];
    }
"""
HALVE = "__device__ void halve(float *a, int n) { while (n--) a[n] *= 0.5f; }\n"
MOVED = """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m) return;
    x += (size_t)t * n, y += (size_t)t * n;
    w += (size_t)t * n;
    for (int i = 0; i < n; i++) {
        int j = i;
        for (; j > 0 && w[j - 1] > x[i]; --j) w[j] = w[j - 1];
        w[j] = x[i];
    }
    for (int i = 0; i < n; i++) y[i] = w[i];
"""
SORT = """
__device__ void swap(float *a, float *b) { float t = *a; *a = *b; *b = t; }
static __device__ __forceinline__ void sift(float *heap, int at, const int count)
{
    while (2 * at + 1 < count) {
        int child = 2 * at + 1;
        if (child + 1 < count && heap[child + 1] > heap[child]) child++;
        if (heap[at] >= heap[child]) break;
        swap(&heap[at], heap + child);
        at = child;
    }
}
template <typename T> __device__ T total(const T *values, int count)
{
    T sum = 0;
    for (const T *v = values; v < values + count; v++) sum += *v;
    return sum;
}
"""
SORTED = """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m) return;
    float *heap = w + t * n;
    for (int i = 0; i < n; i++) heap[i] = x[t * n + i];
    for (int i = n / 2 - 1; i >= 0; i--) sift(heap, i, n);
    for (int last = n - 1; last > 0; last--) { swap(heap, &heap[last]); sift(heap, 0, last); }
    float a = total(heap, n), b = total(&x[t * n], n);
    for (int i = 0; i < n; i++) y[t * n + i] = heap[i] + a - b;
"""
STACK = """
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < m; t += gridDim.x * blockDim.x) {
        int *stack = w + t * DEPTH;
        int top = 0;
        stack[top++] = n;
        float sum = 0.0f;
        while (top) {
            int count = stack[--top];
            if (count <= 1) { sum += x[t * n]; continue; }
            stack[top++] = count / 2;
            stack[top++] = count - count / 2;
        }
        for (int i = 0; i < n; i++) y[t * n + i] = sum;
    }
"""
MACROS = """
    if (TID >= m) return;
    for (int r = 0; r < n; r++) { W(r, 0) = x[TID * n + r]; W(r, 1) = W(r, 0) * 2.0f; }
    for (int r = 0; r < n; r++) y[TID * n + r] = W(r, 1) - W(n - 1 - r, 0);
"""
ROWS = """
    int j = threadIdx.x, i = threadIdx.y + blockIdx.y * blockDim.y;
    int id = i * 8 + j;
    if (id >= m) return;
    float *before = w + id * (2 * (n + 1)), *now = before + n + 1;
    for (int k = 0; k <= n; k++) before[k] = (float)k;
    for (int r = 0; r < 3; r++) {
        now[0] = (float)r;
        for (int k = 1; k <= n; k++) now[k] = fminf(fminf(before[k], now[k - 1]), before[k - 1]) + x[id * n + k - 1];
        float *swapped = before;
        before = now;
        now = swapped;
    }
    for (int k = 0; k < n; k++) y[id * n + k] = before[k + 1];
"""
PLANES = """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float *second = w + m * n;
    if (t < m) {
        for (int i = 0; i < n; i++) w[t * n + i] = x[t * n + i], second[t * n + i] = 1.0f;
        for (int i = 1; i < n; i++) { second[t * n + i] += w[t * n + i - 1]; w[t * n + i] += second[t * n + i - 1]; }
        for (int i = 0; i < n; i++) y[t * n + i] = second[t * n + n - i - 1] + w[t * n + i];
    }
"""
ATOMICS = """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m) return;
    const int base = t * 16;
    int *bins = w + base;
    for (int i = 0; i < n; i++) atomicAdd(&bins[(int)x[t * n + i] & 15], 1);
    for (int i = 0; i < n; i++) atomicAdd(w + base + (i & 15), 2);
    for (int i = 0; i < n; i++) y[t * n + i] = (float)__ldg(&bins[i & 15]);
"""
TRANSPOSED = """
    auto own = w + (blockIdx.x * blockDim.x + threadIdx.x) * n;
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m) return;
    int i = 0;
    while (i < n) { own[i] = x[t * n + i]; i++; }
    float *from = own, *to = y + t * n;
    if (n & 1) { float *kept = from; from = to; to = kept; for (i = 0; i < n; i++) from[i] = to[i] + 1.0f; }
    for (i = 0; i < n; i++) y[t * n + i] = from[i];
"""
TWICE = """
__global__ void use(const float *w, const float *x, float *y, int rows, int length)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float *own = w + r * length;
    for (int i = 0; i < length; i++) y[r * length + i] = own[i] * x[r * length + i];
}
"""
FILL = """
    int e = blockIdx.x * 8 + threadIdx.x, i = 0;
    if (e < m) for (; i < n; i++) w[e * n + i] = x[e * n + i] + 1.0f;
"""
USE = """// [[launch]]
// entry = "use"
// grid = "ceil_div(m, 32)"
// block = 32
// args = ["w", "x", "y", "m", "n"]"""
W16 = "const float *x, float *y, int *w, int m, int n"
TEMPLATE = {"entry": "k<float, 2>", "head": "template <typename T, int PARTS> __global__ void k",
            "params": "const T *x, T *y, T *w, int m, int n"}  # fmt: skip
PARTS = """
    const int t = blockIdx.x * blockDim.x + threadIdx.x, all = PARTS * n;
    if (t >= m) return;
    T *lu = w + t * all;
    for (int p = 0; p < PARTS; p++) for (int i = 0; i < n; i++) lu[p * n + i] = x[t * n + i] + p;
    T &first = lu[0];
    first += 1;
    for (int i = 0; i < n; i++) y[t * n + i] = lu[i] * lu[(PARTS - 1) * n + i] + (i > 0 ? lu[i - 1] : T(0));
"""
WHOLE = """
__device__ __forceinline__ float *row_of(float *all, size_t row, int length) { return all + row * length; }
__device__ __forceinline__ size_t at(size_t row, int length, int k) { return row * length + k; }
__device__ void fill(float *w, const float *x, int t, int n)
{
    const float last = x[t * n + n - 1];
    for (int i = 0; i < n; i++) w[at(t, n, i)] = x[t * n + i] - last;
}
__device__ void body(const float *x, float *y, float *w, int m, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m) return;
    float *own = row_of(w, t, n);
    for (int i = 1; i < n; i++) own[i] += own[i - 1];
    for (int i = 0; i < n; i++) y[t * n + i] = own[i];
}
"""
CALLS = """
    int t = blockIdx.x * blockDim.x + threadIdx.x, last = 3;
    if (t < m) fill(w, x, t, n);
    last += t;
    body(x, y, w, m, n);
"""
VECTORS = """
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m) return;
    float4 *own = w + t * n;
    for (int i = 0; i < n; i++) own[i] = make_float4(x[t * n + i], 1.0f, 2.0f, 3.0f);
    for (int i = 1; i < n; i++) { own[i].x += own[i - 1].w; own[i].w += (own + i - 1)->x; }
    for (int i = 0; i < n; i++) y[t * n + i] = own[i].x + own[n - 1 - i].w;
"""

KERNELS = {
    "direct": kernel(DIRECT),
    "pointers": kernel(POINTER, before=HALVE),
    "a parameter that is moved": kernel(MOVED),
    "device functions": kernel(SORTED, before=SORT),
    "a stack": kernel(STACK, before="#define DEPTH 16", count="m * 16", dtype="int32", params=W16, grid='"2"'),
    "macros": kernel(MACROS, count="m * n * 2", before="""
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
#define W(r, c) w[(TID * n + (r)) * 2 + (c)]
"""),
    "two dimensions": kernel(ROWS, count="ceil_div(m, 8) * 8 * 2 * (n + 1)", block="[8, 8]",
                             grid='["1", "ceil_div(m, 64)"]'),
    "planes": kernel(PLANES, count="2 * m * n"),
    "bins": kernel(ATOMICS, count="m * 16", dtype="int32", params=W16, scratch="// zeroed = true"),
    "a pointer that leads elsewhere too": kernel(TRANSPOSED, count="ceil_div(m, 64) * 64 * n"),
    "two launches": kernel(FILL, before=TWICE, args='"x", "w", "m", "n"', launches=USE,
                           params="const float *x, float *w, int m, int n", grid='"ceil_div(m, 8)"', block="8"),
    "functions that take all of it": kernel(CALLS, before=WHOLE),
    "vectors": kernel(VECTORS, count="m * n * 4", params="const float *x, float *y, float4 *w, int m, int n"),
    "a template": kernel(PARTS, count="m * n * 2", **TEMPLATE),
}  # fmt: skip


@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS.keys())
def test_results_stay_and_threads_have_neighbouring_elements(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), InterleaveScratch()
    (move,) = action.moves(subject)
    changed = action.apply(subject, move)
    assert changed.actions == ("interleave-scratch@plan",)
    assert "slices" in changed.source
    assert guard(changed, subject.candidate) is None
    runner.check(subject, changed, *SIZES)
    assert not runner.faults(changed, subject.contract, {"m": 70, "n": 9})


REFUSED = {
    "the slices overlap": ("for (int k = 0; k < n; k++) w", "for (int k = 0; k < 2 * n; k++) w"),
    "the threads of a slice share it": ("int k = 0; k < n; k++) w", "int k = threadIdx.x; k < n; k++) w"),
    "elements lie side by side already": ("w[tid * n + k] =", "w[k * m + tid] ="),
    "slices of another length": ("w[tid * n + k] =", "w[tid * (n + 1) + k] ="),
    "no whole slice": ('// count = "m * n"', '// count = "m * n + 7"'),
    "the next slice": ("w[tid * n + k] =", "w[tid * n + n + 1 + k] ="),
    "other elements": ("w[tid * n + k] =", "((float2 *)w)[tid * n + k].x ="),
    "an unknown function": ("if (tid >= m) return;", "if (tid >= m) return; memset(w + tid * n, 0, 4 * n);"),
    "a pointer that is kept": ("if (tid >= m) return;", "if (tid >= m) return; float *rows[1] = {w + tid * n};"),
    "verbatim code": ("if (tid >= m) return;", "if (tid >= m) return; here: w[tid * n] = 0.0f;"),
    "a few elements": ("timed = 128", "timed = 3"),
    "a few slices": ("timed = 4096", "timed = 32"),
}


@pytest.mark.parametrize(("old", "new"), REFUSED.values(), ids=REFUSED.keys())
def test_no_move_where_slices_cannot_be_told(old: str, new: str, subject_from) -> None:
    text = kernel(DIRECT)
    assert old in text
    assert list(InterleaveScratch().moves(subject_from(text.replace(old, new, 1)))) == []


POINTERS_REFUSED = {
    "asked whether it is one": ("while (p < end)", "if (own) while (p < end)"),
    "cast": ("int left = n;", "int left = n; *(int *)p = 0;"),
    "its address taken": ("int left = n;", "int left = n; float **where = &p;"),
    "moved to another slice": ("int left = n;", "int left = n; p += m * n;"),
    "handed to a function of another file": ("int left = n;", "int left = n; fill(own, n);"),
    "hidden by a macro": ("int left = n;", "int left = n; HIDDEN;"),
    "a length that verbatim code sets": ("left--;", "left--; n += 0;"),
    "taken in verbatim code": ("own[left] *= 0.5f;", "float *here = own + left; *here *= 0.5f;"),
}


@pytest.mark.parametrize(("old", "new"), POINTERS_REFUSED.values(), ids=POINTERS_REFUSED.keys())
def test_no_move_where_a_pointer_is_more_than_a_way_to_elements(old: str, new: str, subject_from) -> None:
    assert old in POINTER
    text = kernel(POINTER.replace(old, new), before=HALVE + "#define HIDDEN (void)(p[0] = 0.0f)\n")
    assert list(InterleaveScratch().moves(subject_from(text))) == []


FUNCTIONS_REFUSED = {
    "the place of a thread": ("int child = 2 * at + 1;", "int child = 2 * at + 1 + threadIdx.x - threadIdx.x;"),
    "a pointer returned": ("void swap(float *a, float *b) { ", "float *swap(float *a, float *b) { return a; "),
    "two of the name": ("static __device__", "__device__ void swap(float *a, float b) { *a = b; }\nstatic __device__"),
    "C linkage": ("__device__ void swap", 'extern "C" __device__ void swap'),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), FUNCTIONS_REFUSED.values(), ids=FUNCTIONS_REFUSED.keys())
def test_no_move_where_a_function_allows_none(old: str, new: str, subject_from) -> None:
    assert old in SORT
    assert list(InterleaveScratch().moves(subject_from(kernel(SORTED, before=SORT.replace(old, new, 1))))) == []


WHOLE_REFUSED = {
    "a result that is not the last": ("body(x, y, w, m, n);", "body(x, y, w, m, n); y[t] += 1.0f;"),
    "moved in it": ("float *own = row_of(w, t, n);", "w += t * n; float *own = w;"),
    "verbatim code in it": ("float *own = row_of(w, t, n);", "float *own; here: own = row_of(w, t, n);"),
}


@pytest.mark.parametrize(("old", "new"), WHOLE_REFUSED.values(), ids=WHOLE_REFUSED.keys())
def test_no_move_where_a_function_that_takes_all_cannot_be_written_out(old: str, new: str, subject_from) -> None:
    assert old in CALLS + WHOLE
    text = kernel(CALLS.replace(old, new), before=WHOLE.replace(old, new))
    assert list(InterleaveScratch().moves(subject_from(text))) == []


def test_vectors_promise_less_than_their_elements(subject_from) -> None:
    vectors = next(InterleaveScratch().moves(subject_from(KERNELS["vectors"]))).gain
    assert 1.0 < vectors < 2.0 < next(InterleaveScratch().moves(subject_from(KERNELS["direct"]))).gain


def test_no_move_where_the_launch_stays_or_one_launch_does_not_allow_it(subject_from) -> None:
    assert list(InterleaveScratch().moves(subject_from(kernel(DIRECT), keep_launch=True))) == []
    text = KERNELS["two launches"]
    for old, new in (("own[i] *", "w[i * rows + r] *"), ("w + r * length;", "w + r * (length + 1);")):
        assert old in text
        assert list(InterleaveScratch().moves(subject_from(text.replace(old, new)))) == []


def test_functions_that_are_called_with_plain_pointers_too_stay(subject_from) -> None:
    subject = subject_from(KERNELS["device functions"])
    (move,) = InterleaveScratch().moves(subject)
    source = InterleaveScratch().apply(subject, move).source
    assert "total(const T *values" in source
    assert "total(fsr_strided<T> values" in source
    assert "float *heap" not in source


def test_large_scratch_gets_strides_of_64_bits(subject_from) -> None:
    subject = subject_from(kernel(POINTER, before=HALVE).replace("max = 4096", "max = 9999999"))
    (move,) = InterleaveScratch().moves(subject)
    changed = InterleaveScratch().apply(subject, move)
    assert "fsr_strided<float, long long> own" in changed.source
    assert "const long long slices" in changed.source


def test_the_more_of_the_accesses_the_more_is_promised(subject_from) -> None:
    much = next(InterleaveScratch().moves(subject_from(kernel(DIRECT)))).gain
    once = DIRECT.replace("for (int i = n - 1; i > 0; i--)", "if (n > 1) for (int i = n - 1; i < n; i++)")
    less = next(InterleaveScratch().moves(subject_from(kernel(once.replace("-= w", "= x"))))).gain
    assert 1.5 < less < much <= 4.0


def test_pointers_of_two_slices_are_not_compared(subject_from) -> None:
    text = kernel(POINTER, before=HALVE).replace("*end = own + n;", "*end = w + (row + 1) * n;")
    assert list(InterleaveScratch().moves(subject_from(text))) == []
