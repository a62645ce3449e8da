"""A winner is used only where it was proven: every way in which a build can leave that ground."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fsr.builds.command import Command, read_command
from fsr.builds.serving import Served, served, unfit
from fsr.cache.lookup import Hit
from tests.builds.conftest import KERNEL, WINNER, Machine, winner_of


def hit_of(kernel: Path, flags: tuple[str, ...] = (), contract_flags: tuple[str, ...] = ()) -> Hit:
    entry = winner_of(kernel, more=flags, flags=contract_flags)
    return Hit(entry.key.digest(), entry.to_body(), dict(entry.files), "exact")


def why(machine: Machine, flags: str, contract_flags: tuple[str, ...] = ()) -> str:
    command = read_command(["nvcc", *shlex.split(flags), "-c", str(machine.kernel)])
    assert isinstance(command, Command)
    return unfit(command, hit_of(machine.kernel, contract_flags=contract_flags), machine.kernel)


@pytest.mark.parametrize(
    "flags",
    [
        "-arch=sm_90", "-arch=sm_90a", "-gencode arch=compute_90,code=[compute_90,sm_90] -O3 -DNDEBUG -lineinfo",
        "-arch=sm_90 --fmad=true -std=c++20 -Xcompiler -fPIC -rdc=true -I/x",
    ],
)  # fmt: skip
def test_builds_that_compile_what_was_proven(machine: Machine, flags: str) -> None:
    assert why(machine, flags) == ""


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("", "default architecture"), ("-arch=sm_80", "compiled for 80"), ("-arch=native", "compiled for native"),
        ("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90", "compiled for 80, 90"),
        ("-arch=sm_90 -G", "debugging"), ("-arch=sm_90 -Xptxas -O0", "debugging"), ("-arch=sm_90 -dlto", "link-time"),
        ("-arch=sm_90 --use_fast_math", "flags differ"), ("-arch=sm_90 -fmad=false", "fmad=false"),
        ("-arch=sm_90 -ftz true", "ftz=true"), ("-arch=sm_90 -maxrregcount=32", "maxrregcount=32"),
        ("-arch=sm_90 -DSCALE=4", "the macro SCALE"), ("-arch=sm_90 -U SCALE", "the macro SCALE"),
        ("-arch=sm_90 -Xcompiler=-DSCALE", "the macro SCALE"), ("-arch=sm_90 -include a.h", "included before"),
        ("-arch=sm_90 -Xcompiler -include,a.h", "included before"),
    ],
)  # fmt: skip
def test_builds_that_do_not(machine: Machine, flags: str, told: str) -> None:
    assert told in why(machine, flags)


def test_flags_and_macros_of_the_contract_are_expected(machine: Machine) -> None:
    proven = ("--use_fast_math", "-DSCALE=4")
    assert "use_fast_math" in why(machine, "-arch=sm_90 -DSCALE=4", proven)
    assert "SCALE" in why(machine, "-arch=sm_90 -use_fast_math", proven)
    assert why(machine, "-arch=sm_90 -use_fast_math -D SCALE=4", proven) == ""


def test_flags_of_a_winner_are_added_where_they_change_nothing_else(machine: Machine) -> None:
    kernel = machine.kernel
    flags = ("--use_fast_math", "--ptxas-options=-dlcm=cg")
    assert served(hit_of(kernel, flags), kernel) == Served(WINNER, ("--use_fast_math", "-Xptxas=-dlcm=cg"))
    for text, told in (
        (KERNEL + "__global__ void other() {}\n", "2 kernels"),
        (KERNEL + "#include <thrust/sort.h>\n", "thrust/sort.h may define kernels"),
        (KERNEL + '#include "more.cuh"\n', "more.cuh may define kernels"),
    ):
        kernel.write_text(text)
        refused = served(hit_of(kernel, flags), kernel)
        assert isinstance(refused, str)
        assert told in refused
        assert isinstance(served(hit_of(kernel), kernel), Served)  # without flags, nothing else changes
    kernel.write_text(KERNEL + "// __global__ void a_comment() {}\n#include <cuda_fp16.h>\n")
    assert isinstance(served(hit_of(kernel, flags), kernel), Served)


def test_a_build_whose_folders_lead_to_other_headers_keeps_the_original(machine: Machine) -> None:
    kernel, folder = machine.kernel, machine.folder
    for name in ("mine", "other"):
        (folder / name).mkdir()
        (folder / name / "more.cuh").write_text("#define MORE 1\n")
    kernel.write_text(KERNEL + "#include <more.cuh>\n")
    includes = tuple((name, "") for name in ("scale.cuh", "../mine/more.cuh"))
    entry = winner_of(kernel, given=("-I../mine",), includes=includes)
    hit = Hit(entry.key.digest(), entry.to_body(), dict(entry.files), "exact")

    def told(flags: str) -> str:
        command = read_command(["nvcc", "-arch=sm_90", *shlex.split(flags), "-c", str(kernel)])
        assert isinstance(command, Command)
        return unfit(command, hit, kernel)

    assert told(f"-I {folder}/absent -I {folder}/mine -I{folder}/other") == ""
    for flags in ("", f"-I {folder}/other -I{folder}/mine"):
        assert "more.cuh is not what it was proven with" in told(flags)
