"""one-launch: a launch of a plan changed as if it were all there is, and launches that do the same changed alike."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.guard.check import guard
from fsr.lifting.launches import Steps, known_alone
from fsr.lifting.lift import lift_whole
from fsr.records import Launch, Scratch
from fsr.runs.kernel import load_kernel
from fsr.search.proposal import Rules
from fsr.source.parse import parse_kernels
from fsr.transform.launch_alone import launches_alone
from fsr.transform.one_launch import _spliced
from fsr.transform.protocol import Subject
from fsr.transform.registry import all_actions

ACTION = next(a for a in all_actions() if a.name == "one-launch")
SIZES = [{"n": 37, "m": 70}, {"n": 1, "m": 1}, {"n": 130, "m": 3}]
watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

PLAN = """// /// fsr
// [sizes]
// n = {min = 1, max = 4000, timed = 1000}
// m = {min = 1, max = 4000, timed = 1500}
// [args]
// x = {dtype = "float32", role = "inout", shape = ["n", "m"], low = -2, high = 2}
// LAUNCHES
// [scratch.t]
// dtype = "float32"
// count = "n * m"
// ///
"""
LAUNCH = """[[launch]]
entry = "ENTRY"
grid = ["ceil_div(m, 32)", "n"]
block = 32
args = ["FROM", "TO", "n", "m"]
"""
STEP = """__global__ void step(const float *u, float *v, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j >= m) return;
  float left = u[i * m + (j ? j - 1 : 0)], right = u[i * m + min(j + 1, m - 1)], own = u[i * m + j];
  v[i * m + j] = 0.5f * own + 0.25f * (left + right);
}
"""
CODES = """__global__ void coded(const float *u, float *v, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j < m) v[i * m + j] = u[i * m + j] > 1 ? 45 : u[i * m + j] < -1 ? 90 : 7;
}
__global__ void told(const float *u, float *v, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j >= m) return;
  v[i * m + j] = 0;
  if (u[i * m + j] == 45) v[i * m + j] = 1;
}
"""


def launch(entry: str, read: str, written: str) -> str:
    return LAUNCH.replace("ENTRY", entry).replace("FROM", read).replace("TO", written)


@pytest.fixture
def plan(tmp_path):
    """Makes the subject of a plan of these launches."""

    def made(code: str, *launches: str) -> Subject:
        lines = "".join(launches).strip().replace("\n", "\n// ")
        (tmp_path / "k.cu").write_text(PLAN.replace("LAUNCHES", lines) + code)
        kernel = load_kernel(tmp_path / "k.cu")
        return Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract)

    return made


def known(subject: Subject) -> Subject:
    steps = Steps(lift_whole, time.monotonic() + 60, 30, 30)
    return replace(subject, alone=tuple(known_alone(subject.contract, subject.candidate, steps)))


def same(runner, subject: Subject, changed) -> None:
    for sizes in SIZES:
        want = runner.outputs(subject.candidate, subject.contract, sizes)
        got = runner.outputs(changed, subject.contract, sizes)
        np.testing.assert_allclose(got["x"], want["x"], rtol=1e-5, atol=1e-6)


THERE_AND_BACK = [launch("step", *way) for way in (("x", "t"), ("t", "x"), ("x", "t"), ("t", "x"))]


def test_launches_that_do_the_same_are_changed_alike(runner, plan):
    subject = plan(STEP, *THERE_AND_BACK)
    moves = list(ACTION.moves(subject))
    assert {m.param("as").partition("@")[0] for m in moves} > {"block-shape", "restrict", "cache-hint"}
    shaped = next(m for m in moves if m.param("as").startswith("block-shape"))
    changed = ACTION.apply(subject, shaped)
    assert [x.args[:2] for x in changed.plan.launches] == [("x", "t"), ("t", "x"), ("x", "t"), ("t", "x")]
    assert len({(x.grid, x.block) for x in changed.plan.launches}) == 1
    assert changed.plan.launches[0].grid != subject.candidate.plan.launches[0].grid
    same(runner, subject, changed)
    again = replace(subject, candidate=changed, kernels=parse_kernels(changed.source))
    further = next(m for m in ACTION.moves(again) if m.param("as").startswith("cache-hint"))
    same(runner, subject, ACTION.apply(again, further))


def test_a_kernel_that_is_repeated_is_changed_as_if_it_were_launched_once(runner, plan):
    subject = plan(STEP.replace("v[i * m + j] =", "v[i * m + j] +="), launch("step", "x", "t") + "repeat = 3\n",
                   launch("step", "t", "x") + "repeat = 3\n")  # fmt: skip
    first = next(m for m in ACTION.moves(subject) if m.param("as").startswith("block-shape"))
    changed = ACTION.apply(subject, first)
    assert [x.repeat for x in changed.plan.launches] == ["3", "3"]


@pytest.mark.parametrize(
    "other",
    [launch("step", "t", "x").replace("block = 32", "block = 64"), launch("step", "t", "t")],
    ids=["other threads", "one buffer twice"],
)
def test_a_kernel_whose_launches_differ_is_left_alone(plan, other):
    assert not list(ACTION.moves(plan(STEP, launch("step", "x", "t"), other)))


LEVEL = """__global__ void level(float *x, float scale, int first, int count, int n, int m) {
  int j = blockIdx.x * 32 + threadIdx.x;
  if (j < count) for (int i = 0; i < n; i++) x[i * m + first + j] *= scale;
}
"""
AT = """[[launch]]
entry = "level"
grid = "ceil_div(COUNT, 32)"
block = 32
args = ["x", "SCALE", "FIRST", "COUNT", "n", "m"]
"""


def level(scale: str, first: str, count: str) -> str:
    return AT.replace("SCALE", scale).replace("FIRST", first).replace("COUNT", count)


LEVELS = [level("0.5", "0", "m // 2"), level("-3", "m // 2", "m - m // 2"), level("2", "m // 4", "m // 2")]


def test_launches_that_pass_other_numbers_are_changed_alike(runner, plan):
    subject = plan(LEVEL, *LEVELS)
    (one,) = launches_alone(subject.contract, subject.candidate.plan)
    assert [name for _, name in one.told.names] == ["told1", "told2", "told3"]
    assert one.contract.plan.launches[0].grid[0] == "ceil_div(told3, 32)"
    assert [(s.minimum, s.maximum) for s in one.contract.sizes[-2:]] == [(0, 2000), (0, 2000)]
    moves = list(ACTION.moves(subject))
    assert {m.param("as").partition("@")[0] for m in moves} > {"block-size", "thread-coarsening"}
    for wanted in ("block-size", "thread-coarsening"):
        move = next(m for m in moves if m.param("as").startswith(wanted))
        changed = ACTION.apply(subject, move)
        assert "told" not in str(changed.plan)
        assert [x.args[1:4] for x in changed.plan.launches] == [x.args[1:4] for x in subject.candidate.plan.launches]
        assert len({x.grid for x in changed.plan.launches}) == 2
        same(runner, subject, changed)


TURNED = """__global__ void turned(const float *u, float *v, int w, int h) {
  int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y;
  if (i < w && j < h) v[i * h + j] = 2 * u[j * w + i];
}
"""


def test_launches_of_buffers_of_other_extents_are_changed_alike(runner, plan):
    there = launch("turned", "x", "y").replace('"n", "m"', '"m", "n"')
    back = launch("turned", "y", "x").replace('["ceil_div(m, 32)", "n"]', '["ceil_div(n, 32)", "m"]')
    lying = 'y = {dtype = "float32", role = "out", shape = ["m", "n"]}\n'
    subject = plan(TURNED, lying, there, back)
    (alone,) = launches_alone(subject.contract, subject.candidate.plan)
    shapes = {a.name: a.shape for a in alone.contract.buffers()}
    assert (shapes["x"], shapes["y"]) == (("told3", "told2"), ("told2", "told3"))
    moves = [m for m in ACTION.moves(subject) if m.param("as").startswith("block-shape")]
    changed = ACTION.apply(subject, moves[0])
    assert "told" not in str(changed.plan)
    same(runner, subject, changed)


def test_launches_that_pass_numbers_by_other_names_are_changed_alike(runner, plan):
    drawn = [f'{name} = {{dtype = "int32", low = 1, high = 9}}\n' for name in ("first", "second")]
    symbols = [launch("step", *way).replace('"n", "m"]', f'"{name}", "n", "m"]')
               for way, name in ((("x", "t"), "first"), (("t", "x"), "second"))]  # fmt: skip
    subject = plan(STEP.replace("int n", "int symbol, int n").replace("0.5f * own", "symbol * own"), *drawn, *symbols)
    changed = ACTION.apply(subject, next(m for m in ACTION.moves(subject) if m.param("as").startswith("block-shape")))
    assert [x.args[2] for x in changed.plan.launches] == ["first", "second"]
    same(runner, subject, changed)
    other = drawn[1].replace("high = 9", "high = 8")
    assert not list(ACTION.moves(plan(STEP.replace("int n", "int symbol, int n"), drawn[0], other, *symbols)))


@pytest.mark.parametrize(
    "other",
    [
        level("2", "m // 4", "m // 2").replace("block = 32", "block = 64"),
        level("2", "m // 4", "m // 2").replace("ceil_div(m // 2, 32)", "ceil_div(m, 32)"),  # no number that it passes
        level("2", "m // 4 - 9", "m // 2"),  # less than nought
        level("2", "m // 4", "m // 2").replace('"n", "m"', '"n + 1", "m"'),
    ],
    ids=["other threads", "other blocks", "negative", "too many"],
)
def test_launches_that_differ_in_more_are_left_alone(plan, other):
    assert not list(ACTION.moves(plan(LEVEL, *LEVELS[:2], other)))


def test_what_would_have_to_be_cleared_in_between_is_not_offered(plan):
    subject = plan(STEP, *THERE_AND_BACK)
    (one,) = launches_alone(subject.contract, subject.candidate.plan)
    more = Scratch("sum", "float32", "1", zeroed=True)
    made = replace(subject.candidate, plan=replace(one.contract.plan, scratch=(more,)))
    assert _spliced(subject, one, made) is None
    kept = replace(more, zeroed=False, name="t")
    spliced = _spliced(subject, one, replace(made, plan=replace(made.plan, scratch=(kept,))))
    assert [s.name for s in spliced.scratch] == ["t", "t_"]


@watched
def test_a_launch_is_written_anew_and_then_the_next(runner, plan):
    subject = known(plan(STEP + CODES, launch("step", "x", "t"), launch("coded", "t", "x")))
    assert [one.kernel for one in subject.alone] == ["step", "coded"]
    changed = subject
    for kernel in ("step", "coded"):
        move = next(m for m in ACTION.moves(changed) if m.region == f"kernel:{kernel}")
        candidate = ACTION.apply(changed, move)
        changed = replace(changed, candidate=candidate, kernels=parse_kernels(candidate.source))
        same(runner, subject, candidate)
    assert len(changed.candidate.actions) == 2
    assert not list(ACTION.moves(changed))


@watched
def test_what_a_stage_reads_is_what_the_stage_before_made(plan):
    """Drawn at random no element of scratch memory is ever 45: as far as that goes, the second launch writes zeros."""
    subject = known(plan(CODES, launch("coded", "x", "t"), launch("told", "t", "x")))
    told = next((one.computation for one in subject.alone if one.kernel == "told"), None)
    assert told is None or "45" in " ".join(lines(told))  # both sides, or none


def test_a_launch_alone_may_change_what_it_does_not_only_read(plan):
    subject = plan(STEP + CODES, launch("step", "x", "t"), launch("coded", "t", "x"))
    step, coded = launches_alone(subject.contract, subject.candidate.plan)
    assert (step.kernel, coded.kernel, step.often) == ("step", "coded", False)
    assert [a.name for a in step.contract.buffers()] == ["x", "t"]
    assert step.contract.argument("t").shape == ("n", "m")
    assert isinstance(step.contract.plan.launches[0], Launch)
    assert step.contract.plan.scratch == ()


COUNTED = """__global__ void count(float *u, int n, int m, int step, int k) {
  int i = blockIdx.y * 4 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (i < n && j < m) u[i * m + j] = 0.5f * u[i * m + j] + step * k;
}
"""
OFTEN = """[[launch]]
entry = "count"
grid = ["ceil_div(m, 32)", "ceil_div(n, 4)"]
block = [32, 4]
repeat = "min(n, 5)"
args = ["x", "n", "m", "step", "step % 2"]
"""


def test_repetitions_that_are_told_apart_stay_so(runner, plan):
    subject = plan(COUNTED, OFTEN)
    (one,) = launches_alone(subject.contract, subject.candidate.plan)
    assert [(s.name, s.minimum, s.maximum, s.timed) for s in one.contract.sizes][2:] == [("step", 0, 4, (2,))]
    moves = [m for m in ACTION.moves(subject) if m.param("as").startswith(("block-shape", "coarsen-rows", "restrict"))]
    assert len(moves) > 5
    for move in moves[::3]:
        changed = ACTION.apply(subject, move)
        assert changed.plan.launches[0].repeat == "min(n, 5)"
        same(runner, subject, changed)
        assert guard(changed, subject.candidate) is None


NTH = """__global__ void nth(const float *u, float *v, int step, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j < m) v[i * m + j] = u[i * m + j] * (step + 1);
}
"""


@watched
def test_launches_that_count_are_known_for_themselves(plan, runner):
    """The number of a step that a host's unrolled loop passes; not numbers that need not fit the sizes."""
    launches = [launch("nth", *way).replace('"n", "m"]', f'"{step}", "n", "m"]')
                for step, way in enumerate((("x", "t"), ("t", "x")))]  # fmt: skip
    (one,) = known(plan(NTH, *launches)).alone
    assert one.told.names == ((2, "told2"),)
    subject = known(plan(NTH, *launches))
    move = next(m for m in ACTION.moves(subject) if m.param("as").startswith("pack-elements"))
    same(runner, subject, ACTION.apply(subject, move))
    assert known(plan(NTH, launches[0].replace('"0"', '"n // 2"'), launches[1])).alone == ()


@watched
def test_a_kernel_is_known_as_actions_see_it(plan):
    """The one instance of its template, without the barrier behind its end."""
    code = STEP.replace("(left + right);\n", "(left + right);\n  __syncthreads();\n").replace("float *", "T *")
    kernels = [launch("step<float>", *way) for way in (("x", "t"), ("t", "x"))]
    subject = known(plan("template <typename T> " + code, *kernels))
    seen = Rules(subject.contract, alone=subject.alone).subject(subject.candidate)
    assert any(m.param("as").startswith("pack-elements") for m in ACTION.moves(seen))
