"""A kernel must not behave by where its buffers lie: each spelling is refused, what kernels ask is not."""

from __future__ import annotations

import pytest

from fsr.guard.addresses import misused_addresses
from fsr.guard.check import guard
from fsr.records import Candidate, Fault, Launch, Plan
from tests.guard.address_corpus import FURTHER, KERNEL, RIGHT, WRONG

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))
BASE = Candidate(KERNEL.format(""), PLAN)


def source(case: str) -> str:
    before, _, body = case.removeprefix("@").rpartition("---\n") if case.startswith("@") else ("", "", case)
    return before + KERNEL.format(body)


def judge(case: str, base: Candidate = BASE) -> Fault | None:
    return guard(Candidate(source(case), PLAN), base)


@pytest.mark.parametrize("case", [*WRONG, *FURTHER])
def test_whatever_tells_a_place_is_refused(case: str) -> None:
    fault = judge(case)
    assert fault is not None
    assert "tells where a buffer lies" in fault.detail


@pytest.mark.parametrize("case", RIGHT)
def test_alignment_and_identity_may_be_asked(case: str) -> None:
    assert judge(case) is None


def test_the_line_is_told_and_what_stands_there() -> None:
    fault = judge("int a = n;\n    if ((size_t)y >> 12 & 1) return;")
    assert fault is not None
    assert fault.line == 5
    assert "(size_t)y >> 12" in fault.detail
    assert "((size_t)p & 15)" in fault.detail


def test_what_the_original_asks_may_be_asked() -> None:
    case = "if (((size_t)y >> 12 & 255) == 0x5a) return;"
    own = Candidate(source(case), PLAN)
    assert judge(case, own) is None
    assert judge(case + " n += 0;", own) is None
    assert judge(case.replace("12", "13"), own) is not None


@pytest.mark.parametrize("taken", ["unsigned long long y", "Box y", "word y"])
def test_a_buffer_is_taken_as_a_pointer(taken: str) -> None:
    head = "struct Box { unsigned long long a; };\nusing word = unsigned long long;\n"
    text = head + f"__global__ void k(const float *x, {taken}, int n) {{ if (n) return; }}\n"
    fault = guard(Candidate(text, PLAN), BASE)
    assert fault is not None
    assert "'y'" in fault.detail
    assert "pointer" in fault.detail


def test_an_address_goes_through_a_loop_of_functions() -> None:
    text = "__device__ int odd(const float *p, int d) { return d ? odd(p + 1, d - 1) : (int)((size_t)p >> 12 & 1); }\n"
    assert misused_addresses(text)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("y[i] = " + " + ".join(["x[i]"] * 3000) + "; return;", False),
        ("y[" * 24 + "0" + "]" * 24 + " = 1;", False),
        ("y[i] += " + "(y[" * 60 + "0" + "] += 1)" * 60 + ";", True),
    ],
)
def test_depth_costs_no_time(text: str, refused: bool) -> None:
    assert bool(misused_addresses(source(text))) == refused


SCALED = """template <class T> __global__ void k(T x, float *y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = x;
}
"""
PLAIN = "template <class T> __global__ void k({} x, float *y, int n) {{ if (threadIdx.x < n) y[threadIdx.x] = {}; }}\n"


@pytest.mark.parametrize(
    ("entry", "taken", "refused"),
    [("k<float>", "float", False), ("k<double>", "T", False), ("k<float *>", "unsigned long long", True),
     ("k<Other>", "unsigned long long", True)],
)  # fmt: skip
def test_a_number_of_a_templates_type_is_no_buffer(entry: str, taken: str, refused: bool) -> None:
    plan = Plan((Launch(entry, ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))
    fault = guard(Candidate(PLAIN.format(taken, "(float)x"), plan), Candidate(SCALED, plan))
    assert (fault is not None) == refused, fault


@pytest.mark.parametrize(
    ("entry", "default", "refused"),
    [("k<float, float>", "float", False), ("k<float>", "float", False), ("k<float, float *>", "float", True),
     ("k<float>", "float *", True)],
)  # fmt: skip
def test_types_that_templates_have_by_default(entry: str, default: str, refused: bool) -> None:
    scaled = SCALED.replace("class T", f"class A, class T = {default}").replace("T x", "T x = 0")
    plan = Plan((Launch(entry, ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))
    plain = scaled.replace("T x = 0", "double x = 1e-9").replace("= x;", "= (float)x;")
    fault = guard(Candidate(plain, plan), Candidate(scaled, plan))
    assert (fault is not None) == refused, fault


@pytest.mark.parametrize(
    ("entry", "taken", "refused"),
    [("k<float, float>", "float", False), ("k<int>", "float", False), ("k<int, float *>", "unsigned long long", True)],
)
def test_conditions_and_macros_in_the_head_hide_no_template(entry: str, taken: str, refused: bool) -> None:
    own = """#define LOOP(i, n) for (int i = threadIdx.x; i < (n); i += blockDim.x)
template <typename D, typename T = float>
__global__ void
#if __CUDA_ARCH__ >= 320
__launch_bounds__(256)
#endif
k(const T x, D *const y, int n) { LOOP(i, n) { y[i] = (D)x; } }
"""
    plan = Plan((Launch(entry, ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))
    made = own.replace("const T x", f"const {taken} x")
    fault = guard(Candidate(made, plan), Candidate(own, plan))
    assert (fault is not None) == refused, fault


def test_it_is_the_same_with_other_spaces() -> None:
    own = "float (*f)(float) = sqrtf; y[0] = f(2);"
    asked = "if (((size_t)y >> 12 & 255) == 0x5a) return;"
    for text in (own, asked):
        assert judge(text.replace(" (", "("), Candidate(source(text), PLAN)) is None
