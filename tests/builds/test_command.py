"""Command lines of nvcc, as build systems write them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fsr.builds.command import Command, architectures, read_command


def read(text: str, more: str = "") -> Command:
    found = read_command(shlex.split(text), more)
    assert isinstance(found, Command), found
    return found


def test_what_cmake_writes() -> None:
    command = read(
        "ccache /usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler -DN=4 -I/src/inc -isystem /x -O3 -DNDEBUG "
        "-std=c++17 '--generate-code=arch=compute_90,code=[compute_90,sm_90]' -Xcompiler=-fPIC -MD -MT a.dir/k.cu.o "
        "-MF a.dir/k.cu.o.d -x cu -rdc=true -c /src/k.cu -o a.dir/k.cu.o"
    )
    assert command.path == "/src/k.cu"
    assert command.values("define") == ["N=4", "NDEBUG"]
    assert architectures(command) == {"90"}
    assert command.depfile() == "a.dir/k.cu.o.d"


def test_options_in_a_file_count(tmp_path: Path) -> None:
    (tmp_path / "a.rsp").write_text('-I"/a b/c" -DX=1 -G')
    command = read(f"nvcc --options-file {tmp_path}/a.rsp -c k.cu", "--use_fast_math")
    assert command.values("include") == ["/a b/c"]
    assert command.values("define") == ["X=1"]
    assert command.values("device-debug") == [""]
    assert command.values("use_fast_math") == [""]
    told = read_command(["nvcc", "--options-file", "absent.rsp", "-c", "k.cu"])
    assert isinstance(told, str)
    assert "cannot be read" in told


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nvcc -MD -c k.cu -o b/k.o", "b/k.d"), ("nvcc -MMD -c s/k.cu", "k.d"), ("nvcc -c k.cu -o k.o", None),
        ("nvcc -MD -MF x.d -c k.cu -o k.o", "x.d"), ("nvcc -MD -odir o -c k.cu", "o/k.d"),
    ],
)  # fmt: skip
def test_the_dependency_file_is_the_one_that_nvcc_names(text: str, name: str | None) -> None:
    assert read(text).depfile() == name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("-arch=sm_90", {"90"}), ("-arch sm_90a", {"90a"}), ("-gencode arch=compute_80,code=sm_86", {"80", "86"}),
        ("-gencode=arch=compute_90,code=compute_90", {"90"}), ("-arch=native", {"native"}), ("", set()),
        ("-arch=all-major", {"all-major"}), ("-arch=odd", {"?"}),
    ],
)  # fmt: skip
def test_architectures(text: str, found: set[str]) -> None:
    assert architectures(read(f"nvcc {text} -c k.cu")) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clang++ -c k.cu", "not nvcc"), ("ccache", "not nvcc"), ("nvcc -c a.cu b.cu", "2 .cu files"),
        ("nvcc -c a.cpp", "0 .cu files"), ("nvcc -E k.cu", "-E asks for something else"),
        ("nvcc -MM k.cu", "-MM asks"), ("nvcc --dryrun -c k.cu", "--dryrun asks"), ("nvcc k.cu -o", "needs a value"),
        ("nvcc -MT k.cu -o j.cu -x cu", "0 .cu files"),
    ],
)  # fmt: skip
def test_other_work_is_left_alone(text: str, why: str) -> None:
    told = read_command(shlex.split(text))
    assert isinstance(told, str)
    assert why in told
