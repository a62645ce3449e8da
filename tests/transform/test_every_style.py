"""What sweeps over many people's ways of writing found: names that macros take, pointers made by taking an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fsr.search.proposal import moves_of
from fsr.transform.protocol import Subject
from fsr.transform.registry import all_actions
from fsr.transform.target import targets

ROW_SIZES = [{"rows": r, "cols": c} for r, c in [(1, 1), (3, 31), (130, 32), (5, 128)]]


def row_kernel(body: str, prelude: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 1, max = 4096, timed = 512}}
// cols = {{min = 1, max = 4096, timed = 128}}
// [args]
// x = {{role = "in", shape = ["rows", "cols"]}}
// y = {{role = "out", shape = ["rows", "cols"]}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "cols"
// ///
{prelude}
__global__ void k(const float *x, float *y, int rows, int cols)
{{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
{body}
}}
"""


SCALED = """
    float sum = 0.0f;
    for (int j = 0; j < cols; ++j) sum += x[row * cols + j];
    float *out = &y[row * cols];
    for (int j = 0; j < cols; ++j) out[j] = x[row * cols + j] * sum;
"""
HOSTILE = """
#define T float
#define THREADS 64
#define WIDTH 3
#define lane 31
#define value 2
#define partial(x) ((x) / 2)
#define pack 7
#define step 9
"""
HOSTILE_SCALED = """
    T sum = 0.0f;
    for (int j = 0; j < cols; ++j) sum += x[row * cols + j] * (value + pack - step);
    T *out = &y[row * cols];
    const T half = partial(sum) + THREADS - 64 + WIDTH - 3 + lane - 31;
    for (int j = 0; j < cols; ++j) out[j] = x[row * cols + j] * half;
"""
KERNELS = {"plain": row_kernel(SCALED), "macros": row_kernel(HOSTILE_SCALED, HOSTILE)}


def all_moves(subject: Subject) -> list[Any]:
    return [(a, m) for a, m in moves_of(subject, all_actions()) if a.name not in ("compile-flags", "launch-bounds")]


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_move_on_a_row_kernel_is_right(
    subject_from: Callable[..., Subject], close_outputs: Callable[..., None], kernel: str
) -> None:
    subject = subject_from(KERNELS[kernel])
    found = all_moves(subject)
    assert {"row-per-block", "restrict"} <= {a.name for a, _ in found}
    for action, move in found[::3]:
        close_outputs(subject, action.apply(subject, move), ROW_SIZES)


def test_new_names_differ_from_what_macros_mention(subject_from: Callable[..., Subject]) -> None:
    prelude = HOSTILE + "#define AT(m, r, c) m[(r) * pitch + (c)]\n#define pitch cols\n"
    body = HOSTILE_SCALED.replace("x[row * cols + j]", "AT(x, row, j)")
    (target,) = targets(subject_from(row_kernel(body, prelude)))
    assert {"lane", "pitch", "AT", "THREADS", "row"} <= target.names


def test_a_pointer_made_from_an_address_may_be_written_through(subject_from: Callable[..., Subject]) -> None:
    subject = subject_from(row_kernel(SCALED))
    (changed,) = [a.apply(subject, m) for a, m in moves_of(subject, all_actions()) if a.name == "restrict"]
    assert "const float *__restrict__ x, float *__restrict__ y" in changed.source


def test_volatile_elements_are_not_packed(subject_from: Callable[..., Subject]) -> None:
    body = "    const volatile float *p = x + row * cols;\n    float a = 0;\n"
    body += "    for (int j = 0; j < cols; ++j) a += p[j];\n    for (int j = 0; j < cols; ++j) y[row * cols + j] = a;\n"
    moves = [m for _, m in moves_of(subject_from(row_kernel(body)), all_actions()) if m.action == "vectorize-loop"]
    assert {m.region for m in moves} == {"loop:j#2"}
