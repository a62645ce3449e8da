"""jam-threads: several threads' statements in one thread give what each gave, however the kernel is written; no move
where threads have nothing in common, or cooperate."""

from __future__ import annotations

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.launch.jam_threads import FACTORS, JamThreads

SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (33, 3), (128, 8), (1000, 5), (257, 16), (512, 1)]]


def kernel(body: str, *, before: str = "", head: str = "__global__ void k", entry: str = "k", flat: bool = False,
           params: str = "") -> str:  # fmt: skip
    """A kernel of ``n`` points with ``x`` and ``y``, and ``m`` others."""
    grid, block = ('["ceil_div(n, 16)", "ceil_div(m, 4)"]', "[16, 4]") if flat else ('"ceil_div(n, 32)"', "32")
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
    "no guard": kernel(NO_GUARD),
    "counts": kernel(COUNTS),
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
