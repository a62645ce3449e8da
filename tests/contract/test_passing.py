"""A number that is passed narrower or wider than the kernel takes it is told when the contract is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.app.checking import load_candidate
from fsr.contract.load import load_contract
from fsr.errors import ContractError, SourceError
from fsr.evaluation.compiling import build
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.records import CompileFailure
from fsr.runs.kernel import load_kernel
from fsr.source.file import KernelFile

HEAD = "// /// fsr\n// [sizes]\n// n = {min = 1, max = 64}\n// [args]\n"
ONE = HEAD + "// y = {role = 'out', shape = ['n']}\n// n = {ARG}\n// [launch]\n// grid = 1\n// block = 64\n// ///\n"
TWO = (
    HEAD
    + """// y = {role = "out", shape = ["n"]}
// n = {dtype = "int32", value = "n"}
// [[launch]]
// entry = "a"
// grid = 1
// block = 64
// args = ["y", "n"]
// [[launch]]
// entry = "b"
// grid = 1
// block = 64
// args = ["y", ARG]
// ///
"""
)


def one(type_: str, arg: str) -> KernelFile:
    kernel = f"typedef unsigned long long word;\n__global__ void k(float *y, {type_} n) {{ y[threadIdx.x] = 1; }}\n"
    return KernelFile.from_text(ONE.replace("{ARG}", arg) + kernel)


def two(type_: str, arg: str) -> KernelFile:
    kernels = "__global__ void a(float *y, int n) { y[threadIdx.x] = n; }\n"
    return KernelFile.from_text(
        TWO.replace("ARG", arg) + kernels + f"__global__ void b(float *y, {type_} count) {{ y[0] = 1; }}\n"
    )


@pytest.mark.parametrize("type_", ["long long", "size_t", "word", "std::int64_t", "short"])
def test_a_stated_width_that_is_not_the_kernels(type_: str) -> None:
    with pytest.raises(ContractError, match=r"says that n is int32; the kernel declares") as told:
        load_contract(one(type_, '{dtype = "int32", value = "n"}'))
    assert "kernel.cu:6" in str(told.value)
    assert load_contract(one(type_, '{value = "n"}')).args[1].dtype != "int32"


def test_a_vector_by_value_is_its_members() -> None:
    contract = load_contract(one("float2", "{low = 0, high = 1}"))
    assert [(a.name, a.dtype) for a in contract.args] == [("y", "float32"), ("n_x", "float32")]


@pytest.mark.parametrize(
    ("type_", "arg", "says"),
    [
        ("size_t", '"n"', r"b takes count as 'size_t' \(uint64, 8 bytes\) and is passed 'n' as int32 \(4 bytes\)"),
        ("long long", '{dtype = "int32", value = 3}', r"int64, 8 bytes\) and is passed a number as int32"),
        ("float", '"n"', r"float32, 4 bytes\) and is passed 'n' as int32"),
        ("int *", '"n"', "a pointer, and is passed 'n'"), ("int", '"y"', "which is no pointer, and is passed 'y'"),
    ],
)  # fmt: skip
def test_every_launch_of_a_plan_is_looked_at(type_: str, arg: str, says: str) -> None:
    with pytest.raises(ContractError, match=says) as told:
        load_contract(two(type_, arg))
    assert "kernel.cu:16" in str(told.value)


@pytest.mark.parametrize(("type_", "arg"), [("unsigned", '"n"'), ("size_t", "3"), ("T", '"n"'), ("float *", '"y"')])
def test_what_fits_is_taken(type_: str, arg: str) -> None:
    assert len(load_contract(two(type_, arg)).plan.launches) == 2


def test_a_candidate_must_take_what_its_plan_passes(tmp_path: Path) -> None:
    text = "__global__ void k(float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 1; }\n"
    path, candidate = tmp_path / "k.cu", tmp_path / "c.cu"
    path.write_text(ONE.replace("{ARG}", '{value = "n"}') + text)
    candidate.write_text(text.replace("int n", "size_t n"))
    with pytest.raises(SourceError, match=r"k takes n as 'size_t' \(uint64, 8 bytes\) and is passed 'n' as int32"):
        load_candidate(candidate, load_kernel(path))


@pytest.mark.parametrize("type_", ["size_t", "double", "int *"])
def test_a_searched_candidate_is_told_before_a_device_sees_it(type_: str, tmp_path: Path) -> None:
    text = "__global__ void k(float *y, int n) { int i = threadIdx.x; if (n && i < 4) y[i] = 1; }\n"
    path = tmp_path / "k.cu"
    path.write_text(ONE.replace("{ARG}", '{value = "n"}') + text)
    kernel = load_kernel(path)
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path))
    candidate = replace(kernel.baseline, source=text.replace("int n", f"{type_} n"))
    built = build(spec, candidate)
    assert isinstance(built, CompileFailure)
    assert "k takes n as" in built.log


def test_a_searched_candidate_that_takes_as_many_bytes_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(ONE.replace("{ARG}", '{value = "n"}') + "__global__ void k(float *y, int n) { y[0] = n; }\n")
    kernel = load_kernel(path)
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path))
    candidate = replace(kernel.baseline, source=kernel.baseline.source.replace("int n", "unsigned n"))
    assert isinstance(build(spec, candidate), Binaries)
