"""What is added where data tells: several elements by one atomic operation, rows of a block's own in shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.expressions import evaluate_int
from fsr.lifting.lift import lift
from fsr.records import Role
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

EDGES = """// /// fsr
// entry = "k"
// [sizes]
// nodes = {min = 1, max = 4096, timed = 1024}
// edges = {min = 1, max = 65536, timed = 8192}
// dim = {min = 1, max = 256, timed = 64}
// [args]
// x = {role = "in", shape = ["nodes", "dim"], low = 1, high = 9}
// from = {role = "in", shape = ["edges"], low = 0, high = "nodes - 1"}
// to = {role = "in", shape = ["edges"], low = 0, high = "nodes - 1"}
// weight = {role = "in", shape = ["edges"], low = 1, high = 2}
// y = {role = "inout", shape = ["nodes", "dim"], value = 0}
// [launch]
// grid = "ceil_div(edges, 8)"
// block = [32, 8]
// [tolerance]
// sum_length = "edges"
// ///
__global__ void k(const TYPE *x, const int *from, const int *to, const TYPE *weight, TYPE *y, int edges, int dim) {
  int e = blockIdx.x * blockDim.y + threadIdx.y;
  if (e >= edges) return;
  for (int f = threadIdx.x; f < dim; f += blockDim.x)
    atomicAdd(&y[to[e] * dim + f], weight[e] * x[from[e] * dim + f]);
}"""
WORDS = """// /// fsr
// entry = "k"
// [sizes]
// batch = {min = 1, max = 8, timed = 8}
// time = {min = 1, max = 64, timed = 32}
// dim = {min = 1, max = 512, timed = 256}
// words = {min = 1, max = 1000, timed = 500}
// [args]
// of_words = {role = "inout", shape = ["words", "dim"], value = 0}
// of_places = {role = "inout", shape = ["time", "dim"], value = 0}
// grad = {role = "in", shape = ["batch", "time", "dim"], low = 1, high = 9}
// word = {role = "in", shape = ["batch", "time"], low = 0, high = "words - 1"}
// [launch]
// grid = "ceil_div(batch * time * dim, 256)"
// block = 256
// [tolerance]
// sum_length = "batch * time"
// ///
__global__ void k(float *of_words, float *of_places, const float *grad, const int *word, int batch, int time, int dim) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= batch * time * dim) return;
  int row = at / dim, c = at % dim;
  atomicAdd(&of_words[word[row] * dim + c], grad[at]);
  atomicAdd(&of_places[row % time * dim + c], grad[at]);
}"""
COLUMNS = """// /// fsr
// entry = "k"
// [sizes]
// batch = {min = 1, max = 32, timed = 32}
// channels = {min = 1, max = 64, timed = 64}
// points = {min = 1, max = 40000, timed = 1024}
// groups = {min = 1, max = 512, timed = 256}
// each = {min = 1, max = 32, timed = 8}
// [args]
// grad = {role = "in", shape = ["batch", "channels", "groups", "each"], dtype = "TYPE", low = 1, high = 9}
// index = {role = "in", shape = ["batch", "groups", "each"], low = 0, high = "points - 1"}
// y = {role = "inout", shape = ["batch", "channels", "points"], dtype = "TYPE", value = 0}
// [launch]
// grid = ["ceil_div(groups, 64)", "channels", "batch"]
// block = 64
// [tolerance]
// sum_length = "groups * each"
// ///
__global__ void k(const TYPE *grad, const int *index, TYPE *y, int channels, int points, int groups, int each) {
  int g = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, b = blockIdx.z;
  if (g >= groups) return;
  for (int i = 0; i < each; i++)
    atomicAdd(&y[(b * channels + c) * points + index[(b * groups + g) * each + i]],
              grad[((b * channels + c) * groups + g) * each + i]);
}"""


def lifted(text: str, type_: str = "float", target: str = "sm_90") -> Subject:
    text = text.replace('"TYPE"', '"float64"' if type_ == "double" else f'"{type_}32"').replace("TYPE", type_)
    subject = subject_of(text)
    found = lift(subject.contract, subject.candidate)
    assert found.computation is not None, found.why
    return Subject(subject.candidate, subject.kernels, subject.contract, target=target, computation=found.computation)


def texts(subject: Subject, family: str) -> list[str]:
    return [FAMILY[family].apply(subject, m).source for m in FAMILY[family].moves(subject)]


def same(runner, subject: Subject, family: str, many_sizes, most=3):
    """As check; integers that are read tell places: they are from none to their limit. What is added to is
    cleared before."""
    rng, names = np.random.default_rng(3), [s.name for s in subject.contract.sizes]
    for sizes in many_sizes:
        known, given = dict(zip(names, sizes, strict=True)), {}
        for a in subject.contract.args:
            if a.role is Role.IN and "int" in a.dtype:
                given[a.name] = rng.integers(
                    0, evaluate_int(str(a.constraints.high), known) + 1, subject.contract.shape(a, known)
                )
            if a.role is Role.INOUT:
                given[a.name] = np.zeros(subject.contract.shape(a, known))
        moves = check(runner, subject, family, [sizes], most, given=given)
    return moves


def test_rows_of_edges_are_added_in_packs(runner):
    subject = lifted(EDGES)
    assert all("float4" in t or "float2" in t for t in texts(subject, "pack-scatters"))
    same(runner, subject, "pack-scatters", [(3, 70, 64), (5, 33, 7), (1, 1, 1), (40, 300, 130)], most=20)


def test_a_gradient_of_words_and_of_places(runner):
    subject = lifted(WORDS)
    made = texts(subject, "pack-scatters")[0]
    assert made.count("make_float4") == 1, "what no data tells is folded by a kernel of its own"
    same(runner, subject, "pack-scatters", [(2, 3, 8, 5), (3, 5, 7, 2), (1, 1, 1, 1)])
    assert list(FAMILY["shared-scatters"].moves(subject)) == [], "words tell rows, not places in them"


@pytest.mark.parametrize("type_", ["float", "double", "int"])
def test_columns_are_added_up_in_shared_memory(runner, type_):
    sizes = [(2, 5, 30, 7, 3), (1, 3, 20000, 4, 2), (2, 64, 100, 33, 8), (1, 1, 1, 1, 1)]
    moves = same(runner, lifted(COLUMNS, type_), "shared-scatters", sizes, most=4)
    assert {dict(m.params)["rows"] for m in moves} > {1}
    assert list(FAMILY["pack-scatters"].moves(lifted(COLUMNS, type_))) == []


def test_rows_that_are_too_few_are_split(runner):
    few = COLUMNS.replace("channels = {min = 1, max = 64, timed = 64}", "channels = {min = 1, max = 64, timed = 1}")
    few = few.replace("max = 32, timed = 32}", "max = 32, timed = 8}")
    few = few.replace("groups = {min = 1, max = 512, timed = 256}", "groups = {min = 1, max = 65536, timed = 65536}")
    subject = lifted(few)
    moves = same(runner, subject, "shared-scatters", [(2, 3, 30, 700, 3), (1, 1, 50, 9, 2)], most=20)
    assert {dict(m.params)["parts"] for m in moves} == {1, 33}


@pytest.mark.parametrize(
    ("type_", "target"), [("double", "sm_90"), ("int", "sm_90"), ("float", "sm_80")], ids=["double", "int", "older"]
)
def test_no_operation_adds_several_of_these(type_, target):
    assert list(FAMILY["pack-scatters"].moves(lifted(EDGES, type_, target))) == []


def test_what_is_read_is_not_added_to():
    reads = EDGES.replace("* x[from[e] * dim + f]", "* y[from[e] * dim + f]")
    subject = subject_of(reads.replace("TYPE", "float"))
    found = lift(subject.contract, subject.candidate)
    told = Subject(subject.candidate, subject.kernels, subject.contract, computation=found.computation)
    assert all(list(FAMILY[f].moves(told)) == [] for f in ("pack-scatters", "shared-scatters"))
