"""Plans whose launches are lifted each for itself."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import from_record, to_record
from fsr.computation.printing import lines
from fsr.lifting.attempt import Attempt
from fsr.lifting.launches import by_launches
from fsr.lifting.lift import lift
from fsr.lifting.refused import Refused
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

CONTRACT = """[sizes]
w = {min = 2, max = 4000, timed = 4000}
h = {min = 2, max = 4000, timed = 4000}

[args]
u = {role = "inout", dtype = "float32", shape = ["h", "w"]}

[[launch]]
entry = "slopes"
grid = ["ceil_div(w, 32)", "ceil_div(h, 4)"]
block = [32, 4]
args = ["u", "g", "w", "h"]

[[launch]]
entry = "step"
grid = ["ceil_div(w, 32)", "ceil_div(h, 4)"]
block = [32, 4]
args = ["g", "u", "w", "h"]

[scratch.g]
dtype = "float32"
count = "w * h"
"""
SOURCE = """
__global__ void slopes(float* u, float* g, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int right = x + 1 < w ? x + 1 : x - 1, below = y + 1 < h ? y + 1 : y - 1;
  float a = u[y * w + right] - u[y * w + x], b = u[below * w + x] - u[y * w + x];
  BODY
}
__global__ void step(const float* g, float* u, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int left = x > 0 ? x - 1 : x + 1, above = y > 0 ? y - 1 : y + 1;
  u[y * w + x] += 0.1f * (2.f * g[y * w + x] - g[y * w + left] - g[above * w + x]);
}
"""


def kernel_of(tmp_path, body: str):
    (tmp_path / "k.cu").write_text(SOURCE.replace("BODY", body))
    (tmp_path / "k.fsr.toml").write_text(CONTRACT)
    return load_kernel(tmp_path / "k.cu")


def alone(contract, candidate):
    found = lift(contract, candidate)
    if found.computation is None:
        raise Refused(found.why)
    return found.computation


SLOPE = "g[y * w + x] = a / sqrtf(a * a + fabsf(b) * fminf(fabsf(a), fabsf(b)) + 1e-4f);"


def test_scratch_memory_that_neighbours_read_is_kept_between_statements(tmp_path, monkeypatch):
    kernel = kernel_of(tmp_path, SLOPE)
    single = Attempt.lifted

    def lifted(self, started):
        if len(self.watcher.candidate.plan.launches) > 1:
            raise Refused("not as a whole")
        return single(self, started)

    monkeypatch.setattr(Attempt, "lifted", lifted)
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    slopes, step = lines(found.computation)
    assert slopes.startswith("$g[i, j] = ")
    assert step.count("$g[") == 5
    assert found.computation.outputs == ("u",)
    assert {b.name: b.shape for b in found.computation.buffers} == {"u": ("h", "w"), "$g": ("h", "w")}
    assert from_record(to_record(found.computation)) == found.computation


def test_scratch_memory_that_is_not_written_everywhere_is_no_value(tmp_path):
    kernel = kernel_of(tmp_path, f"if (x > 0) {SLOPE}")
    with pytest.raises(Refused, match="another"):
        by_launches(kernel.contract, kernel.baseline, alone)


def test_what_a_launch_changes_and_a_later_one_reads_is_no_value(tmp_path):
    kernel = kernel_of(tmp_path, f"{SLOPE} if (x == 0) u[y * w] = 0.f;")
    with pytest.raises(Refused, match=r"another|differs"):
        by_launches(kernel.contract, kernel.baseline, alone)
