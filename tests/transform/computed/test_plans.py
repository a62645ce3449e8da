"""Plans of several launches and results that stand where inputs stood, written anew from what they compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.computed.attention_form import attention as attention_in
from fsr.transform.computed.scene import cuttings
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, at, check, computed, over, require_apart
from tests.transform.conftest import subject_of

KERNELS = Path(__file__).parents[3] / "benchmarks" / "kernels" / "plans"


def load(buffer: str, *dims: str) -> Load:
    return Load(buffer, at(*dims), "float32")


def plus(*args: Expr) -> Op:
    return Op("sum", args)


def of_file(name: str, changed: Callable[[str], str] | None = None, folder: Path = KERNELS) -> Subject:
    path = KERNELS / f"{name}.cu"
    if changed is not None:
        path = folder / path.name
        path.write_text(changed((KERNELS / path.name).read_text()))
    kernel = load_kernel(path)
    return Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract)


def softmax_of(x: str, cols: str) -> Op:
    top = over("max", cols, load(x, "i", "k0"))
    total = over("sum", cols, Op("exp", (plus(load(x, "i", "k0"), Op("neg", (top,))),)))
    return Op("div", (Op("exp", (plus(load(x, "i", "j"), Op("neg", (top,))),)), total))


def test_three_launches_become_one_and_their_scratch_memory_goes(runner):
    subject = computed(of_file("softmax_three"), {"y": softmax_of("x", "cols")}, ("rows", "cols"))
    check(runner, subject, "fold-rows", [(3, 130), (2, 1)], most=1)
    made = FAMILY["fold-rows"].apply(subject, next(FAMILY["fold-rows"].moves(subject)))
    assert len(made.plan.launches) == 1
    assert not made.plan.scratch
    assert "row_sum" not in made.source


def test_a_softmax_reads_a_long_row_twice_where_its_folds_go_together(runner, tmp_path):
    subject = of_file("softmax_three", lambda text: text.replace("timed = 4096", "timed = 65536"), tmp_path)
    subject = computed(subject, {"y": softmax_of("x", "cols")}, ("rows", "cols"))
    move = next(m for m in FAMILY["fold-rows"].moves(subject) if m.param("keep") == "online")
    made = FAMILY["fold-rows"].apply(subject, move)
    sizes = {"rows": 2, "cols": 1100}
    want, got = (runner.outputs(c, subject.contract, sizes)["y"] for c in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_sum_that_is_kept_and_the_norm_of_it_are_one_walk_over_the_row(runner):
    total = plus(load("x", "i", "k0"), load("y", "i", "k0"))
    mean = Op("div", (over("sum", "cols", total), Number(Affine((("cols", 1),)), "float32")))
    value = plus(load("x", "i", "j"), load("y", "i", "j"))
    apart = plus(total, Op("neg", (mean,)))
    spread = over("sum", "cols", Op("prod", (apart, apart)))
    mean_square = Op("div", (spread, Number(Affine((("cols", 1),)), "float32")))
    scale = Op("rsqrt", (plus(mean_square, Const(1e-5, "float32")),))
    norm = Op("prod", (load("gamma", "j"), scale, plus(value, Op("neg", (mean,)))))
    values = {"residual": value, "out": plus(load("beta", "j"), norm)}
    subject = computed(of_file("add_layer_norm"), values, ("rows", "cols"))
    moves = list(FAMILY["fold-rows"].moves(subject))
    made = FAMILY["fold-rows"].apply(subject, moves[0])
    assert len(made.plan.launches) == 1
    assert made.source.count("residual[") == made.source.count("out[")  # written beside it, never read


def test_rows_are_normalised_where_they_lie_with_a_value_a_row_beside_them(runner):
    length = Op("sqrt", (over("sum", "cols", Op("prod", (load("x", "i", "k0"), load("x", "i", "k0")))),))
    quotient = Op("div", (load("x", "i", "j"), plus(length, Const(1e-6, "float32"))))
    subject = computed(of_file("normalise_rows_two"), {"x": quotient, "length": length}, ("rows", "cols"))
    check(runner, subject, "fold-rows", [(5, 70), (4, 512)], most=1)


EACH_OTHER = """// /// fsr
// [sizes]
// n = {min = 1, max = 4096, timed = 2048}
// [args]
// p = {role = "inout", shape = ["n"]}
// m = {role = "inout", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(float *p, float *m, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) { float a = p[i], b = m[i]; p[i] = a - b; m[i] = b + a; }
}"""


def test_results_that_read_each_other_are_all_made_before_one_is_written(runner):
    values = {"p": plus(load("p", "i"), Op("neg", (load("m", "i"),))), "m": plus(load("m", "i"), load("p", "i"))}
    check(runner, computed(subject_of(EACH_OTHER), values, ("n",)), "pack-elements", [(2048,), (13,)], most=1)


ARGMIN = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 2048}
// cols = {min = 1, max = 4096, timed = 1000}
// [args]
// x = {role = "in", shape = ["rows", "cols"], dtype = "float16"}
// y = {role = "out", shape = ["rows"], dtype = "int32"}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// exact = true
// ///
#include <cuda_fp16.h>
__global__ void k(const __half* x, int* y, int rows, int cols) {
  int r = blockIdx.x * 64 + threadIdx.x, at = 0;
  if (r >= rows) return;
  for (int j = 1; j < cols; ++j) if (x[r * cols + j] < x[r * cols + at]) at = j;
  y[r] = at;
}"""


def test_of_equal_values_a_row_keeps_the_first_place(runner):
    pair = Op("pair", (Load("x", at("i", "k0"), "float16"), Number(Affine((("k0", 1),)), "int32")))
    subject = computed(subject_of(ARGMIN), {"y": over("argmin", "cols", pair)}, ("rows", "cols"))
    check(runner, subject, "fold-rows", [(3, 515), (5, 1), (2, 64)])
    sizes = {"rows": 9, "cols": 573}  # rows begin within a pack, and a thread's first elements come after others
    alike = {"x": np.full((9, 573), 2.0, np.float16)}
    for move in FAMILY["fold-rows"].moves(subject):
        made = FAMILY["fold-rows"].apply(subject, move)
        assert not runner.outputs(made, subject.contract, sizes, given=alike)["y"].any(), move.name


BY_CHANNEL = """// /// fsr
// entry = "k"
// [sizes]
// images = {min = 1, max = 8, timed = 2}
// classes = {min = 1, max = 300, timed = 256}
// points = {min = 1, max = 65536, timed = 4096}
// [args]
// x = {role = "in", shape = ["images", "classes", "points"], dtype = "float16"}
// y = {role = "out", shape = ["images", "points"], dtype = "int32"}
// classes = {value = "classes"}
// points = {value = "points"}
// [launch]
// grid = ["ceil_div(points, 64)", "images"]
// block = 64
// [tolerance]
// exact = true
// ///
#include <cuda_fp16.h>
__global__ void k(const __half* x, int* y, int classes, int points) {
  int p = blockIdx.x * 64 + threadIdx.x, at = 0;
  if (p >= points) return;
  const __half* first = x + blockIdx.y * classes * points + p;
  for (int c = 1; c < classes; ++c) if (first[c * points] > first[at * points]) at = c;
  y[blockIdx.y * points + p] = at;
}"""


def test_of_equal_values_a_column_keeps_the_first_place(runner):
    place = Number(Affine((("k0", 1),)), "int32")
    pair = Op("pair", (Load("x", at("i", "k0", "j"), "float16"), place))
    sizes = ("images", "classes", "points")
    subject = computed(subject_of(BY_CHANNEL), {"y": over("argmax", "classes", pair)}, sizes)
    assert {dict(m.params)["parts"] for m in FAMILY["fold-columns"].moves(subject)} > {1}  # some in two launches
    check(runner, subject, "fold-columns", [(2, 70, 40), (1, 1, 5), (3, 19, 129)])
    alike = {"x": np.full((2, 250, 37), -2.0, np.float16)}
    for move in FAMILY["fold-columns"].moves(subject):
        made = FAMILY["fold-columns"].apply(subject, move)
        many = {"images": 2, "classes": 250, "points": 37}
        assert not runner.outputs(made, subject.contract, many, given=alike)["y"].any(), move.name


@pytest.mark.parametrize("family", FAMILY)
def test_an_element_that_another_point_reads_is_not_written_where_it_lies(family):
    neighbour = Load("p", (Number(Affine((("i", 1),), 1), "int64"),), "float32")
    subject = computed(subject_of(EACH_OTHER), {"p": neighbour, "m": load("m", "i")}, ("n",))
    assert bool(require_apart(subject, family)) == (family in ("register-tile", "pack-elements"))


def scores(to: str) -> Op:
    product = Op("prod", (load("k", "i", to, "k1"), load("q", "i", "j", "k1")))
    return Op("div", (over("sum", "d", product, "k1"), Op("sqrt", (Number(Affine((("d", 1),)), "float32"),))))


def softmax_parts(length: Affine) -> tuple[Fold, Fold]:
    """The sum of values weighed by powers, and that of the powers."""
    powers = Op("exp", (plus(scores("k0"), Op("neg", (Fold("max", (("k0", length),), scores("k0")),))),))
    weighed = Op("prod", (load("v", "i", "k0", "i2"), powers))
    return Fold("sum", (("k0", length),), weighed), Fold("sum", (("k0", length),), powers)


def attention(length: Affine) -> Fold:
    """Of queries j over as many keys."""
    top = Fold("max", (("k0", length),), scores("k0"))
    power = Op("exp", (plus(scores("k0"), Op("neg", (top,))),))
    total = Fold("sum", (("k0", length),), power)
    return Fold("sum", (("k0", length),), Op("prod", (load("v", "i", "k0", "i2"), Op("div", (power, total)))))


def test_attention_is_a_contraction_a_softmax_and_a_contraction(runner):
    """Of as many keys as come before a query."""
    subject = computed(
        of_file("attention_causal_three"), {"out": attention(Affine((("j", 1),), 1))}, ("heads", "t", "d")
    )
    made = FAMILY["tile-contraction"].apply(subject, next(FAMILY["tile-contraction"].moves(subject)))
    assert len(made.plan.launches) == 3
    assert len(made.plan.scratch) == 2
    sizes = {"heads": 2, "t": 19, "d": 5}
    want, got = (runner.outputs(c, subject.contract, sizes)["out"] for c in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_attention_to_all_keys_is_cut_alike():
    subject = computed(of_file("attention_three"), {"out": attention(Affine((("t", 1),)))}, ("heads", "t", "d"))
    ways = [[(len(scene.part.made), len(scene.part.outputs)) for scene in cut] for cut in cuttings(subject)]
    assert ways[-2] == [(0, 1), (2, 1), (0, 1)]  # the last one keeps the folds of a row too
    assert ways[-1] == [(0, 1)] * 5


def test_attention_is_one_walk_over_the_keys(runner):
    """Divided once for a query, the first of which sees one key only. The long walks of all heads are begun first."""
    length = Affine((("j", 1),), 1)
    weighed, total = softmax_parts(length)
    first = Load("v", (*at("i"), Number(Affine(), "int64"), *at("i2")), "float32")
    value = Case(Affine((("j", 1),)), Affine(), first, Op("div", (weighed, total)))
    subject = computed(of_file("attention_causal_three"), {"out": value}, ("heads", "t", "d"))
    move = next(m for m in FAMILY["tile-attention"].moves(subject) if m.param("keys") == 32)
    made = FAMILY["tile-attention"].apply(subject, move)
    assert (len(made.plan.launches), made.plan.scratch) == (1, ())
    assert "first = (tiles - 1 - blockIdx.x / heads_) * " in made.source or "blockIdx.x / heads" in made.source
    sizes = {"heads": 2, "t": 71, "d": 5}
    want, got = (runner.outputs(c, subject.contract, sizes)["out"] for c in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_sums_are_scaled_where_scores_rise_by_more_than_a_little(runner):
    """From tile to tile a little, by four in all: the answer is as near the exact one as the original's."""
    length = Affine((("t", 1),))
    weighed, total = softmax_parts(length)
    subject = computed(of_file("attention_three"), {"out": Op("div", (weighed, total))}, ("heads", "t", "d"))
    move = next(m for m in FAMILY["tile-attention"].moves(subject) if m.param("keys") == 32)
    rng, shape = np.random.default_rng(5), (1, 1024, 4)
    rising = {n: np.sort(rng.uniform(-1, 1, shape).astype("f4"), axis=None).reshape(shape) for n in ("q", "k", "v")}
    wide = {n: a[0].astype("f8") for n, a in rising.items()}
    weights = np.exp(wide["q"] @ wide["k"].T / 2.0)
    exact = weights @ wide["v"] / weights.sum(axis=1, keepdims=True)
    sizes = {"heads": 1, "t": 1024, "d": 4}
    plain, tiled = (
        np.abs(runner.outputs(c, subject.contract, sizes, given=rising)["out"][0] - exact).max()
        for c in (subject.candidate, FAMILY["tile-attention"].apply(subject, move))
    )
    assert tiled < 2.0 * plain


def test_each_weight_may_be_divided_too():
    for name, length in (("attention_three", Affine((("t", 1),))), ("attention_causal_three", Affine((("j", 1),), 1))):
        subject = computed(of_file(name), {"out": attention(length)}, ("heads", "t", "d"))
        assert list(FAMILY["tile-attention"].moves(subject))


def test_heads_of_queries_that_share_keys_are_attention():
    def read(buffer: str, *dims: str) -> Load:
        return load(buffer, "i", *dims)

    product = over("sum", "d", Op("prod", (read("k", "k0", "k1"), read("q", "j", "i2", "k1"))), "k1")
    power = Op("exp", (plus(product, Op("neg", (over("max", "t", product),))),))
    weighed = over("sum", "t", Op("prod", (read("v", "k0", "i3"), power)))
    domain = (("i", "heads"), ("j", "group"), ("i2", "t"), ("i3", "d"))
    s = Statement("fold", "out", domain, Op("div", (weighed, over("sum", "t", power))), at(*(n for n, _ in domain)))
    found = attention_in(s, s.value, ("heads", "group", "t", "d"))
    assert found is not None
    assert (found.query, found.lead) == (domain[2], domain[:2])


def test_weights_that_are_no_softmax_are_no_attention():
    power = Op("exp", (plus(scores("k0"), Op("neg", (over("min", "t", scores("k0")),))),))
    quotient = Op("div", (power, over("sum", "t", power)))
    other = over("sum", "t", Op("prod", (load("v", "i", "k0", "i2"), quotient)))
    subject = computed(of_file("attention_three"), {"out": other}, ("heads", "t", "d"))
    assert not list(FAMILY["tile-attention"].moves(subject))


def test_columns_are_folded_once_and_kept_for_their_elements(runner):
    total = over("sum", "rows", load("x", "k0", "j"))
    mean = Op("div", (total, Number(Affine((("rows", 1),)), "float32")))
    centred = plus(load("x", "i", "j"), Op("neg", (mean,)))
    subject = computed(of_file("center_columns"), {"y": centred}, ("rows", "cols"))
    check(runner, subject, "fold-columns", [(32, 70)], most=1)


def test_a_fold_over_neighbouring_dimensions_is_one_over_their_product(runner):
    text = """// /// fsr
// [sizes]
// b = {min = 1, max = 64, timed = 8}
// t = {min = 1, max = 1024, timed = 512}
// c = {min = 1, max = 1024, timed = 768}
// [args]
// g = {role = "in", shape = ["b", "t", "c"]}
// s = {role = "inout", shape = ["c"]}
// [launch]
// grid = "c"
// block = 1
// ///
__global__ void k(const float *g, float *s, int b, int t, int c) {
  for (int r = 0; r < b * t; r++) s[blockIdx.x] += g[r * c + blockIdx.x];
}"""
    total = Fold("sum", (("k0", Affine((("b", 1),))), ("k1", Affine((("t", 1),)))), load("g", "k0", "k1", "i"))
    subject = computed(subject_of(text), {"s": plus(total, load("s", "i"))}, ("b", "t", "c"))
    check(runner, subject, "fold-columns", [(2, 19, 33)], most=1)
