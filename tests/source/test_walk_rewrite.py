"""Walking, renaming and splicing."""

from __future__ import annotations

import dataclasses

import pytest

from fsr.errors import HarnessError
from fsr.source.emit import emit_stmts
from fsr.source.form import Assign, Binary, Literal, Name, OpaqueExpr
from fsr.source.mapping import map_exprs, map_stmts, replace_stmt, substitute
from fsr.source.parse import parse_kernels
from fsr.source.rewrite import insert_helpers, replace_kernel
from fsr.source.walk import (
    base_name,
    contains_barrier,
    contains_return,
    contains_warp_wide,
    fresh,
    integer,
    loop_regions,
    names_written,
    walk_stmts,
)
from fsr.transform.collectives import helper_text

TEXT = """#include <x.h>
// before
__global__ void k(float *x, const float *w, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    for (int j = 0; j < n; ++j) { x[i * n + j] += w[j]; }
    for (int j = 0; j < n; ++j) { atomicAdd(&x[j], 1.0f); }
}
// after
"""


@pytest.fixture
def form():
    return parse_kernels(TEXT)["k"]


def test_writes(form):
    assert names_written(form.body) == {"i", "j", "x"}
    assert names_written((Assign(Name("a"), "=", OpaqueExpr("b = c++")),)) == {"a", "b", "c"}
    assert base_name(parse_kernels("__global__ void k(){ *(p + 3) = 1; }")["k"].body[0].target) == "p"


def test_renaming_reaches_declarations_and_loops(form):
    text = emit_stmts(substitute(form.body, {"i": Name("lane"), "j": Name("c"), "n": Literal("8")}))
    assert "int lane = threadIdx.x;" in text
    assert "for (int c = 0; c < 8; ++c)" in text
    assert "x[lane * 8 + c] += w[c];" in text


def test_transforming_rebuilds_only_what_is_asked(form):
    assert map_stmts(form.body, lambda s: s) == form.body
    doubled = map_exprs(form.body, lambda e: Binary("*", e, Literal("2")) if e == Name("n") else e)
    assert "j < n * 2" in emit_stmts(doubled)
    gone = map_stmts(form.body, lambda s: () if isinstance(s, Assign) else s)
    assert not any(isinstance(s, Assign) for s in walk_stmts(gone))
    loop = loop_regions(form)["loop:j#2"]
    assert emit_stmts(replace_stmt(form.body, loop, ())).count("for (") == 1


def test_questions(form):
    assert not contains_barrier(form.body)
    assert contains_return(form.body)
    other = parse_kernels("__global__ void k(){ if (a) { tile.sync(); } v += __shfl_down_sync(m, v, 1); }")["k"]
    assert contains_barrier(other.body)
    assert contains_warp_wide(other.body)
    assert fresh("i", {"i", "i2"}) == "i3"
    assert [integer(Literal(t)) for t in ("32", "0x1fu", "1.0", "010", "1'000", "'a'")] == [32, 31, None, 8, 1000, None]


def test_splicing_leaves_the_rest_byte_for_byte(form):
    renamed = dataclasses.replace(form, name="other")
    text = replace_kernel(TEXT, form, [form, renamed], helpers="__device__ int one() { return 1; }")
    assert text.startswith("#include <x.h>\n__device__ int one() { return 1; }\n\n// before\n__global__ void k(")
    assert text.endswith("}\n// after\n")
    assert set(parse_kernels(text)) == {"k", "other"}
    again = parse_kernels(text)["other"]
    assert replace_kernel(text, again, again, helpers="__device__ int one() { return 1; }").count("one()") == 1


def test_helpers_stay_out_of_linkage_blocks():
    text = 'int a;\nextern "C" {\n__global__ void k(int n) { n = 1; }\n}\n'
    form = parse_kernels(text)["k"]
    text = replace_kernel(text, form, form, helpers="template <class T> struct P {};")
    assert text.startswith("template <class T> struct P {};\n\nint a;\n")


def test_helpers_stand_before_macros_and_behind_earlier_helpers():
    text = "#pragma once\n\n#include <a.h>\n#define T float\n__global__ void k(T *x) { x[0] = 1; }\n"
    pack, aligned = helper_text("fsr_pack"), helper_text("fsr_aligned")
    text = insert_helpers(insert_helpers(text, pack), f"{aligned}\n{helper_text('fsr_warp_sum')}")
    once = insert_helpers(text, helper_text("fsr_block_sum"))
    where = [
        once.index(word) for word in ("<a.h>", "fsr_pack", "fsr_aligned", "fsr_warp_sum", "fsr_block_sum", "#define T")
    ]
    assert where == sorted(where)
    assert insert_helpers(once, pack) == once


def test_splicing_text_that_is_not_ascii():
    text = "// größer\n__global__ void k(int n) { n = 1; /* é */ }\n// ende\n"
    form = parse_kernels(text)["k"]
    assert replace_kernel(text, form, form).startswith("// größer\n__global__ void k(int n) {")
    with pytest.raises(HarnessError):
        replace_kernel("int a;", form, form)
