"""The launcher's guard, run: inside the contract the winner is launched, outside of it the original."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.records import Plan
from fsr.source.launcher import launcher_header

KERNEL = """__global__ void k(const float *x, float *y, int n, int half, float eps) { y[0] = x[0]; }
"""
CONTRACT = """entry = "k"
[sizes]
n = {min = 4, max = 1024}
[args]
x = {role = "in", shape = ["n"], alignment = 16}
y = {role = "out", shape = ["n"]}
n = {value = "n"}
half = {value = "n // 2"}
eps = {low = 0, high = 1}
[launch]
grid = "ceil_div(n, 256)"
block = 256
"""
RUNTIME = """#pragma once
#include <cstddef>
typedef int cudaError_t; typedef void *cudaStream_t; enum { cudaSuccess = 0 };
struct dim3 { dim3(unsigned, unsigned = 1, unsigned = 1) {} };
inline int cudaGetLastError() { return 0; }
"""
CALLER = """#include <cstdio>
#include <cstring>
static const char *launched = "nothing";
#include "k.fsr.cuh"
alignas(64) static char memory[1 << 20];
int main(int, char **words)
{{
    long x, y; int n, half; float eps;
    while (std::scanf("%ld %ld %d %d %f", &x, &y, &n, &half, &eps) == 5) {{
        launched = "nothing";
        fsr_launch_k((const float *)(memory + x), (float *)(memory + y), n, half, eps, nullptr);
        std::printf("%s\\n", launched);
    }}
}}
""".format()


def contract_of(folder: Path) -> Contract:
    (folder / "k.cu").write_text(KERNEL)
    (folder / "k.fsr.toml").write_text(CONTRACT)
    return load_contract(folder / "k.cu")


def launched(folder: Path, contract: Contract, calls: list[str]) -> list[str]:
    """Which kernel each call launches: the header as host code, with the launches written down."""
    (launch,) = contract.plan.launches
    header = launcher_header("k", contract, Plan((replace(launch, entry="k_fsr"),)))
    header = re.sub(r"(\w+)<<<(.*?)>>>\(.*?\);", r'launched = "\1"; (void)grid;', header)
    (folder / "k.fsr.cuh").write_text(header)
    (folder / "cuda_runtime.h").write_text(RUNTIME)
    (folder / "main.cpp").write_text(CALLER)
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        pytest.skip("no C++ compiler: the guard was not run")
    subprocess.run([compiler, "-I", folder, folder / "main.cpp", "-o", folder / "main"], check=True)
    ran = subprocess.run([folder / "main"], input="\n".join(calls), capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_a_winner_is_launched_only_where_it_was_proven(tmp_path: Path) -> None:
    calls = {
        "0 65536 1024 512 0.5": "k_fsr",
        "0 65536 4 2 0": "k_fsr",
        "4096 0 1024 512 1": "k_fsr",  # y ends where x begins
        "0 65536 3 1 0.5": "k",  # below the sizes
        "0 65536 1025 512 0.5": "k",
        "0 65536 1024 511 0.5": "k",  # an argument that does not hold the size it should
        "4 65536 1024 512 0.5": "k",  # not aligned
        "0 0 1024 512 0.5": "k",  # in place
        "4080 0 1024 512 0.5": "k",  # overlapping by 16 bytes
        "0 65536 1024 512 1.5": "k",  # a scalar out of its range
        "0 65536 1024 512 nan": "k",
    }
    assert launched(tmp_path, contract_of(tmp_path), list(calls)) == list(calls.values())


def test_buffers_that_may_share_memory_are_the_winners_too(tmp_path: Path) -> None:
    contract = replace(contract_of(tmp_path), aliasing=(("x", "y"),))
    assert launched(tmp_path, contract, ["0 0 1024 512 0.5", "8 8 1024 512 0.5"]) == ["k_fsr", "k"]


@pytest.mark.parametrize("dtype", ["int", "unsigned", "long long"])
def test_a_scalar_is_one_of_its_values(tmp_path: Path, dtype: str) -> None:
    lowest = {"int": -(2**31), "unsigned": 0, "long long": -(2**63)}[dtype]
    (tmp_path / "k.cu").write_text(KERNEL.replace("int half", f"{dtype} half"))
    listed = CONTRACT.replace('half = {value = "n // 2"}', f"half = {{values = [512, {lowest}, 7]}}")
    (tmp_path / "k.fsr.toml").write_text(listed)
    halves = {512: "k_fsr", 7: "k_fsr", 0: "k_fsr" if not lowest else "k", 8: "k", -7: "k", 100000: "k"}
    halves |= {lowest: "k_fsr"} if dtype == "int" else {}
    calls = [f"0 65536 1024 {half} 0.5" for half in halves]
    assert launched(tmp_path, load_contract(tmp_path / "k.cu"), calls) == list(halves.values())
