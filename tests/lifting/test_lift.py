"""Kernels of our own in the styles that people write, lifted by watching them."""

from __future__ import annotations

import dataclasses

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.canonical import canonical
from fsr.computation.computation import from_record, to_record
from fsr.computation.expression import Case, Const, Op, rebuilt, walk
from fsr.computation.printing import lines
from fsr.computation.types import type_of
from fsr.lifting.check import Checker
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

ROWS = """// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 0, max = 40, timed = 40}}
// cols = {{min = 1, max = 90, timed = 90}}
// [args]
// x = {{dtype = "{dtype}", role = "in", shape = ["rows", "cols"]}}
// y = {{dtype = "{out}", role = "out", shape = {shape}}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
// grid = "{grid}"
// block = {block}
// ///
{body}
"""


def test_what_a_repeated_launch_computes_is_not_told(tmp_path):
    path = tmp_path / "k.cu"
    body = "__global__ void k(const float* x, float* y, int rows, int cols) { y[threadIdx.x] = x[threadIdx.x]; }"
    text = ROWS.format(body=body, out="float32", dtype="float32", shape='["rows", "cols"]', grid="rows", block=64)
    path.write_text(text.replace("// block = 64\n", "// block = 64\n// repeat = 2\n"))
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline)
    assert found.computation is None
    assert "repeated" in found.why


def lifted(
    tmp_path, body, *, out="float32", dtype="float32", shape='["rows", "cols"]', launch=("rows", 64), most=(40, 90)
) -> Lifting:
    """``most``: rows and columns; where they are few, a kernel that is not lifted is given up sooner."""
    text = ROWS.format(body=body, out=out, dtype=dtype, shape=shape, grid=launch[0], block=launch[1])
    for before, size in zip((40, 90), most, strict=True):
        text = text.replace(f"max = {before}, timed = {before}", f"max = {size}, timed = {size}")
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    return lift(kernel.contract, kernel.baseline, limit_s=60)


A_ROW_A_THREAD = ("ceil_div(rows, 64)", 64)
PLAIN = """__global__ void k(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float m = -INFINITY, s = 0;
  for (int j = 0; j < cols; ++j) m = fmaxf(m, x[r * cols + j]);
  for (int j = 0; j < cols; ++j) s += expf(x[r * cols + j] - m);
  for (int j = 0; j < cols; ++j) y[r * cols + j] = expf(x[r * cols + j] - m) / s;
}"""
ONLINE = """template <class T> __global__ void k_(const T* x, T* y, unsigned rows, unsigned cols);
__global__ void k(const float* x, float* y, int rows, int cols) {
  unsigned lane = threadIdx.x & 31, r = blockIdx.x * 2 + threadIdx.x / 32;
  if (!(r < (unsigned)rows)) return;
  float m = -FLT_MAX, s = 0;
  for (int j = lane; j < cols; j += 32) {
    float v = x[r * cols + j], n = v > m ? v : m;
    s = s * __expf(m - n) + __expf(v - n);
    m = n;
  }
  for (int d = 16; d; d >>= 1) {
    float om = __shfl_xor_sync(~0u, m, d), os = __shfl_xor_sync(~0u, s, d), n = fmaxf(m, om);
    s = s * __expf(m - n) + os * __expf(om - n);
    m = n;
  }
  for (int j = lane; j < cols; j += 32) y[r * cols + j] = __expf(x[r * cols + j] - m) / s;
}"""
BY_BRANCHES = """struct Pair { float m, s; };
__device__ Pair both(Pair a, Pair b) {
  bool more = a.m > b.m;
  Pair big = more ? a : b, small = more ? b : a;
  return {big.m, big.s + small.s * expf(small.m - big.m)};
}
__global__ void k(const float* x, float* y, int rows, int cols) {
  const float* row = x + blockIdx.x * cols;
  Pair p = {-FLT_MAX, 0};
  for (int j = threadIdx.x; j < cols; j += 4) {
    float m = p.m, v = row[j];
    if (v > m) { p.m = v; p.s = p.s * expf(m - v) + expf(v - p.m); } else p.s += expf(v - p.m);
  }
  __shared__ Pair held[4];
  held[threadIdx.x] = p;
  __syncthreads();
  p = both(both(held[0], held[1]), both(held[2], held[3]));
  for (int j = threadIdx.x; j < cols; j += 4) y[blockIdx.x * cols + j] = expf(row[j] - p.m) / p.s;
}"""
SOFTMAX = [
    "_max[i] = max(x[i, k0] for k0 in range(cols))",
    "_sum[i] = sum(exp(x[i, k0] - _max[i]) for k0 in range(cols))",
    "y[i, j] = exp(x[i, j] - _max[i]) / _sum[i]",
]


def test_disguises_of_a_softmax_lift_to_one_computation(tmp_path):
    plain = lifted(tmp_path, PLAIN, launch=A_ROW_A_THREAD)
    online = lifted(tmp_path, ONLINE, launch=("ceil_div(rows, 2)", 64))
    assert lines(plain.computation) == SOFTMAX
    assert online.computation == plain.computation
    assert lifted(tmp_path, BY_BRANCHES, launch=("rows", 4)).computation == plain.computation
    assert plain.cases > 3
    assert plain.checked[0] not in plain.watched


def test_sixteen_bits_casts_and_shared_trees(tmp_path):
    found = lifted(
        tmp_path, """#include <cuda_bf16.h>
__global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, int rows, int cols) {
  __shared__ float part[64];
  float s = 0;
  for (int j = threadIdx.x; j < cols; j += 64) s += __bfloat162float(x[blockIdx.x * cols + j]);
  part[threadIdx.x] = s;
  __syncthreads();
  for (int d = 32; d; d /= 2) { if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d]; __syncthreads(); }
  if (!threadIdx.x) y[blockIdx.x] = __float2bfloat16(part[0] / cols);
}""", out="bfloat16", dtype="bfloat16", shape='["rows"]')  # fmt: skip
    assert lines(found.computation) == [
        "_sum[i] = sum(float32(x[i, k0]) for k0 in range(cols))",
        "y[i] = bfloat16(_sum[i] / cols)",
    ]
    assert from_record(to_record(found.computation)) == found.computation


@pytest.mark.parametrize("own", ["best", "x[r * cols + at]"])
def test_the_place_of_a_maximum_is_chosen_by_data(tmp_path, own):
    """Kept beside its value, or read again at its place."""
    found = lifted(
        tmp_path, """__global__ void k(const float* x, int* y, int rows, int cols) {
  int r = blockIdx.x * 64 + threadIdx.x;
  if (r < rows) {
    float best = x[r * cols]; int at = 0;
    for (int j = 1; j < cols; ++j) if (x[r * cols + j] > OWN) { best = x[r * cols + j]; at = j; }
    y[r] = at;
  }
}""".replace("OWN", own), out="int32", shape='["rows"]', launch=A_ROW_A_THREAD)  # fmt: skip
    assert lines(found.computation) == ["y[i] = argmax(pair(x[i, k0], k0) for k0 in range(cols))"]


def test_a_causal_bound_is_a_scan(tmp_path):
    found = lifted(
        tmp_path, """__global__ void k(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x * 64 + threadIdx.x;
  if (r >= rows) return;
  float s = 0;
  for (int j = 0; j < cols; ++j) y[r * cols + j] = s += x[r * cols + j];
}""", launch=A_ROW_A_THREAD)  # fmt: skip
    assert lines(found.computation) == ["y[i, j] = sum(x[i, k0] for k0 in range(j + 1))"]
    assert found.computation.statements[0].kind == "scan"


def test_rows_that_data_chooses_are_read_and_written(tmp_path):
    (tmp_path / "k.cu").write_text("""// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 300, timed = 300}
// c = {min = 1, max = 300, timed = 300}
// v = {min = 1, max = 300, timed = 300}
// [args]
// at = {role = "in", shape = ["n"], low = 0, high = "v - 1"}
// x = {dtype = "float16", role = "in", shape = ["v", "c"]}
// y = {dtype = "float16", role = "out", shape = ["n", "c"]}
// z = {role = "inout", shape = ["v", "c"]}
// n = {value = "n"}
// c = {value = "c"}
// [launch]
// grid = "ceil_div(n * c, 64)"
// block = 64
// ///
#include <cuda_fp16.h>
__global__ void k(const int* at, const __half* x, __half* y, float* z, int n, int c) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n * c) return;
  int row = at[i / c];
  y[i] = x[row * c + i % c];
  atomicAdd(z + row * c + i % c, 2.0f);
}""")
    kernel = load_kernel(tmp_path / "k.cu")
    assert lines(lift(kernel.contract, kernel.baseline).computation) == [
        "y[i, j] = x[int64(at[i]), j]",
        "z[int64(at[i]), j] += 2.0",
    ]


def test_moments_kept_up_to_date_are_sums(tmp_path):
    """Welford's recurrence in each lane, joined by shuffles."""
    body = """__global__ void k(const float* x, float* y, int rows, int cols) {
  const float* row = x + blockIdx.x * cols;
  float m = 0, s = 0, n = 0;
  for (int j = threadIdx.x; j < cols; j += 2) {
    n += 1;
    float d = row[j] - m;
    m += d / n;
    s += d * (row[j] - m);
  }
  float om = __shfl_xor_sync(3, m, 1), os = __shfl_xor_sync(3, s, 1), on = __shfl_xor_sync(3, n, 1);
  float all = n + on, d = om - m;
  s += os + d * d * (n * on / all);
  if (!threadIdx.x) y[blockIdx.x] = s / all;
}"""
    assert lines(lifted(tmp_path, body, shape='["rows"]', launch=("rows", 2)).computation) == [
        "_sum[i] = sum(x[i, k0] for k0 in range(cols))",
        "_sum2[i] = sum((x[i, k0] - (_sum[i] / cols)) * (x[i, k0] - (_sum[i] / cols)) for k0 in range(cols))",
        "y[i] = _sum2[i] / cols",
    ]


def test_constants_that_host_code_fills_are_read_like_buffers(tmp_path):
    (tmp_path / "k.cu").write_text("""// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 300, timed = 300}
// [args]
// taps = {symbol = "taps", shape = [3]}
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__constant__ float taps[3];
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = taps[0] * x[i] + taps[2];
}""")
    kernel = load_kernel(tmp_path / "k.cu")
    assert lines(lift(kernel.contract, kernel.baseline).computation) == ["y[i] = taps[2] + taps[0] * x[i]"]


def test_what_is_not_lifted_says_why(tmp_path):
    body = PLAIN.replace("m = fmaxf(m, x[r * cols + j])", "if (x[r * cols + j] > m * m) m += 1")
    found = lifted(tmp_path, body, launch=A_ROW_A_THREAD, most=(5, 7))
    assert found.computation is None
    assert len(found.why) > 10


def test_a_wrong_lifting_does_not_stand_the_check(tmp_path):
    """The check is what counts: each small fault in a right computation is refused."""
    from fsr.backends.host.compiler import HostToolchain
    from fsr.backends.host.device import open_host_device
    from fsr.records import Case

    found = lifted(tmp_path, PLAIN, launch=A_ROW_A_THREAD).computation
    kernel = load_kernel(tmp_path / "k.cu")
    image = HostToolchain().compile(kernel.baseline)
    cases = [Case("c", (("rows", 9), ("cols", 17)), "normal", 3)]
    device = open_host_device()
    try:
        check = Checker(kernel.contract, kernel.baseline, image, device)
        assert check.disagreement(found, cases) == ""
        for wrong in (_without_last(found), _scaled(found), _min_for_max(found)):
            assert "differs" in check.disagreement(canonical(wrong), cases)
    finally:
        device.close()


def _without_last(c):
    fold = c.statements[1].value
    shorter = dataclasses.replace(fold.dims[0][1], constant=-1)
    return _with(c, 1, dataclasses.replace(fold, dims=((fold.dims[0][0], shorter),)))


def _scaled(c):
    return _with(c, 2, Op("prod", (c.statements[2].value, Const(1.001, "float32"))))


def _min_for_max(c):
    last = c.statements[2].value
    exp = last.args[0]
    flipped = rebuilt(exp, (Op("neg", exp.args),))
    return _with(c, 2, rebuilt(last, (flipped, last.args[1])))


def _with(c, at, value):
    statements = list(c.statements)
    statements[at] = dataclasses.replace(statements[at], value=value)
    return dataclasses.replace(c, statements=tuple(statements))


LIFE = """// /// fsr
// entry = "k"
// [args]
// x = {dtype = "bool", role = "in", shape = [1024, 1024]}
// y = {dtype = "bool", role = "out", shape = [1024, 1024]}
// [launch]
// grid = 4096
// block = 256
// ///
__global__ void k(const bool* x, bool* y) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, r = at / 1024, c = at % 1024;
  if (c > 0 && c < 1023) {
    int near = x[at - 1] + x[at + 1] + (r > 0 ? x[at - 1024] : 0);
    y[at] = near == 3 || (near == 2 && x[at]);
  } else y[at] = false;
}"""


def test_sizes_that_are_fixed_and_large_are_watched_in_part(tmp_path):
    (tmp_path / "k.cu").write_text(LIFE)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    (line,) = lines(found.computation)
    assert "int8(x[i, j + 1])" in line
    assert "j <= 1022" in line


def test_of_long_loops_over_fixed_sizes_some_threads_are_watched(tmp_path):
    (tmp_path / "k.cu").write_text("""// /// fsr
// entry = "k"
// [args]
// x = {role = "in", shape = [2048, 256]}
// y = {role = "inout", shape = [256]}
// [launch]
// grid = 4
// block = 64
// ///
__global__ void k(const float* x, float* y) {
  int j = blockIdx.x * 64 + threadIdx.x;
  if (j == 0 || j == 255) return;
  for (int i = 0; i < 2048; ++i) y[j] += x[i * 256 + j];
}""")
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert lines(found.computation) == [
        "_sum[i] = sum(x[k0, i] for k0 in range(2048))",
        "y[i] = (y[i] if i <= 0 else ((_sum[i] + y[i]) if i <= 254 else y[i]))",
    ]


def test_two_folds_of_one_form_are_told_apart(tmp_path):
    (tmp_path / "k.cu").write_text("""// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 300, timed = 300}
// m = {min = 1, max = 300, timed = 300}
// [args]
// a = {role = "in", shape = ["n", "m"]}
// b = {role = "in", shape = ["n", "m"]}
// c = {role = "out", shape = ["n", "n"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = ["ceil_div(n, 8)", "ceil_div(n, 8)"]
// block = [8, 8]
// ///
__global__ void k(const float* a, const float* b, float* c, int n, int m) {
  int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
  if (i >= n || j >= n) return;
  float s = 0;
  for (int k = 0; k < m; ++k) s += a[i * m + k] * b[j * m + k] + b[i * m + k] * a[j * m + k];
  c[i * n + j] = s;
}""")
    kernel = load_kernel(tmp_path / "k.cu")
    assert lines(lift(kernel.contract, kernel.baseline, limit_s=60).computation) == [
        "_sum[i, j] = sum(a[i, k0] * b[j, k0] for k0 in range(m))",
        "_sum2[i, j] = sum(a[j, k0] * b[i, k0] for k0 in range(m))",
        "c[i, j] = _sum[i, j] + _sum2[i, j]",
    ]


def test_an_edge_at_a_number_of_the_source_is_found(tmp_path):
    body = """__global__ void k(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x, c = threadIdx.x;
  for (; c < cols; c += blockDim.x) y[r * cols + c] = c < 13 ? x[r * cols + c] : x[r * cols + c] * 2.0f;
}"""
    found = lifted(tmp_path, body)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i, j] = (x[i, j] if j <= 12 else x[i, j] * 2.0)"]


RADIUS = """// /// fsr
// entry = "k"
// [sizes]
// blocks = {min = 1, max = 64, timed = 64}
// strips = {min = 1, max = 16, timed = 16}
// [args]
// x = {dtype = "float32", role = "in", shape = SHAPE}
// y = {dtype = "float32", role = "inout", shape = SHAPE}
// [launch]
// grid = ["blocks", "strips"]
// block = 32
// ///
"""
LINE = """__global__ void k(const float* x, float* y) {
  __shared__ float near[32 + 10];
  int c = threadIdx.x + 5, i = blockIdx.x * 32 + threadIdx.x, n = gridDim.x * 32;
  near[c] = x[i];
  if (threadIdx.x < 5) {
    if (i >= 5) near[c - 5] = x[i - 5];
    if (i + 32 < n) near[c + 32] = x[i + 32];
  }
  __syncthreads();
  if (i < 5 || i >= n - 5) return;
  y[i] = near[c - 5] + near[c + 5];
}"""
PADDED = """__global__ void k(const float* x, float* y) {
  int pitch = gridDim.x * 32 + 12;
  for (int r = blockIdx.y * 4 + 1; r < blockIdx.y * 4 + 5; r++) {
    int at = r * pitch + blockIdx.x * 32 + threadIdx.x + 1;
    y[at] = x[at - pitch] + x[at + 1];
  }
}"""


def test_edges_lie_a_radius_from_the_end_of_whatever_length(tmp_path):
    """Of a stencil's radius, and of rows that are padded: neither end is a size."""
    (tmp_path / "k.cu").write_text(RADIUS.replace("SHAPE", '["32 * blocks"]').replace(', "strips"', ', "1"') + LINE)
    kernel = load_kernel(tmp_path / "k.cu")
    assert lines(lift(kernel.contract, kernel.baseline, limit_s=60).computation) == [
        "y[i] = (y[i] if i <= 4 else ((x[i - 5] + x[i + 5]) if i <= 32*blocks - 6 else y[i]))"
    ]
    (tmp_path / "k.cu").write_text(RADIUS.replace("SHAPE", '["4 * strips + 2", "32 * blocks + 12"]') + PADDED)
    kernel = load_kernel(tmp_path / "k.cu")
    (line,) = lines(lift(kernel.contract, kernel.baseline, limit_s=60).computation)
    assert "(x[i - 1, j] + x[i, j + 1])" in line
    assert "j <= 32*blocks else" in line
    assert "i <= 4*strips else" in line


PATCHES = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4, timed = 2}
// c = {min = 1, max = 32, timed = 16}
// h = {min = 1, max = 64, timed = 32}
// w = {min = 1, max = 64, timed = 32}
// [args]
// x = {dtype = "float32", role = "in", shape = ["n", "c", "h", "w"]}
// y = {dtype = "float32", role = "out", shape = ["n", "c * 25", "h * w"]}
// n = {value = "n"}
// c = {value = "c"}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["ceil_div(h * w, 64)", "c * 25", "n"]
// block = 64
// ///
__global__ void k(const float* x, float* y, int n, int c, int h, int w) {
  int at = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y;
  if (at >= h * w) return;
  int r = at / w + row % 25 / 5 - 2, s = at % w + row % 5 - 2;
  bool in = r >= 0 && s >= 0 && r < h && s < w;
  y[(blockIdx.z * c * 25 + row) * h * w + at] = in ? x[((blockIdx.z * c + row / 25) * h + r) * w + s] : 0.0f;
}"""


def test_patches_of_an_image_are_read_by_their_place_in_the_window(tmp_path):
    (tmp_path / "k.cu").write_text(PATCHES)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    (line,) = lines(found.computation)
    assert "x[i, j, i2 + i4 - 2, i3 + i5 - 2]" in line
    assert all(edge in line for edge in ("i2 + i4 <= 1", "i2 + i4 <= h + 1", "i3 + i5 <= w + 1"))


def test_steps_in_time_that_read_their_neighbours_are_refused_soon(tmp_path):
    steps = "".join(f"  v = fminf(v, fminf(__shfl_up_sync(~0u, v, 1), __shfl_down_sync(~0u, v, 1))) + {n}.5f * v;\n"
                    for n in range(24))  # fmt: skip
    body = "__global__ void k(const float* x, float* y, int rows, int cols) {\n  int c = threadIdx.x;\n"
    body += "  float v = c < cols ? x[blockIdx.x * cols + c] : 0;\n" + steps
    found = lifted(tmp_path, body + "  if (c < cols && cols <= 32) y[blockIdx.x * cols + c] = v;\n}")
    assert found.computation is None
    assert "steps in time" in found.why


PULLS = """// /// fsr
// entry = "pulls"
// [sizes]
// tiles = {min = 1, max = 4, timed = 4}
// [args]
// at = {role = "in", shape = ["32 * tiles"]}
// weight = {role = "in", shape = ["32 * tiles"]}
// pull = {role = "out", shape = ["32 * tiles"]}
// tiles = {value = "tiles"}
// [launch]
// grid = "tiles"
// block = 32
// ///
__global__ void pulls(const float* at, const float* weight, float* pull, int tiles) {
  __shared__ float near[32], mass[32];
  int i = blockIdx.x * 32 + threadIdx.x;
  float own = at[i], sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    near[threadIdx.x] = at[tile * 32 + threadIdx.x];
    mass[threadIdx.x] = weight[tile * 32 + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 32; ++k) {
      float d = near[k] - own;
      sum += mass[k] * d / (0.5f + d * d);
    }
    __syncthreads();
  }
  pull[i] = sum;
}"""


def test_of_large_blocks_that_share_what_they_read_some_threads_are_watched(tmp_path, monkeypatch):
    monkeypatch.setattr("fsr.backends.host.tracing.CAPACITY", 1 << 14)  # so that the first sizes are too much at once
    monkeypatch.setattr("fsr.lifting.watching.ROOM_NODES", 1 << 13)
    (tmp_path / "k.cu").write_text(PULLS)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert {"tiles": 1} in found.watched
    (line,) = lines(found.computation)
    assert line.startswith("pull[i] = sum(")
    assert line.endswith("for k0 in range(32*tiles))")  # its own pull, which is nought, is no gap in it


def test_what_threads_compute_for_each_other_is_watched_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("fsr.lifting.attempt.watched_sizes", lambda _: [])  # so that it is watched in part
    body = """__global__ void k(const float* x, float* y, int rows, int cols) {
  float s = threadIdx.x < cols ? x[blockIdx.x * cols + threadIdx.x] : 0;
  for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
  if (!threadIdx.x) y[blockIdx.x] = s;
}"""
    text = ROWS.format(body=body, out="float32", dtype="float32", shape='["rows"]', grid="rows", block=32)
    sizes = text.replace("min = 1, max = 90, timed = 90", "min = 32, max = 32, timed = 32").replace(
        "min = 0", "min = 9"
    )
    (tmp_path / "k.cu").write_text(sizes)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i] = sum(x[i, k0] for k0 in range(32))"]


def test_bytes_that_are_read_four_at_a_time_are_told_apart(tmp_path):
    found = lifted(tmp_path, """__global__ void k(const unsigned char* x, float* y, int rows, int cols) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= rows * cols) return;
  int first = i / 4 * 4;
  unsigned char held[4];
  if (first + 4 <= rows * cols) *(unsigned*)held = *(const unsigned*)(x + first);
  else for (int k = 0; k < 4; ++k) held[k] = first + k < rows * cols ? x[first + k] : 0;
  y[i] = held[i % 4] == 1 ? 2.0f : 0.5f;
}""", dtype="uint8", launch=("ceil_div(rows * cols, 64)", 64))  # fmt: skip
    assert found.computation is not None, found.why
    assert "x[i, j]" in lines(found.computation)[0]


def test_a_union_of_a_vector_and_its_elements_is_read_by_element(tmp_path):
    found = lifted(tmp_path, """union Four { float4 v; float e[4]; };
__global__ void k(const float* x, float* y, int rows, int cols) {
  int first = (blockIdx.x * 64 + threadIdx.x) * 4;
  if (first + 4 <= rows * cols) {
    Four held = *reinterpret_cast<const Four*>(x + first);
    for (int k = 0; k < 4; ++k) y[first + k] = held.e[k] * 2.0f;
  } else for (int i = first; i < rows * cols; ++i) y[i] = x[i] * 2.0f;
}""", launch=("ceil_div(rows * cols, 256)", 64))  # fmt: skip
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i, j] = x[i, j] * 2.0"]


def test_a_function_that_returns_what_it_was_given_is_watched(tmp_path):
    found = lifted(tmp_path, """
__device__ float3 times(float3 v, float by) { return make_float3(v.x * by, v.y * by, v.z * by); }
__device__ float3 limited(float3 v, float most) {
  float length = sqrtf(v.x * v.x + v.y * v.y + v.z * v.z);
  if (!isfinite(length)) return make_float3(0, 0, 0);
  return length > most ? times(v, most / length) : v;
}
__global__ void k(const float* x, float* y, int rows, int cols) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < rows * cols) y[i] = limited(make_float3(x[i], 1, 2), 1e30f).x;
}""", launch=("ceil_div(rows * cols, 64)", 64))  # fmt: skip
    assert "does not compile" not in found.why


def test_a_sum_in_one_region_alone_stays_a_sum(tmp_path):
    body = """__global__ void k(const float* x, float* y, int rows, int cols) {
  int i = blockIdx.x;
  for (int j = threadIdx.x; j < cols; j += 64) {
    float s = 0;
    if (i > 6 && j > 6) for (int t = 0; t < 7; ++t) s += x[i * cols + t] * x[t * cols + j];
    y[i * cols + j] = x[i * cols + j] - s;
  }
}"""
    text = ROWS.format(body=body, out="float32", dtype="float32", shape='["rows", "cols"]', grid="rows", block=64)
    (tmp_path / "k.cu").write_text(text.replace("min = 0", "min = 7").replace("min = 1", "min = 7"))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert any("x[i, k0] * x[k0, j]" in line and "for k0 in range(7)" in line for line in lines(found.computation))


@pytest.mark.timeout(200)
def test_a_maximum_that_moves_by_steps_is_refused_soon(tmp_path):
    """Each turn selects by what the turn before selected, and no power of e stands anywhere: 480 s and more, once."""
    found = lifted(tmp_path, """__global__ void k(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float best = x[r * cols], low = 3;
  int at = 0, lowest = -1;
  for (int j = 1; j < cols; j++) {
    float v = x[r * cols + j];
    if (v > best + 1.0f) { best = v; at = j; }
    if (j % 3 != 1 && low > v) { lowest = j; low = v; }
  }
  y[r] = best + 100.0f * at + 0.5f * low + 10000.0f * lowest;
}""", shape='["rows"]', launch=A_ROW_A_THREAD)  # fmt: skip
    assert found.computation is None
    assert "watching took too long" not in found.why


def test_where_a_sum_of_integers_is_not_nothing_of_its_type_is_added(tmp_path):
    body = """__global__ void k(const float* x, int* y, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) atomicAdd(y, x[i] / 2.0f);
}"""
    text = ROWS.format(
        body=body, out="int32", dtype="float32", shape='["rows", "cols"]', grid="ceil_div(rows * cols, 64)", block=64
    )
    (tmp_path / "k.cu").write_text(text.replace('role = "out"', 'role = "inout"'))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60).computation
    assert found is not None
    last = found.statements[-1].value
    assert {type_of(e) for e in walk(last) if isinstance(e, Case | Const)} == {"int32"}, lines(found)


def test_what_cancels_where_a_body_meets_itself_is_a_sum_over_all(tmp_path):
    """The first body lacks the first term, the last one the last, and the third column has none."""
    text = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 64, timed = 64}
// [args]
// x = {role = "in", shape = ["n", 3]}
// y = {role = "out", shape = ["n", 3]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 32)"
// block = 32
// ///
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  float a = 0.0f, b = 0.0f;
  for (int j = 0; j < n; j++) {
    a += (x[j * 3] - x[i * 3]) * x[j * 3 + 2];
    b += (x[j * 3 + 1] - x[i * 3 + 1]) * x[j * 3 + 2];
  }
  y[i * 3] = x[i * 3] + a * 0.5f;
  y[i * 3 + 1] = x[i * 3 + 1] + b * 0.5f;
  y[i * 3 + 2] = x[i * 3 + 2];
}
"""
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation)[0].endswith("for k0 in range(n))")
