"""What a thread sums up under conditions on data is one sum, however people write it and wherever it stands."""

from __future__ import annotations

import random

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "tally"
// [sizes]
// n = {{min = 1, max = 4096, timed = 4096}}
// k = {{min = 1, max = 16, timed = 16}}
// [args]
// out = {{role = "out", shape = ["k"]}}
// x = {{role = "in", shape = ["n"], low = -1, high = 1}}
// w = {{role = "in", shape = ["k"], low = 0.5, high = 2}}
// c = {{role = "in", shape = ["n"], low = 0, high = "k - 1"}}
// [launch]
// grid = 1
// block = 32
// [tolerance]
// sum_length = "n"
// ///
__global__ void tally(float* out, const float* x, const float* w, const int* c, int n, int k) {{
  int i = threadIdx.x;
  if (i >= k) return;
  {body}
}}
"""
CONDITIONS = ("c[j] == i", "x[j] > 0.25f", "c[j] == i && x[j] < 0.5f", "c[j] != i", "c[j] <= i")
ADDED = ("x[j]", "x[j] * w[i]", "x[j] * x[j]")
ENDS = {
    "as it is": "{s}",
    "scaled": "{s} * w[i]",
    "with a part of its own": "w[i] + {s}",
    "a mean": "m ? {s} / m : 0.f",
    "a mean that is not below one": "{s} / (m > 0 ? m : 1)",
}


def composed(seed: int) -> str:
    """A kernel drawn from forms of the condition, of what is added, of where it is held and what becomes of it."""
    rng = random.Random(seed)
    condition, added, end = rng.choice(CONDITIONS), rng.choice(ADDED), ENDS[list(ENDS)[seed % len(ENDS)]]
    held = rng.choice(("s", "out[i]"))
    asked = condition.replace("&&", ") if (") if rng.random() < 0.5 else condition
    begin = f"{held} = 0;" if held != "s" else "float s = 0;"
    counted, count = ("int m = 0; ", " ++m;") if " m" in end or "m ?" in end else ("", "")
    return (
        f"{begin} {counted}\n  for (int j = 0; j < n; ++j) if ({asked}) {{ {held} += {added};{count} }}\n"
        f"  out[i] = {end.format(s=held)};"
    )


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("seed", range(15))
def test_a_sum_under_a_condition_is_told(tmp_path, seed):
    body = composed(seed)
    (tmp_path / "k.cu").write_text(KERNEL.format(body=body))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)  # which checks it
    assert found.computation is not None, f"{body}\n{found.why}"
    assert "for k0 in range(n)" in " ".join(lines(found.computation))
