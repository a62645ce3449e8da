"""What is folded over a dimension that is not contiguous and written along it: a pack of columns a thread."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

PIXELS = """// /// fsr
// entry = "k"
// [sizes]
// images = {min = 1, max = 16, timed = 4}
// channels = {min = 1, max = 256, timed = CHANNELS}
// pixels = {min = 1, max = 65536, timed = 4096}
// [args]
// x = {role = "in", shape = ["images", "channels", "pixels"], low = -9, high = 9, dtype = "TYPE"}
// w = {role = "in", shape = ["channels"], low = -2, high = 2, dtype = "TYPE"}
// y = {role = "out", shape = ["images", "channels", "pixels"], dtype = "TYPE"}
// images = {value = "images"}
// channels = {value = "channels"}
// pixels = {value = "pixels"}
// [launch]
// grid = "ceil_div(images * pixels, 64)"
// block = 64
// [tolerance]
// sum_length = "channels"
// ///
__global__ void k(const TYPE *x, const TYPE *w, TYPE *y, int images, int channels, int pixels) {
  int at = blockIdx.x * 64 + threadIdx.x;
  if (at >= images * pixels) return;
  int base = at / pixels * channels * pixels + at % pixels;
BODY
}"""
SOFTMAX = """
  TYPE high = -INFINITY, sum = 0;
  for (int c = 0; c < channels; c++) high = fmax(high, x[base + c * pixels]);
  for (int c = 0; c < channels; c++) sum += exp(x[base + c * pixels] - high);
  for (int c = 0; c < channels; c++) y[base + c * pixels] = exp(x[base + c * pixels] - high) / sum;
"""
NORM = """
  TYPE sum = 0, apart = 0;
  for (int c = 0; c < channels; c++) sum += x[base + c * pixels];
  TYPE mean = sum / channels;
  for (int c = 0; c < channels; c++) { TYPE d = x[base + c * pixels] - mean; apart += d * d; }
  TYPE by = 1 / sqrt(apart / channels + (TYPE)1e-5);
  for (int c = 0; c < channels; c++) y[base + c * pixels] = (x[base + c * pixels] - mean) * by * w[c];
"""
SIZES = [(1, 1, 1), (2, 7, 33), (3, 19, 130), (2, 20, 256), (1, 40, 512)]


def lifted(body: str, type_: str, channels: int = 20, shape: str = '"images", "channels", "pixels"') -> Subject:
    text = (
        PIXELS.replace('"images", "channels", "pixels"', shape)
        .replace("BODY", body)
        .replace("TYPE", type_)
        .replace("CHANNELS", str(channels))
    )
    subject = subject_of(
        text.replace('dtype = "float"', 'dtype = "float32"').replace('dtype = "double"', 'dtype = "float64"')
    )
    found = lift(subject.contract, subject.candidate)
    assert found.computation is not None, found.why
    return Subject(subject.candidate, subject.kernels, subject.contract, computation=found.computation)


@pytest.mark.parametrize("type_", ["float", "double"])
@pytest.mark.parametrize("body", [SOFTMAX, NORM, SOFTMAX.replace("exp(x", "exp(2 * x").replace("- high", "- 2 * high")])
def test_columns_are_what_they_were(runner, body, type_):
    subject = lifted(body, type_)
    slots = {dict(m.params)["slots"] for m in check(runner, subject, "columns-in-threads", SIZES, most=3)}
    assert slots == {0, 20}


def test_all_decisions_of_one_do(runner):
    check(runner, lifted(SOFTMAX, "float"), "columns-in-threads", SIZES, most=20)


def test_columns_that_no_block_has_room_for_are_read_again():
    moves = list(FAMILY["columns-in-threads"].moves(lifted(SOFTMAX, "float", 256)))
    assert moves
    assert all(dict(m.params)["slots"] in (0, 256) for m in moves)
    assert all(dict(m.params)["pack"] == 1 for m in moves if dict(m.params)["slots"])


def test_rows_along_memory_are_others():
    rows = SOFTMAX.replace("base + c * pixels", "at * channels + c")
    subject = lifted(rows, "float", shape='"images", "pixels", "channels"')
    assert list(FAMILY["fold-rows"].moves(subject))
    assert list(FAMILY["columns-in-threads"].moves(subject)) == []
