"""Widening: every float becomes a double, comments and strings stay, and what has no wide form is refused."""

from __future__ import annotations

import pytest

from fsr.records import Candidate, Launch, Plan, ScalarArgument, Scratch
from fsr.testgen.widen import widen, widen_candidate


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("float a = 1.0f;", "double a = 1.0;"),
        ("float b = 2.f + .5F + 1e-3f + 3f;", "double b = 2. + .5 + 1e-3 + 3.0;"),
        ("float c = expf(x) + __expf(y) + fmaxf(a, b);", "double c = exp(x) + exp(y) + fmax(a, b);"),
        ("float d = -FLT_MAX; int i = 0x1f;", "double d = -DBL_MAX; int i = 0x1f;"),
        ("float4 v = make_float4(1, 2, 3, 4);", "double4 v = make_double4(1, 2, 3, 4);"),
        ("reinterpret_cast<float2 *>(p); // float 1.0f", "reinterpret_cast<double2 *>(p); // float 1.0f"),
        ("#define ZERO 0.0f\nfloat e = ZERO;", "#define ZERO 0.0\ndouble e = ZERO;"),
        ('float f; const char *s = "float 1.0f";', 'double f; const char *s = "float 1.0f";'),
        ("float g = offset; int halfway = shelf;", "double g = offset; int halfway = shelf;"),
        ("float h = __fmul_rn(a, b) + sqrtf(rsqrtf(c));", "double h = __dmul_rn(a, b) + sqrt(rsqrt(c));"),
        ("sizeof(float)", "sizeof(double)"),
        ("float m = __int_as_float(0xff800000);", "double m = (__longlong_as_double(0xfff0000000000000ll));"),
        ("float n = -__uint_as_float ( 1065353216u );", "double n = -(__longlong_as_double(0x3ff0000000000000ll));"),
        (
            "#define NONE __int_as_float(0x7fffffff)\nfloat o = NONE;",
            "#define NONE (__longlong_as_double(0x7fffffffe0000000ll))\ndouble o = NONE;",
        ),
    ],
)  # fmt: skip
def test_tokens_are_widened(narrow: str, wide: str) -> None:
    text = widen(narrow)
    assert text is not None
    assert text.rpartition("#endif\n")[2] == wide


def test_fast_division_and_saturation_bring_their_helpers() -> None:
    text = widen("float a = __fdividef(b, __saturatef(c));")
    assert text is not None
    assert text.endswith("double a = wide_divide(b, wide_saturate(c));")
    assert text.count("static __device__ inline double wide_") == 2


@pytest.mark.parametrize(
    "source",
    [
        "int a = 1;",
        "float a = __int_as_float(b);",
        "float a = __int_as_float(0xff800000 | b);",
        "float a; b = __ushort_as_half(0xfc00);",  # only the class has halves
        "float a; __half h;",
        "float a; unsigned u = __float_as_uint(a);",
        'float a; asm("ex2.approx.f32 %0, %1;" : "=f"(a) : "f"(a));',
        "float a; double b;",  # mixed already: its wide form is not simply more precise
        "float a; union U { float f; int i; };",
        "float a = __fadd_rz(b, c);",
    ],
)
def test_sources_without_a_wide_form_are_given_back_as_none(source: str) -> None:
    assert widen(source) is None


def test_a_function_that_is_called_like_the_wide_one_does_not_call_itself() -> None:
    wide = widen("struct Ops { static __device__ float tanh(float x) { return tanhf(x) + std::expf(x) + expf(x); } };")
    assert wide is not None
    assert "return ::tanh(x) + std::exp(x) + exp(x)" in wide


def test_plans_are_widened_with_their_source() -> None:
    launch = Launch(
        "k<float, 4>", ("1", "1", "1"), ("64", "1", "1"), "64 * 4", ("x", "part", ScalarArgument("float32", "2"))
    )
    plan = Plan(
        (launch,), (Scratch("part", "float32", "n"), Scratch("count", "int32", "1")), ("--use_fast_math", "-DA=1")
    )
    wide = widen_candidate(Candidate("template <typename T, int N> __global__ void k(float *x) {}", plan))
    assert wide is not None
    (launched,) = wide.plan.launches
    assert launched.entry == "k<double, 4>"
    assert launched.shared_bytes == "2 * (64 * 4)"
    assert launched.args[-1] == ScalarArgument("float64", "2")
    assert [s.dtype for s in wide.plan.scratch] == ["float64", "int32"]
    assert wide.plan.flags == ("-DA=1",)


@pytest.mark.parametrize(
    ("argument", "wide"), [("float", "k<double, 4>"), ("__half", "k<fsr_f16, 4>"), ("int", None), ("double", None)]
)
def test_a_template_is_widened_by_its_arguments_alone(argument: str, wide: str | None) -> None:
    launch = Launch(f"k<{argument}, 4>", ("1", "1", "1"), ("64", "1", "1"), "0", ("x",))
    source = "template <typename T, int N> __global__ void k(T *x) { x[threadIdx.x] = x[threadIdx.x] * T(N); }"
    found = widen_candidate(Candidate(source, Plan((launch,))))
    assert (found.plan.launches[0].entry if found is not None else None) == wide


def test_functions_of_whole_numbers_have_one_meaning() -> None:
    """NVRTC declares functions of float and of double: of an int both would do."""
    text = widen("__global__ void k(float *x, int n) { x[n] = 1.0f / sqrtf(n) + powf(2, n) + fabsf(x[0]); }")
    assert text is not None
    head, _, body = text.partition("#endif")
    assert "#ifdef __CUDACC_RTC__" in head
    assert "inline double sqrt(int a)" in head
    assert "inline double pow(unsigned int a, unsigned int b)" in head
    assert "cos" not in head
    assert "sqrt(n) + pow(2, n) + fabs(x[0])" in body
