"""Sums over all others of what each has in common with a point."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Case, Load, Number, Op
from tests.transform.computed.test_families import FAMILY, at, check, computed, over, require_apart
from tests.transform.conftest import subject_of

PULLS = """// /// fsr
// entry = "k<float>"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// x = {dtype = "float32", role = "in", shape = ["n", 4], alignment = 16}
// v = {dtype = "float32", role = "inout", shape = ["n", 4], alignment = 16}
// step = {role = "in", dtype = "float32", shape = [1]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
template <typename T> struct of { typedef float4 four; };
__constant__ float step;
template <typename T> __global__ void k(typename of<T>::four* x, typename of<T>::four* v, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  T a = 0, b = 0;
  for (int k = 0; k < n; k++) {
    T p = x[k].x - x[i].x, q = x[k].y - x[i].y, w = x[k].w * (p * p + q * q);
    a += w * p;
    b += w * q;
  }
  v[i].x += a * step;
  v[i].y += b * step;
  v[i].z = v[i].w;
}
"""


def number(n: int) -> Number:
    return Number(Affine((), n), "int64")


def value(write_from: str = "v") -> Op | Case:
    """What the kernel leaves of v."""
    k, i, j = at("k0", "i", "j")

    def apart(place):
        return Op("sum", (Load("x", (k, place), "float32"), Op("neg", (Load("x", (i, place), "float32"),))))

    squares = Op("sum", tuple(Op("prod", (apart(number(c)), apart(number(c)))) for c in (0, 1)))
    pull = over("sum", "n", Op("prod", (Load("x", (k, number(3)), "float32"), squares, apart(j))))
    moved = Op("sum", (Load("v", (i, j), "float32"), Op("prod", (pull, Load("step", (number(0),), "float32")))))
    last = Case(
        Affine((("j", 1),)), Affine((), 2), Load(write_from, (i, number(3)), "float32"), Load("v", (i, j), "float32")
    )
    return Case(Affine((("j", 1),)), Affine((), 1), moved, last)


def subject():
    text = PULLS.replace('// step = {role = "in", dtype = "float32", shape = [1]}\n', "// step = {low = 1, high = 4}\n")
    return subject_of(text)


def test_lanes_share_a_points_sums_and_threads_have_several_points(runner):
    given = computed(subject(), {"v": value()}, ("n",))
    moves = list(FAMILY["fold-points"].moves(given))
    assert moves[0].name == "fold-points@plan[lanes=32,points=2,threads=256]"
    made = FAMILY["fold-points"].apply(given, moves[0]).source
    assert "fsr_pack<float, 4>" in made
    assert made.count("__shfl_xor_sync") == 4  # two sums of two points
    check(runner, given, "fold-points", [(70,), (1,), (33,)])


@pytest.mark.parametrize("wrong", ["others", "shared", "next"])
def test_what_points_read_and_others_write_is_set_aside(wrong):
    k, i, j = at("k0", "i", "j")
    own = Load("v", (i, j), "float32")
    read = Load("v" if wrong == "others" else "x", (k, j), "float32")
    total = over("sum", "n", Op("prod", (read, Load("x", (i, j), "float32"))))
    if wrong == "shared":  # by all points
        total = over("sum", "n", Load("x", (k, j), "float32"))
    if wrong == "next":
        own = Load("v", (Number(Affine((("i", 1),), 1), "int64"), j), "float32")
    given = computed(subject(), {"v": Op("sum", (own, total))}, ("n",))
    assert bool(require_apart(given, "fold-points")) == (wrong != "shared")


BODIES = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// b = {dtype = "float32", role = "inout", shape = ["n", 5]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
struct Body { float x, y, vx, vy, mass; };
__global__ void k(Body *b, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float p = 0, q = 0;
  for (int k = 0; k < n; k++) {
    p += b[k].mass * (b[k].x - b[i].x);
    q += b[k].mass * (b[k].y - b[i].y);
  }
  b[i].vx += p;
  b[i].vy += q;
}
"""


def of_bodies(first: int):
    """Of records of five, what pulls on two elements from ``first`` on, the others as they are."""
    k, i, j = at("k0", "i", "j")
    there = Number(Affine((("j", 1),), -first), "int64")
    apart = Op("sum", (Load("b", (k, there), "float32"), Op("neg", (Load("b", (i, there), "float32"),))))
    pull = over("sum", "n", Op("prod", (Load("b", (k, number(4)), "float32"), apart)))
    own = Load("b", (i, j), "float32")
    moved = Case(Affine((("j", 1),)), Affine((), first + 1), Op("sum", (own, pull)), own)
    return Case(Affine((("j", 1),)), Affine((), first - 1), own, moved)


def test_records_of_which_points_read_some_elements_and_write_others(runner):
    given = computed(subject_of(BODIES), {"b": of_bodies(2)}, ("n",))
    made = FAMILY["fold-points"].apply(given, next(iter(FAMILY["fold-points"].moves(given)))).source
    assert made.count("= made") == 4  # two elements of two points, none that stays as it is
    check(runner, given, "fold-points", [(70,), (1,), (33,)])


@pytest.mark.parametrize("first", [1, 3])  # the second is a coordinate, the last is the mass
def test_records_of_which_points_write_what_others_read_are_set_aside(first):
    assert require_apart(computed(subject_of(BODIES), {"b": of_bodies(first)}, ("n",)), "fold-points")


@pytest.mark.parametrize("family", ["fold-columns", "pack-elements"])
def test_kernels_beside_the_first_have_the_types_of_their_launch(runner, family: str):
    given = computed(subject(), {"v": value()}, ("n",))
    moves = [*FAMILY[family].moves(given)]
    assert moves
    changed = FAMILY[family].apply(given, moves[0])
    assert len(changed.plan.launches) > 1
    assert "of<float>::four" in changed.source
    runner.check(given, changed, {"n": 33}, {"n": 100})
