"""march-stencil and tile-stencil read each neighbour once, keep the user's borders, and are right at every size."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from fsr.transform.stencil.action import MarchStencil, TileStencil

EXAMPLE = Path(__file__).parents[2] / "examples" / "stencil.cu"
SIZES = [(1, 1), (3, 3), (35, 37), (70, 130), (2, 65), (66, 97)]

CONTRACT = """
// /// fsr
// entry = "k"
// [sizes]
// height = {min = 1, max = 4096, timed = 512}
// width = {min = 1, max = 4096, timed = 512}
// [args]
// a = {role = "in", shape = ["height + 4", "width + 4"]}
// b = {role = "in", shape = ["height + 4", "width + 4"]}
// out = {role = "inout", shape = ["height", "width"]}
// width = {value = "width"}
// height = {value = "height"}
// [launch]
// grid = ["ceil_div(width, 16)", "ceil_div(height, 16)"]
// block = [16, 16]
// ///
"""

PADDED = """
__global__ void k(const float *a, const float *b, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int pitch = width + 4;
    if (x < width && y < height) {
        float corner = a[y * pitch + x] + a[(y + 4) * pitch + x + 4] + a[(y + 4) * pitch + x];
        float cross = b[(y + 2) * pitch + (x + 2)] * 2.0f - b[(y + 1) * pitch + (x + 2)] - b[(y + 3) * pitch + x + 2];
        out[y * width + x] = corner + cross + x - y;
    }
}
"""

INTERIOR = """
__global__ void k(const float *a, const float *b, float *out, int w, int h) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= h - 1) return;
    if (j >= 1 && j < w - 1) {
        const float *row = a + i * w;
        float s = 0.0f;
        s += __ldg(&row[j - 1]) + __ldg(row + (j + 1)) + row[j - w - 1] + row[j - w] + row[j - w + 1];
        s += row[j + w] + row[j + w - 1] + row[j + w + 1];
        if (b[j] > 0.0f) s += b[i];
        out[i * w + j] += s - 8.0f * row[j];
    }
}
"""

BOX = CONTRACT.replace('// width = {value = "width"}', '// w = {value = "width"}') + INTERIOR
BOX = BOX.replace('// height = {value = "height"}', '// h = {value = "height"}')


def sizes(pairs: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"height": h, "width": w} for h, w in pairs]


@pytest.mark.parametrize(
    ("action", "ending"),
    [
        (MarchStencil(), "[rows=4,x=32,y=8]"),
        (MarchStencil(), "[rows=2,x=64,y=4]"),
        (TileStencil(), "[rows=2,x=32,y=8]"),
    ],
    ids=["march-4", "march-2", "tile"],
)
@pytest.mark.parametrize("text", [EXAMPLE.read_text(), CONTRACT + PADDED, BOX], ids=["five", "pad", "box"])
def test_the_same_at_every_size(action, ending, text, subject_from, apply_move, runner):
    subject = subject_from(text)
    changed = apply_move(action, subject, ending)
    runner.check(subject, changed, *sizes(SIZES))


def test_neighbours_are_read_once(subject_from, apply_move):
    changed = apply_move(MarchStencil(), subject_from(EXAMPLE.read_text()), "[rows=4,x=32,y=8]")
    fast = changed.source[changed.source.index("if (inner)") : changed.source.index("} else {")]
    assert fast.count("= in[") == 3  # left, middle, right column
    tiled = apply_move(TileStencil(), subject_from(EXAMPLE.read_text()), "[rows=2,x=32,y=8]")
    fast = tiled.source[tiled.source.index("if (__syncthreads_and(inner))") : tiled.source.index("} else {")]
    assert fast.count("= in[") == 1


def test_the_result_is_no_stencil_again(subject_from, apply_move):
    subject = subject_from(EXAMPLE.read_text())
    changed = apply_move(MarchStencil(), subject, "[rows=4,x=32,y=8]")
    again = Subject(changed, parse_kernels(changed.source), subject.contract)
    assert list(MarchStencil().moves(again)) == list(TileStencil().moves(again)) == []


BODY = """
__global__ void k(const float *a, const float *b, float *out, int width, int height) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    {body}
}}
"""


@pytest.mark.parametrize("action", [MarchStencil(), TileStencil()], ids=lambda a: a.name)
@pytest.mark.parametrize(
    "body",
    [
        "out[y * width + x] = a[y * width + x] + a[y * width + x + 1];",  # one row only
        "out[y * width + x] = out[y * width + x] + out[(y + 1) * width + x];",  # in place: a race, not a stencil
        "out[y * width + x] = y > 0 ? a[y * width + x] + a[(y - 1) * width + x] : 0.0f;",  # read on a condition
        "for (int i = 0; i < 3; i++) out[y * width + x] += a[(y + i) * width + x];",
        "if (b[x] > 0) out[y * width + x] = a[y * width + x] + a[(y + 1) * width + x];",  # which path is data
    ],
)
def test_no_move_where_it_may_not_or_does_not_help(action, body, subject_from):
    assert list(action.moves(subject_from(CONTRACT + BODY.format(body=body)))) == []
    assert list(action.moves(subject_from(EXAMPLE.read_text(), keep_launch=True))) == []
