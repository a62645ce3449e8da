"""Qualifiers, hints, fast math, reciprocals, unrolling, padding, 32-bit indices: what changes single lines."""

from __future__ import annotations

import dataclasses
import re

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.details.fast_math import FastMath
from fsr.transform.details.index32 import Index32
from fsr.transform.details.qualifiers import CacheHint, Restrict, only_read
from fsr.transform.details.reciprocal import Reciprocal
from fsr.transform.details.shared_padding import SharedPadding
from fsr.transform.details.unroll import Unroll
from fsr.transform.protocol import Subject
from fsr.transform.registry import DETAILS

ROWS = """
// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 0, max = {rows}, timed = 64}}
// cols = {{min = 1, max = 4096, timed = 64}}
// [args]
// x = {{role = "in", shape = ["rows", "cols"]}}
// w = {{role = "in", shape = ["cols"]}}
// y = {{role = "inout", shape = ["rows", "cols"]}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// exact = {exact}
// ///
__global__ void k({params}, {size} rows, {size} cols)
{{
{body}
}}
"""
NORM = """
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 1.0f;
    for (int j = 0; j < cols; j++) sum += expf(0.1f * x[row * cols + j]) * w[j];
    for (int j = 0; j < cols; j++) y[row * cols + j] = x[row * cols + j] / (sum + 60000.0f) + 1.0f / sqrtf(w[j] + 9.0f);
"""
SIZES = [{"rows": 3, "cols": 5}, {"rows": 65, "cols": 1}]


def rows(body: str = NORM, exact: str = "false", most: int = 4096, size: str = "int",
         params: str = "const float *x, float *w, float *y") -> str:  # fmt: skip
    return ROWS.format(body=body, exact=exact, rows=most, size=size, params=params)


def names(action, subject: Subject) -> list[str]:
    return [m.name for m in action.moves(subject)]


def test_restrict_and_const_go_where_the_contract_allows(subject_from, apply_move, runner):
    subject = subject_from(rows())
    changed = apply_move(Restrict(), subject, "@kernel")
    assert "const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y" in changed.source
    runner.check(subject, changed, *SIZES)
    again = subject_from(rows(params="const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y"))
    assert names(Restrict(), again) == []
    aliased = dataclasses.replace(subject, contract=dataclasses.replace(subject.contract, aliasing=(("x", "y"),)))
    assert names(Restrict(), aliased) == names(CacheHint(), aliased) == []


def test_restrict_stands_behind_a_constant_pointer(subject_from, apply_move, runner):
    subject = subject_from(rows(params="const float *const x, float *w, float *const y"))
    changed = apply_move(Restrict(), subject, "@kernel")
    assert "const float *const __restrict__ x" in changed.source
    runner.check(subject, changed, *SIZES)


def test_a_pointer_that_a_function_takes_by_reference_keeps_its_type(subject_from, apply_move, runner):
    taken = "__device__ void taken(const float *&p, int by) { p += by; }\n__global__"
    subject = subject_from(rows("taken(x, 0);" + NORM).replace("__global__", taken))
    changed = apply_move(Restrict(), subject, "@kernel")
    assert "const float *x, const float *__restrict__ w, float *__restrict__ y" in changed.source
    runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    "use", ["float *p = w; p[0] = 1;", "atomicAdd(&w[0], 1.0f);", "w[row] = 2;", 'asm("" :: "l"(w));']
)
def test_const_is_kept_off_pointers_that_may_be_written(subject_from, apply_move, use):
    subject = subject_from(rows(NORM + use))
    assert "const float *__restrict__ w" not in apply_move(Restrict(), subject, "@kernel").source


@pytest.mark.parametrize(
    ("use", "reads"),
    [("y[0] = p[3].v[1];", True), ("y[0] = second(p[3].v);", False), ("y[0] = p[3].first();", False)],
)
def test_const_is_kept_off_elements_that_hand_on_members(use: str, reads: bool) -> None:
    (kernel,) = parse_kernels(f"__global__ void k(Pair *p, float *y) {{ {use} }}").values()
    assert only_read(kernel, "p") is reads


def test_hints_replace_plain_loads_and_stores_only(subject_from, apply_move, runner):
    body = """
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) { for (int j = 0; j < cols; j++) { y[row * cols + j] = x[row * cols + j] * w[j]; } }"""
    subject = subject_from(rows(body))
    changed = apply_move(CacheHint(), subject, "[load=ldcs,store=stcs]")
    assert "__stcs(&y[row * cols + j], __ldcs(&x[row * cols + j]) * __ldcs(&w[j]));" in changed.source
    runner.check(subject, changed, *SIZES)
    both = subject_from(rows(body.replace("=  x", "+= x").replace("] = x", "] += x")))
    assert not [n for n in names(CacheHint(), both) if "load=none" in n]
    assert "y[row * cols + j] += __ldg(" in apply_move(CacheHint(), both, "[load=ldg,store=none]").source


LOCAL = """
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) { POINTERS for (int j = 0; j < cols; j++) { to[j] = from[j] * w[j]; } }"""


@pytest.mark.parametrize(
    ("pointers", "loads", "stores"),
    [
        ("const float *from = x + row * cols; float *to = &y[row * cols];", 2, True),
        ("const float *from = x + row * cols; float *all = y, *to = all + row * cols;", 2, True),
        ("const float *from = y + row * cols; float *to = y + row * cols;", 1, False),  # w alone
        ("const float *from = w; if (cols > 2) from = x + row * cols; float *to = y + row * cols;", 0, False),
        ("const float *from = cols > 3 ? x : w; float *to = y + row * cols;", 0, False),
    ],
)
def test_hints_behind_pointers_of_the_kernels_own(
    pointers: str, loads: int, stores: bool, subject_from, apply_move, runner
) -> None:
    subject = subject_from(rows(LOCAL.replace("POINTERS", pointers)))
    assert ("cache-hint@kernel[load=none,store=stcs]" in names(CacheHint(), subject)) is stores
    if loads:
        changed = apply_move(CacheHint(), subject, "[load=ldcs,store=stcs]")
        assert changed.source.count("__ldcs(") == loads
        assert changed.source.count("__stcs(") == stores
        runner.check(subject, changed, *SIZES)


def test_fast_math_stays_close_and_away_from_exact_contracts(subject_from, apply_move, close_outputs):
    subject = subject_from(rows())
    changed = apply_move(FastMath(), subject, "@kernel[mode=intrinsics]")
    assert "__expf(" in changed.source
    assert "rsqrtf(w[j] + 9.0f)" in changed.source
    assert "__fdividef(x[row * cols + j], sum + 60000.0f)" in changed.source
    close_outputs(subject, changed, SIZES)
    exp = apply_move(FastMath(), subject, "@kernel[mode=exp]")
    assert "__fdividef" not in exp.source
    assert apply_move(FastMath(), subject, "@plan[mode=flag]").plan.flags == ("--use_fast_math",)
    exact = subject_from(rows(exact="true"))
    assert names(FastMath(), exact) == names(Reciprocal(), exact) == []
    text = rows()
    assert "y = {role" in text
    double = text.replace("y = {role", 'y = {dtype = "float64", role').replace("float *y", "double *y")
    assert names(FastMath(), subject_from(double)) == [], "a float's digits are too few"
    whole = subject_from(text.replace("y = {role", 'y = {dtype = "int32", role').replace("float *y", "int *y"))
    assert names(FastMath(), whole) == names(Reciprocal(), whole) == [], "an approximated quotient misses a threshold"


def test_double_arithmetic_is_left_alone(subject_from):
    body = """
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) y[row * cols] = exp(1.0 * x[row * cols]) / 3.0;"""
    assert not [n for n in names(FastMath(), subject_from(rows(body))) if "kernel" in n]


def test_a_division_by_what_stays_the_same_becomes_a_product(subject_from, apply_move, close_outputs):
    subject = subject_from(rows())
    changed = apply_move(Reciprocal(), subject, "@loop:j#2")
    assert "const float inverse = 1.0f / (sum + 60000.0f);" in changed.source
    assert "x[row * cols + j] * inverse" in changed.source
    close_outputs(subject, changed, SIZES)
    changing = NORM.replace("sum + 60000.0f", "w[j] + 9.0f")
    assert names(Reciprocal(), subject_from(rows(changing))) == []


def test_unrolling_marks_innermost_loops(subject_from, apply_move, runner):
    subject = subject_from(rows())
    changed = apply_move(Unroll(), subject, "@loop:j[factor=4]")
    assert re.search(r"#pragma unroll 4\n +for \(int j = 0; j < cols; \+\+j\) \{\n +sum", changed.source)
    runner.check(subject, changed, *SIZES)
    nested = NORM.replace("sum += ", "for (int k = 0; k < 3; k++) sum += ")
    offered = names(Unroll(), subject_from(rows(nested)))
    assert "unroll@loop:k[factor=0]" in offered
    assert "unroll@loop:j[factor=4]" not in offered
    assert "unroll@loop:k[factor=4]" not in offered


TILE = """
    __shared__ float tile[32][D];
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x / 32][threadIdx.x % 32] = row < rows ? x[row * cols] : 0.0f;
    __syncthreads();
    if (row < rows) y[row * cols] = tile[1 - threadIdx.x / 32][threadIdx.x % 32];
"""


def test_padding_of_rows_that_share_a_bank(subject_from, apply_move, runner):
    subject = subject_from("#define D 32\n" + rows(TILE))
    changed = apply_move(SharedPadding(), subject, "@shared:tile")
    assert "tile[32][D + 1]" in changed.source
    runner.check(subject, changed, {"rows": 128, "cols": 2})
    assert "tile[32][33]" in apply_move(SharedPadding(), subject_from(rows(TILE.replace("D", "32"))), "tile").source


@pytest.mark.parametrize("change", [("D]", "33]"), ("__syncthreads();", "float *p = &tile[0][0]; p[3] = 1;"),
                                    ("__syncthreads();", "tile[0][0] = *(tile[1]);")])  # fmt: skip
def test_no_padding_where_it_would_not_help_or_not_be_seen(subject_from, change):
    assert names(SharedPadding(), subject_from("#define D 32\n" + rows(TILE.replace(*change)))) == []


WIDE = """
    size_t row = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    for (size_t j = 0; j < cols; j++) y[row * cols + j] = x[(long long)row * cols + j] + w[j];
"""


def test_indices_become_32_bits_where_the_sizes_allow(subject_from, apply_move, runner):
    subject = subject_from(rows(WIDE))
    changed = apply_move(Index32(), subject, "@kernel")
    assert "int row = blockIdx.x * blockDim.x + threadIdx.x;" in changed.source
    assert "for (int j = 0; j < cols; ++j)" in changed.source
    assert "x[row * cols + j]" in changed.source
    runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    ("why", "source"),
    [
        ("buffers of 2^31 elements", rows(WIDE, most=1 << 20)),
        ("a value that is stored", rows(WIDE + "y[0] = row * row * row;")),
        ("32 bits already", rows()),
        ("a difference", rows(WIDE.replace("(long long)row * cols + j", "(row + 1) * cols - j - 1"))),
    ],
)
def test_indices_stay_wide_with(subject_from, why, source):
    subject = subject_from(source)
    found = [Index32().apply(subject, m).source for m in Index32().moves(subject)]
    assert all("size_t row" in f and "size_t j" in f for f in found), why


APART = """
// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 1, max = {most}, timed = 64}}
// cols = {{min = 1, max = 4096, timed = 64}}
// [args]
// x = {{role = "in", shape = ["rows", "cols"]}}
// which = {{role = "in", dtype = "int32", shape = ["rows"], low = {low}, high = "rows - 1"}}
// y = {{role = "out", shape = ["rows", "cols"]}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
// grid = "ceil_div(rows * cols, 64)"
// block = 64
// ///
__global__ void k(const float *x, const int *which, float *y, unsigned rows, unsigned cols) {{
    size_t at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (size_t)rows * cols) return;
    {index}
    auto col = at % cols;
    auto *from = x + row * cols;
    y[at] = from[col] * 2.0f + {more};
}}
"""
OF_PLACE, OF_DATA = "auto row = at / cols;", "size_t row = which[at / cols];"


@pytest.mark.parametrize("index", [OF_PLACE, OF_DATA, "long row = at / cols; row += 0;"])
def test_numbers_become_32_bits_where_nothing_that_is_made_of_them_is_larger(index, subject_from, apply_move, runner):
    subject = subject_from(APART.format(most=4096, low=0, index=index, more="0.0f"))
    changed = apply_move(Index32(), subject, "@kernel")
    assert "int at = blockIdx.x" in changed.source
    assert ("int row" in changed.source) is (index == OF_DATA)
    if index != OF_DATA:
        runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    "given",
    [
        {"most": 1 << 20}, {"low": -1, "index": OF_DATA, "stays": "size_t row"}, {"more": "(float)(at * at)"},
        {"index": OF_PLACE + "auto wide = at * 5; auto wider = wide * 4096;", "more": "(float)wider",
         "stays": "size_t wide = at * 5;"},
    ],
    ids=["large", "negative", "a product of it", "a product of what is made of it"],
)  # fmt: skip
def test_numbers_stay_wide_where_something_may_be_larger(given, subject_from):
    source = APART.format(**{"most": 4096, "low": 0, "index": OF_PLACE, "more": "0.0f", **given})
    found = [Index32().apply(subject_from(source), m).source for m in Index32().moves(subject_from(source))]
    assert all(given.get("stays", "size_t at") in f for f in found)


def test_each_step_of_a_mixing_of_bits_is_looked_at_once(subject_from, apply_move):
    steps = [f"size_t m{k + 1} = (m{k} % 61 + m{k} / 7) % 97;" for k in range(10)]
    index = " ".join([OF_PLACE, "size_t m0 = at;", *steps])
    changed = apply_move(Index32(), subject_from(APART.format(most=4096, low=0, index=index, more="(float)m10")), "")
    assert "int m10 = " in changed.source


def test_every_move_of_every_simple_action_compiles(subject_from, runner):
    subject = subject_from("#define D 32\n" + rows(NORM))
    for action in DETAILS:
        moves = list(action.moves(subject))
        assert len({m.name for m in moves}) == len(moves)
        for move in moves[-1:]:
            runner.image(action.apply(subject, move))
