"""Fields that lie one behind the other in one buffer, some of which a step changes while it reads the others, also past
the ends of their rows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Load, Number, affine
from fsr.lifting.lift import lift
from fsr.transform.computed.parts import Part
from fsr.transform.computed.scene import cuttings
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import check
from tests.transform.conftest import subject_of

traced = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

STEP = """// /// fsr
// entry = "k"
// [sizes]
// a = {min = 8, max = 90, timed = 90}
// b = {min = 8, max = 90, timed = 90}
// c = {min = 8, max = 90, timed = 90}
// [args]
// s = {role = "inout", shape = [9, "a", "b", "c"]}
// a = {value = "a"}
// b = {value = "b"}
// c = {value = "c"}
// [launch]
// grid = ["ceil_div(c, 16)", "b", "a"]
// block = 16
// ///
__global__ void k(float *s, int a, int b, int c) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  if (x < 3 || y < 3 || z < 3 || x > c - 3 || y > b - 3 || z > a - 3) return;
  int n = a * b * c, at = (z * b + y) * c + x;
  float d = s[4 * n + at + 3] - s[4 * n + at - 2] + s[5 * n + at + 3 * c] - s[5 * n + at - 2 * c];
  s[at] += 2.0f * d;
  s[n + at] = d - s[8 * n + at];
}"""


@cache
def lifted() -> Subject:
    bare = subject_of(STEP)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


@traced
@pytest.mark.parametrize("family", ["register-tile", "pack-elements"])
def test_what_changes_is_written_alone(runner, family):
    parts = [scene.part for scene in cuttings(lifted())[0]]
    assert sorted(s.place[0].index.constant for p in parts for s in p.outputs) == [0, 1]
    check(runner, lifted(), family, [(8, 9, 24), (11, 8, 37), (9, 12, 8)])


@pytest.mark.parametrize(("field", "distance", "carries", "safe"), [
    (2, 3, True, True), (0, 3, True, False), (2, -3, True, False), (2, -3, False, True), (1, 3, False, False),
])  # fmt: skip
def test_a_read_that_goes_on_into_another_row_may_reach_the_next_field(field, distance, carries, safe):
    def at(number: int, step: int) -> tuple[Number, ...]:
        return Number(Affine((), number), "int64"), Number(replace(affine("i"), constant=step), "int64")

    value = Load("s", at(field, distance), "float32", carries)
    changed = Statement("map", "s", (("i", "n"),), value, at(1, 0))
    assert Part(("n",), (), (("i", "n"),), (), (changed,)).by_points == safe
