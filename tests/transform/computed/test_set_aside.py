"""Results in the place of what other points read: set aside by one launch, put in place by the next."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, check

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// [sizes]
// n = {min = 1, max = 4000, timed = 1000}
// m = {min = 1, max = 4000, timed = 1500}
// [args]
// u = {role = "inout", shape = ["n", "m"]}
// v = {role = "inout", shape = ["n", "m"]}
// [[launch]]
// entry = "change"
// grid = ["ceil_div(m, 32)", "n"]
// block = 32
// args = ["u", "v", "du", "dv", "n", "m"]
// [[launch]]
// entry = "add"
// grid = "ceil_div(n * m, 128)"
// block = 128
// args = ["u", "v", "du", "dv", "n", "m"]
// [scratch.du]
// dtype = "float32"
// count = "n * m"
// [scratch.dv]
// dtype = "float32"
// count = "n * m"
// ///
"""
TWO_SPECIES = """__global__ void change(const float *u, const float *v, float *du, float *dv, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j >= m) return;
  int up = (i + n - 1) % n, down = (i + 1) % n, at = i * m + j;
  float left = j ? u[at - 1] : u[i * m + m - 1], right = j < m - 1 ? u[at + 1] : u[i * m];
  du[at] = u[up * m + j] + u[down * m + j] + left + right - 4 * u[at] - u[at] * v[at];
  dv[at] = u[at] * v[at] - 0.5f * v[at];
}
__global__ void add(float *u, float *v, const float *du, const float *dv, int n, int m) {
  int k = blockIdx.x * 128 + threadIdx.x;
  if (k >= n * m) return;
  u[k] += 0.125f * du[k];
  v[k] += 0.125f * dv[k];
}"""
MIRRORED = """__global__ void change(const float *u, const float *v, float *du, float *dv, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j < m) { du[i * m + j] = u[i * m + m - 1 - j]; dv[i * m + j] = 2 * v[(n - 1 - i) * m + j]; }
}
__global__ void add(float *u, float *v, const float *du, const float *dv, int n, int m) {
  int k = blockIdx.x * 128 + threadIdx.x;
  if (k < n * m) { u[k] = du[k] + dv[k]; v[k] = dv[k]; }
}"""
OWN_PLACES = """__global__ void change(const float *u, const float *v, float *du, float *dv, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j < m) { du[i * m + j] = u[i * m + j] * v[i * m + j]; dv[i * m + j] = u[i * m + j]; }
}
__global__ void add(float *u, float *v, const float *du, const float *dv, int n, int m) {
  int k = blockIdx.x * 128 + threadIdx.x;
  if (k < n * m) { u[k] = du[k]; v[k] += dv[k]; }
}"""
MANY = [(37, 70), (1, 1), (2, 2), (130, 3), (3, 300)]


@pytest.fixture
def lifted(tmp_path):
    """Makes the subject of a plan, with what it computes."""

    def made(text: str) -> Subject:
        (tmp_path / "k.cu").write_text(HEAD + text)
        kernel = load_kernel(tmp_path / "k.cu")
        found = lift(kernel.contract, kernel.baseline, limit_s=60)
        assert found.computation is not None, found.why
        kernels = parse_kernels(kernel.baseline.source)
        return Subject(kernel.baseline, kernels, kernel.contract, computation=found.computation)

    return made


@pytest.mark.parametrize("family", ["pack-elements", "register-tile"])
def test_a_step_in_time_is_one_launch_and_a_copy(runner, lifted, family):
    subject = lifted(TWO_SPECIES)
    check(runner, subject, family, MANY, most=3)
    made = FAMILY[family].apply(subject, next(FAMILY[family].moves(subject)))
    assert len(made.plan.launches) == 2
    assert not runner.outputs(made, subject.contract, {"n": 37, "m": 70}, instrumented=True)["faults"].size


def test_every_element_comes_from_another(runner, lifted):
    check(runner, lifted(MIRRORED), "pack-elements", MANY, most=3)


def test_what_its_own_point_reads_needs_no_place_aside(lifted):
    subject = lifted(OWN_PLACES)
    made = FAMILY["pack-elements"].apply(subject, next(FAMILY["pack-elements"].moves(subject)))
    assert len(made.plan.launches) == 1
    assert not made.plan.scratch
