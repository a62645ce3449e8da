"""Dimensions that a kernel goes through in groups, which a contract calls by one name."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.grouped import in_groups
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 16, timed = 8}}
// groups = {{min = 1, max = 32, timed = 32}}
// each = {{min = 1, max = 16, timed = 16}}
// hw = {{min = 1, max = 4096, timed = 4096}}
// channels = "{channels}"
// [args]
// x = {{role = "in", shape = ["n", "channels", "hw"]}}
// scale = {{role = "in", shape = ["channels"]}}
// y = {{role = "out", shape = ["n", "channels", "hw"]}}
// [launch]
// grid = {grid}
// block = 64
// [tolerance]
// sum_length = "each * hw"
// ///
__global__ void k(const float *x, const float *scale, float *y, int n, int channels, int groups, int hw) {{
  {body}
}}
"""
SUMS = """__shared__ float parts[64];
  int each = channels / groups, length = each * hw;
  {rows}
  float sum = 0;
  for (int i = threadIdx.x; i < length; i += 64) sum += p[{at}];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {{
    if (threadIdx.x < s) parts[threadIdx.x] += parts[threadIdx.x + s];
    __syncthreads();
  }}
  for (int i = threadIdx.x; i < length; i += 64) {{
    int c = {channel};
    q[{at}] = p[{at}] * scale[c] / parts[0];
  }}"""
# groups of neighbouring channels; every so many-th channel as a group
NEIGHBOURS = {
    "rows": "int g = blockIdx.x % groups; size_t o = (size_t)blockIdx.x * length;\n"
    "  const float *p = x + o; float *q = y + o;",
    "at": "i", "channel": "g * each + i / hw",
}  # fmt: skip
APART = {
    "rows": "int g = blockIdx.x % groups; size_t o = ((size_t)(blockIdx.x / groups) * channels + g) * hw;\n"
    "  const float *p = x + o; float *q = y + o;",
    "at": "i / hw * groups * hw + i % hw", "channel": "i / hw * groups + g",
}  # fmt: skip
ONE_CHANNEL = """int c = blockIdx.y; size_t o = ((size_t)blockIdx.x * channels + c) * hw;
  int below = c == 0 ? 0 : hw;
  for (int i = threadIdx.x; i < hw; i += 64) y[o + i] = x[o + i] - scale[c] * x[o + i - below];"""
FORMS = {
    "a block a group": (NEIGHBOURS, "each * groups", '"n * groups"', "= (scale[j, i2] * x[i, j, i2, i3]) / _sum[i, j]"),
    "in the other order": (NEIGHBOURS, "groups * each", '"groups * n"', "for k0 in range(each) for k1 in range(hw)"),
    "channels in turn": (APART, "groups * each", '"n * groups"', "sum(x[i, k0, j, k1] for k0 in range(each)"),
}  # fmt: skip


def kernel(tmp_path, body: str, channels: str, grid: str):
    (tmp_path / "k.cu").write_text(KERNEL.format(body=body, channels=channels, grid=grid))
    return load_kernel(tmp_path / "k.cu")


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("name", FORMS)
def test_a_norm_over_groups(tmp_path, name):
    form, channels, grid, wanted = FORMS[name]
    own = kernel(tmp_path, SUMS.format(**form), channels, grid)
    found = lift(own.contract, own.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert wanted in " ".join(lines(found.computation))


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_what_goes_from_channel_to_channel_is_one_dimension(tmp_path):
    own = kernel(tmp_path, ONE_CHANNEL, "groups * each", '["n", "channels"]')
    found = lift(own.contract, own.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert "y[i, j, i2] = " in " ".join(lines(found.computation))


@pytest.mark.parametrize(("channels", "grid", "shape"), [
    ("each * groups", '"n * groups"', ["groups * each", "each * groups"]),
    ("groups * each", '["ceil_div(hw, 64)", "each"]', ["each * groups", "groups * each"]),
    ("groups * each", '"n"', None),
    ("groups * each", '"channels"', None),
    ("groups * each + 1", '"groups"', None),
])  # fmt: skip
def test_which_extents_are_taken_apart(tmp_path, channels, grid, shape):
    own = kernel(tmp_path, "if (blockIdx.x < n) y[0] = x[0] * scale[0];", channels, grid)
    grouped = in_groups(own.contract)
    assert bool(grouped) == (shape is not None)
    if shape is not None:
        assert [one.argument("x").shape[1] for one in grouped] == shape
