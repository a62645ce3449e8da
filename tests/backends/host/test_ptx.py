"""Inline PTX with a host meaning: read from the statement's own text, line for line; everything else stays."""

from __future__ import annotations

import pytest

from fsr.backends.host.ptx import rewrite_ptx
from fsr.backends.host.unit import blank_comments

PRODUCT = (
    'asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "\n "{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 1;"'
)


def rewritten(text):
    return rewrite_ptx(text, blank_comments(text))


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ('asm volatile("fence.proxy.async.shared::cta;" ::: "memory")', "fsr_ptx::proxy_fence()"),
        ('__asm__ __volatile__("wgmma.fence.sync.aligned;\\n" ::: "memory")', "fsr_ptx::wgmma_fence()"),
        ('asm volatile("wgmma.commit_group.sync.aligned;")', "fsr_ptx::wgmma_commit()"),
        ('asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(f(1, 2)))', "fsr_ptx::wgmma_wait(f(1, 2))"),
        ('asm volatile("wgmma.wait_group.sync.aligned 3;")', "fsr_ptx::wgmma_wait(3)"),
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
def test_an_instruction_becomes_a_call(statement, call):
    assert rewritten(f"if (x) {statement}; // asm\ny;") == f"if (x) {call}; // asm\ny;"


@pytest.mark.parametrize(
    "statement",
    [
        'asm("wgmma.fence.sync.aligned; trap;");',
        'asm("wgmma.wait_group.sync.aligned %1;" :: "n"(0));',
        'asm("mov.u32 %0, %laneid;" : "=r"(x));',
        'asm(TEXT "wgmma.fence.sync.aligned;");',
        PRODUCT.replace("%3}", "%3, %3}") + ' : "+f"(p), "+f"(q), "+f"(r), "+f"(s) : "l"(a), "l"(b));',
        PRODUCT.replace("1, 1, 1,", "0, 1, 1,") + ' : "+f"(p), "+f"(q), "+f"(r), "+f"(s) : "l"(a), "l"(b));',
        '// asm("wgmma.fence.sync.aligned;")',
        'const char* s = "asm(\\"wgmma.fence.sync.aligned;\\")";',
    ],
)
def test_what_has_no_meaning_stays(statement):
    assert rewritten(statement) == statement
