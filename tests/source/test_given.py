"""Macros of -D: seen by everything that reads a file, and the branches that they decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.source.file import KernelFile
from fsr.source.parse import parse_kernels
from fsr.source.pieces import scan
from fsr.source.signature import signature


def unit(text: str, *defines: str) -> str:
    """The unit of the kernel ``k`` under these macros."""
    return KernelFile(scan(Path("k.cu"), text), (), defines).cut("k").text


DEFAULTED = "#ifndef BLOCK\n#define BLOCK 256\n#endif\n__global__ void k(int *p) { p[0] = BLOCK; }\n"


def test_a_default_gives_way_to_what_is_given() -> None:
    assert "#define BLOCK 256" in unit(DEFAULTED)
    given = unit(DEFAULTED, "BLOCK=128")
    assert "#define BLOCK 128" in given
    assert "256" not in given
    assert "#if" not in given


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("#ifdef FAST", True), ("#ifndef FAST", False), ("#if FAST", True), ("#if defined(FAST) && N > 4", True),
        ("#if !defined FAST || N == 4", False), ("#if N / 2 == TWICE", True), ("#if defined(SLOW) || ALIAS == 8", True),
        ("#if N == 8 && !defined(SLOW)", True), ("#if (N - 8) /* none */ // at all", False),
    ],
)  # fmt: skip
def test_branches_are_decided(condition: str, taken: bool) -> None:
    text = f"#define TWICE 4\n#define ALIAS N\n{condition}\n#define V 1\n#else\n#define V 2\n#endif\n"
    found = unit(text + "__global__ void k(int *p) { p[0] = V; }\n", "FAST", "N=8")
    assert ("#define V 1" in found, "#define V 2" in found) == (taken, not taken)
    assert "#else" not in found


def test_chains_and_nested_conditionals() -> None:
    text = "#if W == 1\n#define T char\n#elif W == 2\n#ifdef SIGNED\n#define T short\n#else\n#define T ushort\n#endif\n"
    text += "#elif W == 4\n#define T int\n#else\n#error width\n#endif\n__global__ void k(T *p) { p[0] = 1; }\n"
    file = KernelFile(scan(Path("k.cu"), text), (), ("W=2", "SIGNED"))
    assert signature(file, "k").params[0].dtype == "int16"
    assert "#elif" not in file.cut("k").text
    assert "#define T int" in unit(text, "W=4")
    assert "#error" not in unit(text, "W=4")


@pytest.mark.parametrize("condition", ["#if N > __CUDACC_VER_MAJOR__", "#if defined(__CUDA_ARCH__) && N", "#if N(3)"])
def test_what_cannot_be_told_stays_whole(condition: str) -> None:
    text = f"{condition}\n#define V 1\n#else\n#define V 2\n#endif\n__global__ void k(int *p) {{ p[0] = V; }}\n"
    found = unit(text, "N=8")
    assert condition in found
    assert "#define V 1" in found
    assert "#define V 2" in found


def test_what_is_defined_under_an_open_condition_is_open_itself() -> None:
    text = "#if __CUDA_ARCH__ > 800\n#define N2 1\n#endif\n#if N2 + N == 8\n#define V 1\n#endif\n"
    assert "#if N2 + N == 8" in unit(text + "__global__ void k(int *p) { p[0] = V + N2; }\n", "N=8")


def test_the_files_own_text_is_never_touched() -> None:
    file = KernelFile(scan(Path("k.cu"), DEFAULTED), (), ("BLOCK=128",))
    cut = file.cut("k")
    spliced = file.splice(cut, cut.text.replace("p[0] = BLOCK", "p[0] = BLOCK + 0"))
    assert spliced == DEFAULTED.replace("p[0] = BLOCK", "p[0] = BLOCK + 0")
    assert file.included == frozenset()


def test_a_toolkits_own_folder_is_no_place_for_local_includes(tmp_path: Path) -> None:
    (tmp_path / "cuda_runtime.h").write_text("#error the toolkit's\n")
    (tmp_path / "cuda_fp16.h").write_text("#error the toolkit's\n")
    (tmp_path / "k.cu").write_text("#include <cuda_fp16.h>\n__global__ void k(half *p) { p[0] = 1; }\n")
    assert "#include <cuda_fp16.h>" in KernelFile.read(tmp_path / "k.cu", [tmp_path]).cut("k").text


def test_an_empty_header_is_a_header(tmp_path: Path) -> None:
    (tmp_path / "config.h").write_text("")
    (tmp_path / "k.cu").write_text('#include "config.h"\n__global__ void k(int *p) { p[0] = 1; }\n')
    assert KernelFile.read(tmp_path / "k.cu").cut("k").missing == ()


FLOATS, DOUBLES = "typedef float real;\n", "typedef double real;\n"


@pytest.mark.parametrize(
    ("head", "dtype"),
    [
        (f"#ifndef WIDE\n{FLOATS}#else\n{DOUBLES}#endif\n", "float"),
        (f"#define WIDE\n#ifdef WIDE\n{DOUBLES}#else\n{FLOATS}#endif\n", "double"),
        (f"#define BITS 64\n#if BITS == 32\n{FLOATS}#elif BITS == 64\n{DOUBLES}#endif\n", "double"),
        (f"#ifndef GUARD\n#define GUARD\n#define WIDE\n#ifdef WIDE\n{DOUBLES}#else\n{FLOATS}#endif\n", "double"),
        (f"#ifdef OTHER\n#define WIDE\n#endif\n#ifndef WIDE\n{FLOATS}#else\n{DOUBLES}#endif\n", "float"),
    ],
)
def test_what_the_file_defines_itself_decides_on_types(head: str, dtype: str) -> None:
    text = head + "__global__ void k(real *p) { p[0] = 1; }\n" + ("#endif\n" if "GUARD" in head else "")
    file = KernelFile(scan(Path("k.cu"), text))
    assert signature(file, "k").params[0].dtype == {"float": "float32", "double": "float64"}[dtype]
    assert f"typedef {dtype} real;" in file.cut("k").text
    assert file.cut("k").text.count("typedef") == 1


def test_a_kernel_that_the_build_leaves_out_can_be_named() -> None:
    text = "#ifdef FAST\n#define N 8\n__global__ void k(int *p) { p[0] = 1; }\n#else\n#define N 4\n#endif\n"
    other = "__global__ void other(int *p) { p[0] = N; }\n"
    file = KernelFile(scan(Path("k.cu"), text + other))
    assert file.kernels == ("k", "other")
    assert KernelFile(scan(Path("k.cu"), text + other), (), ("FAST",)).kernels == ("k", "other")


SHARED = """#ifdef DEBUG_IT
__global__ void k(const float *x, float *y, int n, float *debug) {
#else
__global__ void k(const float *x, float *y, int n) {
#endif
    y[threadIdx.x] = x[0];
#ifdef DEBUG_IT
    debug[0] = 1;
#endif
}
"""


@pytest.mark.parametrize(
    ("text", "defines", "taken"),
    [
        (SHARED, (), False),
        (SHARED, ("DEBUG_IT",), True),
        ("#define DEBUG_IT\n" + SHARED, (), True),
        (SHARED.replace("DEBUG_IT", "__DEBUG_IT__"), (), False),
        (SHARED.replace("#ifdef", "#ifndef"), (), True),
        (SHARED.replace("#else", "#elif 1"), (), False),
        (SHARED.replace("#ifdef DEBUG_IT", "#if defined(DEBUG_IT) && DEBUG_IT > 1"), ("DEBUG_IT=2",), True),
        (SHARED.replace("#ifdef DEBUG_IT", "#if FOO(3)"), (), True),  # left open: the first
        ("namespace a {\n" + SHARED + "}\n", (), False),
        (SHARED.replace("\n", "\r\n"), (), False),
        (
            "__global__ void k(const float *x, float *y, int n\n#ifdef A\n, float *debug\n#endif\n) { *y = n; }\n",
            (),
            False,
        ),
    ],
)
def test_heads_that_share_a_body_are_decided(text: str, defines: tuple[str, ...], taken: bool) -> None:
    file = KernelFile(scan(Path("k.cu"), text), (), defines)
    found = signature(file, "k")
    assert [p.name for p in found.params] == ["x", "y", "n", *["debug"] * taken]
    if "FOO" not in text:
        form = parse_kernels(file.cut("k").text)["k"]
        assert [p.name for p in form.params] == [p.name for p in found.params]
        assert ("debug" in file.cut("k").text) == taken
        assert "#if" not in file.cut("k").text
    assert file.splice(file.cut("k"), file.cut("k").text) == text


def test_a_changed_kernel_takes_the_place_of_all_its_heads() -> None:
    file = KernelFile(scan(Path("k.cu"), "int before;\n" + SHARED + "int behind;\n"))
    spliced = file.splice(file.cut("k"), file.cut("k").text.replace("x[0]", "x[1]"))
    assert "x[1]" in spliced
    assert spliced.startswith('int before;\n#ifdef DEBUG_IT\n#error "the kernel below was refined for builds without')
    assert spliced.count("DEBUG_IT") == 2
    assert spliced.endswith("int behind;\n")


def test_what_only_a_compiler_knows_stays() -> None:
    text = "#if __CUDA_ARCH__ >= 800\n#define N 8\n#else\n#define N 4\n#endif\n"
    assert "#if __CUDA_ARCH__ >= 800" in unit(text + "__global__ void k(int *p) { p[0] = N; }\n")
