"""Structures by value: their members, where they lie, how kernels use them, and the way back."""

from __future__ import annotations

import ctypes

import pytest

from fsr.records import Candidate, Launch, Plan
from fsr.source.file import KernelFile
from fsr.source.flattening import FlatKernel
from fsr.source.folding import as_handed_out, blocks_of, folded

VEC = (
    "template <typename T> struct Vec { T x, y; __device__ T dot(const Vec &o) const { return x * o.x + y * o.y; } };\n"
)
MATRIX = "struct Matrix { int width; int height; float* elements; };\n"


def flat(text: str, entry: str = "k") -> FlatKernel:
    found = KernelFile.from_text(text).flat_kernel(entry)
    assert found is not None
    return found


def why(text: str, param: str = "p") -> str:
    file = KernelFile.from_text(text)
    assert file.flat_kernel("k") is None
    return file.why_not_flat("k", param)


def body(text: str) -> str:
    return " ".join(text.partition("{")[2].rpartition("}")[0].split())


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "test", ["n && p.width", "n > 2 &&p.width < 3", "(n) && p.width && n", "n & p.width", "f(n)&&p.width"]
)
def test_an_operator_before_a_member_takes_no_address(test: str) -> None:
    found = flat(MATRIX + f"__global__ void k(Matrix p, float *y, int n) {{ if ({test}) *y = 1; }}")
    assert found.names == ("p_width", "y", "n")


@pytest.mark.parametrize("used", ["f(&p.width)", "n && f(&p.width)", "n && &p.width", "n &&&p.width", "n & *&p.width"])
def test_where_an_address_is_taken_all_members_are_needed(used: str) -> None:
    found = flat(MATRIX + f"__global__ void k(Matrix p, float *y, int n) {{ if ({used}) *y = 1; }}")
    assert found.names == ("p_width", "p_height", "p_elements", "y", "n")


def test_members_that_are_used_become_parameters() -> None:
    found = flat(MATRIX + "__global__ void k(Matrix p, int n) { if (n < p.width) p.elements[n] = 1; }")
    assert found.names == ("p_width", "p_elements", "n")
    assert "k(int p_width, float *p_elements, int n)" in found.flat
    assert body(found.flat) == "if (n < p_width) p_elements[n] = 1;"


@pytest.mark.parametrize(
    ("declared", "paths"),
    [
        ("typedef struct { int n; float *x; } P;", ["n", "x"]),
        ("typedef struct tag { int n; float *x; } P;", ["n", "x"]),
        ("struct Q { int n; }; struct P { Q n; float *x; };", ["n.n", "x"]),
        ("struct Q { int n; }; struct P : public Q { float *x; };", ["n", "x"]),
        ("struct P { int n = 3, m{4}; float *x; P() = default; };", ["n", "m", "x"]),
        ("struct P { int n; float *__restrict__ x; int size() const { return n; } };", ["n", "x"]),
        ("class P { public: int n; float *x; };", ["n", "x"]),
        ("#define M 2\nstruct P { float x[M]; int3 n; };", ["x[0]", "x[1]", "n.x", "n.y", "n.z"]),
        ("struct P { using T = float; T *x; unsigned long long n; };", ["x", "n"]),
        ("template <class T, int N> struct V { T n[N]; float *x; }; typedef V<short, 1> P;", ["n[0]", "x"]),
        ("using P = float2;", ["x", "y"]),
        ("namespace a { struct P { int n; float *x; }; } using a::P;", ["n", "x"]),
    ],
)
def test_what_a_structure_holds(declared: str, paths: list[str]) -> None:
    found = flat(declared + "\nvoid __device__ f(P); __global__ void k(P p, float *y) { f(p); y[0] = 1; }")
    assert [m.path for m in found.params[0].members] == paths


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ("union P { int n; float x; };", "is a union"),
        ("struct P { int n : 3; };", "bit-fields"),
        ("struct P { int n; virtual void f(); };", "virtual"),
        ("class P { int n; };", "private members"),
        ("struct P { private: int n; };", "private members"),
        ("struct P { int &n; };", "a reference"),
        ("struct P { void (*n)(int); };", "pointer to a function"),
        ("struct A { int a; }; struct B { int b; }; struct P : A, B { int n; };", "derived from others"),
        ("struct A { double d; int a; }; struct P : A { int n; };", "bytes that nothing fills"),
        ("struct P { union { int n; float f; }; };", "a union that is declared inside"),
        ("#pragma pack(1)\nstruct P { char c; int n; };", "#pragma pack"),
        ("struct P { int n[1000]; };", "an array of 1000 elements"),
        ("struct P { cudaTextureObject_t t; int n; };", "cudaTextureObject_t, which is no number"),
        ("struct P;", "declared in no file"),
        ("", "declared in no file"),
    ],
)
def test_what_cannot_be_taken_apart(declared: str, says: str) -> None:
    assert says in why(declared + "\n__global__ void k(P p, float *y) { y[0] = p.n; }")


@pytest.mark.parametrize(
    "use",
    [
        "f(&p.width);", "p.width++; y[0] = g(p);", "Matrix &q = p; q.width = 1; y[0] = p.width;",
        "set(p); y[0] = p.width;", "{ Matrix p = g2(); y[1] = p.width; } y[0] = g(p);", "p = g2(); y[0] = p.width;",
        "y[0] = W(1); y[1] = p.width;", "y[0] = PASTE(p); y[1] = p.width;", "change(&p); y[0] = p.width;",
    ],
)  # fmt: skip
def test_what_may_change_is_read_from_the_structure(use: str) -> None:
    """A member that something could change behind its parameter's back is never read from the parameter."""
    given = "#define W(i) (p.width + (i))\n#define PASTE(x) x##_of\n__device__ void set(Matrix &m) { m.width = 2; }\n"
    found = flat(MATRIX + given + f"__global__ void k(Matrix p, float *y) {{ {use} }}")
    text = body(found.flat)
    assert text == f"Matrix p = {{p_width, p_height, p_elements}}; {use}"


def test_a_copy_that_nothing_changes_is_const_and_members_are_read_beside_it() -> None:
    helper = "__device__ float at(const Matrix &m, int i) { return m.elements[i]; }\n"
    found = flat(MATRIX + helper + "__global__ void k(Matrix p, float *y) { y[p.width] = at(p, p.height); }")
    assert body(found.flat) == "const Matrix p = {p_width, p_height, p_elements}; y[p_width] = at(p, p_height);"


def test_names_that_are_taken_are_avoided() -> None:
    found = flat(MATRIX + "__global__ void k(Matrix p, float *y) { int p_width = 3; y[p_width] = p.width; }")
    assert found.names == ("p_width_", "y")


def test_constructors_are_called_where_one_takes_nothing() -> None:
    declared = "struct P { int n; float f; P() {} P(int a) : n(a) {} };\nvoid __device__ f(P);\n"
    found = flat(declared + "__global__ void k(P p, float *y) { f(p); y[0] = p.n; }")
    assert body(found.flat) == "P p; p.n = p_n; p.f = p_f; f(p); y[0] = p.n;"
    declared = declared.replace("P() {} ", "")
    assert "constructors that take arguments" in why(declared + "__global__ void k(P p, float *y) { f(p); }")
    assert flat(declared + "__global__ void k(P p, float *y) { y[0] = p.n; }").names == ("p_n", "y")


def test_lines_stay_where_they_are() -> None:
    text = MATRIX + "__global__ void k(\n    Matrix p,\n    float *y)\n{\n    y[0] = p.width;\n}\n"
    found = flat(text)
    assert found.flat.count("\n") == found.original.count("\n")


# ---------------------------------------------------------------- layout


class _Inner(ctypes.Structure):
    _fields_ = (("c", ctypes.c_char), ("d", ctypes.c_double))


class _Outer(ctypes.Structure):
    _fields_ = (("s", ctypes.c_short), ("in", _Inner * 2), ("p", ctypes.c_void_p), ("b", ctypes.c_bool))


def test_members_lie_where_c_puts_them() -> None:
    declared = "struct I { char c; double d; }; struct P { short s; I in[2]; float *p; bool b; };\n"
    found = flat(declared + "void __device__ f(P); __global__ void k(int n, P p, char c) { f(p); }")
    p = found.params[1]
    assert (p.start, p.bytes, p.alignment) == (8, ctypes.sizeof(_Outer), ctypes.alignment(_Outer))
    inner = getattr(_Outer, "in").offset
    assert {m.path: m.offset - p.start for m in p.members} == {
        "s": 0, "in[0].c": inner, "in[0].d": inner + _Inner.d.offset, "in[1].c": inner + ctypes.sizeof(_Inner),
        "in[1].d": inner + ctypes.sizeof(_Inner) + _Inner.d.offset, "p": _Outer.p.offset, "b": _Outer.b.offset,
    }  # fmt: skip
    assert found.params[2].start == p.start + p.bytes


@pytest.mark.parametrize(
    ("type_", "size", "alignment"),
    [("float2", 8, 8), ("float3", 12, 4), ("float4", 16, 16), ("char4", 4, 4), ("double2", 16, 16), ("double3", 24, 8),
     ("dim3", 12, 4), ("uint3", 12, 4), ("long4", 32, 16), ("int1", 4, 4), ("A", 16, 16)],
)  # fmt: skip
def test_vectors_and_stated_alignments(type_: str, size: int, alignment: int) -> None:
    text = f"struct alignas(16) A {{ float x; }};\n__global__ void k(char c, {type_} p, float *y) {{ y[0] = p.x; }}"
    p = flat(text).params[1]
    assert (p.bytes, p.alignment, p.start) == (size, alignment, alignment)


def test_arguments_are_packed_into_the_block() -> None:
    text = MATRIX + "__global__ void k(int n, Matrix p, char c) { p.elements[p.height] = n + c; }"
    plan = Plan((Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ("n", "p_height", "p_elements", "c")),))
    block = blocks_of(plan, [flat(text)])["k"]
    packed = block.packed([b"\1\0\0\0", b"\2\0\0\0", bytes(range(8)), b"\7"])
    assert packed == b"\1\0\0\0" + bytes(4) + bytes(4) + b"\2\0\0\0" + bytes(range(8)) + b"\7"
    assert block.parameters == ((0, 4), (8, 16), (24, 1))


# ---------------------------------------------------------------- the way back

KERNEL = "__global__ void k(Matrix p, float *y)\n{\n    y[0] = p.width + p.elements[0];\n}"


def test_what_nobody_touched_is_the_original() -> None:
    file = KernelFile.from_text(MATRIX + KERNEL + "\n")
    unit, kernel = file.cut("k"), flat(MATRIX + KERNEL)
    assert KERNEL in folded(unit.text, [kernel])
    assert folded(unit.text, [kernel], unchanged=False) == unit.text


def test_a_changed_kernel_takes_the_structure_again() -> None:
    kernel = flat(MATRIX + KERNEL)
    head = "__global__ void k(int p_width, const float *__restrict__ p_elements, float *y)"
    text = head + " { float p = p_width; y[0] = p; }"
    assert folded(text, [kernel]) == (
        "__global__ void k(Matrix p_, float *y) {\n    int p_width = p_.width; float p = p_width; y[0] = p; }"
    )
    checked = folded(text, [kernel], checked=True)
    assert "\n" not in checked
    assert "static_assert(sizeof(Matrix) == 16 && alignof(Matrix) == 8" in checked
    assert "__builtin_offsetof(Matrix, elements) == 8" in checked


def test_a_kernel_with_other_parameters_stays_flat() -> None:
    kernel = flat(MATRIX + KERNEL)
    text = "__global__ void k(int p_width, float *y) { y[0] = p_width; }"
    assert folded(text, [kernel]) == text


def test_only_under_the_originals_launch_the_entry_takes_the_structure() -> None:
    kernel = flat(MATRIX + KERNEL)
    launch = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", kernel.names)
    plan, other = Plan((launch,)), Plan((Launch("k", ("2", "1", "1"), ("32", "1", "1"), "0", kernel.names),))
    assert as_handed_out(Candidate(kernel.flat, plan), plan, "k", [kernel]) == [kernel]
    assert as_handed_out(Candidate(kernel.flat, other), plan, "k", [kernel]) == []


def test_host_launches_pass_members() -> None:
    file = KernelFile.from_text(MATRIX + KERNEL + "\nvoid run(Matrix a, float *y) { k<<<1, 32>>>(a, y); }\n")
    assert file.launches[0].args == ("a.width", "a.elements", "y")
