"""Vector loads and stores: same results at every tail and alignment, and never where elements would be touched that
the scalar code leaves alone."""

from __future__ import annotations

import dataclasses

import pytest

from fsr.transform.launch.block_size import BlockSize
from fsr.transform.vector.vectorize import Vectorize, VectorizeLoop

HEAD = """
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 0, max = {most}, timed = 4096}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// y = {{role = "{role}", shape = ["n"]}}
// n = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void k(const {type} *x, {type} *y, int n)
{{
{body}
}}
"""


def text(body: str, role: str = "out", type_: str = "float", most: int = 1 << 24) -> str:
    return HEAD.format(body=body, role=role, type=type_, most=most)


ID = "int i = blockIdx.x * blockDim.x + threadIdx.x; "
GUARDED = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { y[i] = 2 * x[i] + y[i]; }"
RETURNS = "int i = threadIdx.x + blockDim.x * blockIdx.x; if (n <= i) return; float t = x[i]; y[i] = t * t;"
SIZES = tuple({"n": n} for n in (1, 3, 4, 127, 128, 515))


@pytest.mark.parametrize(
    ("source", "width"),
    [(text(GUARDED, "inout"), 4), (text(RETURNS), 2), (text(GUARDED, "inout", "double"), 2)],
)
def test_elementwise_kernels_keep_their_results(subject_from, apply_move, runner, source, width):
    subject = subject_from(source)
    changed = apply_move(Vectorize(), subject, f"[width={width},threads=128]")
    assert f"fsr_pack<{'double' if 'double' in source else 'float'}, {width}>" in changed.source
    runner.check(subject, changed, *SIZES)


def test_pointers_that_a_point_declares_stand_in_front(subject_from, apply_move, runner) -> None:
    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float *out = (float *)y; out[i] = 2 * x[i]; }"
    subject = subject_from(text(body))
    changed = apply_move(Vectorize(), subject, "[width=4,threads=128]")
    assert changed.source.index("float *out") < changed.source.index("fsr_aligned<16>(out)")
    runner.check(subject, changed, *SIZES)


def test_unaligned_pointers_take_the_scalar_way(subject_from, apply_move, close_outputs):
    subject = subject_from(text(RETURNS))
    changed = apply_move(Vectorize(), subject, "[width=4,threads=128]")
    assert "fsr_aligned<16>" in changed.source
    close_outputs(subject, changed, [{"n": 37}], alignment=4)


def test_a_launch_that_is_kept_still_vectorises(subject_from, apply_move, runner):
    subject = subject_from(text(RETURNS), keep_launch=True)
    changed = apply_move(Vectorize(), subject, "[width=4,threads=128]")
    assert changed.plan == subject.candidate.plan
    runner.check(subject, changed, {"n": 300})


def test_two_dimensional_kernels_vectorise_along_x(subject_from, apply_move, runner):
    source = """
// /// fsr
// entry = "k"
// [sizes]
// h = {min = 0, max = 4096, timed = 64}
// w = {min = 0, max = 4096, timed = 64}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// b = {role = "in", shape = ["w"]}
// y = {role = "out", shape = ["h", "w"]}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 4)"]
// block = [32, 4]
// ///
__global__ void k(const float *x, const float *b, float *y, int h, int w)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h && c < w) { y[r * w + c] = x[r * w + c] + b[c]; }
}
"""
    subject = subject_from(source)
    changed = apply_move(Vectorize(), subject, "[width=4,threads=128]")
    runner.check(subject, changed, {"h": 5, "w": 64}, {"h": 5, "w": 67}, {"h": 9, "w": 3})


def test_rows_above_and_below_are_those_of_signed_numbers(subject_from, apply_move, runner):
    """Over the unsigned ids that y is made of, the row above the first would be the last that there can be."""
    source = """
// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 64, timed = 64}
// w = {min = 1, max = 512, timed = 512}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// y = {role = "out", shape = ["h", "w"]}
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 8)"]
// block = [32, 8]
// ///
__global__ void k(const float *x, float *y, int h, int w)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    int up = max(r - 1, 0);
    int down = min(r + 1, h - 1);
    y[r * w + c] = x[down * w + c] - x[up * w + c];
}
"""
    subject = subject_from(source)
    changed = apply_move(Vectorize(), subject, "[width=4,threads=256]")
    assert "(int)max(r - 1, 0)" in changed.source
    runner.check(subject, changed, {"h": 1, "w": 8}, {"h": 5, "w": 64}, {"h": 9, "w": 67}, {"h": 3, "w": 3})


@pytest.mark.parametrize(
    ("why", "body"),
    [
        ("neighbours are read", ID + "if (i < n) y[i] = x[i] + y[(i + 1) % n];"),
        ("neighbours are written", ID + "if (i < n) { y[i] = x[i]; y[i + 1] = x[i]; }"),
        ("planes that may overlap", ID + "if (i < n) { y[i] = x[i]; y[i + n / 2] = x[i]; }"),
        ("a write under a condition", ID + "if (i < n) { if (x[i] > 0) y[i] = 1; }"),
        ("no guard", ID + "y[i] = x[i];"),
        ("a stride", ID + "if (i < n) y[i * 2 % n] = x[i];"),
        ("threadIdx in the code", ID + "if (i < n) y[i] = x[i] * threadIdx.x;"),
        ("a barrier", ID + "if (i < n) y[i] = x[i]; __syncthreads();"),
        ("an unknown call", ID + "if (i < n) { foo(y); y[i] = x[i]; }"),
        ("opaque code", ID + 'if (i < n) { asm("nop;"); y[i] = x[i]; }'),
    ],
)  # fmt: skip
def test_it_does_not_apply_where(subject_from, why, body):
    subject = subject_from(text(body, "inout"))
    assert list(Vectorize().moves(subject)) == [], why


def test_pointers_that_may_alias_are_left_alone(subject_from):
    subject = subject_from(text(RETURNS))
    aliased = dataclasses.replace(subject, contract=dataclasses.replace(subject.contract, aliasing=(("x", "y"),)))
    assert list(Vectorize().moves(subject))
    assert not list(Vectorize().moves(aliased))


def test_indices_that_would_overflow_are_refused(subject_from):
    subject = subject_from(text(RETURNS, most=2**31 - 1000))
    assert not list(Vectorize().moves(subject))


ROWS = """
// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 0, max = 4096, timed = 64}
// cols = {min = 0, max = 4096, timed = 64}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "inout", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 32)"
// block = 32
// ///
__global__ void k(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *xr = x + row * cols;
    float sum = 0;
    for (int j = 0; j < cols; j++) sum += xr[j];
    for (int j = 1; j < cols; j++) y[row * cols + j] = x[row * cols + j] * sum;
    for (int j = 1; j < cols; j++) y[row * cols + j] += y[row * cols + j - 1];
    for (int j = 0; j < cols; j += 2) y[row * cols + j] += 1;
}
"""


@pytest.mark.parametrize("region", ["loop:j", "loop:j#2"])
def test_loops_in_packs_keep_their_results_and_order(subject_from, apply_move, runner, region):
    subject = subject_from(ROWS)
    changed = apply_move(VectorizeLoop(), subject, f"@{region}[width=4]")
    runner.check(subject, changed, {"rows": 3, "cols": 16}, {"rows": 33, "cols": 5}, {"rows": 2, "cols": 1})


def test_loops_that_carry_or_stride_are_left_alone(subject_from):
    regions = {m.region for m in VectorizeLoop().moves(subject_from(ROWS))}
    assert regions == {"loop:j", "loop:j#2"}
    barrier = ROWS.replace("sum += xr[j];", "{ sum += xr[j]; __syncthreads(); }")
    regions = {m.region for m in VectorizeLoop().moves(subject_from(barrier))}
    assert regions == {"loop:j#2"}, "some threads' rows are aligned and others' not: they would wait apart"


@pytest.mark.parametrize("action", [Vectorize(), BlockSize()], ids=lambda a: a.name)
@pytest.mark.parametrize("call", ["f(x[i])", "ME * x[i]"], ids=["in a function", "in the kernel"])
def test_a_macro_that_hides_the_thread_stops_what_moves_points(subject_from, action, call) -> None:
    def moves(me: str) -> list[object]:
        helper = f"#define ME {me}\n__device__ float f(float v) {{ return v + ME; }}\n"
        source = text(f"{ID}if (i < n) y[i] = {call};").replace("__global__", helper + "__global__")
        return list(action.moves(subject_from(source)))

    assert moves("threadIdx.x") == []
    assert moves("3") != []
