"""The launcher header and the output file: what they say, and that nvcc takes them."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.records import Candidate, Launch, Plan, ScalarArgument, Scratch
from fsr.source.file import KernelFile
from fsr.source.launcher import launcher_header, launcher_name
from fsr.source.output import launch_text, render_output
from fsr.source.parse import parse_kernels

EXAMPLES = Path(__file__).parents[2] / "examples"
EVIDENCE = {
    "basis": "measured",
    "device": {"name": "H200", "arch": "sm_90"},
    "baseline": {"median_ns": 2000.0},
    "best": {"speedup": 2.0, "speedup_ci95": [1.5, 2.5], "median_ns": 1000.0, "held_out": {"cases": 4, "passed": 4}},
    "tests": {"cases": 9, "passed": 9},
}


def nvcc(folder: Path, text: str) -> str:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed: compiling was not checked")
    (folder / "k.cu").write_text(text)
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-c", str(folder / "k.cu"), "-o", str(folder / "k.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("name", ["saxpy", "realworld", "scale_bias"])
def test_a_launcher_compiles_after_its_kernel(name, tmp_path):
    file = KernelFile.read(EXAMPLES / f"{name}.cu")
    contract = load_contract(file)
    size = contract.sizes[0].name
    launch = replace(contract.plan.launches[0], shared_bytes=f"4 * {size}")
    plan = Plan((launch,), (Scratch("part", "float64", f"ceil_div({size}, 4)", True), Scratch("more", "int32", "8")))
    header = launcher_header(contract.entry, contract, plan)
    (tmp_path / "k.fsr.cuh").write_text(header)
    assert nvcc(tmp_path, file.text + '\n#include "k.fsr.cuh"\n') == ""
    assert header.count("cudaMallocAsync") == header.count("cudaFreeAsync") == 2
    assert header.count("cudaMemsetAsync") == 1


def test_nothing_is_allocated_without_scratch():
    contract = load_contract(EXAMPLES / "softmax.cu")
    header = launcher_header("softmax", contract, contract.plan)
    assert "Malloc" not in header
    assert (
        "inline cudaError_t fsr_launch_softmax(const float *x, float *y, int rows, int cols, cudaStream_t stream)"
        in header
    )


def test_sizes_that_no_argument_holds_become_parameters():
    contract = load_contract(EXAMPLES / "realworld.cu")
    header = launcher_header(contract.entry, contract, contract.plan)
    assert "float eps, long long rows, cudaStream_t stream)" in header
    assert "pass them before the stream: rows" in header
    assert launcher_name(contract.entry) == "fsr_launch_rms_norm"


def test_half_arguments_scalars_of_the_plan_and_given_types(tmp_path):
    kernel = """#include <cuda_fp16.h>
__global__ void k(const __half *x, float4 *y, int parts, float s) { if (threadIdx.x == 0) y[0].x = s * parts; }
"""
    toml = """entry = "k"
sizes.n = 64
[args]
x = {dtype = "float16", role = "in", shape = ["n"]}
y = {dtype = "float32", role = "out", shape = ["n", 4]}
[[launch]]
grid = 1
block = 32
args = ["x", "y", "ceil_div(n, 32)", 0.5]
"""
    path = tmp_path / "in.cu"
    path.write_text(kernel)
    (tmp_path / "in.fsr.toml").write_text(toml)
    contract = load_contract(path)
    header = launcher_header("k", contract, contract.plan, parse_kernels(kernel))
    assert "#include <cuda_fp16.h>" in header
    assert "fsr_launch_k(const __half *x, float4 *y, long long n, cudaStream_t stream)" in header
    assert nvcc(tmp_path, kernel + header.replace("#pragma once", "")) == ""


MANY = """struct Pair { float a, b; };
template <typename T, typename P>
__global__ void t(T *x, const T *y, P *p, int64_t *n, float *out) { out[0] = x[0] + y[0]; }
__global__ void plain(float *x, volatile const float *y, const Pair *p, long *n, float *out) { out[0] = x[0]; }
"""


def test_what_kernels_take_otherwise_is_cast_for_them(tmp_path):
    """Inputs that a kernel could write through, records, widths of the same size: a header takes the elements."""
    toml = """entry = "t<float, Pair>"
sizes.n = 64
[args]
x = {dtype = "float32", role = "in", shape = ["n"]}
y = {dtype = "float32", role = "in", shape = ["n"]}
p = {dtype = "float32", role = "in", shape = ["n", 2]}
n = {dtype = "int64", role = "inout", shape = [4]}
out = {dtype = "float32", role = "out", shape = ["n"]}
[launch]
grid = 1
block = 32
"""
    path = tmp_path / "in.cu"
    path.write_text("#include <cstdint>\n" + MANY)
    (tmp_path / "in.fsr.toml").write_text(toml)
    contract = load_contract(path)
    launch = replace(contract.plan.launches[0], entry="plain")
    forms = parse_kernels(path.read_text())
    own = launcher_header("t<float, Pair>", contract, contract.plan, forms)
    header = launcher_header("t<float, Pair>", contract, Plan((launch,)), forms)
    assert "fsr_launch_t(const float *x, const float *y, const float *p, long long *n, float *out" in header
    assert "((float *)x, y, (Pair *)p, (int64_t *)n, out)" in own
    assert "((float *)x, (volatile const float *)y, (const Pair *)p, (long *)n, out)" in header
    for text in (own, header):
        assert nvcc(tmp_path, path.read_text() + text.replace("#pragma once", "")) == ""


def test_a_floating_scalar_is_divided_as_one(tmp_path):
    toml = """sizes.n = {min = 1, max = 64}
[args]
x = {role = "inout", shape = ["n"]}
inv = {value = "1 / n"}
[launch]
grid = 1
block = 32
"""
    path = tmp_path / "in.cu"
    path.write_text("__global__ void k(float *x, int n, float inv) { x[0] = inv; }\n")
    (tmp_path / "in.fsr.toml").write_text(toml)
    contract = load_contract(path)
    launch = replace(contract.plan.launches[0], args=("x", "n", ScalarArgument("float32", "n / 2 + n ** -1")))
    header = launcher_header("k", contract, Plan((launch,)))
    assert "inv == (float)((double)1LL / (double)n_size)" in header
    assert "(float)(((double)n_size / (double)2LL) + (1.0 / ((double)n_size)))" in header
    assert nvcc(tmp_path, path.read_text() + header.replace("#pragma once", "")) == ""


def test_a_repeated_launch_is_a_loop(tmp_path):
    file = KernelFile.read(EXAMPLES / "saxpy.cu")
    contract = load_contract(file)
    step = ScalarArgument("int32", "step % 2")
    launch = replace(contract.plan.launches[0], args=(step, "a", "x", "y"), repeat="n + 1")
    header = launcher_header(contract.entry, contract, Plan((launch,)))
    assert "for (long long step_size = 0; step_size < repeats && status == cudaSuccess" in header
    assert "((int)(step_size % 2LL), a, x, y)" in header
    assert "long long step" not in header.split("cudaStream_t stream)")[0], "the step is no parameter"
    assert launch_text(launch).endswith("(step % 2, a, x, y), n + 1 times: step = 0, 1, 2 and on")
    assert nvcc(tmp_path, file.text + header.replace("#pragma once", "")) == ""


def test_a_repeated_launch_may_have_another_shape_each_time(tmp_path):
    file = KernelFile.read(EXAMPLES / "saxpy.cu")
    contract = load_contract(file)
    first = contract.plan.launches[0]
    launch = replace(first, grid=("ceil_div(n - step, 256)", "1", "1"), shared_bytes="step", repeat="n")
    header = launcher_header(contract.entry, contract, Plan((launch,)))
    loop = header.split("step_size < repeats")[1]
    assert loop.index("grid_x =") < loop.index("cudaFuncSetAttribute") < loop.index("<<<")
    assert "long long step" not in header.split("cudaStream_t stream)")[0], "the step is no parameter"
    assert nvcc(tmp_path, file.text + header.replace("#pragma once", "")) == ""


def test_the_output_accounts_for_itself(tmp_path):
    file = KernelFile.read(EXAMPLES / "saxpy.cu")
    unit = file.cut("saxpy")
    source = unit.text.replace("a * x[i] + y[i]", "fmaf(a, x[i], y[i])")
    launch = Launch("saxpy", ("ceil_div(n, 512)", "1", "1"), ("512", "1", "1"), "0", ("n", "a", "x", "y"))
    candidate = Candidate(source, Plan((launch,), flags=("--use_fast_math",)), ("block@launch[x=512]",))
    text = render_output(file, unit, candidate, EVIDENCE)
    header = text[: text.index("// y = a * x + y")]
    for part in (
        "saxpy of saxpy.cu, refined by fsr", "H200 sm_90", "2.00 x as fast (95 % interval 1.50 to 2.50)",
        "2.0 us to 1.0 us",         "measured.", "9 of 9 cases", "4 of 4 held out", "block@launch[x=512]",
        "saxpy<<<ceil_div(n, 512), 512>>>(n, a, x, y)",
        "--use_fast_math",
    ):  # fmt: skip
        assert part in header, part
    assert all(line.startswith("//") for line in header.strip().split("\n"))
    assert text[len(header) :] == file.text.replace("a * x[i] + y[i]", "fmaf(a, x[i], y[i])")
    assert nvcc(tmp_path, text) == ""


def test_predicted_times_are_called_predicted():
    file = KernelFile.read(EXAMPLES / "saxpy.cu")
    unit = file.cut("saxpy")
    evidence = {**EVIDENCE, "basis": "predicted", "device": {"name": "this CPU", "target": "sm_90"}}
    plan = load_contract(file).plan
    text = render_output(
        file, unit, Candidate(unit.text, replace(plan, scratch=(Scratch("t", "int8", "n", True),))), evidence
    )
    assert "predicted: not measured on a GPU" in text
    assert "times predicted for sm_90" in text
    assert "cleared before each run" in text
    assert "saxpy.fsr.cuh holds fsr_launch_saxpy()" in text


def test_little_evidence_gives_a_short_header():
    file = KernelFile.from_text("\ufeff__global__ void k(int *p) { p[0] = 1; }\r\n")
    unit = file.cut("k")
    launch = Launch("k", ("1", "1", "1"), ("8", "4", "1"), "16", ("p", ScalarArgument("int32", "3")))
    text = render_output(file, unit, Candidate(unit.text, Plan((launch,))), {})
    assert text.startswith("\ufeff// k of kernel.cu, refined by fsr.\r\n")
    assert "Speed" not in text
    assert launch_text(launch) == "k<<<1, dim3(8, 4), 16>>>(p, 3)"
