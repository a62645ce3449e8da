"""Cutting kernels out of real-style files: what is kept, what is left out, and where lines come from."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.errors import SourceError
from fsr.records import Candidate, Image, Launch, Plan
from fsr.source.cut import found_with_i
from fsr.source.file import KernelFile

FILES = Path(__file__).parent / "files"
EXAMPLES = Path(__file__).parents[2] / "examples"
NVCC = shutil.which("nvcc")


def compiles(text: str, folder: Path, name: str = "unit.cu") -> str:
    """The messages of nvcc for a text; '' when it compiles. Skips, and says so, without nvcc."""
    if NVCC is None:
        pytest.skip("nvcc is not installed: compiling was not checked")
    path = folder / name
    path.write_bytes(KernelFile.encode(text))
    done = subprocess.run(
        [NVCC, "-std=c++17", "-arch=sm_90", "-include", "cstdio", "-I", str(FILES),
         "-c", str(path), "-o", str(folder / "unit.o")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr


def test_needed_things_are_kept_and_host_code_is_not():
    unit = KernelFile.read(FILES / "messy.cu").cut("deep::inner::messy")
    for needed in (
        "MAKE_OP(add, +)", "struct __align__(8) Pair", "operator+", "kTable", "enum Mode", "twice(T v)",
        "#define DEEPEST_FACTOR", "struct Power<0>", "typedef float real", "#define DEV", "namespace inner {",
    ):  # fmt: skip
        assert needed in unit.text, needed
    for host in ("main", "log_file", "stdio", "iostream", "host_only", "MAKE_OP(mul", "NEVER_USED", "g_counter",
                 "Unused",                  "void other", "kWeights"):  # fmt: skip
        assert host not in unit.text, host


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("messy.cu", "messy"),
        ("messy.cu", "other"),
        ("torch_extension.cu", "swish_backward<float>"),
        ("crlf.cu", "twice_it"),
        ("groups.cu", "group_sum"),
    ],
)
def test_a_unit_compiles_by_itself(name, entry, tmp_path):
    assert compiles(KernelFile.read(FILES / name).cut(entry).text, tmp_path) == ""


DECLARED = """__global__ void k(float *x, int n);
template <int B = 64> __global__ void t(float *x);
__global__ void k(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
template <int B> __global__ void t(float *x) { x[B] = 1; }
"""


def test_a_declaration_ahead_is_kept_for_what_it_alone_says(tmp_path):
    path = tmp_path / "declared.cu"
    path.write_text(DECLARED)
    file = KernelFile.read(path)
    assert "int n);" not in file.cut("k").text
    assert "int B = 64" in file.cut("t<>").text
    assert compiles(file.cut("t<>").text, tmp_path) == ""


def test_overloads_of_a_kernel_are_left_out_and_specialisations_are_not(tmp_path):
    path = tmp_path / "overloaded.cu"
    path.write_text(
        "__global__ void k(float *x) { x[0] = 1; }\n__global__ void k(double *x) { x[0] = 2; }\n"
        "template <int B> __global__ void t(int *x) { x[0] = 3; }\n"
        "template <> __global__ void t<8>(int *x) { x[0] = 4; }\n"
    )
    file = KernelFile.read(path)
    branches = "#if __CUDA_ARCH__ < 800\n{}#else\n{}#endif\n".format(*path.read_text().splitlines(True)[:2])
    assert {"x[0] = 1", "x[0] = 2"} <= set(re.findall(r"x\[0\] = \d", KernelFile.from_text(branches).cut("k").text))
    assert "x[0] = 1" in file.cut("k").text
    assert "x[0] = 2" not in file.cut("k").text
    assert all(f"x[0] = {n}" in file.cut("t<8>").text for n in (3, 4))
    launch = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ())
    assert isinstance(HostToolchain().compile(Candidate(file.cut("k").text, Plan((launch,)))), Image)


def test_the_namespace_of_fragments_is_kept_for_what_is_inside(tmp_path):
    path = tmp_path / "fragments.cu"
    path.write_text(
        "#include <mma.h>\nusing namespace nvcuda;\n"
        "__global__ void k(float *x) {\n"
        "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;\n  x[0] = f.num_elements;\n}\n"
        "__global__ void other(float *x) { x[0] = 1; }\n"
    )
    file = KernelFile.read(path)
    assert "using namespace nvcuda;" in file.cut("k").text
    assert "nvcuda" not in file.cut("other").text
    assert compiles(file.cut("k").text, tmp_path) == ""


@pytest.mark.parametrize("limits", ["std::numeric_limits", "numeric_limits"])
def test_a_constant_of_the_limits_of_a_type_is_kept(tmp_path, limits):
    path = tmp_path / "limits.cu"
    path.write_text(
        "#include <iostream>\n#include <limits>\nusing namespace std;\n"
        f'const int FAR = {limits}<int>::max();\nconst std::string NAME = "k";\n'
        "__global__ void k(int *x) { if (x[0] < 0) x[0] = FAR; }\n"
        "int main() { cout << NAME << FAR; }\n"
    )
    cut = KernelFile.read(path).cut("k").text
    assert "string" not in cut
    launch = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ())
    assert isinstance(HostToolchain().compile(Candidate(cut, Plan((launch,)))), Image)


@pytest.mark.parametrize(
    "declared",
    [
        "const std::size_t N = 16;",
        "static const std::size_t N = 16;",
        "const ::std :: uint_fast8_t N{16};",
        "std::size_t const N = sizeof(std::uint64_t) * 2;",
        "namespace { const std::size_t N = 16; }",
        "namespace sizes { static const std::int32_t N = 16; } using namespace sizes;",
    ],
)
def test_a_constant_of_a_type_of_std_is_kept(tmp_path, declared):
    path = tmp_path / "constant.cu"
    path.write_text(
        "#include <cstddef>\n#include <cstdint>\n#include <string>\n#include <vector>\n"
        f'{declared}\nconst std::string name = "k";\nconst std::vector<std::size_t> sizes_of(4);\n'
        "__global__ void k(int *x) { int name = N, sizes_of = 1; x[threadIdx.x] = name + sizes_of; }\n"
    )
    cut = KernelFile.read(path).cut("k").text
    assert "16" in cut or "sizeof" in cut
    assert "string" not in cut
    assert "vector" not in cut
    launch = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ())
    assert isinstance(HostToolchain().compile(Candidate(cut, Plan((launch,)))), Image)


def test_headers_are_kept_only_when_used():
    unit = KernelFile.read(FILES / "groups.cu").cut("group_sum")
    assert "<cooperative_groups.h>" in unit.text
    assert "<cuda_fp16.h>" in unit.text
    assert "bf16" not in unit.text


def test_unit_lines_lead_to_the_users_lines():
    file = KernelFile.read(FILES / "messy.cu")
    unit = file.cut("messy")
    for wanted, path in (("out[i] = add_op", FILES / "messy.cu"), ("return v * DEEPEST", FILES / "helpers.cuh")):
        at = next(i for i, line in enumerate(unit.text.split("\n"), 1) if wanted in line)
        told = unit.where(at)
        line = next(i for i, text in enumerate(path.read_text().split("\n"), 1) if wanted in text)
        assert told == f"{path}:{line}"


def test_lines_made_here_lead_to_the_nearest_line_above():
    unit = KernelFile.read(FILES / "messy.cu").cut("messy")
    last = unit.text.count("\n") + 5
    assert unit.where(last).startswith(str(FILES / "messy.cu"))
    assert unit.where(0)


def test_missing_local_include_is_reported(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text('#include "gone.cuh"\n#include "cuda_runtime.h"\n__global__ void k(int *p) { p[0] = 1; }\n')
    unit = KernelFile.read(path).cut("k")
    assert unit.missing == ("gone.cuh",)
    assert "gone" not in unit.text


def test_include_dirs_are_searched(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "c.h").write_text("#define C 3\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "c.h"\n__global__ void k(int *p) { p[0] = C; }\n')
    assert "#define C 3" in KernelFile.read(path, [tmp_path / "inc"]).cut("k").text


def test_a_name_that_a_macro_makes_is_told():
    text = "#define NAMED(x) x##_fast\n__global__ void NAMED(scale)(float *x) { x[threadIdx.x] *= 2; }\n"
    with pytest.raises(SourceError, match="the macro NAMED makes the name of one") as caught:
        KernelFile.from_text(text).find("scale_fast")
    assert "in place of NAMED(...)" in str(caught.value)


def test_entry_names():
    file = KernelFile.read(FILES / "messy.cu")
    assert file.kernels == ("deep::inner::messy", "other")
    assert file.find("messy").qualified() == file.find("::deep::inner::messy").qualified()
    with pytest.raises(SourceError, match="did you mean 'other'") as caught:
        file.find("othr")
    assert "one of: deep::inner::messy, other" in str(caught.value)
    with pytest.raises(SourceError, match="2 kernels and none is named"):
        file.choose(None)
    assert file.choose("other") == "other"


def test_the_same_name_in_two_namespaces_must_be_qualified():
    text = "namespace a { __global__ void k(int*p){} }\nnamespace b { __global__ void k(int*p){} }\n"
    file = KernelFile.from_text(text)
    with pytest.raises(SourceError, match="a::k, b::k"):
        file.find("k")
    assert file.find("b::k").qualified() == "b::k"


def test_a_plan_of_two_kernels_is_cut_together():
    text = "__device__ int f() { return 1; }\n__global__ void a(int*p){p[0]=f();}\n__global__ void b(int*p){}\n"
    text += "int main(){}\n"
    unit = KernelFile.from_text(text).cut("a", "b")
    assert "void a" in unit.text
    assert "void b" in unit.text
    assert "main" not in unit.text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"  \n\t\n", "is empty"),
        (b"\xff\xfe_\0_\0", "NUL bytes"),
        (b"__global__ void k() { if (1) { }\n", "never closes"),
        (b"}\n__global__ void k() {}\n", "closes nothing"),
    ],
)
def test_unusable_files_are_refused(tmp_path, content, told):
    path = tmp_path / "bad.cu"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=told) as caught:
        KernelFile.read(path)
    assert str(path) in caught.value.where
    assert caught.value.fix


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.cu", tmp_path):
        with pytest.raises(SourceError, match="cannot be read"):
            KernelFile.read(path)


def test_no_kernel_at_all():
    file = KernelFile.from_text("int main() { return 0; }\n__global__ void declared(int *p);\n")
    with pytest.raises(SourceError, match="holds no kernel"):
        file.choose(None)
    with pytest.raises(SourceError, match="so none named 'k'"):
        file.find("k")


def test_kernels_behind_macros_and_templates():
    text = """
#define KERNEL extern "C" __global__
KERNEL void a(float *p) { p[0] = 1; }
template <typename T, int N = (4 > 3)> __global__ void b(T *p) { p[N] = 1; }
template <> __global__ void b<float, 2>(float *p) { p[0] = 2; }
template __global__ void b<double, 1>(double *);
"""
    file = KernelFile.from_text(text)
    assert file.kernels == ("a", "b")
    unit = file.cut("b<float, 2>")
    assert "b<float, 2>" in unit.text
    assert "b<double, 1>" not in unit.text
    assert "#define KERNEL" not in unit.text


def test_types_named_only_in_the_entry_are_kept():
    text = "struct Op { __device__ int f() { return 1; } };\n"
    text += "template <class T> __global__ void k(int *p) { p[0] = T().f(); }\n"
    assert "struct Op" in KernelFile.from_text(text).cut("k<Op>").text


def test_launches_are_found():
    launches = KernelFile.read(FILES / "messy.cu").launches
    assert [(x.entry, x.grid, x.block, x.shared) for x in launches] == [
        ("deep::inner::messy", "(n + 127) / 128", "128", "0"),
        ("other", "1", "32", "0"),
    ]
    assert launches[0].args == ("in", "out", "n", "kScaled")
    (torch,) = KernelFile.read(FILES / "torch_extension.cu").launches
    assert torch.entry == "swish_forward<scalar_t>"
    assert torch.block == "kThreads"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cu")), ids=lambda p: p.stem)
def test_every_example_is_cut_and_put_back(path):
    if path.name.endswith(".fsr.cu"):
        pytest.skip("an output, not an example")
    file = KernelFile.read(path)
    unit = file.cut(file.kernels[0])
    assert "main" not in unit.text
    assert file.splice(unit, unit.text) == file.text


def test_a_header_in_angle_brackets_beside_its_file_is_read_and_cs_own_is_not(tmp_path):
    for name, text in (("sizes.h", "#define ROWS 3\n"), ("math.h", "#define COLS 4\n")):
        (tmp_path / name).write_text(text)
    path = tmp_path / "k.cu"
    path.write_text("#include <sizes.h>\n#include <math.h>\n__global__ void k(int *p) { p[0] = ROWS + COLS; }\n")
    text = KernelFile.read(path).cut("k").text
    assert "#define ROWS 3" in text
    assert "COLS 4" not in text


def test_of_the_systems_headers_those_are_told_whose_folder_a_compiler_names(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text("#include <lib/types.h>\n#include <other/host.h>\n__global__ void k(lib::real *p) { p[0] = 1; }\n")
    unit = KernelFile.read(path).cut("k")
    assert unit.missing == ()
    assert "lib/types.h" in found_with_i(unit, "error: use of undeclared identifier 'lib'")
    assert found_with_i(unit, "error: expected ';'") == ""
