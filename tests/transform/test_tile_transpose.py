"""tile-transpose turns accesses along y into accesses along x, at every size, and leaves other kernels alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from fsr.transform.transpose.action import TileTranspose

EXAMPLE = Path(__file__).parents[2] / "examples" / "transpose.cu"
SIZES = [{"rows": r, "cols": c} for r, c in [(1, 1), (31, 33), (64, 65), (5, 127), (97, 2)]]


def kernel(code: str, launch: str, shape_out: str = '"cols", "rows"', dtype: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 0, max = 4096, timed = 1024}}
// cols = {{min = 0, max = 4096, timed = 1024}}
// [args]
// in = {{role = "in", shape = ["rows", "cols"]{dtype}}}
// out = {{role = "inout", shape = [{shape_out}]{dtype}}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
{launch}
// ///
{code}
"""


GRID = '// grid = ["ceil_div(cols, 16)", "ceil_div(rows, 16)"]\n// block = [16, 16]'
SWAPPED = '// grid = ["ceil_div(rows, 32)", "ceil_div(cols, 8)"]\n// block = [32, 8]'
FLAT = '// grid = "ceil_div(rows * cols, 256)"\n// block = 256'

READ_ALONG_Y = """
template <typename T> __global__ void k(const T *in, T *out, int rows, int cols) {
    unsigned int r = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int c = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= rows) return;
    if (!(c < cols)) return;
    T v = in[r * cols + c];
    out[c * rows + r] = v > 0 ? 2 * v : out[c * rows + r] - v;
}
""".replace("template <typename T> ", "typedef double T;\n")

FLAT_CODE = """
#define AT(p, i, j, n) (p)[(i) * (n) + (j)]
__global__ void k(const int *in, int *out, int rows, int cols) {
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    if (t < rows * cols) {
        int i = t / cols, j = t % cols;
        AT(out, j, i, rows) = AT(in, i, j, cols) * 3 + i - j;
    }
}
"""

UNGUARDED = """
__global__ void k(const float *in, float *out, int rows, int cols) {
    int y = blockIdx.y, x = blockIdx.x;
    const float *src = in + y * cols;
    out[(size_t)x * rows + y] = src[x];
}
"""


@pytest.fixture
def action() -> TileTranspose:
    return TileTranspose()


@pytest.mark.parametrize("shape", ["[tile=32,rows=8]", "[tile=64,rows=16]", "[tile=16,rows=16]"])
def test_example_is_the_same_at_every_size(shape, action, subject_from, apply_move, runner):
    subject = subject_from(EXAMPLE.read_text())
    changed = apply_move(action, subject, shape)
    assert changed.source.count("__syncthreads") == 1
    runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    ("code", "launch"),
    [(READ_ALONG_Y, SWAPPED), (FLAT_CODE, FLAT), (UNGUARDED, '// grid = ["cols", "rows"]\n// block = 1')],
    ids=["read-along-y", "flat-with-macro", "unguarded-one-thread-blocks"],
)
def test_other_ways_to_write_it(code, launch, action, subject_from, apply_move, runner):
    subject = subject_from(kernel(code, launch))
    runner.check(subject, apply_move(action, subject, "[tile=32,rows=8]"), *SIZES)


def test_keep_launch_keeps_grid_and_block(action, subject_from, apply_move, runner):
    subject = subject_from(EXAMPLE.read_text(), keep_launch=True)
    changed = apply_move(action, subject, "tile-transpose@kernel[tile=16,rows=16]")
    assert changed.plan.launches[0].grid == subject.candidate.plan.launches[0].grid
    assert changed.plan.launches[0].block == subject.candidate.plan.launches[0].block
    assert len(list(action.moves(subject))) == 1
    runner.check(subject, changed, *SIZES[:3])


def test_a_tiled_kernel_is_not_tiled_again(action, subject_from, apply_move):
    subject = subject_from(EXAMPLE.read_text())
    changed = apply_move(action, subject, "[tile=32,rows=8]")
    assert list(action.moves(Subject(changed, parse_kernels(changed.source), subject.contract))) == []


BODY = """
__global__ void k(const float *in, float *out, int rows, int cols) {{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= rows || c >= cols) return;
    {body}
}}
"""


@pytest.mark.parametrize(
    "body",
    [
        "out[r * cols + c] = in[r * cols + c];",  # coalesced as it is
        "out[c * rows + r] = in[c * rows + r];",  # all along y: exchanging ids does it
        "out[c * rows + r] = in[r * cols + c] + out[0];",  # reads what others write
        "out[c * rows + r] += in[r * cols + c];",
        "if (in[r * cols + c] > 0) out[c * rows + r] = in[r * cols + c];",
        "out[(c * rows + r) % rows] = in[r * cols + c];",
    ],
)
def test_no_move_where_a_tile_does_not_help_or_may_not(body, action, subject_from):
    assert list(action.moves(subject_from(kernel(BODY.format(body=body), GRID)))) == []
