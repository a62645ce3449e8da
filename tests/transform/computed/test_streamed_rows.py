"""Long rows that come through shared memory, each block's next one while it writes the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

# Of 132 blocks, some go through three rows, some through two; of the lengths, one is not that of whole packs, one is
# longer than its place, and with one packs begin at other elements in each row.
SIZES = [(300, 37), (140, 4096), (3, 60000), (1, 1), (266, 1027)]

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 20000, timed = 8192}
// cols = {min = 1, max = 60000, timed = TIMED}
// [args]
// y = {role = "out", dtype = "TYPE", shape = SHAPE}
// x = {role = "ROLE", dtype = "TYPE", shape = ["rows", "cols"]}
// w = {role = "in", dtype = "TYPE", shape = ["cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "cols"
// ///
#include <cuda_fp16.h>
"""
BEGIN = """__global__ void k(TYPE* y, TYPE* x, const TYPE* w, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  TYPE* row = x + (size_t)r * cols;
"""
SOFTMAX = """
  float top = -INFINITY;
  double sum = 0;
  for (int c = 0; c < cols; c++) top = fmaxf(top, (float)row[c]);
  for (int c = 0; c < cols; c++) sum += expf((float)row[c] - top);
  for (int c = 0; c < cols; c++) y[(size_t)r * cols + c] = expf((float)row[c] - top) / (float)sum;
}
"""
IN_PLACE = """
  double sum = 0;
  for (int c = 0; c < cols; c++) sum += row[c];
  float mean = sum / cols;
  double apart = 0;
  for (int c = 0; c < cols; c++) apart += (row[c] - mean) * (row[c] - mean);
  for (int c = 0; c < cols; c++) row[c] = (row[c] - mean) * w[c] + (float)apart;
  y[r] = apart;
}
"""
RESULTS = """
  float top = -INFINITY;
  double sum = 0;
  for (int c = 0; c < cols; c++) top = fmaxf(top, row[c]);
  for (int c = 0; c < cols; c++) sum += expf(row[c] - top);
  y[r] = top + logf((float)sum);
}
"""
FORMS = {
    "elements": (SOFTMAX, "float32", "float", '["rows", "cols"]', "in", "50257"),
    "halves": (SOFTMAX, "float16", "__half", '["rows", "cols"]', "in", "60000"),
    "in place": (IN_PLACE, "float32", "float", '["rows"]', "inout", "40001"),
    "a result a row": (RESULTS, "float32", "float", '["rows"]', "in", "50257"),
}


def lifted(body: str, dtype: str, kind: str, shape: str, role: str, timed: str):
    text = HEAD.replace("TIMED", timed).replace("SHAPE", shape).replace("ROLE", role).replace("TYPE", dtype)
    subject = subject_of(text + BEGIN.replace("TYPE", kind) + body)
    found = lift(subject.contract, subject.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(subject, computation=found.computation)


@pytest.mark.parametrize("form", FORMS)
def test_streamed_rows(runner, form):
    subject = lifted(*FORMS[form])
    moves = check(runner, subject, "stream-rows", SIZES, most=2)
    made = FAMILY["stream-rows"].apply(subject, moves[0])
    assert "__pipeline_memcpy_async" in made.source
    assert made.plan.launches[0].grid[0] == "min((rows), 132)"


def test_rows_of_which_many_fit_are_left_to_blocks():
    body, *rest = FORMS["elements"]
    subject = lifted(body, *rest[:-1], "2048")
    assert not list(FAMILY["stream-rows"].moves(subject))
