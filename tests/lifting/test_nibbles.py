"""Packed numbers of a few bits: where they begin in a word is so many times the remainder of an index."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "unpack"
// [sizes]
// words = {{min = 1, max = 100000, timed = 100000}}
// [args]
// q = {{role = "in", dtype = "{word}", shape = ["words"]}}
// y = {{role = "out", shape = ["{each} * words"]}}
// n = {{value = "{each} * words"}}
// [launch]
// grid = "ceil_div({each} * words, 256)"
// block = 256
// ///
__global__ void unpack(const {ctype} *q, float *y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {ctype} p = q[i / {each}];
  y[i] = (float)(int)((p >> ({place})) & {mask}) - {zero};
}}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize(
    ("word", "ctype", "each", "place", "mask", "told"),
    [
        ("uint32", "unsigned", 8, "i % 8 * 4", 15, "4 * (i % 8)"),
        ("uint32", "unsigned", 16, "2 * (i % 16)", 3, "2 * (i % 16)"),
        ("uint8", "unsigned char", 2, "(i & 1) << 2", 15, "4 * (i % 2)"),
        ("uint32", "unsigned", 4, "(i % 4) * 8", 255, "8 * (i % 4)"),
    ],
)
def test_what_is_packed_in_words_lifts(word, ctype, each, place, mask, told, tmp_path):
    source = KERNEL.format(word=word, ctype=ctype, each=each, place=place, mask=mask, zero=f"{mask // 2}.0f")
    (tmp_path / "k.cu").write_text(source)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    (line,) = lines(found.computation)
    assert told in line
    assert f"q[i // {each}]" in line
