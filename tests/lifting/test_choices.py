"""What data decides: comparisons that turn on nought, thresholds, signs, bits; and answers that are no numbers."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.graph import Graph
from fsr.lifting.lift import lift
from fsr.lifting.merging import AskedOnce
from fsr.runs.kernel import load_kernel
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
ARGS
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(PARAMS, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
BODY
}
"""


def of_body(tmp_path, body: str, params: str, **args: str) -> list[str]:
    told = "\n".join(f'// {name} = {{shape = ["n"], {text}}}' for name, text in args.items())
    return computed(tmp_path, HEAD.replace("ARGS", told).replace("PARAMS", params).replace("BODY", body))


IN, OUT, INOUT = 'role = "in"', 'role = "out"', 'role = "inout"'


def test_a_division_only_where_its_divisor_is_not_nought(tmp_path):
    found = of_body(tmp_path, "  if (d[i] != 0) x[i] = x[i] / d[i];", "float *x, const float *d", x=INOUT, d=IN)
    assert found == ["x[i] = (x[i] if (d[i] == 0.0) else x[i] / d[i])"]


def test_bytes_that_are_changed_where_a_mark_is_nought(tmp_path):
    body, params = "  if (m[i] == 0) x[i] = 0.5 * x[i];", "unsigned char *x, const unsigned char *m"
    (found,) = of_body(tmp_path, body, params, x=INOUT, m=IN)
    assert found.startswith("x[i] = (")
    assert found.endswith("if (int8(m[i]) == 0) else int8(x[i]))")


def test_a_threshold_of_floats_gives_whole_numbers(tmp_path):
    found = of_body(tmp_path, "  y[i] = x[i] < 0.5f ? -1 : 1;", "const float *x, signed char *y", x=IN, y=OUT)
    assert found == ["y[i] = (-1 if (0.5 > x[i]) else 1)"]


def test_a_sign_is_a_comparison(tmp_path):
    found = of_body(tmp_path, "  y[i] = signbit(x[i]) ? 0.0f : x[i] * 2;", "const float *x, float *y", x=IN, y=OUT)
    assert found == ["y[i] = (0.0 if (0.0 > x[i]) else x[i] * 2.0)"]


def test_sine_and_cosine_at_once(tmp_path):
    body = "  float s, c; sincosf(x[i], &s, &c); y[i] = s * 3 + c;"
    found = of_body(tmp_path, body, "const float *x, float *y", x=IN, y=OUT)
    assert found == ["y[i] = cos(x[i]) + sin(x[i]) * 3.0"]


def test_bits_are_counted(tmp_path):
    body = "  unsigned long long v = x[i]; int c = 0; for (; v; ++c) v &= v - 1; y[i] = c;"
    found = of_body(tmp_path, body, "const unsigned long long *x, int *y", x=IN, y=OUT)
    assert found == ["y[i] = int32(ctpop(int64(x[i])))"]


def test_a_case_without_any_number_neither_refuses_nor_counts(tmp_path):
    found = of_body(tmp_path, "  x[i] = sqrtf(x[i]);", "float *x", x=INOUT)
    assert found == ["x[i] = sqrt(x[i])"]


def test_a_remainder_by_any_number(tmp_path):
    params = "const float *x, const float *w, float *y"
    found = of_body(tmp_path, "  y[i] = x[i] * w[i % 3];", params, x=IN, w='role = "in"', y=OUT)
    assert found == ["y[i] = w[i % 3] * x[i]"]


def test_bits_without_a_sign_are_shifted(tmp_path):
    body = "  unsigned long long v = x[i]; y[i] = (int)((v >> 3) & 7);"
    assert len(of_body(tmp_path, body, "const unsigned long long *x, int *y", x=IN, y=OUT)) == 1


@pytest.mark.parametrize("bits", ["v ^ (v >> 13)", "v | (v << 17)", "v & ~5u"])
def test_combined_bits_are_a_number_without_a_sign(tmp_path, bits):
    """And no condition, which stays 0 or 1 however wide it is made: a generator's state, as a number below one."""
    body = f"  unsigned v = x[i]; v = {bits}; y[i] = v / 4294967296.0f;"
    (found,) = of_body(tmp_path, body, "const unsigned *x, float *y", x=IN, y=OUT)
    assert "float32(zext_int64(" in found


def test_what_cannot_be_laid_out_is_told(tmp_path):
    path = tmp_path / "k.cu"
    text = HEAD.replace("ARGS", '// x = {role = "out", shape = ["n - m + 1"]}').replace("PARAMS", "float *x, int m")
    text = text.replace("// [args]", "// m = {min = 1, max = 64, timed = 9}\n// [args]")
    path.write_text(text.replace("BODY", "  if (i <= n - m) x[i] = 1;"))
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is None
    assert "negative" in found.why


def test_a_sum_of_what_data_chooses(tmp_path):
    body = "  float s = 0; for (int j = 0; j < n; ++j) if (w[j] != 0) s += w[j] * x[j]; y[i] = s;"
    found = of_body(tmp_path, body, "const float *x, const float *w, float *y", x=IN, w=IN, y=OUT)
    assert found[-1] == "y[i] = sum((0.0 if (w[k0] == 0.0) else w[k0] * x[k0]) for k0 in range(n))"


def test_what_is_no_number_is_asked_for(tmp_path):
    params = "const float *x, const float *w, float *y"
    found = of_body(tmp_path, "  y[i] = isnan(x[i]) ? w[i] : x[i];", params, x=IN, w=IN, y=OUT)
    assert found == ["y[i] = (w[i] if isnan(x[i]) else x[i])"]
    found = of_body(tmp_path, "  y[i] = x[i] == x[i] && w[i] == w[i] ? 1.0f : 0.0f;", params, x=IN, w=IN, y=OUT)
    assert "isnan(x[i])" in found[0]
    assert "isnan(w[i])" in found[0]


PARTS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 65536, timed = 4096}
// [args]
// parts = {role = "in", shape = ["n", 256]}
// total = {role = "out", shape = [256]}
// [launch]
// grid = 256
// block = 256
// ///
__global__ void k(const unsigned *parts, unsigned *total, int n) {
  __shared__ unsigned held[256];
  unsigned s = 0;
  for (int i = threadIdx.x; i < n; i += 256) s += parts[blockIdx.x + i * 256];
  held[threadIdx.x] = s;
  for (int apart = 128; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) held[threadIdx.x] += held[threadIdx.x + apart];
  }
  if (threadIdx.x == 0) total[blockIdx.x] = held[0];
}
"""


def test_as_many_threads_at_any_size_are_watched_at_several(tmp_path):
    (tmp_path / "k.cu").write_text(PARTS)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["total[i] = sum(int32(parts[k0, i]) for k0 in range(n))"]


SKIPPING = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 512}
// cols = {min = 1, max = 512, timed = 256}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// skip = {role = "in", shape = ["rows"]}
// y = {role = "inout", shape = ["rows", "cols"]}
// [launch]
// grid = "rows"
// block = 64
// ///
__global__ void k(const float *x, const bool *skip, float *y, int rows, int cols) {
  __shared__ float part[64], most, total;
  if (SKIPPED) return;
  const float *row = x + blockIdx.x * cols;
  float own = -3.402823466e+38f;
  for (int c = threadIdx.x; c < cols; c += 64) own = fmaxf(own, row[c]);
  part[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < 64; ++t) own = fmaxf(own, part[t]);
    most = own;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 64) sum += expf(row[c] - most);
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < 64; ++t) sum += part[t];
    total = sum;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 64) y[blockIdx.x * cols + c] = row[c] / total;
}
"""


@pytest.mark.parametrize("skipped", ["skip && skip[blockIdx.x]", "!skip[blockIdx.x]"])
def test_rows_that_a_mark_takes_out_are_folded_in_the_others_alone(tmp_path, skipped):
    path = tmp_path / "k.cu"
    path.write_text(SKIPPING.replace("SKIPPED", skipped))
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    *folds, result = lines(found.computation)
    assert folds[0] == "_max[i] = max(x[i, k0] for k0 in range(cols))"
    kept, made = "y[i, j]", "x[i, j] / _sum[i]"
    assert folds[1:] == ["_sum[i] = sum(exp(x[i, k0] - _max[i]) for k0 in range(cols))"]
    first, other = (kept, made) if "&&" in skipped else (made, kept)
    assert result == f"y[i, j] = ({first} if bool(int8(skip[i])) else {other})"


def test_a_condition_that_is_decided_is_not_asked_again():
    g = Graph(1)
    c, d, x, y, z = (g.make("load", name, (g.integer(0, "int64"),)) for name in ("c", "d", "x", "y", "z"))

    def under(condition: int, holds: bool, value: int) -> int:
        return g.make("guard", condition, int(holds), value)

    inner = g.list_of("sum", [under(c, True, x), under(d, True, y)])
    assert AskedOnce(g).of(under(c, True, inner)) == under(c, True, g.list_of("sum", [x, under(d, True, y)]))
    assert AskedOnce(g).of(inner) == inner, "nothing stands around it"
    other = under(c, True, under(c, False, x))
    assert AskedOnce(g).of(other) == other, "what cannot be stays"
    assert AskedOnce(g).of(g.make("select", c, under(c, True, x), g.make("select", c, y, z))) == g.make(
        "select", c, x, z
    )


def test_a_flag_that_says_whether_it_is_the_first_turn_is_no_part_of_a_maximum(tmp_path):
    """Which some compilers keep as bits that they ask in every turn."""
    body = """  float most = 0;
  bool first = true;
  for (int k = 0; k < n; k++) {
    if (first || w[k] > most) { first = false; most = w[k]; }
  }
  x[i] = most;"""
    found = of_body(tmp_path, body, "float *x, const float *w", x=OUT, w=IN)
    assert found == ["x[i] = max(w[k0] for k0 in range(n))"]
