"""Scalars of a few values are known before a computation begins: conditions of it ask for them."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.contract.flags import flags_of, with_choices
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from tests.transform.conftest import subject_of

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 1, max = 2048, timed = 2048}}
// cols = {{min = 1, max = 1024, timed = 1024}}
// [args]
// x = {{role = "in", shape = ["rows", "cols"]}}
// y = {{role = "out", shape = ["rows"]}}
// mode = {{{limits}}}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, int rows, int cols, {type} mode) {{
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = x[r * cols];
  for (int c = 1; c < cols; c++) {{
    float v = x[r * cols + c];
    {body}
  }}
  y[r] = s;
}}
"""
EITHER = "if (mode == 0) s = fminf(s, v); else s = fmaxf(s, v);"
THREE = "s = mode == 0 ? fminf(s, v) : mode == 1 ? fmaxf(s, v) : s + v;"


@watched
@pytest.mark.parametrize(("type_", "limits", "body", "wanted"), [
    ("int", "low = 0, high = 1", EITHER, "y[i] = (_min[i] if mode <= 0 else _max[i])"),
    ("bool", "low = 0, high = 1", EITHER, "y[i] = (_min[i] if mode <= 0 else _max[i])"),
    ("int", "low = 0, high = 2", THREE, "y[i] = (_min[i] if mode <= 0 else (_max[i] if mode <= 1 else _sum[i]))"),
    ("int", "value = 0", EITHER, "y[i] = min(x[i, k0] for k0 in range(cols))"),
])  # fmt: skip
def test_a_flag_is_asked_for(tmp_path, type_, limits, body, wanted):
    (tmp_path / "k.cu").write_text(KERNEL.format(type=type_, limits=limits, body=body))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert wanted in lines(found.computation)


def test_what_is_a_flag():
    def flags(limits: str, type_: str = "int"):
        return flags_of(subject_of(KERNEL.format(type=type_, limits=limits, body=EITHER)).contract)

    assert flags("low = 0, high = 1") == {"mode": (0, 1)}
    assert flags("low = -1, high = 2") == {"mode": (-1, 0, 1, 2)}
    assert flags("low = 0, high = 4") == {}  # too many to watch a plan with each
    assert flags("low = 0, high = 'cols - 1'") == {}
    assert flags("value = 1") == {}
    assert flags("low = 0, high = 1", "float") == {}


def test_every_size_is_watched_with_every_flag():
    contract = subject_of(KERNEL.format(type="int", limits="low = 0, high = 1", body=EITHER)).contract
    found = with_choices(contract, [{"n": 3}, {"n": 5}])
    assert found == [{"n": 3, "mode": 0}, {"n": 3, "mode": 1}, {"n": 5, "mode": 0}, {"n": 5, "mode": 1}]
    without = subject_of(KERNEL.format(type="int", limits="value = 1", body=EITHER)).contract
    assert with_choices(without, [{"n": 3}]) == [{"n": 3}]
