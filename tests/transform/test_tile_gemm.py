"""tile-gemm finds folds over k however they are written, and its tiles are right at every size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.gemm.action import TileGemm
from fsr.transform.gemm.config import GemmConfig
from fsr.transform.protocol import Subject

EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm.cu"
SIZES = [(1, 1, 1), (17, 5, 3), (65, 33, 31), (32, 64, 16), (7, 129, 40), (3, 4, 0)]


def sizes(*mnk: tuple[int, int, int]) -> list[dict[str, int]]:
    return [dict(zip("MNK", one, strict=True)) for one in mnk]


def gemm(
    code: str,
    *,
    a: str = '"M", "K"',
    b: str = '"K", "N"',
    c: str = '"M", "N"',
    block: str = "[16, 16]",
    grid: str = '["ceil_div(N, 16)", "ceil_div(M, 16)"]',
) -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// M = {{min = 0, max = 4096, timed = 256}}
// N = {{min = 0, max = 4096, timed = 256}}
// K = {{min = 0, max = 4096, timed = 256}}
// [args]
// A = {{role = "in", shape = [{a}]}}
// B = {{role = "in", shape = [{b}]}}
// C = {{role = "inout", shape = [{c}]}}
// M = {{value = "M"}}
// N = {{value = "N"}}
// K = {{value = "K"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
{code}
"""


TRANSPOSED = """
#define IDX(r, c, ld) ((r) * (ld) + (c))
__global__ void k(const float *A, const float *B, float *C, int M, int N, int K) {
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int j = blockIdx.x * 16 + tx;
    const int i = blockIdx.y * 16 + ty;
    if (i < M && j < N) {
        float sum = 0.f;
        for (int p = 0; p < K; ++p)
            sum = fmaf(A[IDX(p, i, M)], B[IDX(j, p, K)], sum);
        C[IDX(i, j, N)] = 2.0f * sum + C[IDX(i, j, N)];
    }
}
"""

FLAT = """
__global__ void k(const double *A, const double *B, double *C, int M, int N, int K) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= M * N) return;
    int r = idx / N;
    int c = idx % N;
    const double *a = A + r * K;
    double total = C[idx];
    for (int k = 0; k < K; k++) { double x = a[k]; double y = B[k * N + c]; total += x * y; }
    C[idx] = total;
}
"""

DISTANCE = """
__global__ void k(const float *A, const float *B, float *C, int M, int N, int K) {
    size_t col = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = threadIdx.y + blockIdx.y * blockDim.y;
    if (row >= M) return;
    if (col >= N) return;
    float best = 1e30f;
    for (int k = 0; k < K; k++) {
        float d = A[row * K + k] + B[k * (size_t)N + col];
        best = fminf(best, d);
    }
    if (best < 0.0f) best = -best;
    C[row * N + col] = best;
}
"""

HALF = """
#include <cuda_fp16.h>
__global__ void k(const __half *A, const __half *B, float *C, int M, int N, int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float acc = 0;
        for (int k = 0; k < K; k++) acc += __half2float(A[row * K + k]) * __half2float(B[k * N + col]);
        C[row * N + col] = acc;
    }
}
"""

IN_MEMORY = """
__global__ void k(const int *A, const int *B, int *C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        C[row * N + col] = 3;
        for (int k = 0; k < K; k++) {
            C[row * N + col] += A[row * K + k] * B[k * N + col];
        }
    }
}
"""

BATCHED = """
__global__ void k(const signed char *A, const float *B, float *C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    const signed char *a = A + blockIdx.z * M * K;
    const float *b = &B[blockIdx.z * K * N];
    float *c = C + blockIdx.z * M * N;
    if (row >= M || col >= N) return;
    float acc = c[row * N + col];
    #pragma unroll 4
    for (int k = 1; k <= K - 1; ++k) acc -= (float)a[row * K + k] * b[k * N + col];
    c[row * N + col] = acc > 0 ? acc : acc * 0.5f;
}
"""


@pytest.fixture
def action() -> TileGemm:
    return TileGemm()


@pytest.mark.parametrize("config", ["bm=32,bn=32,bk=32,tm=2,tn=4]", "bm=64,bn=64,bk=16,tm=8,tn=4]", "tile=16]"])
def test_example_is_the_same_at_every_size(config, action, subject_from, apply_move, runner):
    subject = subject_from(EXAMPLE.read_text())
    changed = apply_move(action, subject, config)
    runner.check(subject, changed, *sizes(*SIZES))


@pytest.mark.parametrize("alignment", [4, 8])
def test_pointers_need_no_more_than_their_own_alignment(alignment, action, subject_from, apply_move, runner):
    subject = subject_from(EXAMPLE.read_text())
    changed = apply_move(action, subject, "bm=64,bn=64,bk=16,tm=8,tn=4]")
    size = {"M": 20, "N": 12, "K": 16}
    want = runner.outputs(subject.candidate, subject.contract, size)["C"]
    got = runner.outputs(changed, subject.contract, size, alignment=alignment)["C"]
    assert (got == want).all()


@pytest.mark.parametrize(
    ("code", "shapes"),
    [
        (TRANSPOSED, {"a": '"K", "M"', "b": '"N", "K"'}),
        (FLAT, {"block": "128", "grid": '"ceil_div(M * N, 128)"'}),
        (DISTANCE, {}),
        (HALF, {"grid": '["ceil_div(M, 16)", "ceil_div(N, 16)"]'}),
        (IN_MEMORY, {}),
        (
            BATCHED,
            {
                "a": '"3", "M", "K"',
                "b": '"3", "K", "N"',
                "c": '"3", "M", "N"',
                "grid": '["ceil_div(N, 16)", "ceil_div(M, 16)", "3"]',
            },
        ),
    ],
    ids=["transposed-macro", "flat-double", "min-plus", "half-swapped", "in-memory", "batched"],
)
@pytest.mark.parametrize("config", ["bm=32,bn=32,bk=32,tm=2,tn=4]", "tile=16]"])
def test_other_ways_to_write_it(code, shapes, config, action, subject_from, apply_move, runner):
    subject = subject_from(gemm(code, **shapes))
    changed = apply_move(action, subject, config)
    runner.check(subject, changed, *sizes((1, 1, 1), (33, 40, 36), (5, 70, 17)))


def test_any_configuration_of_the_space_may_be_applied(action, subject_from, runner):
    subject = subject_from(EXAMPLE.read_text())
    space = list(action.space(subject))
    assert 290 <= len(space) <= 350
    assert len({m.name for m in space}) == len(space)
    chosen = GemmConfig(16, 32, 32, 2, 4, buffers=1)
    move = next(m for m in space if m.params == chosen.params())
    assert move.name == "tile-gemm@loop:k[bm=16,bn=32,bk=32,tm=2,tn=4,buffers=1]"
    runner.check(subject, action.apply(subject, move), *sizes((19, 66, 35)))


def test_a_tiled_kernel_is_not_tiled_again(action, subject_from, apply_move):
    subject = subject_from(EXAMPLE.read_text())
    changed = apply_move(action, subject, "tile=16]")
    again = Subject(changed, parse_kernels(changed.source), subject.contract)
    assert list(action.moves(again)) == []


def test_keep_launch_leaves_only_the_tile_of_that_block(action, subject_from, apply_move, runner):
    subject = subject_from(EXAMPLE.read_text(), keep_launch=True)
    assert [m.name for m in action.moves(subject)] == ["tile-gemm@loop:k[tile=16]"]
    changed = apply_move(action, subject, "tile=16]")
    before, after = subject.candidate.plan.launches[0], changed.plan.launches[0]
    assert (before.grid, before.block) == (after.grid, after.block)
    runner.check(subject, changed, *sizes((18, 35, 9)))


BODY = """
__global__ void k(const float *A, const float *B, float *C, int M, int N, int K) {{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float acc = 0.0f;
    {loop}
    C[row * N + col] = acc;
}}
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < K; k++) acc += A[row * K + k] * A[row * K + k];",  # no second dimension
        "for (int k = 0; k < row; k++) acc += A[row * K + k] * B[k * N + col];",  # triangular
        "for (int k = 0; k < K; k++) acc += A[(row * K + k) % M] * B[k * N + col];",  # not affine
        "for (int k = 0; k < K; k++) { acc += A[row * K + k] * B[k * N + col]; C[row * N + col] = acc; }",
        "for (int k = 0; k < K; k++) acc += C[row * N + k] * B[k * N + col];",  # reads what it writes
        "for (int k = 0; k < K; k += 2) acc += A[row * K + k] * B[k * N + col];",
        "for (int k = 0; k < K; k++) acc += A[row * K + k] * B[k * N + col] * threadIdx.x;",
        "for (int k = 0; k < K; k++) { if (acc > 3.0f) break; acc += A[row * K + k] * B[k * N + col]; }",
        "for (int k = 0; k < K; k++) { acc += A[row * K + k] * B[k * N + col]; __syncthreads(); }",
        "for (int k = 0; k < K; k++) acc += atomicAdd(&C[0], A[row * K + k] * B[k * N + col]);",
    ],
)
def test_no_move_where_it_would_not_be_the_same(loop, action, subject_from):
    assert list(action.moves(subject_from(gemm(BODY.format(loop=loop))))) == []


def test_no_move_when_operands_may_share_memory_with_the_result(action, subject_from):
    loop = "for (int k = 0; k < K; k++) acc += A[row * K + k] * B[k * N + col];"
    subject = subject_from(gemm(BODY.format(loop=loop)))
    assert list(action.moves(subject))
    shared = replace(subject, contract=replace(subject.contract, aliasing=(("A", "C"),)))
    assert list(action.moves(shared)) == []


def test_the_best_guess_depends_on_how_many_blocks_there_are(action, subject_from):
    text = EXAMPLE.read_text()
    small, large = (list(action.moves(subject_from(text.replace("1024", size)))) for size in ("512", "4096"))
    for moves in (small, large):
        assert [m.gain for m in moves] == sorted((m.gain for m in moves), reverse=True)
    assert int(small[0].param("bm")) * int(small[0].param("bn")) < 128 * 128
    assert (large[0].param("bm"), large[0].param("bn")) == (128, 128)
    assert {m.name for m in small} == {m.name for m in large}
