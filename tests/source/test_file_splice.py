"""Putting a changed unit back: only the kernel's bytes change, and the whole still compiles."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fsr.errors import SourceError
from fsr.source.file import KernelFile

FILES = Path(__file__).parent / "files"
EXAMPLES = Path(__file__).parents[2] / "examples"


def nvcc(text: str, folder: Path, *options: str) -> str:
    """Messages of nvcc, '' when it compiles; skips without nvcc."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed: compiling was not checked")
    path = folder / "spliced.cu"
    path.write_bytes(KernelFile.encode(text))
    command = [
        "nvcc",
        "-std=c++17",
        "-arch=sm_90",
        "-I",
        str(FILES),
        *options,
        "-c",
        str(path),
        "-o",
        str(folder / "o.o"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def test_only_the_kernels_bytes_change(tmp_path):
    file = KernelFile.read(FILES / "messy.cu")
    unit = file.cut("messy")
    new = unit.text.replace("int i = blockIdx.x", "const int i = blockIdx.x")
    result = file.splice(unit, new)
    assert result == file.text.replace("int i = blockIdx.x", "const int i = blockIdx.x", 1)
    assert nvcc(result, tmp_path) == ""


def test_new_helpers_includes_and_macros_come_with_the_kernel(tmp_path):
    file = KernelFile.read(FILES / "messy.cu")
    unit = file.cut("messy")
    new = "#include <cuda_bf16.h>\n__device__ inline float outer_help(float v) { return v; }\n" + unit.text.replace(
        'extern "C" __global__', '#define STEP 1\n__device__ float help(float v) { return v; }\n\nextern "C" __global__'
    ).replace("p.y : real(0)", "help(p.y) : real(outer_help(0))")
    result = file.splice(unit, new)
    for part in ("#define STEP 1", "help(float v)", "int main(", "host of", "MAKE_OP(mul, *)", "kWeights[4]"):
        assert part in result.replace("a global of the host", "host of")
    assert result.index("cuda_bf16") < result.index("namespace deep")
    assert result.index("namespace inner") < result.index("float help(") < result.index("void __launch_bounds__")
    assert nvcc(result, tmp_path) == ""


def test_crlf_latin_1_and_a_missing_last_newline_survive():
    path = FILES / "crlf.cu"
    file = KernelFile.read(path)
    unit = file.cut("twice_it")
    assert "\r" not in unit.text
    assert KernelFile.encode(file.splice(unit, unit.text)) == path.read_bytes()
    new = KernelFile.encode(file.splice(unit, unit.text.replace("x[i] *= TWO;", "x[i] = x[i] * TWO;\n")))
    before, after = path.read_bytes().split(b"__global__")[0], path.read_bytes().rsplit(b"}\r\n\r\nint main", 1)[1]
    assert new.startswith(before)
    assert new.endswith(after)
    assert b"\n" not in new.replace(b"\r\n", b"")
    assert b"caf\xe9" in new


def test_a_changed_helper_takes_the_old_ones_place(tmp_path):
    file = KernelFile.read(EXAMPLES / "realworld.cu")
    unit = file.cut("rms_norm<256>")
    result = file.splice(unit, unit.text.replace("real_t partial[BLOCK]", "real_t partial[BLOCK + 1]"))
    assert result == file.text.replace("real_t partial[BLOCK]", "real_t partial[BLOCK + 1]")
    assert result.count("block_sum(real_t value)") == 1
    assert nvcc(result, tmp_path) == ""


def test_a_kernel_of_another_name_stands_beside_the_original(tmp_path):
    file = KernelFile.read(EXAMPLES / "scale_bias.cu")
    unit = file.cut("scale_bias")
    result = file.splice(unit, unit.text.replace("void scale_bias(", "void scale_bias_vec4("))
    assert result.count("__global__") == 2
    assert result.index("void scale_bias(") < result.index("void scale_bias_vec4(") < result.index("launch_scale_bias")
    assert nvcc(result, tmp_path) == ""


def test_a_second_kernel_is_added():
    file = KernelFile.read(EXAMPLES / "reduction.cu")
    unit = file.cut("reduce_sum")
    new = (
        unit.text.replace("atomicAdd(total, x[i])", "total[i] = x[i]")
        + "\n__global__ void finish(float *t) { t[0] = 1; }\n"
    )
    assert KernelFile.from_text(file.splice(unit, new)).kernels == ("reduce_sum", "finish")


def test_a_kernel_in_a_header_replaces_the_include(tmp_path):
    (tmp_path / "k.cuh").write_text("#pragma once\n#define ONE 1\n__global__ void k(int *p) { p[0] = ONE; }\n")
    path = tmp_path / "main.cu"
    path.write_text('#include "k.cuh"\nint main() { k<<<1, 1>>>(nullptr); return 0; }\n')
    file = KernelFile.read(path)
    unit = file.cut("k")
    result = file.splice(unit, unit.text.replace("p[0] = ONE", "*p = ONE"))
    assert '#include "k.cuh"' not in result
    assert "*p = ONE" in result
    assert "int main()" in result
    assert nvcc(result, tmp_path) == ""


def test_changes_in_two_headers_are_refused(tmp_path):
    (tmp_path / "a.cuh").write_text("__device__ int f() { return 1; }\n")
    (tmp_path / "b.cuh").write_text("__global__ void k(int *p) { p[0] = f(); }\n")
    path = tmp_path / "main.cu"
    path.write_text('#include "a.cuh"\n#include "b.cuh"\nint main() { return 0; }\n')
    file = KernelFile.read(path)
    unit = file.cut("k")
    with pytest.raises(SourceError, match="more than one included file"):
        file.splice(unit, unit.text.replace("return 1", "return 2").replace("p[0] =", "*p ="))


def test_kernel_inside_a_conditional_stays_there():
    text = "#ifdef FAST\n__global__ void k(int *p) { p[0] = 1; }\n#else\n__global__ void k(int *p) { p[0] = 2; }\n"
    text += "#endif\nint x;\n"
    file = KernelFile.from_text(text)
    unit = file.cut("k")
    assert file.splice(unit, unit.text.replace("p[0] = 1", "*p = 1")) == text.replace("p[0] = 1", "*p = 1")


def test_units_with_unmatched_brackets_are_refused():
    file = KernelFile.read(EXAMPLES / "saxpy.cu")
    with pytest.raises(SourceError, match="never closes"):
        file.splice(file.cut("saxpy"), "__global__ void saxpy() {")


def test_nvrtc_takes_a_unit():
    from fsr.backends.cuda.nvrtc import NvrtcToolchain, find_nvrtc

    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    from fsr.records import Candidate, Image, Launch, Plan

    unit = KernelFile.read(FILES / "torch_extension.cu").cut("swish_forward<float>")
    launch = Launch("swish_forward<float>", ("1", "1", "1"), ("32", "1", "1"), "0", ())
    image = NvrtcToolchain("sm_90").compile(Candidate(unit.text, Plan((launch,))))
    assert isinstance(image, Image), image
