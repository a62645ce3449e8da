"""Kernels written from what is computed: offered whatever the original's threads did, and right at awkward sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.computation.canonical import DIMS, canonical
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op, renamed
from fsr.transform.computed.action import FROM_COMPUTATION
from tests.transform.conftest import subject_of

EXAMPLES = Path(__file__).parents[3] / "examples"
FAMILY = {action.name: action for action in FROM_COMPUTATION}


def at(*dims: str) -> tuple[Expr, ...]:
    """Indices, each a dimension."""
    return tuple(Number(Affine(((d, 1),)), "int64") for d in dims)


def over(op: str, extent: str, body: Expr, dim: str = "k0") -> Fold:
    return Fold(op, ((dim, Affine(((extent, 1),))),), body)


def computed(subject, values, sizes):
    """The subject with its computation: a value for each output, over the output's own dimensions."""
    buffers = tuple(Buffer(a.name, a.dtype, a.shape) for a in subject.contract.buffers())
    statements = []
    for name, value in values.items():
        shape = next(b.shape for b in buffers if b.name == name)
        dims = tuple(zip(DIMS, shape, strict=False))
        statements.append(Statement("map", name, dims, value, at(*(d for d, _ in dims))))
    return replace(subject, computation=canonical(Computation(tuple(sizes), buffers, tuple(statements))))


def check(runner, subject, family, many_sizes, most=3, **options):
    """Every one of the family's first and last moves leaves what the original leaves."""
    moves = list(FAMILY[family].moves(subject))
    assert moves
    for move in [*moves[: most - 1], moves[-1 if most > 1 else 0]]:
        made = FAMILY[family].apply(subject, move)
        assert made.actions == (move.name,)
        for sizes in many_sizes:
            names = dict(zip((s.name for s in subject.contract.sizes), sizes, strict=True))
            want = runner.outputs(subject.candidate, subject.contract, names, **options)
            got = runner.outputs(made, subject.contract, names, **options)
            for name, values in want.items():
                np.testing.assert_allclose(got[name].astype(float), values.astype(float), rtol=1e-5, err_msg=move.name)
    return moves


SUMS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 2048}
// m = {min = 1, max = 4096, timed = 1000}
// [args]
// g = {role = "in", shape = ["n", "m"]}
// w = {role = "in", shape = ["n"]}
// s = {role = "inout", shape = ["m"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = "BLOCKS"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
"""
SUM_SPELLINGS = {
    "a thread a column": ("ceil_div(m, 64)", """__global__ void
k(const float* g, const float* w, float* s, int n, int m) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c < m) for (int r = 0; r < n; r++) s[c] += g[r * m + c] * w[r];
}"""),
    "a block a column": ("m", """__global__ void
k(const float* g, const float* w, float* s, int n, int m) {
  __shared__ float part[64];
  float own = 0;
  for (int r = threadIdx.x; r < n; r += 64) own += w[r] * g[r * m + blockIdx.x];
  part[threadIdx.x] = own;
  for (int half = 32; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) s[blockIdx.x] += part[0];
}"""),
    "an atomic an element": ("ceil_div(n * m, 64)", """__global__ void
k(const float* g, const float* w, float* s, int n, int m) {
  int at = blockIdx.x * 64 + threadIdx.x;
  if (at < n * m) atomicAdd(&s[at % m], g[at] * w[at / m]);
}"""),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SUM_SPELLINGS)
def test_column_sums(runner, spelling):
    grid, kernel = SUM_SPELLINGS[spelling]
    value = over("sum", "n", Op("prod", (Load("g", at("k0", "i"), "float32"), Load("w", at("k0"), "float32"))))
    whole = Op("sum", (value, Load("s", at("i"), "float32")))
    subject = computed(subject_of(SUMS.replace("BLOCKS", grid) + kernel), {"s": whole}, ("n", "m"))
    check(runner, subject, "fold-columns", [(37, 70), (100, 128), (1, 1)], most=1)


def test_sums_of_products_are_split_only_where_the_contract_lets_their_order_vary():
    value = over("sum", "n", Op("prod", (Load("g", at("k0", "i"), "float32"), Load("w", at("k0"), "float32"))))
    grid, kernel = SUM_SPELLINGS["a thread a column"]
    text = SUMS.replace("BLOCKS", grid).replace("sum_length", "# sum_length") + kernel
    subject = computed(subject_of(text), {"s": value}, ("n", "m"))
    assert subject.contract.tolerance.sum_length is None
    assert not list(FAMILY["fold-columns"].moves(subject)), "parts overflow where the whole, in order, does not"


@pytest.mark.parametrize(("bounds", "split"), [("low = -2, high = 9", True), ("high = 9", False)])
def test_sums_of_products_that_cannot_overflow_are_split(runner, bounds, split):
    product = Op("prod", (Load("g", at("k0", "i"), "float32"), Load("w", at("k0"), "float32")))
    grid, kernel = SUM_SPELLINGS["a thread a column"]
    text = SUMS.replace("BLOCKS", grid).replace("sum_length", "# sum_length") + kernel
    for name in ("g", "w"):
        text = re.sub(rf'(// {name} = {{role = "in")', rf"\1, {bounds}", text)
    value = Op("sum", (over("sum", "n", product), Load("s", at("i"), "float32")))
    subject = computed(subject_of(text), {"s": value}, ("n", "m"))
    assert bool(list(FAMILY["fold-columns"].moves(subject))) == split
    if split:
        check(runner, subject, "fold-columns", [(37, 70), (100, 128), (1, 1)], most=1)


def test_a_scale_by_the_number_of_rows_is_applied_once(runner):
    kernel = (
        SUM_SPELLINGS["a thread a column"][1]
        .replace("s[c] += g[r * m + c] * w[r]", "{}")
        .replace(
            "for (int r = 0; r < n; r++) {};",
            "{ float t = 0; for (int r = 0; r < n; r++) t += g[r * m + c]; s[c] = t / n; }",
        )
    )
    total = over("sum", "n", Load("g", at("k0", "i"), "float32"))
    value = Op("div", (total, Number(Affine((("n", 1),)), "float32")))
    subject = subject_of(SUMS.replace("BLOCKS", "ceil_div(m, 64)") + kernel)
    check(runner, computed(subject, {"s": value}, ("n", "m")), "fold-columns", [(64, 96)], most=1)


PERMUTED = """// /// fsr
// entry = "k"
// [sizes]
// a = {min = 1, max = 100, timed = 8}
// b = {min = 1, max = 1000, timed = 300}
// c = {min = 1, max = 1000, timed = 64}
// [args]
// x = {role = "in", shape = ["a", "b", "c"], dtype = "DTYPE"}
// y = {role = "out", shape = ["a", "c", "b"], dtype = "DTYPE"}
// b = {value = "b"}
// c = {value = "c"}
// [launch]
// grid = ["ceil_div(b, 32)", "c", "a"]
// block = 32
// ///
__global__ void k(const CTYPE* x, CTYPE* y, int b, int c) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < b) y[(blockIdx.z * c + blockIdx.y) * b + i] = x[(blockIdx.z * b + i) * c + blockIdx.y];
}
"""


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "float"), ("int16", "short")])
def test_permutes_through_tiles(runner, dtype, kind):
    text = PERMUTED.replace("DTYPE", dtype).replace("CTYPE", kind)
    subject = computed(subject_of(text), {"y": Load("x", at("i", "i2", "j"), dtype)}, ("a", "b", "c"))
    check(runner, subject, "tile-permute", [(3, 37, 70), (2, 64, 66), (1, 1, 5)], most=1)


POINTS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 1000, timed = 300}
// c = {min = 1, max = 1000, timed = 64}
// [args]
// x = {role = "in", shape = ["n", "c"]}
// w = {role = "in", shape = ["c"]}
// y = {role = "out", shape = ["n", "c"]}
// c = {value = "c"}
// all = {value = "n * c"}
// [launch]
// grid = "ceil_div(n * c, 64)"
// block = 64
// ///
__global__ void k(const float* x, const float* w, float* y, int c, int all) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < all) y[at] = x[at] * (1.0f + x[at]) + w[at % c];
}
"""


def test_points_in_packs_with_an_index_taken_apart_once(runner):
    x = Load("x", at("i", "j"), "float32")
    value = Op("sum", (Op("prod", (x, Op("sum", (Const(1.0, "float32"), x)))), Load("w", at("j"), "float32")))
    subject = computed(subject_of(POINTS), {"y": value}, ("n", "c"))
    check(runner, subject, "pack-elements", [(5, 64), (7, 33), (1, 1)], most=1)
    check(runner, subject, "pack-elements", [(5, 64)], most=1, alignment=4)


def test_what_only_some_points_read_is_read_by_no_other(runner):
    """The row above, where there is one: what stands there twice is not read before it is known that there is."""
    text = POINTS.replace(
        "y[at] = x[at] * (1.0f + x[at]) + w[at % c]", "y[at] = at < c ? w[at] : x[at - c] * x[at - c]"
    )
    above = Load("x", (Number(Affine((("i", 1),), -1), "int64"), *at("j")), "float32")
    value = Case(Affine((("i", 1),)), Affine(()), Load("w", at("j"), "float32"), Op("prod", (above, above)))
    subject = computed(subject_of(text), {"y": value}, ("n", "c"))
    moves = check(runner, subject, "pack-elements", [(1, 100000), (3, 64)], most=1)
    made = FAMILY["pack-elements"].apply(subject, moves[0])
    reads = [line for line in made.source.splitlines() if "x[(i - 1)" in line]
    assert reads
    assert all("?" in line for line in reads)  # none stands before the condition


PRODUCT = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 64, timed = 4}
// m = {min = 1, max = 2048, timed = 512}
// n = {min = 1, max = 2048, timed = 512}
// d = {min = 1, max = 2048, timed = 512}
// [args]
// x = {role = "in", shape = ["b", "m", "d"]}
// w = {role = "in", shape = ["n", "b", "d"]}
// v = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = ["b", "m", "n"]}
// b = {value = "b"}
// m = {value = "m"}
// n = {value = "n"}
// d = {value = "d"}
// [launch]
// grid = ["ceil_div(m, 8)", "ceil_div(n, 8)", "b"]
// block = [8, 8]
// [tolerance]
// sum_length = "d"
// ///
__global__ void k(const float* x, const float* w, const float* v, float* y, int b, int m, int n, int d) {
  int row = blockIdx.x * 8 + threadIdx.x, col = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
  if (row >= m || col >= n) return;
  float t = y[(z * m + row) * n + col];
  for (int e = 0; e < d; e++) t += x[(z * m + row) * d + e] * w[(col * b + z) * d + e];
  t += v[col];
  y[(z * m + row) * n + col] = t > 0 ? t : 0;
}
"""


def test_products_of_any_layout_with_what_is_made_of_them(runner):
    body = Op("prod", (Load("x", at("i", "j", "k0"), "float32"), Load("w", at("i2", "i", "k0"), "float32")))
    own = Load("y", at("i", "j", "i2"), "float32")
    total = Op("sum", (over("sum", "d", body), own, Load("v", at("i2"), "float32")))
    zero = Const(0.0, "float32")
    subject = computed(
        subject_of(PRODUCT), {"y": Op("select", (Op("gt", (total, zero)), total, zero))}, ("b", "m", "n", "d")
    )
    check(runner, subject, "tile-contraction", [(2, 37, 70, 21), (1, 64, 64, 16), (1, 1, 1, 1)], most=1)


CONVOLUTION = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 8, timed = 4}
// c = {min = 1, max = 64, timed = 16}
// o = {min = 1, max = 64, timed = 32}
// h = {min = 1, max = 64, timed = 32}
// w = {min = 1, max = 64, timed = 32}
// [args]
// x = {role = "in", shape = ["b", "c", "h + 2", "w + 1"]}
// f = {role = "in", shape = ["o", "c", 3, 2]}
// y = {role = "out", shape = ["b", "o", "h", "w"]}
// b = {value = "b"}
// c = {value = "c"}
// o = {value = "o"}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["w", "h", "b * o"]
// block = 1
// [tolerance]
// sum_length = "6 * c"
// ///
__global__ void k(const float* x, const float* f, float* y, int b, int c, int o, int h, int w) {
  int u = blockIdx.x, v = blockIdx.y, n = blockIdx.z / o, m = blockIdx.z % o;
  float t = 0.0f;
  for (int i = 0; i < c; i++)
    for (int p = 0; p < 3; p++)
      for (int q = 0; q < 2; q++)
        t += x[((n * c + i) * (h + 2) + v + p) * (w + 1) + u + q] * f[((m * c + i) * 3 + p) * 2 + q];
  y[((n * o + m) * h + v) * w + u] = t;
}
"""


def test_a_convolution_is_a_product_over_channels_and_window(runner):
    here = Number(Affine((("i3", 1), ("k1", 1))), "int64"), Number(Affine((("j2", 1), ("k2", 1))), "int64")
    image, window = Load("x", (*at("i", "k0"), *here), "float32"), Load("f", at("j", "k0", "k1", "k2"), "float32")
    dims = (("k0", Affine((("c", 1),))), ("k1", Affine((), 3)), ("k2", Affine((), 2)))
    names = dict(zip(("i", "j", "i3", "j2"), DIMS, strict=False))
    total = renamed(Fold("sum", dims, Op("prod", (image, window))), lambda n: names.get(n, n))
    subject = computed(subject_of(CONVOLUTION), {"y": total}, ("b", "c", "o", "h", "w"))
    moves = check(runner, subject, "tile-contraction", [(2, 5, 3, 4, 37), (1, 2, 35, 2, 5), (1, 1, 1, 1, 1)], most=1)
    assert "*reinterpret_cast<const float4 *>(&f[" in FAMILY["tile-contraction"].apply(subject, moves[0]).source


ROWS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 500, timed = 300}
// c = {min = 1, max = 70000, timed = TIMED}
// [args]
// x = {role = "in", shape = ["n", "c"]}
// w = {role = "in", shape = ["c"]}
// y = {role = "out", shape = ["n", "c"]}
// c = {value = "c"}
// [launch]
// grid = "n"
// block = 1
// [tolerance]
// sum_length = "c"
// ///
__global__ void k(const float* x, const float* w, float* y, int c) {
  float high = -INFINITY, total = 0;
  for (int e = 0; e < c; e++) high = fmaxf(high, x[blockIdx.x * c + e]);
  for (int e = 0; e < c; e++) total += w[e] * (x[blockIdx.x * c + e] - high);
  for (int e = 0; e < c; e++) y[blockIdx.x * c + e] = x[blockIdx.x * c + e] * w[e] - total;
}
"""


@pytest.mark.parametrize(
    ("timed", "keep", "sizes"), [(203, "registers", [(3, 203), (2, 61)]), (45001, "shared", [(2, 45001), (2, 61)])]
)
def test_rows_that_begin_anywhere_stay_where_there_is_room(runner, timed, keep, sizes):
    x, w = Load("x", at("i", "k0"), "float32"), Load("w", at("k0"), "float32")
    high = over("max", "c", x)
    total = over("sum", "c", Op("prod", (w, Op("sum", (x, Op("neg", (high,)))))))
    own = Op("prod", (Load("x", at("i", "j"), "float32"), Load("w", at("j"), "float32")))
    text = ROWS.replace("TIMED", str(timed))
    subject = computed(subject_of(text), {"y": Op("sum", (own, Op("neg", (total,))))}, ("n", "c"))
    moves = [m for m in FAMILY["fold-rows"].moves(subject) if m.param("keep") == keep and m.param("pack") == 4]
    for move in moves[:1]:
        made = FAMILY["fold-rows"].apply(subject, move)
        for n, c in sizes:
            want = runner.outputs(subject.candidate, subject.contract, {"n": n, "c": c})
            got = runner.outputs(made, subject.contract, {"n": n, "c": c})
            np.testing.assert_array_equal(got["y"], want["y"])
    assert moves


def require_apart(subject, *families):
    """Whatever is offered keeps results in a buffer of their own until all has been read. How many moves there are."""
    count = 0
    for action in FROM_COMPUTATION:
        for move in action.moves(subject) if not families or action.name in families else ():
            plan = action.apply(subject, move).plan
            aside = {s.name for s in plan.scratch if s.name.startswith("aside")}
            assert aside & set(plan.launches[0].args), move.name
            assert aside & set(plan.launches[-1].args), move.name
            assert len(plan.launches) > 1, move.name
            count += 1
    return count


def test_a_result_that_another_point_reads_is_not_written_where_it_lies():
    kernel = SUM_SPELLINGS["a thread a column"]
    subject = subject_of(SUMS.replace("BLOCKS", kernel[0]) + kernel[1])
    shifted = Load("s", (Number(Affine((("i", 1),), 1), "int64"),), "float32")
    wrong = computed(subject, {"s": shifted}, ("n", "m"))
    assert require_apart(wrong)
    assert [m for action in FROM_COMPUTATION for m in action.moves(replace(wrong, keep_launch=True))] == []


def test_a_product_in_squares_of_threads_may_keep_its_launch(runner):
    text = (EXAMPLES / "gemm.cu").read_text()
    value = over("sum", "K", Op("prod", (Load("A", at("i", "k0"), "float32"), Load("B", at("k0", "j"), "float32"))))
    subject = replace(computed(subject_of(text), {"C": value}, ("M", "N", "K")), keep_launch=True)
    (move,) = [m for action in FROM_COMPUTATION for m in action.moves(subject)]
    assert move.name == "tile-contraction@plan[tile=16]"
    made = FAMILY["tile-contraction"].apply(subject, move)
    assert made.plan.launches[0].block == subject.candidate.plan.launches[0].block
    for sizes in ((1, 1, 1), (18, 35, 9), (3, 4, 0)):
        runner.check(subject, made, dict(zip("MNK", sizes, strict=True)))


def test_elements_of_vectors_are_named_one_by_one(runner):
    kernel = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n", 4], alignment = 16}
// y = {role = "out", shape = ["n", 4]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float4 *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x, x_elements = i;
  if (i < n) { float4 v = x[x_elements]; y[4 * i] = v.x; y[4 * i + 1] = v.y; y[4 * i + 2] = v.z; y[4 * i + 3] = v.w; }
}"""
    element = Load("x", at("i", "j"), "float32")
    subject = computed(subject_of(kernel), {"y": element}, ("n",))
    moves = check(runner, subject, "pack-elements", [(1,), (100,)], most=1)
    source = FAMILY["pack-elements"].apply(subject, moves[0]).source
    assert "const float *x_elements_ = reinterpret_cast<const float *>(x);" in source, "the other is the original's"
    assert "const float4 *" in source, "callers pass what they passed"
