"""A disguised kernel, written anew from what it computes, is what the structural actions recognise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.computation.canonical import canonical
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Const, Fold, Load, Number, Op, affine
from fsr.computation.expression import Case as Branch
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.watching import watch
from fsr.records import Case, Image
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.testgen.placing import place
from fsr.testgen.values import build
from fsr.transform.plain.action import Restate
from fsr.transform.protocol import Subject
from fsr.transform.registry import STRUCTURAL

SWAPPED = """// /// fsr
// entry = "k"
// [sizes]
// a = {min = 0, max = 1000, timed = 900}
// b = {min = 1, max = 1000, timed = 800}
// [args]
// x = {role = "in", shape = ["a", "b"]}
// y = {role = "out", shape = ["b", "a"]}
// n = {value = "a * b"}
// a = {value = "a"}
// [launch]
// grid = "ceil_div(a * b, 64)"
// block = 64
// ///
__global__ void k(const float* x, float* y, int n, int a) {
  for (unsigned at = threadIdx.x + blockIdx.x * 64u; at < (unsigned)n; at += 64u * gridDim.x)
    y[at] = x[at % a * (n / a) + at / a];
}
"""


@pytest.fixture
def subject(tmp_path):
    (tmp_path / "k.cu").write_text(SWAPPED)
    kernel = load_kernel(tmp_path / "k.cu")
    i, j = (Number(affine(d), "int64") for d in "ij")
    buffers = (Buffer("x", "float32", ("a", "b")), Buffer("y", "float32", ("b", "a")))
    statement = Statement("map", "y", (("i", "b"), ("j", "a")), Load("x", (j, i), "float32"), (i, j))
    found = canonical(Computation(("a", "b"), buffers, (statement,)))
    kernels = parse_kernels(kernel.baseline.source)
    return Subject(kernel.baseline, kernels, kernel.contract, False, "sm_90", found)


def test_what_the_plain_form_allows_is_offered_and_right(subject):
    action = Restate(STRUCTURAL)
    moves = {m.param("as"): m for m in action.moves(subject)}
    coarser = next(m for name, m in moves.items() if str(name).startswith("coarsen-rows"))
    assert not any(True for a in STRUCTURAL if a.name == "coarsen-rows" for _ in a.moves(subject))
    case = Case("c", (("a", 37), ("b", 70)), "normal", 5)
    data = build(subject.contract, case)
    device = open_host_device()
    try:
        for move in (moves["itself"], coarser):
            made = action.apply(subject, move)
            assert made.actions == (move.name,)
            image = HostToolchain().compile(made)
            assert isinstance(image, Image), image
            launches, buffers = place(subject.contract, made.plan, case, data)
            with device.prepare(image, launches, buffers) as prepared:
                prepared.run()
                np.testing.assert_array_equal(prepared.read()["y"], data.arrays["x"].T)
    finally:
        device.close()


def test_nothing_is_offered_without_a_computation_or_twice(subject):
    action = Restate(STRUCTURAL)
    first = next(iter(action.moves(subject)))
    assert list(action.moves(replace(subject, computation=None))) == []
    assert list(action.moves(replace(subject, keep_launch=True))) == []
    assert list(action.moves(replace(subject, candidate=action.apply(subject, first)))) == []


SUMS = """// /// fsr
// entry = "k<float>"
// [sizes]
// n = {min = 0, max = 100000, timed = 100000}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["ceil_div(n, 256)"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// sum_length = 256
// ///
template <class T> __global__ void k(const T* x, T* y, unsigned n) {
  __shared__ T part[256];
  unsigned at = blockIdx.x * 256 + threadIdx.x;
  part[threadIdx.x] = at < n ? x[at] : T(0);
  for (unsigned s = 128; s; s /= 2) {
    __syncthreads();
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
  }
  if (!threadIdx.x) y[blockIdx.x] = part[0];
}
"""


def test_a_template_with_types_is_written_with_those_of_the_launch(tmp_path):
    (tmp_path / "k.cu").write_text(SUMS)
    kernel = load_kernel(tmp_path / "k.cu")
    at = Number(Affine((("i", 256), ("k0", 1))), "int64")
    value = Fold("sum", (("k0", Affine((), 256)),), Load("x", (at,), "float32"), inside=True)
    blocks = "ceil_div(n, 256)"
    buffers = (Buffer("x", "float32", ("n",)), Buffer("y", "float32", (blocks,)))
    statement = Statement("fold", "y", (("i", blocks),), value, (Number(affine("i"), "int64"),))
    found = Computation(("n",), buffers, (statement,))
    start = Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract, False, "sm_90", found)
    moves = {str(m.param("as")): m for m in Restate(STRUCTURAL).moves(start)}
    name = next(n for n in moves if n.startswith("row-per-warp"))
    written = Restate(STRUCTURAL).apply(start, moves[name])
    assert "const float" in written.source
    device = open_host_device()
    for n in (1, 255, 5000):
        case = Case("case", (("n", n),), "normal", 1)
        results = []
        for candidate in (kernel.baseline, written):
            image = HostToolchain().compile(candidate)
            assert isinstance(image, Image)
            with device.prepare(
                image, *place(kernel.contract, candidate.plan, case, build(kernel.contract, case))
            ) as p:
                p.run(10.0)
                results.append(p.read()["y"])
        np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-5)
    device.close()


BLUR = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 200, timed = 200}
// w = {min = 1, max = 200, timed = 160}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// y = {role = "out", shape = ["h", "w"]}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 8)"]
// block = [32, 8]
// ///
__global__ void k(const float* x, float* y, int h, int w) {
  int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (i >= h || j >= w) return;
  if (j == 0 || j == w - 1) { y[i * w + j] = x[i * w + j]; return; }
  float s = 0;
  for (int c = -1; c <= 1; c++) s += x[i * w + j + c];
  y[i * w + j] = s * 0.5f;
}
"""


def test_a_sum_is_made_only_where_it_is_asked_for(tmp_path):
    """Beyond the edge its terms lie outside of the buffer."""
    (tmp_path / "k.cu").write_text(BLUR)
    kernel = load_kernel(tmp_path / "k.cu")
    i, j = (Number(affine(d), "int64") for d in "ij")
    points, shape = (("i", "h"), ("j", "w")), ("h", "w")
    buffers = tuple(Buffer(name, "float32", shape) for name in ("x", "y", "_sum"))
    term = Load("x", (i, Number(Affine((("j", 1), ("k0", 1)), -1), "int64")), "float32")
    total = Fold("sum", (("k0", Affine((), 3)),), term)
    same, half = Load("x", (i, j), "float32"), Op("prod", (Load("_sum", (i, j), "float32"), Const(0.5, "float32")))
    inner = Branch(affine("j"), Affine((("w", 1),), -2), half, same)
    value = Branch(affine("j"), Affine(), same, inner)
    made = Statement("fold", "_sum", points, total, (i, j)), Statement("map", "y", points, value, (i, j))
    found = Computation(("h", "w"), buffers, made)
    start = Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract, False, "sm_90", found)
    action = Restate(STRUCTURAL)
    itself = next(m for m in action.moves(start) if m.param("as") == "itself")
    written = action.apply(start, itself)
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 3, str(tmp_path)))
    try:
        failure, said = watch(session, written, session.held_out_cases())
    finally:
        session.close()
    assert (failure, said) == (None, "silent")
