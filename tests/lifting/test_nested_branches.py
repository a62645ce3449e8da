"""A branch inside a branch, and what is read again after it."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.check import agree
from fsr.lifting.graph import Graph
from fsr.lifting.lift import lift
from fsr.lifting.merging import AskedOnce, merged
from fsr.lifting.refused import Refused
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "relax"
// [sizes]
// n = {min = 1, max = 65536, timed = 65536}
// [args]
// a = {role = "in", shape = ["n"]}
// b = {role = "in", shape = ["n"]}
// r = {role = "in", shape = ["n"], low = 1, high = 2}
// wet = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = ["n"], low = 1, high = 5}
// z = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void relax(const double *a, const double *b, const double *r, const bool *wet, double *y, double *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (wet[i]) {
    double e = a[i] * a[i] + b[i] * b[i], t = 5.0;
    if (e > 0.) t = r[i] / __powf(e, 0.25);
    y[i] = min(__expf(0.3 * __logf(t) + 0.7 * __logf(y[i])), 1e5);
  }
  z[i] = y[i] * r[i];
}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_a_branch_in_a_branch_that_only_zeros_take_and_a_buffer_read_again_after_it(tmp_path):
    (tmp_path / "k.cu").write_text(KERNEL)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    y, z = lines(found.computation)
    assert "if (a[i] * a[i] + b[i] * b[i] > 0.0) else" in y
    assert y.endswith("if bool(int8(wet[i])) else y[i])")
    assert z.startswith("z[i] = r[i] * (") or z.endswith("* r[i]")


def test_a_condition_asks_nothing_that_is_decided_around_it():
    g = Graph()
    outer, x = g.make("gt", g.make("load", "u", ()), g.const(0.0, "float32")), g.make("load", "x", ())
    inner = g.make("gt", g.make("guard", outer, 1, x), g.const(0.0, "float32"))
    e = g.make("guard", outer, 1, g.make("guard", inner, 1, x))
    plain = g.make("gt", x, g.const(0.0, "float32"))
    assert AskedOnce(g).of(e) == g.make("guard", outer, 1, g.make("guard", plain, 1, x))


def test_a_buffer_that_a_branch_leaves_alone_holds_what_it_held():
    g = Graph()
    condition, value = g.make("gt", g.make("load", "u", ()), g.const(0.0, "float32")), g.make("load", "x", ())
    old, home = g.make("load", "y", (g.integer(0, "int64"),)), g.make("load", "z", (g.integer(0, "int64"),))
    written, left = (g.list_of("prod", [value, k]) for k in (g.make("guard", condition, 1, value), old))
    assert merged(g, written, left, home, ("y",)) == g.list_of("prod", [value, g.selected(condition, value, old)])
    with pytest.raises(Refused):
        merged(g, written, left, home)


def test_doubles_that_were_of_single_precision_have_its_errors():
    want = np.linspace(1.0, 2.0, 100)
    near = want * (1 + 3e-6)
    assert not agree(near, near, want)
    assert agree(near, near, want, single=True)
    assert not agree(want * 1.001, want * 1.001, want, single=True)
