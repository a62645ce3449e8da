"""The one construct that is rewritten, and that nothing else is."""

from __future__ import annotations

import pytest

from fsr.backends.host.unit import (
    blank_comments,
    rewrite_constructed_shared,
    rewrite_dynamic_shared,
    unit_text,
)


@pytest.mark.parametrize(
    ("declaration", "pointer"),
    [
        ("extern __shared__ float s[];", "float *const s = reinterpret_cast<float *>(fsr_dynamic_shared);"),
        ("__shared__ extern int s[];", "int *const s = reinterpret_cast<int *>(fsr_dynamic_shared);"),
        (
            "extern __shared__ __align__(16) unsigned char buf[];",
            "unsigned char *const buf = reinterpret_cast<unsigned char *>(fsr_dynamic_shared);",
        ),
        (
            "extern volatile __shared__ float s [ ] ;",
            "volatile float *const s = reinterpret_cast<volatile float *>(fsr_dynamic_shared);",
        ),
        (
            "extern __shared__ std::pair<int, T> s[];",
            "std::pair<int, T> *const s = reinterpret_cast<std::pair<int, T> *>(fsr_dynamic_shared);",
        ),
        (
            "extern __shared__ float s[16 + (N * 2)];",
            "float (&s)[16 + (N * 2)] = *reinterpret_cast<float (*)[16 + (N * 2)]>(fsr_dynamic_shared);",
        ),
        (
            "extern __shared__ float s[2] [N];",
            "float (&s)[2][N] = *reinterpret_cast<float (*)[2][N]>(fsr_dynamic_shared);",
        ),
        (
            "extern __shared__ float s[][N];",
            "float (*const s)[N] = reinterpret_cast<float (*)[N]>(fsr_dynamic_shared);",
        ),
        ("extern __shared__ alignas(sizeof(T)) T s[];", "T *const s = reinterpret_cast<T *>(fsr_dynamic_shared);"),
    ],
)
def test_dynamic_shared_memory_becomes_a_pointer(declaration, pointer):
    assert rewrite_dynamic_shared(f"a;\n  {declaration} b;") == f"a;\n  {pointer} b;"


@pytest.mark.parametrize(
    "text",
    [
        "__shared__ float s[4];",
        "// extern __shared__ float s[];",
        '"extern __shared__ float s[];"',
        "extern float s[]; __shared__ int t[2];",
        "extern __shared__ float s[], t[];",
        "extern __shared__ float s;",
    ],
)
def test_everything_else_stays(text):
    assert rewrite_dynamic_shared(text) == text


def test_line_numbers_do_not_move():
    source = "extern\n  __shared__ float\n s[];\nlast"
    assert rewrite_dynamic_shared(source).count("\n") == 3
    assert rewrite_dynamic_shared(source).endswith("\nlast")
    macro = "#define S extern __shared__ \\\n  float s[];\nlast"
    assert rewrite_dynamic_shared(macro).splitlines()[1].strip() == ""
    assert rewrite_dynamic_shared(macro).count("\\\n") == 1


def test_blanking_keeps_every_position():
    source = 'a /* x\n y */ b // c\n"s\\"t" \'q\' d'
    blank = blank_comments(source)
    assert len(blank) == len(source)
    assert blank.split() == ["a", "b", '"', '"', "'", "'", "d"]


def test_the_unit_names_lines_and_entries():
    text = unit_text("void f();", ["k<1, 2>"], ["#define N 4"])
    assert text.splitlines() == [
        "#define N 4",
        '#line 1 "candidate.cu"',
        "void f();",
        '#line 1 "entries of the plan"',
        "FSR_ENTRY(0, k<1, 2>)",
    ]


CHUNK = "struct Chunk { int key[8]; __device__ Chunk() {} __device__ int sum(); };\n"


def test_shared_structures_with_a_constructor_are_memory_that_nobody_builds():
    text = (
        CHUNK
        + "__global__ void k() {\n  __shared__ Chunk s[16], *p;\n  __shared__ Chunk a[2]\n[3]; __shared__ Chunk one; }"
    )
    changed = rewrite_constructed_shared(text)
    assert changed.count("\n") == text.count("\n")
    assert "alignas(Chunk) __shared__ unsigned char a_[sizeof(Chunk[2][3])];" in changed
    assert "Chunk (&a)[2][3] = *reinterpret_cast<Chunk (*)[2][3]>(a_);" in changed
    assert "Chunk (&one) = *reinterpret_cast<Chunk (*)>(one_);" in changed
    assert "__shared__ Chunk s[16], *p;" in changed  # several at once: for the compiler


@pytest.mark.parametrize(
    "text",
    [
        "struct Chunk { int key[8]; __device__ int sum() { return Chunks(); } ~Chunk(); }; __shared__ Chunk s[16];",
        CHUNK + "// __shared__ Chunk s[16];",
        CHUNK + "__shared__ Chunky s[16]; __shared__ int Chunk_[3];",
    ],
)
def test_other_shared_variables_stay(text):
    assert rewrite_constructed_shared(text) == text
