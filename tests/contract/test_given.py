"""Folders of includes and macros: of the contract, of the command line, and of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fsr.cli.main import fsr
from fsr.contract.load import load_contract
from fsr.errors import ContractError, UsageError
from fsr.runs.kernel import load_kernel

COMMON = "#pragma once\n#ifndef BLOCK\n#define BLOCK 256\n#endif\ntypedef ELEMENT element;\n"
KERNEL = """#include <common.cuh>
__global__ void k(const element *x, element *y, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = x[i] + STEP;
}
void run(const element *x, element *y, int n) { k<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, n); }
"""
STATED = '// /// fsr\n// include_dirs = ["../inc"]\n// defines = ["BLOCK=64", "ELEMENT=double"]\n{}// ///\n'
BODY = """// [sizes]
// n = {min = 0, max = 1000}
// [args]
// x = {shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel that needs -I and -D, beside the folder of its header; the working directory is neither's."""
    for name in ("inc", "src", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "inc" / "common.cuh").write_text(COMMON)
    path = tmp_path / "src" / "k.cu"
    path.write_text(KERNEL)
    monkeypatch.chdir(tmp_path / "work")
    return path


def test_inference_sees_both(kernel: Path) -> None:
    found = load_kernel(kernel, None, ["../inc"], ["BLOCK=128", "ELEMENT=float", "STEP=1"])
    assert found.contract.args[0].dtype == "float32"
    assert found.contract.plan.launches[0].block == ("128", "1", "1")
    assert found.contract.plan.flags == ("-DBLOCK=128", "-DELEMENT=float", "-DSTEP=1")
    assert found.contract.include_dirs == ("../inc",)
    assert found.given == ("-I../inc", "-DBLOCK=128", "-DELEMENT=float", "-DSTEP=1")
    assert [name for name, _ in found.includes()] == ["../inc/common.cuh"]


def test_the_written_contract_needs_no_options(kernel: Path) -> None:
    words = [
        "contract",
        str(kernel),
        "-I",
        "../inc",
        "-DBLOCK=128",
        "--define",
        "ELEMENT=float",
        "-D",
        "STEP",
        "--write",
    ]
    done = CliRunner().invoke(fsr, words, catch_exceptions=False, standalone_mode=False)
    assert 'include_dirs = ["../inc"]' in done.stdout
    assert 'defines = ["BLOCK=128", "ELEMENT=float", "STEP"]' in done.stdout
    alone = load_kernel(kernel)
    assert alone.given == ()
    assert alone.contract.plan.flags == ("-DBLOCK=128", "-DELEMENT=float", "-DSTEP")
    assert load_kernel(kernel, None, ["../inc"], ["BLOCK=128"]).contract_digest() == alone.contract_digest()


def test_the_command_line_comes_before_the_contract(kernel: Path) -> None:
    kernel.write_text(STATED.format(BODY) + KERNEL)
    (kernel.parent / "own").mkdir()
    (kernel.parent / "own" / "common.cuh").write_text("typedef float element;\n")
    assert load_kernel(kernel, defines=["STEP=2"]).contract.args[0].dtype == "float64"
    found = load_kernel(kernel, None, [str(kernel.parent / "own")], ["STEP=2", "BLOCK=32"])
    assert found.contract.args[0].dtype == "float32"
    assert found.contract.plan.flags == ("-DBLOCK=32", "-DELEMENT=double", "-DSTEP=2")
    assert found.contract.include_dirs == ("own", "../inc")


@pytest.mark.parametrize(
    ("folders", "defines", "says"),
    [
        (["absent"], [], "'absent' does not exist"), (["../src/k.cu"], [], "is no folder"), ([], ["3x"], "no name"),
        ([], ["F(x)=x"], "no name"), ([], ['S="a"'], "its value holds '\"'"), ([], ["=3"], "no name"),
        ([], ["A=1\n#include"], r"its value holds '\\n'"),
    ],
)  # fmt: skip
def test_wrong_options_are_named(kernel: Path, folders: list[str], defines: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_kernel(kernel, None, folders, defines)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('include_dirs = ["absent"]', "'absent' does not exist"), ('include_dirs = "inc"', "include_dirs is 'inc'"),
        ('defines = ["3x"]', "no name"), ("defines = [3]", r"defines is \[3\]"), ("flags = [1]", r"flags is \[1\]"),
    ],
)  # fmt: skip
def test_wrong_entries_of_a_contract_are_named_with_their_line(kernel: Path, line: str, says: str) -> None:
    kernel.write_text(f"// /// fsr\n// {line}\n{BODY}// ///\n{KERNEL}")
    with pytest.raises(ContractError, match=says) as told:
        load_contract(kernel)
    assert f"{kernel}:2" in str(told.value)


def test_a_header_that_is_not_found_is_asked_for(kernel: Path) -> None:
    with pytest.raises(ContractError, match=r"name the folder of common.cuh with -I"):
        load_kernel(kernel)


def test_a_macro_among_the_flags_is_one(kernel: Path) -> None:
    kernel.write_text(f'// /// fsr\n// flags = ["-DBLOCK=32", "--use_fast_math"]\n{BODY}// ///\n{KERNEL}')
    found = load_kernel(kernel, None, ["../inc"], ["ELEMENT=int", "STEP=1"])
    assert found.contract.plan.flags == ("-DBLOCK=32", "-DELEMENT=int", "-DSTEP=1", "--use_fast_math")
    assert "#define BLOCK 32" in found.unit.text


def test_a_candidate_is_read_and_judged_under_them(kernel: Path) -> None:
    better = kernel.with_name("better.cu")
    better.write_text(KERNEL.replace("x[i] + STEP", "STEP + x[i]"))
    words = [
        str(better),
        "--against",
        str(kernel),
        "-I../inc",
        "-DELEMENT=float",
        "-DSTEP=1",
        "--device",
        "host",
        "--json",
    ]
    done = CliRunner().invoke(fsr, ["check", *words], standalone_mode=False)
    assert json.loads(done.stdout)["status"] == "passed"
