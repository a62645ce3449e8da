"""A filter in many disguises: its neighbours are kept, and its bounds are asked for at the edges alone."""

from __future__ import annotations

import pytest

from fsr.transform.stencil.action import MarchStencil, TileStencil
from fsr.transform.stencil.interior import SplitInterior

HEAD = """
// /// fsr
// entry = "k"
// [sizes]
// w = {min = 1, max = 4096, timed = 1024}
// h = {min = 1, max = 4096, timed = 1024}
// [args]
// src = {role = "in", dtype = "IN", shape = ["h", "w"]}
// dst = {role = "out", dtype = "OUT", shape = ["h", "w"]}
// [launch]
// LAUNCH
// ///
"""
PLANE = 'grid = ["ceil_div(w, 32)", "ceil_div(h, 8)"]\n// block = [32, 8]'
LINE = 'grid = "ceil_div(w * h, 256)"\n// block = 256'
BYTES, FLOATS, INTS = ("uint8", "unsigned char"), ("float32", "float"), ("int32", "int")
FUNCTIONS = """
#define HD __host__ __device__ __forceinline__
#define RADIUS 1
namespace im {
using pixel = unsigned char;
HD int column() {
#ifdef HD
    return blockIdx.x * blockDim.x + threadIdx.x;
#else
    return 0;
#endif
}
HD int row() { return blockIdx.y * blockDim.y + threadIdx.y; }
HD bool inside(const int u, const int v, const int nx, const int ny) { return u >= 0 && u < nx && v >= 0 && v < ny; }
}
__device__ inline int clampi(int v, int lo, int hi) { if (v < lo) return lo; return v > hi ? hi : v; }
__device__ float at(const float *p, int u, int v, int w, int h) {
    return (u < 0 || v < 0 || u >= w || v >= h) ? 0.0f : p[v * w + u];
}
__constant__ int table[3][3] = {{1, 2, 1}, {2, 4, 2}, {1, 2, 1}};
__constant__ float mask[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
"""
IDS = "int x = blockIdx.x * blockDim.x + threadIdx.x; int y = blockIdx.y * blockDim.y + threadIdx.y;"
GUARD = "if (x >= w || y >= h) return;"
LOOPS = "for (int j = -1; j <= 1; ++j) for (int i = -1; i <= 1; ++i)"
# by name: element types in and out, the launch, the body
STYLES = {
    "a local array filled by a function's word": (BYTES, BYTES, PLANE, """
        const int x = im::column(); const int y = im::row();
        if (im::inside(x, y, w, h)) {
            int n[3][3];
            for (int j = -1; j <= 1; ++j) { for (int i = -1; i <= 1; ++i) {
                n[j + 1][i + 1] = im::inside(x + i, y + j, w, h) ? src[(y + j) * w + (x + i)] : 0; } }
            int p = 0;
            for (int j = 0; j < 3; ++j) for (int i = 0; i < 3; ++i) p += table[j][i] * n[j][i];
            dst[y * w + x] = p / 16; }"""),
    "a ternary": (FLOATS, FLOATS, PLANE, IDS + GUARD + "float s = 0.0f;" + LOOPS + """ {
        s += mask[(j + 1) * 3 + i + 1] * (x + i >= 0 && x + i < w && y + j >= 0 && y + j < h
            ? src[(y + j) * w + x + i] : 0.0f); }
        dst[y * w + x] = s;"""),
    "bytes beside a fraction": (BYTES, FLOATS, PLANE, IDS + GUARD + "float s = 0.0f;" + LOOPS + """ {
        int u = x + i, v = y + j;
        float c = (u >= 0 && u < w && v >= 0 && v < h) ? src[v * w + u] : 0.0f;
        s += mask[(j + 1) * 3 + (i + 1)] * c; }
        dst[y * w + x] = s;"""),
    "continue": (INTS, INTS, PLANE, IDS + GUARD + "int s = 0, n = 0;" + LOOPS + """ {
        int u = x + i, v = y + j;
        if (u < 0 || u >= w || v < 0 || v >= h) continue;
        s += src[v * w + u]; n++; }
        dst[y * w + x] = s / n;"""),
    "an if around": (FLOATS, FLOATS, PLANE, IDS + "if (x < w && y < h) { float s = 0.0f;" + LOOPS + """ {
        if (y + j >= 0 && y + j < h && x + i >= 0 && x + i < w) s += src[(y + j) * w + (x + i)]; }
        dst[y * w + x] = s; }"""),
    "clamped by min and max": (BYTES, BYTES, PLANE, IDS + GUARD + "int s = 0;" + LOOPS + """ {
        int u = min(max(x + i, 0), w - 1), v = max(0, min(h - 1, y + j));
        s += src[v * w + u] * table[j + 1][i + 1]; }
        dst[y * w + x] = (unsigned char)(s >> 4);"""),
    "clamped by ifs": (FLOATS, FLOATS, PLANE, IDS + GUARD + "int u, v; float s = 0.0f;" + LOOPS + """ {
        u = x + i; v = y + j;
        if (u < 0) u = 0;
        if (v < 0) v = 0; else if (v >= h) v = h - 1;
        if (u > w - 1) u = w - 1;
        s += src[u + v * w]; }
        dst[y * w + x] = s;"""),
    "clamped by a function": (BYTES, BYTES, PLANE, IDS + GUARD + "int s = 0;" + LOOPS + """
        s = max(s, (int)src[clampi(y + j, 0, h - 1) * w + clampi(x + i, 0, w - 1)]);
        dst[y * w + x] = s;"""),
    "mirrored": (FLOATS, FLOATS, PLANE, IDS + GUARD + "float s = 0.0f;" + LOOPS + """ {
        int u = x + i, v = y + j;
        if (u < 0) u = -u;
        if (v < 0) v = -v;
        if (u >= w) u = w - 1;
        if (v >= h) v = h - 1;
        s += src[v * w + u] * mask[(j + 1) * 3 + i + 1]; }
        dst[y * w + x] = s;"""),
    "an accessor": (FLOATS, FLOATS, PLANE, IDS + GUARD + """
        float gx = at(src, x + 1, y - 1, w, h) + 2.0f * at(src, x + 1, y, w, h) + at(src, x + 1, y + 1, w, h)
            - at(src, x - 1, y - 1, w, h) - 2.0f * at(src, x - 1, y, w, h) - at(src, x - 1, y + 1, w, h);
        dst[y * w + x] = gx;"""),
    "unrolled": (INTS, INTS, PLANE, IDS + GUARD + """
        int l = x > 0 ? x - 1 : 0, r = x < w - 1 ? x + 1 : w - 1, u = max(y - 1, 0) * w, d = min(y + 1, h - 1) * w;
        dst[y * w + x] = src[u + l] + src[u + x] + src[u + r] + src[y * w + l] - 8 * src[y * w + x] + src[y * w + r]
            + src[d + l] + src[d + x] + src[d + r];"""),
    "one number taken apart": (BYTES, BYTES, LINE, """
        int id = blockIdx.x * blockDim.x + threadIdx.x;
        if (id >= w * h) return;
        int y = id / w, x = id % w, s = 0;
        for (int j = -RADIUS; j <= RADIUS; j++) for (int i = -RADIUS; i <= RADIUS; i++) {
            if (y + j < 0 || y + j >= h || x + i < 0 || x + i >= w) continue;
            s += src[(y + j) * w + x + i]; }
        dst[id] = s / 9;"""),
    "two channels of loops, five wide": (BYTES, FLOATS, PLANE, IDS + GUARD + """
        float m = 0.0f, q = 0.0f;
        for (int i = -2; i <= 2; i++) for (int j = -2; j < 3; j++) {
            int v = y + i, u = x + j;
            if (v >= 0 && v < h && u >= 0 && u < w) m += src[v * w + u]; }
        for (int i = -2; i <= 2; i++) for (int j = -2; j < 3; j++) {
            int v = y + i, u = x + j;
            if (v >= 0 && v < h && u >= 0 && u < w) { float d = src[v * w + u]; q += d * d; } }
        dst[y * w + x] = m + q;"""),
    "a cross of two loops": (FLOATS, FLOATS, PLANE, IDS + GUARD + """
        float s = 0.0f;
        for (int i = -2; i <= 2; i++) s += src[y * w + min(max(x + i, 0), w - 1)];
        for (int j = -2; j <= 2; j += 2) s -= src[min(max(y + j, 0), h - 1) * w + x];
        dst[y * w + x] = s;"""),
    "counts in an array": (BYTES, BYTES, PLANE, IDS + GUARD + """
        int seen[8] = {0}, best = 0;""" + LOOPS + """ {
            if (x + i < 0 || x + i >= w || y + j < 0 || y + j >= h) continue;
            seen[src[(y + j) * w + x + i] & 7] += 1; }
        for (int t = 1; t < 8; t++) if (seen[t] > seen[best]) best = t;
        dst[y * w + x] = best;"""),
    "the borders left out": (BYTES, BYTES, PLANE, IDS + """
        if (x < 1 || x >= w - 1 || y < 1 || y >= h - 1) { if (x < w && y < h) dst[y * w + x] = 0; return; }
        int s = 255;
        for (int j = -1; j <= 1; ++j) for (int i = -1; i <= 1; ++i) s = min(s, (int)src[(y + j) * w + (x + i)]);
        dst[y * w + x] = s;"""),
}  # fmt: skip
SIZES = [{"w": w, "h": h} for w, h in [(1, 1), (3, 2), (40, 9), (33, 70), (130, 67)]]
MOVES = [(MarchStencil(), "[rows=4,x=32,y=8]"), (TileStencil(), "[rows=2,x=32,y=8]"), (SplitInterior(), "")]


def kernel(style: str) -> str:
    """The text of a style with its contract."""
    (in_, a), (out, b), launch, body = STYLES[style]
    head = HEAD.replace("IN", in_).replace("OUT", out).replace("LAUNCH", launch)
    return f"{head}{FUNCTIONS}__global__ void k(const {a} *src, {b} *dst, int w, int h) {{{body}}}\n"


@pytest.mark.parametrize(("action", "ending"), MOVES, ids=lambda m: getattr(m, "name", None))
@pytest.mark.parametrize("style", STYLES)
def test_the_same_at_every_size(style, action, ending, subject_from, apply_move, runner):
    subject = subject_from(kernel(style))
    changed = apply_move(action, subject, ending)
    runner.check(subject, changed, *SIZES)
    if isinstance(action, TileStencil):
        fast = changed.source[changed.source.index("if (__syncthreads_and(inner))") : changed.source.rindex("} else {")]
        assert fast.count("src[") == 1
        assert not runner.faults(changed, subject.contract, {"w": 70, "h": 33})


NONE = {
    "a radius that is an argument": IDS + GUARD + """
        int r = w / 100, s = 0;
        for (int j = -r; j <= r; j++) for (int i = -r; i <= r; i++) s += src[max(y + j, 0) * w + max(x + i, 0)];
        dst[y * w + x] = s;""",
    "turns that are left": IDS + GUARD + "int s = 0;" + LOOPS + """ {
        if (s > 9) break;
        s += src[min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)]; }
        dst[y * w + x] = s;""",
    "rows as data says": IDS + GUARD + "int s = 0;" + LOOPS + """ {
        if (table[j + 1][i + 1] > 1) s += src[min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)]; }
        dst[y * w + x] = s;""",
}  # fmt: skip


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_what_is_not_always_read_is_not_kept(body, subject_from):
    STYLES["none"] = (INTS, INTS, PLANE, body)
    subject = subject_from(kernel("none"))
    del STYLES["none"]
    assert not list(MarchStencil().moves(subject)) + list(TileStencil().moves(subject))
