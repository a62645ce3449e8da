"""Inline PTX as text: which statements become C++ on their lines, and what the others are told to be."""

from __future__ import annotations

import re

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.ptx import rewrite_ptx
from fsr.backends.host.unit import blank_comments, unit_text
from fsr.records import Candidate, CompileFailure, Launch, Plan

PRODUCT = (
    'asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "\n "{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 1;"'
)


def rewritten(text):
    return rewrite_ptx(text, blank_comments(text))[0]


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ('__asm__ __volatile__("wgmma.fence.sync.aligned;\\n" ::: "memory")', "fsr_ptx::wgmma_fence()"),
        ('asm volatile("wgmma.commit_group.sync.aligned;")', "fsr_ptx::wgmma_commit()"),
        ('asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(f(1, 2)))', "fsr_ptx::wgmma_wait(f(1, 2))"),
        ('asm volatile("wgmma.wait_group.sync.aligned 3;")', "fsr_ptx::wgmma_wait(3)"),
        ('asm volatile("" ::: "memory")', "((void)0)"),
        (
            PRODUCT + ' : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b + 2))',
            "fsr_ptx::wgmma<__nv_bfloat16, 8, false, true>(&(d[0]), a, b + 2)\n",
        ),
        (
            PRODUCT + ' : "+f"(p), "+f"(q), "+f"(r), "+f"(s) : "l"(a), "l"(b))',
            "fsr_ptx::wgmma<__nv_bfloat16, 8, false, true>({&(p), &(q), &(r), &(s)}, a, b)\n",
        ),
    ],
)
def test_a_statement_becomes_a_call(statement, call):
    assert rewritten(f"if (x) {statement}; // asm\ny;") == f"if (x) {call}; // asm\ny;"


def test_operands_are_evaluated_outside_of_the_statement_and_lines_stay():
    text = 'a;\nasm("add.s32 %0, %1, %2;"\n  : "=r"(fsr_r1[0])  // sum\n  : "r"(f(x, /* y, */ 1)),\n    "n"(N));\nb;'
    made = rewritten(text)
    assert made.count("\n") == text.count("\n")
    assert "(fsr_r1[0], f(x, 1), N)" in made
    assert made.endswith("b;")


def test_a_macro_keeps_its_continued_lines():
    text = '#define LOAD(v, p)       \\\n  asm("ld.global.f32 %0, [%1];" \\\n      : "=f"(v) : "l"(p))\nLOAD(a, b);\n'
    made = rewritten(text)
    assert made.count("\\\n") == made.count("\n") - 2 == 2
    assert "(v, p)\\\n\nLOAD" in made


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ('asm("frobnicate.u32 %0, 1;" : "=r"(x));', "inline PTX (frobnicate.u32) is not executed on the CPU"),
        ('asm("tcgen05.fence;");', "inline PTX (tcgen05.fence)"),
        ('asm("wgmma.fence.sync.aligned; bogus;");', "inline PTX (wgmma.fence.sync.aligned)"),
        ('asm("add.f16x4 %0, %0, %0;" : "+r"(x));', "inline PTX (add.f16x4)"),
        ('asm("add.rn.s32 %0, %0, %0;" : "+r"(x));', "of add the host device knows"),
        ('asm("add.s32 %0, %1, %3;" : "=r"(x) : "r"(y), "r"(z));', "%3 is not declared"),
        ('asm("add.s32 %1, %0, 1;" : "=r"(x) : "r"(y));', "%1 is an input"),
        ('asm("mov.u32 %0, %smid;" : "=r"(x));', "%smid is not declared"),
        ('asm("add.s32 %0, %0, 1; membar.gl" : "+r"(x));', "no semicolon ends it"),
        ('asm("addc.u32 %0, %0, 1;" : "+r"(x));', "has set the carry before"),
        ('asm("add.s32 %0, %0, 0f3F800000;" : "+r"(x));', "is a number of floating point"),
        ('asm("mov.b128 %0, %0;" : "+q"(x));', "inline PTX (mov.b128)"),
        ('asm("ld.acquire.b32 %0, [%1];" : "=r"(x) : "l"(p));', "an order without a scope"),
        ('asm(TEXT "membar.gl;");', "its text is not a literal"),
        ('asm("membar.gl;"\n#if A\n : : "r"(x)\n#endif\n);', "preprocessor directives"),
        ('#define ld(x) x\nasm("ld.global.b32 %0, [%1];" : "=r"(x) : "l"(p));', "a macro of the source is called ld"),
        ('#define M(at) asm("ld.global.b32 %0, [%1];" : "=r"(x) : "l"(at));', "a macro of the source is called at"),
    ],
)
def test_what_is_not_understood_is_named(statement, told):
    found = re.search(r'static_assert\(false, "fsr host device: (.*)"\)', rewritten(statement))
    assert found
    assert told in found[1]
    assert "is not executed on the CPU" in found[1]


@pytest.mark.parametrize(
    "text",
    [
        '// asm("membar.gl;")',
        'const char* s = "asm(\\"membar.gl;\\")";',
        'int f(int) asm("_Z1fi");',
        'asm volatile("syscall");',
    ],
)
def test_what_is_no_statement_stays(text):
    assert rewritten(text) == text


def test_files_without_assembly_are_given_no_headers():
    assert "#include" not in unit_text("__global__ void k() {}", ["k"])
    light = unit_text('__global__ void k(int* p) { asm("add.s32 %0, %0, 1;" : "+r"(*p)); }', ["k"])
    assert "ptx_integers.h" in light
    assert "ptx_matrices.h" not in light


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(x) : "l"(y));', "inline PTX (mbarrier.pending_count.b64)"),
        ('asm("add.s32 %0, %1, 1;" : "=r"(x) : "r"(y));', "another size than its constraint"),
        ('asm("add.s64 %0, %1, 1;" : "=r"(x) : "r"(x));', "another width than the instruction"),
        ('asm("mov.b32 %0, %1;" : "=r"(x) : "f"(x));', "another kind than its constraint"),
    ],
)
def test_the_compiler_refuses_and_tells_the_line(body, told):
    source = f"__global__ void k(int* p) {{\n  int x = 0; long long y = 0;\n  {body}\n  *p = x + y;\n}}"
    failed = HostToolchain().compile(Candidate(source, Plan((Launch("k", ("1",) * 3, ("1",) * 3, "0", ()),))))
    assert isinstance(failed, CompileFailure)
    assert told in failed.log
