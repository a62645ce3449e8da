"""reduce-atomics and private-bins: the same totals with one atomic a block, in every shape; no move where unproven."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.cuda.compiler import cuda_toolchain
from fsr.records import Image, Scratch
from fsr.source.parse import parse_kernels
from fsr.transform.atomics.action import PRIVATE_BINS, REDUCE_ATOMICS
from fsr.transform.rows.action import ROW_PER_BLOCK, ROW_PER_WARP

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = [{"n": n, "bins": b} for n, b in [(0, 1), (1, 1), (31, 7), (257, 9), (4099, 300)]]
GUARD = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {0} }}"
RETURN = "unsigned i = threadIdx.x + blockDim.x * blockIdx.x; if (i >= n) return; {0}"
STRIDE = (
    "int first = blockIdx.x * blockDim.x + threadIdx.x; int step = gridDim.x * blockDim.x; "
    "for (long long i = first; i < n; i += step) {{ {0} }}"
)


def kernel(work: str, *, out: str = "float", x: str = "float", shape: str = '["bins"]', tolerance: str = "") -> str:
    names = {"float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32", "unsigned char": "uint8"}
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 0, max = 1000000, timed = 4096}}
// bins = {{min = 1, max = 500, timed = 256}}
// [args]
// x = {{role = "in", shape = ["n"], dtype = "{names[x]}"}}
// out = {{role = "inout", shape = {shape}, dtype = "{names[out]}"}}
// n = {{value = "n"}}
// bins = {{value = "bins"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// {tolerance or 'sum_length = "n"'}
// ///
__global__ void k(const {x} *x, {out} *out, int n, int bins)
{{
    {work}
}}
"""


@pytest.mark.parametrize(
    ("work", "out", "x"),
    [
        (GUARD.format("atomicAdd(out, x[i] * 2.0f);"), "float", "float"),
        (RETURN.format("if (x[i] < 0.0f) return; atomicAdd(&out[0], 1);"), "int", "float"),
        (STRIDE.format("atomicMax(&out[bins - 1], x[i]);"), "int", "int"),
        (GUARD.format("int v = x[i]; if (v == 3) atomicMin(out, v - 9); else atomicMin(out, v);"), "int", "int"),
        (GUARD.format("atomicOr(out, 1u << x[i]);"), "unsigned", "unsigned char"),
        (GUARD.format("atomicSub(out, x[i]);"), "unsigned", "unsigned"),
        (GUARD.format("atomicAdd(out, x[i] / 2.0f);"), "int", "float"),
    ],
    ids=["sum", "count", "max", "min", "or", "sub", "truncated"],
)
def test_gathered_atomics_leave_the_same_total(work: str, out: str, x: str, subject_from, runner) -> None:
    subject = subject_from(kernel(work, out=out, x=x))
    moves = list(REDUCE_ATOMICS.moves(subject))
    assert {m.param("finish") for m in moves} == {"atomic", "second-pass"}
    for move in moves[:4:2] + [m for m in moves if m.param("finish") == "second-pass"][:1] + moves[-1:]:
        changed = REDUCE_ATOMICS.apply(subject, move)
        runner.check(subject, changed, *SIZES)


def test_one_atomic_a_block_is_left(subject_from, apply_move) -> None:
    subject = subject_from((EXAMPLES / "reduction.cu").read_text())
    ending = "[threads=256,blocks=8,width=4,batch=4,finish=atomic]"
    launch = apply_move(REDUCE_ATOMICS, subject, ending).plan.launches[0]
    assert launch.grid[0] == "min(ceil_div(n, 4096), 1056)"


def test_second_pass_needs_no_atomics(subject_from, apply_move) -> None:
    subject = subject_from((EXAMPLES / "reduction.cu").read_text())
    changed = apply_move(REDUCE_ATOMICS, subject, "[threads=256,blocks=8,width=4,batch=4,finish=second-pass]")
    assert "atomicAdd" not in changed.source
    assert [launch.entry for launch in changed.plan.launches] == ["reduce_sum", "reduce_sum_finish"]
    assert changed.plan.scratch == (Scratch("total_partial", "float32", "max(1, (min(ceil_div(n, 4096), 1056)))"),)
    assert set(parse_kernels(changed.source)) == {"reduce_sum", "reduce_sum_finish"}


def test_keep_launch_keeps_grid_block_and_plan(subject_from, runner) -> None:
    subject = subject_from(kernel(GUARD.format("atomicAdd(out, x[i]);")), keep_launch=True)
    moves = list(REDUCE_ATOMICS.moves(subject))
    assert len(moves) == 1
    changed = REDUCE_ATOMICS.apply(subject, moves[0])
    assert changed.plan == subject.candidate.plan
    runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    ("work", "out", "x"),
    [
        (GUARD.format("int b = x[i]; if (b < bins) atomicAdd(&out[b], 1u);"), "unsigned", "unsigned"),
        (RETURN.format("atomicAdd(&out[x[i] % bins], x[i]);"), "int", "unsigned char"),
        (STRIDE.format("atomicMax(&out[i % bins], x[i]);"), "int", "int"),
        (GUARD.format("atomicAdd(&out[(i * 7) % bins], x[i]);"), "float", "float"),
    ],
    ids=["count", "bytes", "max", "float"],
)
def test_private_bins_leave_the_same_histogram(work: str, out: str, x: str, subject_from, runner) -> None:
    subject = subject_from(kernel(work, out=out, x=x))
    moves = list(PRIVATE_BINS.moves(subject))
    assert list(REDUCE_ATOMICS.moves(subject)) == []
    assert {m.param("copies") for m in moves} >= {1, 2, 4}
    for move in (moves[0], moves[3], moves[-1]):
        changed = PRIVATE_BINS.apply(subject, move)
        assert changed.plan.launches[0].shared_bytes.startswith("(bins) * 4")
        runner.check(subject, changed, *SIZES)


def test_private_bins_with_a_count_beside_them(subject_from, runner) -> None:
    work = GUARD.format("if (i % 3) atomicAdd(&out[1 + i % 5], x[i]);")
    subject = subject_from(kernel(work, shape="[8]"))
    for keep in (False, True):
        kept = subject_from(kernel(work, shape="[8]"), keep_launch=keep)
        move = next(iter(PRIVATE_BINS.moves(kept)))
        changed = PRIVATE_BINS.apply(kept, move)
        assert keep == (changed.plan.launches[0].grid == subject.candidate.plan.launches[0].grid)
        runner.check(kept, changed, *SIZES)


@pytest.mark.parametrize(
    "work",
    [
        "int i = threadIdx.x; if (i < n) atomicAdd(out, x[i]);",  # not the global thread number
        GUARD.format("float old = atomicAdd(out, x[i]); if (old > 3.0f) out[0] = 1.0f;"),  # the result is used
        GUARD.format("if (out[0] < 4.0f) atomicAdd(out, x[i]);"),  # read meanwhile
        GUARD.format("atomicAdd(out, x[i]); __syncthreads();"),  # threads wait for one another
        GUARD.format("atomicExch(out, x[i]);"),  # order matters
        GUARD.format("atomicAdd(out + i, x[i] + threadIdx.x);"),  # which thread runs it shows
    ],
)
def test_no_move_where_gathering_is_not_shown_to_be_the_same(work: str, subject_from) -> None:
    subject = subject_from(kernel(work))
    assert list(REDUCE_ATOMICS.moves(subject)) == []
    assert list(PRIVATE_BINS.moves(subject)) == []


def test_a_launch_too_short_for_its_elements_is_left_alone(subject_from) -> None:
    text = kernel(GUARD.format("atomicAdd(out, x[i]);"))
    assert list(REDUCE_ATOMICS.moves(subject_from(text))) != []
    assert list(REDUCE_ATOMICS.moves(subject_from(text.replace("ceil_div(n, 64)", "n // 64")))) == []


def test_exact_floats_are_left_alone(subject_from) -> None:
    subject = subject_from(kernel(GUARD.format("atomicAdd(out, x[i]);"), tolerance="exact = true"))
    assert list(REDUCE_ATOMICS.moves(subject)) == []


def test_bins_beyond_shared_memory_are_left_alone(subject_from) -> None:
    work = GUARD.format("atomicAdd(&out[i % bins], x[i]);")
    assert list(PRIVATE_BINS.moves(subject_from(kernel(work)))) != []
    assert list(PRIVATE_BINS.moves(subject_from(kernel(work, shape='["bins * 200"]')))) == []


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "reduction", "histogram"])
def test_every_kind_of_result_compiles_for_the_gpu_without_spills(name: str, subject_from) -> None:
    toolchain = cuda_toolchain("sm_90")
    subject = subject_from((EXAMPLES / f"{name}.cu").read_text())
    for action in (ROW_PER_WARP, ROW_PER_BLOCK, REDUCE_ATOMICS, PRIVATE_BINS):
        for move in list(action.moves(subject))[::9]:
            built = toolchain.compile(action.apply(subject, move))
            assert isinstance(built, Image), f"{move.name}: {built.log}"
            assert all(r.spill_bytes == 0 for r in built.resources.values()), move.name
