"""Kernels that take structures by value, from their contract to what is handed out, on the host device."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.app.checking import judge, judge_own
from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.records import Candidate
from fsr.runs.kernel import Kernel, load_kernel
from fsr.runs.options import RefineOptions
from fsr.runs.outputs import published, render_files
from fsr.source.parse import parse_kernels

HELPER = "__device__ float at(const Grid &g, int i) { return g.in[i] + g.bias; }\n"
KERNEL = """struct Grid { char tag; double scale; int n; float bias; const float *in; float *out; };
HELPER__global__ void k(char first, Grid g, float4 add)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < g.n) g.out[i] = g.scale * READ + add.w + first;
}
void run(Grid g, float4 a) { k<<<8, 128>>>(1, g, a); }
"""
PLAIN = KERNEL.replace("HELPER", "").replace("READ", "(g.in[i] + g.bias)")
WHOLE = KERNEL.replace("HELPER", HELPER).replace("READ", "at(g, i)")
TOML = """[sizes]
n = {min = 1, max = 3000, timed = 2048}
[args]
first = {low = 0, high = 3}
g.tag = {value = 1}
g.scale = {low = 0, high = 2}
g.bias = {low = -1, high = 1}
g.in = {shape = ["n"]}
g.out = {role = "out", shape = ["n"]}
add = {low = 0, high = 1}
[launch]
grid = "ceil_div(n, 128)"
block = 128
"""


def kernel(folder: Path, text: str) -> Kernel:
    path = folder / "k.cu"
    path.write_text(text)
    path.with_name("k.fsr.toml").write_text(TOML)
    return load_kernel(path)


def spec(own: Kernel) -> SessionSpec:
    return SessionSpec(own.contract, own.baseline, "host", "sm_90", 1)


def changed(own: Kernel, old: str, new: str) -> Candidate:
    assert old in own.baseline.source
    return replace(own.baseline, source=own.baseline.source.replace(old, new))


@pytest.mark.parametrize("text", [PLAIN, WHOLE])
def test_it_passes_its_own_tests_as_it_is_written(tmp_path: Path, text: str) -> None:
    own = kernel(tmp_path, text)
    built = build(spec(own), own.baseline)
    assert isinstance(built, Binaries)
    assert [size for _, size in built.run.blocks["k"].parameters] == [1, 40, 16]
    found = judge_own(RefineOptions(own.file.path, device="host", budget_s=60))
    assert (found.status, found.tests["passed"] > 50) == ("passed", True)


def test_a_layout_that_was_read_wrong_does_not_compile(tmp_path: Path) -> None:
    own = kernel(tmp_path, PLAIN)
    [taken] = own.contract.structures
    params = tuple(replace(p, bytes=p.bytes + 8) if p.name == "g" else p for p in taken.params)
    wrong = replace(own, contract=replace(own.contract, structures=(replace(taken, params=params),)))
    found = build(spec(wrong), own.baseline)
    assert "has another layout than it was read with" in getattr(found, "log", "")


@pytest.mark.parametrize("text", [PLAIN, WHOLE])
def test_a_winner_takes_the_structure_and_passes(tmp_path: Path, text: str) -> None:
    own = kernel(tmp_path, text)
    winner = changed(own, "int i = blockIdx.x", "const int i = blockIdx.x")
    files = render_files(own, published(own, winner), {}, "k.fsr")
    assert list(files) == ["k.fsr.cu"]
    out = files["k.fsr.cu"]
    assert re.search(r"k\(char first, Grid g_?, float4 add\)", out)
    assert "k<<<8, 128>>>(1, g, a)" in out
    assert "k<<<ceil_div(n, 128), 128>>>(first, g, add)" in out
    path = tmp_path / "winner.cu"
    path.write_text(out)
    assert judge(path, RefineOptions(own.file.path, device="host", budget_s=60), timed=False).status == "passed"


def test_a_wrong_candidate_with_the_structure_fails(tmp_path: Path) -> None:
    own = kernel(tmp_path, PLAIN)
    (tmp_path / "wrong.cu").write_text(PLAIN.replace("g.in[i] + g.bias", "g.in[i] - g.bias"))
    options = RefineOptions(own.file.path, device="host", budget_s=60)
    assert judge(tmp_path / "wrong.cu", options, timed=False).outcome == "wrong"


def test_another_launch_leaves_the_original_and_has_a_launcher(tmp_path: Path) -> None:
    own = kernel(tmp_path, PLAIN)
    launch = replace(own.baseline.plan.launches[0], block=("64", "1", "1"), grid=("ceil_div(n, 64)", "1", "1"))
    winner = replace(own.baseline, plan=replace(own.baseline.plan, launches=(launch,)))
    files = render_files(own, published(own, winner), {}, "k.fsr")
    assert PLAIN.partition("void run")[0].strip() in files["k.fsr.cu"]
    assert "k_fsr(char first, double g_scale, int g_n," in files["k.fsr.cu"].replace("\n", " ")
    header = files["k.fsr.cuh"]
    assert "fsr_launch_k(signed char first, Grid g, float4 add, cudaStream_t stream)" in header
    assert "double g_scale = (double)g.scale;" in header
    assert ">>>(first, g, add);" in header
    assert ">>>(first, g_scale, g_n, g_bias, g_in, g_out, add_w);" in header.replace("(float *)", "")


def test_a_block_in_the_file_still_fits_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("// /// fsr\n" + "".join(f"// {line}\n" for line in TOML.splitlines()) + "// ///\n" + PLAIN)
    own = load_kernel(path)
    launch = replace(own.baseline.plan.launches[0], block=("64", "1", "1"), grid=("ceil_div(n, 64)", "1", "1"))
    winner = replace(own.baseline, plan=replace(own.baseline.plan, launches=(launch,)))
    (tmp_path / "out.cu").write_text(render_files(own, published(own, winner), {}, "out")["out.cu"])
    again = load_contract(tmp_path / "out.cu")
    assert (again.entry, again.plan.launches[0].args) == ("k_fsr", own.contract.plan.launches[0].args)


def test_moves_see_plain_parameters(tmp_path: Path) -> None:
    own = kernel(tmp_path, PLAIN)
    form = parse_kernels(own.baseline.source)["k"]
    assert [p.name for p in form.params] == ["first", "g_scale", "g_n", "g_bias", "g_in", "g_out", "add_w"]
