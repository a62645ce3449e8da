"""One row a block, shared out anew: same results however the block combined its values; no move where a thread's own
part of a value is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fsr.transform.protocol import Subject
from fsr.transform.rows.action import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.transform.rows.block_rows import block_row_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = [{"rows": r, "cols": c} for r, c in [(0, 1), (1, 1), (3, 31), (2, 64), (5, 128), (3, 257)]]


def kernel(
    body: str, *, helpers: str = "", out: str = '["rows", "cols"]', role: str = "out", dtype: str = "float",
    shared: str = "", tolerance: str = 'sum_length = "cols"', entry: str = "k", template: str = "",
) -> str:  # fmt: skip
    numpy_name = {"float": "float32", "real": "float32"}.get(dtype, "int32")
    return f"""
// /// fsr
// entry = "{entry}"
// [sizes]
// rows = {{min = 0, max = 4096, timed = 64}}
// cols = {{min = 1, max = 4096, timed = 128}}
// [args]
// x = {{role = "in", shape = ["rows", "cols"], dtype = "{numpy_name}"}}
// y = {{role = "{role}", shape = {out}, dtype = "{numpy_name}"}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
// grid = "rows"
// block = 64
// {f'shared_bytes = "{shared}"' if shared else ""}
// [tolerance]
// {tolerance}
// ///
typedef float real;
{helpers}
{template}
__global__ void k(const {dtype} *x, {dtype} *y, int rows, int cols)
{{
{body}
}}
"""


SUM_FUNCTION = """
template <int BLOCK>
__device__ float block_sum(float value)
{
    __shared__ float partial[BLOCK];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    return partial[0];
}
"""
RMS = """
    x += (size_t)blockIdx.x * cols;
    y += (size_t)blockIdx.x * cols;
    real squares = 0;
    for (int j = threadIdx.x; j < cols; j += BLOCK) squares += x[j] * x[j];
    squares = block_sum<BLOCK>(squares);
    const real scale = 1.0f / sqrtf(squares / cols + 1e-6f);
    for (int j = threadIdx.x; j < cols; j += BLOCK) y[j] = x[j] * scale;
"""
SOFTMAX_TREES = """
    __shared__ float part[64];
    const int row = blockIdx.x, tid = threadIdx.x;
    const float *in = x + row * cols;
    float top = -INFINITY;
    for (int j = tid; j < cols; j += blockDim.x) top = fmaxf(top, in[j]);
    part[tid] = top;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) part[tid] = fmaxf(part[tid], part[tid + s]);
        __syncthreads();
    }
    const float highest = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (int j = tid; j < cols; j += blockDim.x) sum += expf(in[j] - highest);
    part[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) part[tid] += part[tid + s];
        __syncthreads();
    }
    for (int j = tid; j < cols; j += blockDim.x) y[row * cols + j] = expf(in[j] - highest) / part[0];
"""
FIRST_ONLY = """
__device__ float warp_sum(float v) { for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o); return v; }
__device__ float leaders_sum(float v)
{
    __shared__ float s[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
    __syncthreads();
    if (lane == 0) s[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? s[lane] : 0.0f;
    if (warp == 0) v = warp_sum(v);
    return v;
}
"""
LAYER = """
    if (blockIdx.x >= rows) return;
    __shared__ float mean, inverse;
    const float *in = x + (size_t)blockIdx.x * cols;
    float sum = 0.0f, square = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) { sum += in[c]; square = fmaf(in[c], in[c], square); }
    sum = leaders_sum(sum);
    square = leaders_sum(square);
    if (threadIdx.x == 0) {
        mean = sum / cols;
        inverse = rsqrtf(square / cols - mean * mean + 1.0f);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[blockIdx.x * cols + c] = (in[c] - mean) * inverse;
"""
DYNAMIC = """
    extern __shared__ float part[];
    float low = 1e30f;
    for (int j = threadIdx.x; j < cols; j += 64) if (x[blockIdx.x * cols + j] < low) low = x[blockIdx.x * cols + j];
    part[threadIdx.x] = low;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] = fminf(part[threadIdx.x], part[threadIdx.x + s]);
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
"""
IN_PLACE = """
    float total = 0;
    for (int j = threadIdx.x; j < cols; j += 64) {
        y[blockIdx.x * cols + j] *= 2.0f;
        total += x[blockIdx.x * cols + j];
    }
    const float mean = block_sum<64>(total) / cols;
    if (mean > 0.0f) {
        for (int j = threadIdx.x; j < cols; j += 64) y[blockIdx.x * cols + j] += mean;
    }
    if (threadIdx.x == 0) { float first = y[blockIdx.x * cols]; y[blockIdx.x * cols] = first + 1.0f; }
"""
PER_ROW = '["rows"]'
CASES = {
    "rms": kernel(RMS, helpers=SUM_FUNCTION, dtype="real", entry="k<64>", template="template <int BLOCK>"),
    "softmax": kernel(SOFTMAX_TREES),
    "layer": kernel(LAYER, helpers=FIRST_ONLY),
    "dynamic": kernel(DYNAMIC, out=PER_ROW, shared="64 * 4"),
    "in-place": kernel(IN_PLACE, helpers=SUM_FUNCTION, role="inout"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_way_gives_the_rows_of_the_original(
    name: str, subject_from: Callable[..., Subject], runner, close_outputs
) -> None:
    subject = subject_from(CASES[name])
    tried = []
    for action, threads in ((ROW_PER_WARP, (32, 128)), (ROW_PER_BLOCK, (128,))):
        for move in action.moves(subject):
            if move.param("threads") in threads:
                changed = action.apply(subject, move)
                close_outputs(subject, changed, SIZES)
                assert runner.faults(changed, subject.contract, {"rows": 3, "cols": 70}) == []
                assert changed.plan.launches[0].shared_bytes == "0"
                tried.append(move.name)
    assert any("row-per-warp" in n for n in tried)
    assert any("row-per-block" in n for n in tried)


def test_the_real_world_example_is_kept_in_registers_between_its_loops(subject_from, apply_move) -> None:
    subject = subject_from((EXAMPLES / "realworld.cu").read_text())
    changed = apply_move(ROW_PER_BLOCK, subject, "[threads=256,cache=register,width=4]")
    assert "fsr_block_sum<256>(squares)" in changed.source
    assert "own_in_row[step]" in changed.source
    launch = changed.plan.launches[0]
    assert (launch.entry, launch.grid[0], launch.block[0]) == ("rms_norm<256>", "rows", "256")


def test_warps_share_a_block_only_where_a_guard_stops_those_without_a_row(subject_from, apply_move) -> None:
    guarded, bare = subject_from(CASES["layer"]), subject_from(CASES["softmax"])
    assert {m.param("threads") for m in ROW_PER_WARP.moves(bare)} == {32}
    assert {m.param("threads") for m in ROW_PER_WARP.moves(guarded)} == {128, 256}
    assert apply_move(ROW_PER_WARP, guarded, "[threads=128,cache=none,width=1]").plan.launches[0].grid[0] == (
        "ceil_div(rows, 4)"
    )
    assert apply_move(ROW_PER_WARP, bare, "[threads=32,cache=none,width=1]").plan.launches[0].grid[0] == "rows"


def test_launch_stays_with_keep_launch(subject_from, close_outputs) -> None:
    subject = subject_from(CASES["softmax"], keep_launch=True)
    moves = list(ROW_PER_BLOCK.moves(subject))
    assert {m.param("threads") for m in moves} == {64}
    assert not list(ROW_PER_WARP.moves(subject))
    for move in moves:
        changed = ROW_PER_BLOCK.apply(subject, move)
        assert changed.plan == subject.candidate.plan
        close_outputs(subject, changed, SIZES[2:])
    assert not list(ROW_PER_BLOCK.moves(subject_from(CASES["rms"], keep_launch=True)))  # k<128> may be launched too


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("squares = block_sum<BLOCK>(squares);", ""),  # every thread goes on with its own part
        ("squares = block_sum<BLOCK>(squares);", "float part = squares; squares = block_sum<BLOCK>(squares) + part;"),
        ("block_sum<BLOCK>(squares)", "block_sum<32>(squares)"),
        ("block_sum<BLOCK>(squares)", "block_sum<BLOCK>(2.0f * squares)"),
        ("real squares = 0;", "real squares = 1;"),  # counted once a thread
        ("real squares = 0;", "real squares = threadIdx.x;"),
        ("squares += x[j] * x[j]", "squares = fmaxf(squares, x[j])"),  # another operator than the function's
        ("squares += x[j] * x[j]", "squares = squares * 0.5f + x[j]"),
        ("y[j] = x[j] * scale;", "y[j] = x[j] * scale + threadIdx.x;"),
        ("j += BLOCK) squares", "j += 2 * BLOCK) squares"),
        ("int j = threadIdx.x; j < cols; j += BLOCK) squares", "int j = 0; j < cols; j++) squares"),
        ("partial[threadIdx.x + stride];", "partial[threadIdx.x + 1];"),
        ("return partial[0];", "return partial[threadIdx.x];"),
        ("const real scale", "if (threadIdx.x == 0) squares = 2.0f; const real scale"),
        ("const real scale", "if (threadIdx.x < 5) y[0] = 2.0f; const real scale"),
        ("x += (size_t)blockIdx.x * cols;", "x += (size_t)(blockIdx.x % gridDim.x) * cols;"),
        ("template <int BLOCK>\n\n__global__", "template <typename T, int BLOCK>\n\n__global__"),
    ],
)  # fmt: skip
def test_no_move_where_a_part_is_seen_or_the_whole_is_not_shown(old: str, new: str, subject_from) -> None:
    text = CASES["rms"]
    if "typename" in new:
        text = text.replace('"k<64>"', '"k<float, 64>"').replace("template <int BLOCK>\n__global__", new)
        text = text.replace("template <int BLOCK>\n\n__global__", new)
    changed = text.replace(old, new)
    assert changed != CASES["rms"]
    subject = subject_from(changed)
    assert block_row_kernel(subject, subject.kernels["k"]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s > 0; s >>= 1", "s > 1; s >>= 1"),  # half of the tree
        ("const float highest = part[0];", "const float highest = part[1];"),
        ("const float highest = part[0];", "const float highest = part[0] + top;"),
        ("float sum = 0.0f;", "float sum = 0.0f; part[tid] = 3.0f;"),
    ],
)
def test_no_move_where_a_tree_is_not_shown_to_combine(old: str, new: str, subject_from) -> None:
    assert old in CASES["softmax"]
    subject = subject_from(CASES["softmax"].replace(old, new))
    assert block_row_kernel(subject, subject.kernels["k"]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("__syncthreads();\n    for (int c", "mean = sum;\n    for (int c"),  # what thread 0 alone holds, seen by all
        ("mean = sum / cols;", "mean = sum / cols; sum = 1.0f;"),
        ("mean = sum / cols;", "mean = sum / cols; if (mean > 3.0f) return;"),
        ("square = leaders_sum(square);", "square = leaders_sum(square) + 1.0f;"),
    ],
)
def test_what_thread_0_alone_holds_is_seen_by_it_alone(old: str, new: str, subject_from) -> None:
    assert old in CASES["layer"]
    subject = subject_from(CASES["layer"].replace(old, new))
    assert block_row_kernel(subject, subject.kernels["k"]) is None


def test_sums_keep_their_order_where_results_must_be_exact(subject_from) -> None:
    def moves(body: str, dtype: str, helpers: str) -> int:
        text = kernel(
            body, helpers=helpers, dtype=dtype, tolerance="exact = true", entry="k<64>", template="template <int BLOCK>"
        )
        subject = subject_from(text)
        return len([*ROW_PER_WARP.moves(subject), *ROW_PER_BLOCK.moves(subject)])

    whole = RMS.replace("real", "int").replace("1.0f / sqrtf(squares / cols + 1e-6f)", "squares")
    assert moves(RMS, "float", SUM_FUNCTION) == 0
    assert moves(whole, "int", SUM_FUNCTION.replace("float", "int")) > 0
