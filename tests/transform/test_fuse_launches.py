"""fuse-launches: launches over the same points are one that computes the same; none where a thread would need what
another writes."""

from __future__ import annotations

import pytest

from fsr.transform.fuse.action import FuseLaunches

GRID = {
    "line": ('"ceil_div(n, 256)"', "256"),
    "few": ('"8"', "64"),
    "plane": ('["ceil_div(w, 16)", "ceil_div(h, 16)"]', "[16, 16]"),
    "flat": ('["ceil_div(w, 32)", "ceil_div(h, 8)"]', "[32, 8]"),
    "cube": ('["ceil_div(w, 8)", "ceil_div(h, 8)", "3"]', "[8, 8, 1]"),
    "one": ('"1"', "256"),
    "single": ('"1"', "1"),
    "all": ('"ceil_div(w * h, 128)"', "128"),
}
SIZES = {
    "n": "n = {min = 1, max = 1048576, timed = 1048576}",
    "w": "w = {min = 1, max = 4096, timed = 1920}",
    "h": "h = {min = 1, max = 4096, timed = 1080}",
}


def plan(sizes: str, buffers: dict[str, str], launches: list[tuple[str, str, str]], code: str) -> str:
    """A kernel text. ``buffers``: name to 'role shape type'; ``launches``: entry, grid and what is passed."""
    lines = ["/// fsr", f'entry = "{launches[0][0]}"', "[sizes]", *(SIZES[s] for s in sizes.split()), "[args]"]
    for name, text in buffers.items():
        role, shape, *kind = text.split(":")
        dtype = kind[0] if kind else "float32"
        if role != "scratch":
            data = ", low = 0, high = 100" if role != "out" else ""
            lines.append(f'{name} = {{role = "{role}", dtype = "{dtype}", shape = ["{shape}"]{data}}}')
    for name, text in buffers.items():
        role, shape, *kind = text.split(":")
        if role == "scratch":
            lines += [f"[scratch.{name}]", f'dtype = "{kind[0] if kind else "float32"}"', f'count = "{shape}"']
    for entry, grid, passed in launches:
        extents, block = GRID[grid]
        args = ", ".join(a if a[0].isdigit() else f'"{a}"' for a in passed.split())
        lines += ["[[launch]]", f'entry = "{entry}"', f"grid = {extents}", f"block = {block}", f"args = [{args}]"]
    return "\n".join(f"// {line}" for line in [*lines, "///"]) + "\n" + code


# Gray, gradients by one kernel with two filters, their magnitude, a threshold: guards and returns, blocks 16 by 16.
EDGES = plan(
    "w h",
    {"rgb": "in:w * h * 3", "fx": "in:9", "fy": "in:9", "edges": "out:w * h", "gray": "out:w * h",
     "gx": "scratch:w * h", "gy": "scratch:w * h", "mag": "scratch:w * h"},
    [("to_gray", "plane", "rgb gray w h"), ("conv", "plane", "gray fx gx w h"), ("conv", "plane", "gray fy gy w h"),
     ("magnitude", "plane", "gx gy mag w h"), ("threshold", "plane", "mag edges w h 100.0")],
    """
__global__ void to_gray(const float *rgb, float *gray, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int at = y * w + x;
    gray[at] = 2.0f * rgb[3 * at] + 5.0f * rgb[3 * at + 1] + rgb[3 * at + 2];
}
__global__ void conv(const float *__restrict__ image, const float *__restrict__ filter, float *__restrict__ out,
                     int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        float sum = 0.0f;
        for (int i = -1; i <= 1; ++i)
            for (int j = -1; j <= 1; ++j)
                sum += image[max(0, min(h - 1, y + i)) * w + max(0, min(w - 1, x + j))] * filter[(i + 1) * 3 + j + 1];
        out[y * w + x] = sum;
    }
}
__global__ void magnitude(const float *gx, const float *gy, float *mag, int w, int h)
{
    int col = threadIdx.x + blockIdx.x * blockDim.x, row = threadIdx.y + blockIdx.y * blockDim.y;
    if (col >= w) return;
    if (row >= h) return;
    mag[row * w + col] = fabsf(gx[row * w + col]) + fabsf(gy[row * w + col]);
}
__global__ void threshold(const float *mag, float *edges, int w, int h, float limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) edges[x + w * y] = mag[x + w * y] > limit ? 1.0f : 0.0f;
}
""",
)  # fmt: skip
# BLAS-1 steps: pointers that move, __restrict__, an index of another type, a product in place.
STEPS = plan(
    "n",
    {"x": "inout:n", "y": "inout:n", "p": "in:n", "t": "scratch:n"},
    [
        ("scale", "line", "p t n 3.0"),
        ("axpy", "line", "t x n 2.0"),
        ("times", "line", "x y n"),
        ("relu", "line", "y n"),
    ],
    """
#define AT(a, i) ((a)[(i)])
__global__ void scale(const float *__restrict__ p, float *__restrict__ t, int n, float a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { const float *from = p + i; *(t + i) = a * *from; }
}
__global__ void axpy(const float *__restrict__ t, float *__restrict__ x, size_t n, float a)
{
    size_t tid = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= n) return;
    x[tid] += a * t[tid];
}
__global__ void times(const float *__restrict__ x, float *y, unsigned n)
{
    unsigned at = threadIdx.x + blockIdx.x * blockDim.x;
    if (at < n) AT(y, at) *= AT(x, at);
}
__global__ void relu(float *y, long long n)
{
    long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && y[i] < 0) y[i] = 0;
}
""",
)
# Loops over a grid that is too small, in launches of one shape.
STRIDES = plan(
    "n",
    {"x": "in:n", "v": "inout:n", "z": "inout:n"},
    [("speed", "few", "x v n"), ("move", "few", "v z n")],
    """
__global__ void speed(const float *x, float *v, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        v[i] += x[i] * x[(i + 1) % n];
}
__global__ void move(const float *v, float *z, int n)
{
    int stride = gridDim.x * blockDim.x;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += stride) z[i] += v[i];
}
""",
)
# Turns that end early, launches of other shapes: no loop is left.
TURNS = plan(
    "n",
    {"x": "in:n", "y": "out:n", "t": "scratch:n"},
    [("halve", "few", "x t n"), ("clip", "line", "t y n")],
    """
#define KERNEL_LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
__global__ void halve(const float *x, float *t, const int n)
{
    const int half = n / 2;
    KERNEL_LOOP(i, n) {
        if (i < half) { t[i] = x[i + half]; continue; }
        t[i] = 0.5f * x[i];
    }
}
__global__ void clip(const float *t, float *y, size_t n)
{
    auto first = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned threads = blockDim.x * gridDim.x;
    for (size_t k = first; k < n; k += threads) {
        float v = t[k];
        y[k] = v > 10 ? 10 : v;
    }
}
""",
)
# A picture by 16 by 16 and then by one number; the number is taken apart in a third.
SHAPES = plan(
    "w h",
    {"a": "in:w * h", "b": "scratch:w * h", "c": "out:w * h", "d": "out:w * h"},
    [("square", "all", "a b w*h"), ("blend", "plane", "b c w h"), ("columns", "all", "c d w h")],
    """
__device__ int place(int x, int y, int w) { return y * w + x; }
__device__ __forceinline__ float twice(const float *b, int at) { return 2.0f * b[at]; }
__global__ void square(const float *a, float *b, int total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < total) b[i] = a[i] * a[i] + a[total - 1 - i];
}
__global__ void blend(const float *b, float *c, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (b[place(x, y, w)] > 50.0f) { c[place(x, y, w)] = 1.0f; return; }
    c[place(x, y, w)] = b[place(x, y, w)] + x;
}
__global__ void columns(const float *c, float *d, int w, int h)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h) return;
    int col = i % w, row = i / w;
    d[row * w + col] = c[row * w + col] + col;
}
""",
)
# Records: three numbers a point, by constants and by loops; planes of a picture, one behind the other.
RECORDS = plan(
    "n",
    {"v": "in:3 * n", "p": "inout:3 * n", "planes": "out:2 * n", "sums": "out:n"},
    [("push", "line", "v p n"), ("apart", "line", "p planes n"), ("add", "line", "planes sums n")],
    """
__global__ void push(const float *v, float *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int c = 0; c < 3; c++) p[i * 3 + c] += v[i * 3 + c];
}
__global__ void apart(const float *p, float *planes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    planes[i] = p[3 * i] + p[3 * i + 2];
    planes[i + n] = p[3 * i + 1];
}
__global__ void add(const float *planes, float *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sums[i] = planes[i] + planes[n + i];
}
""",
)
# Templates of a number, a launch between that has nothing to do with them, counts of bytes.
BETWEEN = plan(
    "n",
    {"a": "in:n:int32", "b": "scratch:n:uint8", "c": "out:n:int32", "other": "out:n:int32"},
    [("low<3>", "line", "a b n"), ("fill", "few", "other n"), ("high<2>", "line", "b c n")],
    """
namespace {
template <int BITS> __global__ void low(const int *a, unsigned char *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 77 + BITS;
}
}
__global__ void fill(int *other, int n)
{
    __shared__ int start;
    if (threadIdx.x == 0) start = blockIdx.x;
    __syncthreads();
    for (int i = start * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) other[i] = i;
}
template <int SHIFT> __global__ void high(const unsigned char *b, int *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) { c[i] = b[i] << SHIFT; break; }
}
""".replace("namespace {\n", "").replace("}\n}\n__global__ void fill", "}\n__global__ void fill"),
)
# Interiors that differ, y the fast axis of memory, two buffers read by both.
INNER = plan(
    "w h",
    {"u": "in:w * h", "du": "out:w * h", "next": "inout:w * h"},
    [("laplace", "plane", "u du w h"), ("advance", "flat", "u du next w h")],
    """
__global__ void laplace(const float *u, float *du, int w, int h)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < w && j < h) {
        int id = j + i * h;
        du[id] = 0.0f;
        if (i > 0 && i < w - 1 && j > 0 && j < h - 1)
            du[id] = u[id - 1] + u[id + 1] + u[id - h] + u[id + h] - 4 * u[id];
    }
}
__global__ void advance(const float *u, const float *du, float *next, int w, int h)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w) return;
    if (j >= h) return;
    next[i * h + j] = u[i * h + j] + 2 * du[i * h + j];
}
""",
)
# A volume, z by blocks; planes that a thread goes through, up and down.
VOLUME = plan(
    "w h",
    {"a": "in:3 * w * h", "b": "scratch:3 * w * h", "c": "inout:3 * w * h", "d": "out:3 * w * h"},
    [
        ("lift", "cube", "a b w h"),
        ("drop", "cube", "b c w h"),
        ("up", "plane", "a c w h"),
        ("down", "plane", "c d w h"),
    ],
    """
__global__ void lift(const float *a, float *b, int w, int h)
{
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int z = blockIdx.z;
    if (x >= w || y >= h) return;
    b[(z * h + y) * w + x] = a[(z * h + y) * w + x] + z;
}
__global__ void drop(const float *b, float *c, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z, plane = w * h;
    if (x < w && y < h) c[z * plane + y * w + x] += 2 * b[z * plane + y * w + x];
}
__global__ void up(const float *a, float *c, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    for (int z = 0; z < 3; ++z) c[z * w * h + y * w + x] += a[z * w * h + y * w + x] * a[(x + y) % w];
}
__global__ void down(const float *c, float *d, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    for (int k = 2; k >= 0; --k) d[k * w * h + y * w + x] = c[k * w * h + y * w + x] + 1;
}
""",
)
# Bounds that differ, tests one in another, functions that are handed a pointer, an index that changes.
HELPED = plan(
    "w h",
    {"a": "in:w * h", "b": "scratch:w * h", "c": "inout:w * h", "d": "out:w * h"},
    [("spread", "plane", "a b w h"), ("inside", "flat", "b c w h"), ("last", "plane", "c d w h")],
    """
#define IDX(r, c) ((r) * width + (c))
__device__ void put(float *p, int x, int y, int w, float v) { p[y * w + x] = v; }
__device__ float get(const float *p, int x, int y, int w) { return p[y * w + x]; }
__global__ void spread(const float *a, float *b, int width, int h)
{
    const size_t c = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const size_t r = (size_t)blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h) {
        if (c < width) b[IDX(r, c)] = a[IDX(r, c)] * 3;
    }
}
__global__ void inside(const float *b, float *c, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w - 1 || y >= h - 1) return;
    put(c, x, y, w, get(b, x, y, w) + get(c, x, y, w));
}
__global__ void last(const float *c, float *d, int w, int h)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (!(x < w && y < h)) return;
    unsigned k = y * w;
    k += x;
    d[y * w + x] = c[y * w + x] + k % 7;
}
""",
)
# Sums that several launches of one kernel add to, counters of while loops, vectors.
SUMS = plan(
    "n",
    {"a": "in:4 * n", "b": "scratch:4 * n", "c": "out:4 * n"},
    [("zero", "few", "b n"), ("add", "line", "a b n 2.0"), ("add", "line", "a b n 3.0"), ("turned", "line", "b c n")],
    """
__global__ void zero(float4 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) {
        b[i] = make_float4(0, 0, 0, 1);
        i += blockDim.x * gridDim.x;
    }
}
__global__ void add(const float4 *__restrict__ a, float4 *__restrict__ b, int n, float s)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = a[i];
    if (v.x < 0) return;
    for (int k = 0; k < 3; ++k) b[i].x += v.y * s;
    b[i].w = v.z;
}
__global__ void turned(const float4 *b, float4 *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i].x = b[i].w;
        c[i].y = b[i].x;
        c[i].z = b[i].y + b[i].z;
        c[i].w = 2;
    }
}
""",
)
# A launch between that the last one needs: it goes in front.
FRONT = plan(
    "n",
    {"a": "in:n", "b": "scratch:n", "d": "scratch:n", "e": "out:n"},
    [("first", "line", "a b n"), ("back", "line", "a d n"), ("both", "line", "b d e n")],
    """
__global__ void first(const float *a, float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = 2 * a[n - 1 - i];
}
__global__ void back(const float *a, float *d, int n)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? a[i] : 0.0f;
    __syncthreads();
    if (i < n) d[i] = tile[threadIdx.x / 2] + 1;
}
__global__ void both(const float *b, const float *d, float *e, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) e[i] = b[i] - d[n - 1 - i];
}
""",
)
LINES = [{"n": n} for n in (1, 2, 255, 257, 1000)]
PLANES = [{"w": w, "h": h} for w, h in ((1, 1), (1, 40), (40, 1), (16, 16), (37, 21), (130, 3))]
EVERY = {
    "edges": (EDGES, PLANES), "steps": (STEPS, LINES), "strides": (STRIDES, LINES), "turns": (TURNS, LINES),
    "shapes": (SHAPES, PLANES), "records": (RECORDS, LINES), "between": (BETWEEN, LINES), "inner": (INNER, PLANES),
    "volume": (VOLUME, PLANES), "helped": (HELPED, PLANES), "sums": (SUMS, LINES),
    "front": (FRONT, LINES),
}  # fmt: skip


def offered(subject) -> list[str]:
    return [str(m.param("launches")) for m in FuseLaunches().moves(subject)]


@pytest.mark.parametrize("name", EVERY)
def test_one_launch_computes_what_several_did(name: str, subject_from, runner) -> None:
    text, sizes = EVERY[name]
    subject, action = subject_from(text), FuseLaunches()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        made = action.apply(subject, move)
        fewer = len(str(move.param("launches")).split("+")) - 1
        assert len(made.plan.launches) == len(subject.candidate.plan.launches) - fewer
        runner.check(subject, made, *sizes)


@pytest.mark.parametrize(
    ("name", "longest"),
    [("edges", "1+2+3+4"), ("steps", "0+1+2+3"), ("strides", "0+1"), ("turns", "0+1"), ("shapes", "0+1+2"),
     ("records", "0+1+2"), ("between", "0+2"), ("inner", "0+1"),
     ("volume", "0+1"), ("volume", "2+3"), ("helped", "0+1+2"), ("sums", "0+1+2+3"),
     ("front", "0+2")],
)  # fmt: skip
def test_runs_are_as_long_as_may_be(name: str, longest: str, subject_from) -> None:
    assert longest in offered(subject_from(EVERY[name][0]))


def test_what_a_thread_hands_on_to_itself_stays_in_registers(subject_from) -> None:
    subject, action = subject_from(EDGES), FuseLaunches()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert [one.entry for one in made.plan.launches] == ["to_gray", "conv_fused"]
    assert made.plan.scratch == ()
    assert "float gx = 0.0f;" in made.source
    assert "magnitude_thread(gx, gy, mag, w, h);" in made.source
    assert made.source.count("void conv_thread(") == 1
    assert "__global__ void conv(" not in made.source


def test_a_loop_over_the_grid_is_one_point_a_thread(subject_from) -> None:
    subject, action = subject_from(TURNS), FuseLaunches()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert made.plan.launches[0].grid == ("ceil_div(n, 64)", "1", "1")
    assert made.plan.scratch == ()
    assert "void halve_point(const float *x, float &t, const int n, int i)" in made.source
    assert "for (" not in made.source.split("// What")[1]


def test_what_others_read_is_written_still(subject_from) -> None:
    text = EDGES.replace('args = ["mag", "edges"', 'args = ["gx", "edges"').replace(
        '// [[launch]]\n// entry = "threshold"', BARRIER_LAUNCH + '// [[launch]]\n// entry = "threshold"'
    )
    subject, action = subject_from(text + BARRIER), FuseLaunches()
    made = action.apply(subject, next(m for m in action.moves(subject) if m.param("launches") == "1+2"))
    assert {"gx", "gy", "mag"} == {s.name for s in made.plan.scratch}
    assert "float *out" in made.source


BARRIER_LAUNCH = """// [[launch]]
// entry = "total"
// grid = 1
// block = 64
// args = ["gx", "gray"]
"""
BARRIER = """
__global__ void total(const float *gx, float *gray)
{
    __shared__ float all[64];
    all[threadIdx.x] = gx[0];
    __syncthreads();
    if (threadIdx.x == 0) gray[0] = all[63];
}
"""


def test_restrict_goes_where_a_buffer_is_written(subject_from) -> None:
    subject, action = subject_from(STEPS), FuseLaunches()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert "scale_thread(const float *__restrict__ p, float &t" in made.source
    assert "times_thread(const float *x, float *y" in made.source
    assert "const float *__restrict__ p, int n" in made.source


def test_a_launch_between_goes_in_front_where_the_last_needs_it(subject_from) -> None:
    subject, action = subject_from(FRONT), FuseLaunches()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert [one.entry for one in made.plan.launches] == ["back", "first_fused"]
    assert [s.name for s in made.plan.scratch] == ["d"]


def test_a_kernel_that_is_launched_elsewhere_stays(subject_from, runner) -> None:
    again = '// [[launch]]\n// entry = "relu"\n// grid = 1\n// block = 32\n// args = ["x", "n"]\n// ///\n'
    text = STEPS.replace("// ///\n", again)
    subject, action = subject_from(text), FuseLaunches()
    move = next(m for m in action.moves(subject) if m.param("launches") == "0+1+2+3")
    made = action.apply(subject, move)
    assert "__global__ void relu(" in made.source
    runner.check(subject, made, *LINES)


def test_a_larger_gain_is_promised_for_more(subject_from) -> None:
    gains = {m.param("launches"): m.gain for m in FuseLaunches().moves(subject_from(STEPS))}
    assert gains["0+1+2+3"] > gains["0+1"] > 1.0


@pytest.mark.parametrize(
    ("name", "old", "new", "apart"),
    [
        ("steps", "a * t[tid]", "a * t[tid ? tid - 1 : 0]", "01"),  # what another thread hands on
        ("steps", "a * t[tid]", "a * t[n - 1 - tid]", "01"),
        ("steps", "a * t[tid]", "a * t[tid / 2]", "01"),
        ("steps", "x[tid] += a", "t += n > tid + 1; x[tid] += a", "01"),  # a pointer that moves
        ("steps", "a * t[tid]", "a * __ldg(&t[tid])", "01"),  # a cache that does not see the thread's own writes
        ("steps", "a * t[tid]", "a * (n > 5 ? t : x)[tid]", "01"),
        ("steps", "a * t[tid];", "a * t[tid]; __syncthreads();", "01"),
        ("steps", "a * t[tid];", "a * t[tid] + __shfl_sync(~0u, a, 0);", "01"),
        ("steps", "x[tid] += a", "atomicAdd(&x[tid], a)", "12"),
        ("steps", "a * *from;", "a * *from; t[n - 1] = a;", "01"),  # written by all
        (
            "steps",
            "__global__ void relu(float *y, long long n)\n{",
            "__device__ float kept;\n__global__ void relu(float *y, long long n)\n{\n    kept = 1.0f;",
            "0123",
        ),
        ("steps", "// [sizes]", '// aliasing = [["x", "y"]]\n// [sizes]', "12"),
        ("steps", 'args = ["x", "y", "n"]', 'args = ["x", "y", "n"]\n// repeat = "3"', "2"),
        ("strides", "i += stride", "i += stride - 1", "01"),
        ("strides", "i += stride", "i += 512 + 1", "01"),
        ("strides", "z[i] += v[i]", "z[i] += v[i ^ 1]", "01"),
        ("strides", 'args = ["v", "z", "n"]', 'args = ["v", "x", "n"]', "01"),  # what others read before
        ("strides", "const float *v, float *z", "const int *v, float *z", "01"),
        ("inner", "if (i >= w) return;\n    if (j >= h) return;", "if (i * h + j >= w * h) return;", "01"),
        ("inner", "next[i * h + j] = u[i * h + j]", "next[i * h + j] = u[j * w + i] + du[j * w + i]", "01"),
        ("records", "p[3 * i + 2]", "p[3 * i + 3]", "01"),
        ("records", "c < 3; c++", "c < 4; c++", "01"),
        ("records", "p[i * 3 + c] += v[i * 3 + c];", "p[i * 3 + c] += 1; { int c = v[i]; p[i * 3 + c] += 1; }", "01"),
        ("inner", "float *next, int w, int h", "float *next, int w, unsigned char h", "01"),  # not the same number
        ("records", "planes[n + i]", "planes[n + i - 1]", "12"),
        ("helped", "get(b, x, y, w) + get(c", "get(b, x + 1, y, w) + get(c", "01"),
        ("helped", "x >= w - 1 ||", "x >= w + 1 ||", "01"),  # into the next row
        ("volume", "int z = blockIdx.z;", "int z = 2 - blockIdx.z;", "01"),
        ("between", 'args = ["other", "n"]', 'args = ["b", "n"]', "02"),  # between, and touched by both
    ],
)
def test_launches_stay_apart_where_a_thread_would_need_anothers(
    name: str, old: str, new: str, apart: str, subject_from
) -> None:
    text = EVERY[name][0]
    assert old in text
    found = [set(run.split("+")) for run in offered(subject_from(text.replace(old, new)))]
    if len(apart) == 1:
        assert not any(apart in run for run in found)
    else:
        assert not any(len(run & set(apart)) > 1 for run in found)


def test_nothing_is_offered_where_launches_must_stay(subject_from) -> None:
    assert offered(subject_from(STEPS, keep_launch=True)) == []


def test_launches_of_one_thread_that_walks_are_left_alone_or_are_one(subject_from) -> None:
    """A grid of one thread has no axis that a place could be told by: what the other one wrote may be anywhere."""
    code = "__global__ void sums(float *x, int n) { for (int i = 1; i < n; i++) x[i] += x[i - 1]; }"
    buffers = {"x": "inout:n", "y": "inout:n"}
    apart = plan("n", buffers, [("sums", "single", "x n"), ("sums", "single", "y n")], code)
    assert offered(subject_from(apart)) == ["0+1"]
    again = plan("n", buffers, [("sums", "single", "x n"), ("sums", "single", "x n")], code)
    assert offered(subject_from(again)) == []
