"""whole-blocks: as many threads in every block, those of small sizes leave; only where nothing hangs on it."""

from __future__ import annotations

import pytest

from fsr.search.proposal import Rules, Space
from fsr.transform.launch.whole_blocks import WholeBlocks
from fsr.transform.registry import all_actions

TEXT = """
// /// fsr
// [sizes]
// lg = {min = 1, max = 20, timed = 18}
// [args]
// x = {role = "inout", shape = ["2 << lg"]}
// [[launch]]
// entry = "turn"
// grid = "ceil_div(1 << lg, 256)"
// block = "min(256, 1 << lg)"
// args = ["x", "1 << step"]
// repeat = "lg + 1"
// ///
__global__ void turn(float *x, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i / stride * 2 * stride + i % stride;
    float a = x[at], b = x[at + stride];
    x[at] = 0.5f * (a + b);
    x[at + stride] = 0.5f * (a - b);
}
"""
SIZES = [{"lg": lg} for lg in (1, 3, 8, 9, 11)]


def test_small_sizes_have_threads_that_leave(subject_from, apply_move, runner):
    subject = subject_from(TEXT)
    changed = apply_move(WholeBlocks(), subject, "")
    (launch,) = changed.plan.launches
    assert launch.block == ("256", "1", "1")
    assert launch.args[-1].value == "(ceil_div(1 << lg, 256)) * (min(256, 1 << lg))"
    assert ">= threads_of_all) return;" in changed.source
    runner.check(subject, changed, *SIZES)


def test_others_see_a_number_then(subject_from, apply_move, runner):
    subject = subject_from(TEXT)
    space = Space(Rules(subject.contract), all_actions())
    assert not any(m.action == "join-steps" for _, m in space.moves(subject.candidate))
    whole = apply_move(WholeBlocks(), subject, "")
    action, move = next((a, m) for a, m in space.moves(whole) if m.action == "join-steps")
    joined = space.applied(whole, action, move)
    assert joined is not None
    runner.check(subject, joined, *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min(256, 1 << lg)", "64 if lg < 12 else 256"),  # not as large wherever there are several blocks
        ("min(256, 1 << lg)", "256"),
        ('block = "min(256, 1 << lg)"', 'block = ["min(256, 1 << lg)", 2]'),
        ("int i = blockIdx.x", "int all = gridDim.x * blockDim.x, i = blockIdx.x"),
        ("int i = blockIdx.x", "int all = blockDim.x, i = blockIdx.x"),
        ("float a = x[at]", "__syncthreads(); float a = x[at]"),
        ("timed = 18", "timed = 4"),
    ],
)
def test_where_something_hangs_on_how_many_there_are(old, new, subject_from):
    assert old in TEXT
    assert list(WholeBlocks().moves(subject_from(TEXT)))
    text = TEXT.replace(old, new)
    assert list(WholeBlocks().moves(subject_from(text))) == []
