"""jam-threads: several threads' statements in one thread give what each gave, however the kernel is written; no move
where threads have nothing in common, or cooperate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.jam.action import FACTORS, JamThreads

SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (33, 3), (128, 8), (1000, 5), (257, 16), (512, 1)]]


def kernel(body: str, *, before: str = "", head: str = "__global__ void k", entry: str = "k", flat: bool = False,
           params: str = "", each: int = 32) -> str:  # fmt: skip
    """A kernel of ``n`` points with ``x`` and ``y``, and ``m`` others."""
    grid, block = ('["ceil_div(n, 16)", "ceil_div(m, 4)"]', "[16, 4]") if flat else (f'"ceil_div(n, {each})"', "32")
    taken = params or "const float *x, const float *w, float *y, int n, int m"
    return f"""
// /// fsr
// entry = "{entry}"
// [sizes]
// n = {{min = 1, max = 1048576, timed = 1048576}}
// m = {{min = 1, max = 256, timed = 64}}
// [args]
// x = {{role = "in", shape = ["n * {"m" if flat else 2}"]}}
// w = {{role = "in", shape = ["2 * m + 2"]}}
// y = {{role = "inout", shape = ["n * {"m" if flat else 2}"]}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
{before}
{head}({taken})
{{
{body}
}}
"""


ID = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
NEAREST = f"""
    {ID}
    if (i >= n) return;
    float best = 1e30f;
    int which = -1;
    for (int j = 0; j < m; ++j) {{
        const float dx = x[2 * i] - w[2 * j], dy = x[2 * i + 1] - w[2 * j + 1];
        const float d = dx * dx + dy * dy;
        if (d < best) {{
            best = d;
            which = j;
        }}
    }}
    y[i] = which;
"""
POLYGON = f"""
    {ID}
    if (i < n) {{
        // every edge
        bool in = false;
        float px = x[2 * i], py = x[2 * i + 1];
        for (int k = 0, j = m - 1; k < m; j = k++) {{
            if ((w[2 * k] > py) != (w[2 * j] > py) && px < (w[2 * j] - w[2 * k]) / (w[2 * j + 1] + 9.0f) + w[k])
                in = !in;
        }}
        y[i] = in;
    }}
"""
CONTINUES = f"""
    {ID}
    if (i >= n) return;
    if (x[i] < -3.0f) {{
        y[i] = -1.0f;
        return;
    }}
    float fx = 0.0f;
    for (int j = 0; j < m; j++) {{
        if (w[j] == 0.0f) continue;
        if (j == i) continue;
        if (!(w[j] < x[i])) continue;
        fx += (x[i] - w[j]) / w[j];
    }}
    y[i] += fx;
"""
POINTERS = """
    unsigned int at = threadIdx.x + blockDim.x * blockIdx.x;
    if (at < (unsigned)n) {
        const float *mine = x + 2 * at;
        const float *p = w;
        float *out = y + at;
        const float *const end = w + m;
        float s = *mine;
        while (p < end) {
            s = fmaf(s, 0.5f, *p * mine[1]);
            ++p;
        }
        *out = s;
    }
"""
WHILES = """
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) { return; }
    float total = 0;
    int j = m;
    while (j > 0) {
        j--;
        float t = x[i] - w[j];
        int steps = 0;
        while (t > 0.5f && steps < 4) { t *= 0.5f; steps++; }
        if (w[j] > 3.0f) break;
        total += t + steps;
    }
    y[i] = total + j;
"""
ARRAYS = f"""
    {ID}
    if (i >= n) return;
    const float taps[3] = {{0.5f, 1.0f, 2.0f}};
    float acc[4] = {{0.0f}};
    float2 both = make_float2(0.0f, 1.0f);
    for (int j = 0; j < m; ++j)
        for (int c = 0; c < 4; ++c) {{
            acc[c] += w[j + (c & 1)] * x[i] * taps[c % 3];
            both.x += w[j];
            both.y = fminf(both.y, acc[c]);
        }}
    float s = 0.0f;
    for (int c = 0; c < 4; ++c) s += acc[c];
    y[i] = s + both.x + both.y;
"""
STORES = f"""
    {ID}
    if (i >= n) return;
    int seen = 0;
    for (int j = 0; j < m; ++j) {{
        float v = w[j] / 3.0f;
        int bin = (int)(w[j + 1] * w[j + 1]) & 1;
        y[i * 2 + bin] += v * x[i];
        if (x[i] > w[j]) seen++;
    }}
    y[i * 2] += seen;
"""
AUTOS = """
    const auto i = blockIdx.x * blockDim.x + threadIdx.x;
    auto bound = n;
    if (i >= bound) return;
    const float &mine = x[i];
    float &out = y[i];
    float s = 0.0f;
    for (auto j = 0; j < m; ++j) s += weigh(mine, w[j]);
    out = s;
"""
OF_ANOTHER = """
    const auto i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const auto half = i / 2;
    const auto at = half * 2 + i % 2;
    float s = 0.0f;
    for (int j = 0; j < m; ++j) s += x[at] * w[j];
    y[at] = s;
"""  # only the place is asked for later
WEIGH = "__device__ __forceinline__ float weigh(float a, float b) { float d = a - b; return d * d / (1.0f + b * b); }"
TYPED = """
    int i = TID;
    if (i >= n) return;
    T s = T(0);
#pragma unroll 2
    for (int j = 0; j < m; ++j) s += AT(j) * x[i] * F;
    y[i] = s;
"""
MACROS = "#define TID (blockIdx.x * blockDim.x + threadIdx.x)\n#define AT(k) w[(k)]"
CHANGED = """
    x += (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    w += 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    m = min(m, 8);
    float s = 0.0f;
    for (int j = 0; j < m; ++j) s += x[0] * w[j] + x[1];
    y[i] = s;
"""
COLUMNS = """
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= n || r >= m) return;
    float s = 0.0f;
    for (int k = 0; k <= r; ++k) s += w[k] * x[k * n + c];
    y[r * n + c] = s;
"""
STRIDES = """
    int i, j, steps;
    float s, gap;
    i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) {
        s = 0.0f;
        steps = 0;
        for (j = 0; j < m; j++) {
            gap = w[j] - x[i];
            if (gap > 0.0f) s += w[j];
            else steps++;
        }
        y[i] = s - steps;
        i += blockDim.x * gridDim.x;
    }
"""
ROWS = """
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    for (int r = blockIdx.y * blockDim.y + threadIdx.y; r < m; r += gridDim.y * blockDim.y) {
        float s = 0.0f;
        for (int k = 0; k < m; ++k) {
            float v = sqrtf(w[k] * w[k]);
            s += v * x[r * n + c];
        }
        y[r * n + c] = s;
    }
"""
NO_GUARD = """
    int b = blockIdx.x, t = threadIdx.x;
    for (int q = t; q < 32; q += 64) {
        int i = b * 32 + q;
        if (i < n) y[i] = 0.0f;
    }
    float s = 0.0f;
    for (int j = 0; j < m; ++j) s += w[j] * b + gridDim.x;
    if (b * 32 + t < n) y[b * 32 + t] = s;
"""
COUNTS = f"""
    {ID}
    if (i < n) {{
        int below = 0;
        for (int j = 0; j < m; j++) {{
            float v = w[j];
            if (v < x[i] || (v == x[i] && j < i)) below++;
            else if (v > 3.5f) below += 2;
        }}
        atomicAdd(&y[below % n], 1.0f);
    }}
"""
KERNELS = {
    "nearest": kernel(NEAREST),
    "polygon": kernel(POLYGON),
    "continues": kernel(CONTINUES),
    "pointers": kernel(POINTERS),
    "whiles": kernel(WHILES),
    "arrays": kernel(ARRAYS),
    "stores": kernel(STORES),
    "references": kernel(AUTOS, before=WEIGH),
    "template": kernel(
        TYPED, before=f"{MACROS}\ntemplate <typename T, int F>", entry="k<float, 2>",
        params="const T *x, const T *w, T *y, int n, int m",
    ),
    "arguments": kernel(CHANGED),
    "columns": kernel(COLUMNS, flat=True),
    "strides": kernel(STRIDES, each=96),
    "rows": kernel(ROWS, flat=True),
    "no guard": kernel(NO_GUARD),
    "counts": kernel(COUNTS),
    "of another": kernel(OF_ANOTHER),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_every_thread_gives_what_it_gave(name: str, subject_from, runner) -> None:
    subject, action = subject_from(KERNELS[name]), JamThreads()
    moves = list(action.moves(subject))
    assert {move.param("factor") for move in moves} == set(FACTORS), name
    for move in moves:
        changed = action.apply(subject, move)
        assert parse_kernels(changed.source)
        runner.check(subject, changed, *SIZES)


def test_what_threads_have_in_common_is_done_once_a_turn(subject_from, apply_move) -> None:
    changed = apply_move(JamThreads(), subject_from(KERNELS["nearest"]), "[factor=4,along=x]")
    assert changed.plan.launches[0].grid == ("ceil_div(ceil_div(n, 32), 4)", "1", "1")
    together = changed.source[: changed.source.index("#pragma unroll 1")]
    turn = together[together.index("for (int j = 0; j < m; ++j)") :]
    assert turn.index("w[2 * j]") < turn.index("for (int u = 0; u < 4; ++u)") < turn.index("if (d < best[u])")
    assert together.count("w[2 * j]") == 1
    assert "float best[4];" in together


def test_a_kernel_without_a_guard_is_told_its_blocks(subject_from) -> None:
    subject, action = subject_from(KERNELS["no guard"]), JamThreads()
    (changed,) = [action.apply(subject, m) for m in action.moves(subject) if m.param("factor") == 2]
    assert "if (blockIdx.x * 2 + u < blocks)" in changed.source
    assert changed.plan.launches[0].args[-1].value == "ceil_div(n, 32)"


def test_columns_are_done_together_and_rows_one_after_the_other(subject_from) -> None:
    """A row's bound differs, and its end with it."""
    assert {m.param("along") for m in JamThreads().moves(subject_from(KERNELS["columns"]))} == {"x"}


def test_more_in_common_promises_more(subject_from) -> None:
    def best(name: str) -> float:
        return max(m.gain for m in JamThreads().moves(subject_from(KERNELS[name])))

    assert best("polygon") > best("continues") > 1.05


def test_variables_are_declared_where_they_are_used(subject_from, apply_move) -> None:
    changed = apply_move(JamThreads(), subject_from(KERNELS["strides"]), "[factor=2,along=x]")
    assert "float gap = w_value - x[i[u]];" in changed.source or "float gap;" in changed.source
    assert "gap[u]" not in changed.source


def test_no_move_where_a_variable_has_a_constructor(subject_from) -> None:
    pair = "struct Pair { float a; __device__ Pair(float v) : a(v) {} };"
    body = NEAREST.replace("float best = 1e30f;", "float best = 1e30f; Pair p = x[i];").replace("= which;", "= p.a;")
    assert list(JamThreads().moves(subject_from(kernel(body, before=pair)))) == []


def test_once_is_enough(subject_from, apply_move) -> None:
    subject = subject_from(KERNELS["nearest"])
    changed = apply_move(JamThreads(), subject, "[factor=2,along=x]")
    again = replace(subject, candidate=changed, kernels=parse_kernels(changed.source))
    assert list(JamThreads().moves(again)) == []


def test_few_threads_promise_nothing(subject_from) -> None:
    few = KERNELS["nearest"].replace("timed = 1048576", "timed = 4096")
    assert all(m.gain < 1.05 for m in JamThreads().moves(subject_from(few)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int which = -1;", "int which = -1; __syncthreads();"),
        ("int which = -1;", "__shared__ int which; which = -1;"),
        ("int which = -1;", 'int which = -1; asm volatile("");'),
        ("int which = -1;", "volatile int which = -1;"),
        ("int which = -1;", "int which = -1; while (atomicAdd(&y[0], 0.0f) < 0.0f) which--;"),  # waits for another
        ("int j = 0; j < m", "int j = i; j < m"),  # a loop that depends on the thread
        ("j < m", "j < (int)x[i]"),
        ("if (d < best) {", "if (d < 0.5f) break; if (d < best) {"),  # one thread leaves the loop before others
        ("if (d < best) {", "if (d < 0.5f) return; if (d < best) {"),
        ("w[", "x[i + "),  # nothing in common but the counter
        ("w[", "y["),  # what the kernel writes
        ("y[i] = which;", "counter = which; y[i] = which;"),
    ],
)  # fmt: skip
def test_no_move_where_nothing_is_in_common_or_threads_cooperate(old: str, new: str, subject_from) -> None:
    assert old in NEAREST
    text = kernel(NEAREST.replace(old, new), before="__device__ int counter;")
    assert list(JamThreads().moves(subject_from(text))) == []


def test_no_move_where_the_inputs_may_be_what_is_written(subject_from) -> None:
    aliased = kernel(NEAREST).replace("// [sizes]", '// aliasing = [["w", "y"]]\n// [sizes]')
    assert list(JamThreads().moves(subject_from(aliased))) == []


def test_no_move_where_the_launch_stays(subject_from) -> None:
    assert list(JamThreads().moves(subject_from(KERNELS["nearest"], keep_launch=True))) == []


def test_no_thread_reads_beyond_its_buffers(subject_from, runner) -> None:
    for name in ("nearest", "polygon", "no guard", "references"):
        subject, action = subject_from(KERNELS[name]), JamThreads()
        for move in action.moves(subject):
            assert runner.faults(action.apply(subject, move), subject.contract, {"n": 75, "m": 3}) == [], move.name
