"""block-shape-3d: the same points whatever the block, and no move where the text needs the block it has."""

from __future__ import annotations

import pytest

from fsr.transform.launch.block_shape_3d import SHAPES, BlockShape3D

SIZES = [{"nx": x, "ny": y, "nz": z} for x, y, z in [(1, 1, 1), (5, 3, 4), (33, 9, 3), (20, 7, 11)]]


def kernel(body: str, *, block: str = "[8, 8, 4]") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// nx = {{min = 1, max = 256, timed = 64}}
// ny = {{min = 1, max = 256, timed = 64}}
// nz = {{min = 1, max = 256, timed = 32}}
// [args]
// u = {{role = "in", shape = ["nz", "ny", "nx"]}}
// v = {{role = "inout", shape = ["nz", "ny", "nx"]}}
// nx = {{value = "nx"}}
// ny = {{value = "ny"}}
// nz = {{value = "nz"}}
// [launch]
// grid = ["ceil_div(nx, 8)", "ceil_div(ny, 8)", "ceil_div(nz, 4)"]
// block = {block}
// ///
__global__ void k(const float *u, float *v, int nx, int ny, int nz)
{{
{body}
}}
"""


HEAT = """
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y + blockDim.y * blockIdx.y;
    const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1) {
        int i = (z * ny + y) * nx + x;
        v[i] = u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - nx * ny] + u[i + nx * ny] - 6.0f * u[i];
    }
"""
RETURNS = """
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = (int)(blockIdx.z * blockDim.z + threadIdx.z);
    if (x >= nx || y >= ny) return;
    if (z >= nz) return;
    v[(z * ny + y) * nx + x] += u[(z * ny + y) * nx + x] * (x + 2 * y + 3 * z);
"""


@pytest.mark.parametrize("body", [HEAT, RETURNS], ids=["heat", "returns"])
def test_every_shape_covers_the_same_points(body, subject_from, runner) -> None:
    subject, action = subject_from(kernel(body)), BlockShape3D()
    moves = list(action.moves(subject))
    assert len(moves) == len(SHAPES)
    for move in moves:
        changed = action.apply(subject, move)
        assert changed.source == subject.candidate.source
        assert changed.plan.launches[0].block == tuple(str(move.param(axis)) for axis in "xyz")
        runner.check(subject, changed, *SIZES)


def test_the_present_shape_is_no_move_and_a_kept_launch_has_none(subject_from) -> None:
    text = kernel(HEAT, block="[32, 4, 2]").replace("ceil_div(ny, 8)", "ceil_div(ny, 4)")
    present = subject_from(text.replace("ceil_div(nz, 4)", "ceil_div(nz, 2)"))
    assert len(list(BlockShape3D().moves(present))) == len(SHAPES) - 1
    assert list(BlockShape3D().moves(subject_from(kernel(HEAT), keep_launch=True))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (z >= nz) return;", ""),  # the launch alone bounds z
        ("if (z >= nz) return;", "if (z == nz) return;"),
        ("blockIdx.z * blockDim.z", "blockIdx.z * 4"),
        ("blockIdx.y * blockDim.y + threadIdx.y;", "blockIdx.y * blockDim.x + threadIdx.y;"),
        ("(x + 2 * y + 3 * z)", "(x + threadIdx.y)"),
        ("(x + 2 * y + 3 * z)", "(x + gridDim.z)"),
        ("if (z >= nz) return;", "if (z >= nz) return; z = 0;"),
        ("if (z >= nz) return;", "if (z >= nz) return; __shared__ float s[1]; s[0] = 1;"),
        ("if (z >= nz) return;", "if (z >= nz) return; __syncwarp();"),
    ],
)
def test_no_move_where_the_text_needs_its_block(old: str, new: str, subject_from) -> None:
    assert old in RETURNS
    assert list(BlockShape3D().moves(subject_from(kernel(RETURNS.replace(old, new))))) == []


def test_a_launch_that_stops_short_of_the_guards_keeps_its_block(subject_from) -> None:
    assert list(BlockShape3D().moves(subject_from(kernel(HEAT, block="[8, 8, 2]")))) == []


def test_a_bound_declared_for_the_block_stops_the_move(subject_from) -> None:
    text = kernel(RETURNS).replace("__global__ void k(", "__global__ void __launch_bounds__(256) k(")
    assert list(BlockShape3D().moves(subject_from(text))) == []
