"""Updates in place of what lies below and to the right of all that they read."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op
from tests.transform.computed.test_families import FAMILY, at, check, computed, require_apart
from tests.transform.conftest import subject_of

UPDATE = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 512}
// [args]
// a = {role = "inout", shape = ["n", "n"]}
// n = {value = "n"}
// [launch]
// grid = ["ceil_div(n, 8)", "ceil_div(n, 8)"]
// block = [8, 8]
// [tolerance]
// sum_length = 5
// ///
__global__ void k(float* a, int n) {
  int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
  if (i < 7 || j < 5 || i >= n || j >= n) return;
  float t = 0.0f;
  for (int e = 0; e < 5; e++) t += a[i * n + e] * a[e * n + j];
  a[i * n + j] -= t;
}
"""


def value(terms: int, i: int = 7, j: int = 5) -> Expr:
    """What the kernel leaves, of so many terms and changed from there on."""
    product = Op("prod", (Load("a", at("i", "k0"), "float32"), Load("a", at("k0", "j"), "float32")))
    total = Fold("sum", (("k0", Affine((), terms)),), Op("neg", (product,)))
    nought = Const(0.0, "float32")
    inner = Case(Affine((("j", 1),)), Affine((), j - 1), nought, total)
    return Op("sum", (Load("a", at("i", "j"), "float32"), Case(Affine((("i", 1),)), Affine((), i - 1), nought, inner)))


@pytest.mark.parametrize("family", ["tile-contraction", "pipeline-contraction"])
def test_what_is_read_is_written_by_nobody(runner, family):
    subject = computed(subject_of(UPDATE), {"a": value(5)}, ("n",))
    check(runner, subject, family, [(70,), (64,), (9,), (6,), (1,)])


def test_elements_that_stay_are_not_written_and_nothing_races(runner):
    subject = computed(subject_of(UPDATE), {"a": value(5)}, ("n",))
    action = FAMILY["tile-contraction"]
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert " >= 7" in made.source
    assert " >= 5" in made.source
    assert not runner.outputs(made, subject.contract, {"n": 140}, instrumented=True)["faults"].size


@pytest.mark.parametrize("wrong", [value(8), value(6, j=5, i=5), value(5, i=1, j=1)])
def test_what_is_read_and_changes_is_set_aside(wrong):
    subject = computed(subject_of(UPDATE), {"a": wrong}, ("n",))
    assert require_apart(subject)


def test_a_shifted_read_of_what_changes_is_not_taken_for_one_of_what_stays():
    far = Load("a", (Number(Affine((("i", 1),)), "int64"), Number(Affine((("k0", 1),), 1), "int64")), "float32")
    near = Load("a", at("k0", "j"), "float32")
    total = Fold("sum", (("k0", Affine((), 5)),), Op("prod", (far, near)))
    nought = Const(0.0, "float32")
    inner = Case(Affine((("j", 1),)), Affine((), 4), nought, total)
    whole = Op("sum", (Load("a", at("i", "j"), "float32"), Case(Affine((("i", 1),)), Affine((), 4), nought, inner)))
    subject = computed(subject_of(UPDATE), {"a": whole}, ("n",))
    assert require_apart(subject)
