"""Moves on several kernels of a plan at once: the same outputs, one step in the history, and none on plans of one."""

from __future__ import annotations

from fsr.search.proposal import Rules, Space
from fsr.transform.all_kernels import REGION
from fsr.transform.registry import all_actions

PLAN = """
// /// fsr
// [sizes]
// h = {min = 1, max = 512, timed = 256}
// w = {min = 1, max = 512, timed = 256}
// [args]
// x = {role = "in", shape = ["w", "h"], dtype = "int32", low = -9, high = 9}
// y = {role = "inout", shape = ["w", "h"], dtype = "int32", low = -9, high = 9}
// [[launch]]
// entry = "near"
// grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]
// block = [16, 16]
// args = ["x", "mid", "w", "h"]
// [[launch]]
// entry = "far"
// grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]
// block = [16, 16]
// args = ["mid", "y", "w", "h"]
// [[launch]]
// entry = "lines"
// grid = "w"
// block = 64
// args = ["y", "h"]
// [scratch.mid]
// dtype = "int32"
// count = "w * h"
// ///
__global__ void near(const int *x, int *mid, int w, int h) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < w && j < h) mid[i * h + j] = 3 * x[i * h + j] - (j > 0 ? x[i * h + j - 1] : 1);
}
__global__ void far(const int *mid, int *y, int w, int h) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < w && j < h) y[i * h + j] += mid[i * h + j] * (i > 0 ? mid[(i - 1) * h + j] : 2);
}
__global__ void lines(int *y, int h) {
  __shared__ int last;
  if (threadIdx.x == 0) last = y[blockIdx.x * h + h - 1];
  __syncthreads();
  for (int j = threadIdx.x; j < h; j += 64) y[blockIdx.x * h + j] ^= last;
}
"""
SIZES = [{"h": 1, "w": 1}, {"h": 7, "w": 33}, {"h": 65, "w": 20}]


def test_each_gives_the_same_outputs(subject_from, runner) -> None:
    subject = subject_from(PLAN)
    space = Space(Rules(subject.contract), all_actions())
    found = [(action, move) for action, move in space.moves(subject.candidate) if move.region == REGION]
    names = {move.action for _, move in found}
    assert {"swap-ids", "block-shape", "coarsen-rows", "restrict", "launch-bounds"} <= names
    once = {move.action: (action, move) for action, move in found}
    for action, move in once.values():
        changed = space.applied(subject.candidate, action, move)
        assert changed is not None
        assert changed.actions == (move.name,)
        alone = [m for _, m in space.moves(subject.candidate) if (m.action, m.params) == (move.action, move.params)]
        assert len({m.region for m in alone}) > 2
        runner.check(subject, changed, *SIZES)


def test_all_launches_change(subject_from) -> None:
    subject = subject_from(PLAN)
    action = next(a for a in all_actions() if a.name == "swap-ids")
    move = next(m for m in action.moves(subject) if m.region == REGION)
    near, far, lines = action.apply(subject, move).plan.launches
    assert near.block == far.block == (str(move.param("x")), str(move.param("y")), "1")
    assert lines == subject.candidate.plan.launches[2]


def test_none_where_one_kernel_has_it(subject_from) -> None:
    head, body = PLAN.split("__global__ void far")
    subject = subject_from(
        head + "__global__ void far" + body.replace("  if (i < w", "  __syncwarp();\n  if (i < w", 1)
    )
    action = next(a for a in all_actions() if a.name == "swap-ids")
    regions = {m.region for m in action.moves(subject)}
    assert regions == {"kernel:near"}
