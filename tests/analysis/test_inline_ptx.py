"""Inline PTX that only computes is as any function that does; what touches memory or asks for a thread is not."""

from __future__ import annotations

import pytest

from fsr.analysis.functions import functions_of
from fsr.analysis.inline_ptx import only_computes

FUNCTION = """__device__ int narrow(float x) {
  int y;
  asm volatile(%s);
  return y;
}
__global__ void k(float *x) {}
"""


@pytest.mark.parametrize(
    "text",
    [
        '"cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x)',
        '"{ .reg .f32 t;\\n\\t mul.f32 t, %1, %1; cvt.rzi.s32.f32 %0, t; }" : "=r"(y) : "f"(x)',
        '"lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(y) : "r"(1), "r"(2), "n"(3)',
        '"{ .reg .pred p; setp.gt.f32 p, %1, 0f00000000; @p mov.b32 %0, 1; }" : "+r"(y) : "f"(x)',
    ],
)
def test_instructions_that_compute(text: str) -> None:
    assert only_computes(f"asm volatile({text})")
    assert "narrow" in functions_of(FUNCTION % text).local


@pytest.mark.parametrize(
    "text",
    [
        '"ld.global.s32 %0, [%1];" : "=r"(y) : "l"(p)',
        '"mov.u32 %0, %%laneid;" : "=r"(y)',
        '"mov.u32 %0, %tid.x;" : "=r"(y)',
        '"bar.sync 0;" : "=r"(y) : "f"(x)',
        '"cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x) : "memory"',
        '"shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "=r"(y) : "r"(1)',
        '"red.global.add.s32 [%1], 1;" : "=r"(y) : "l"(p)',
        '"" : "=r"(y)',
    ],
)
def test_others(text: str) -> None:
    assert not only_computes(f"asm volatile({text})")
    assert "narrow" not in functions_of(FUNCTION % text).local


def test_a_type_that_a_template_is_given_converts() -> None:
    text = "template <typename T> __device__ T twice(const T &x) { return (T)(x * (T)(2.0f)); }\n__global__ void k() {}"
    assert "twice" in functions_of(text).local
    assert "twice" not in functions_of(text.replace("typename T", "int T")).local
