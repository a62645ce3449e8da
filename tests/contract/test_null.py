"""Pointers that callers pass as null: stated in [args], or for one launch of a plan by the word `null`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.app.checking import judge, judge_own, load_candidate
from fsr.backends.cuda.launching import pack_arguments
from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.contract.model import concrete_launches
from fsr.contract.read import block_range
from fsr.contract.show import contract_block, with_block
from fsr.errors import BaselineError, ContractError
from fsr.records import NULL_POINTER, Plan, Role
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.source.launcher import launcher_header
from fsr.source.parse import parse_kernels
from fsr.testgen.candidate_file import candidate_of, plan_notes
from fsr.testgen.cases import smoke
from fsr.testgen.placing import place
from fsr.testgen.reference import reference_outputs
from fsr.testgen.values import build
from tests.lifting.lifted import computed

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 4096}
// [args]
// x = {shape = ["n"]}
// mask = MASK
// extra = {null = true}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
struct Extra { int a; float b[2]; };
"""
KERNEL = """__global__ void k(const float *x, const unsigned char *mask, Extra *extra, float *y, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float v = 2 * x[i];
    if (mask != nullptr && !mask[i]) v = 0;
    if (extra) v += extra[i].b[1];
    y[i] = v;
}
"""
TEXT = HEAD.replace("MASK", "{null = true}") + KERNEL
PLAN = TEXT.replace("// mask = {null = true}\n// extra = {null = true}\n", "").replace(
    "// [launch]\n", '// [[launch]]\n// args = ["x", "null", "null", "y", "n"]\n'
)


def written(folder: Path, text: str, name: str = "kernel.cu") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("text", [TEXT, PLAN])
def test_every_launch_passes_a_null_pointer(tmp_path: Path, text: str) -> None:
    contract = load_kernel(written(tmp_path, text)).contract
    case = smoke(contract, 0)
    launches, buffers = place(contract, contract.plan, case, build(contract, case))
    assert [a == NULL_POINTER for a in launches[0].args] == [False, True, True, False, False]
    assert {b.name for b in buffers} == {"x", "y"}
    packed = pack_arguments(launches[0], {"x": 2**40, "y": 2**41})
    assert packed[:32] == b"".join(address.to_bytes(8, "little") for address in (2**40, 0, 0, 2**41))


def test_it_is_shown_as_it_was_stated(tmp_path: Path) -> None:
    kernel = load_kernel(written(tmp_path, TEXT))
    assert "// mask  = {null = true}\n" in contract_block(kernel.contract)
    for text in (TEXT, PLAN):
        before = load_kernel(written(tmp_path, text)).contract
        assert block_range(text) is not None
        again = load_kernel(written(tmp_path, with_block(text, before))).contract
        assert replace(again, origin=before.origin) == before


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ('{null = true, dtype = "uint8", low = 0}', "mask is null, and the contract says its dtype, low too"),
        ('{null = true, shape = ["n"]}', "mask = {null = true} alone"),
        ("{null = 1}", "null is 1"),
        ("{value = 0}", "mask = {null = true}"),
        ('{role = "null"}', "null = true"),
        ('{role = "in", value = 0}', "null = true"),
    ],
)
def test_what_stands_beside_it_is_refused(tmp_path: Path, mask: str, says: str) -> None:
    with pytest.raises(ContractError) as refused:
        load_kernel(written(tmp_path, HEAD.replace("MASK", mask) + KERNEL))
    assert says in str(refused.value)
    assert refused.value.where.endswith("kernel.cu:7")


def test_numbers_are_not_null(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"n .int. is no pointer and is said to be null"):
        load_kernel(written(tmp_path, TEXT.replace("// y = ", "// n = {null = true}\n// y = ")))


@pytest.mark.parametrize("passed", ["0", '"nullptr"', '"NULL"', "{value = 0}"])
def test_a_plan_is_told_how_null_is_said(tmp_path: Path, passed: str) -> None:
    with pytest.raises(ContractError) as refused:
        load_kernel(written(tmp_path, PLAN.replace('"x", "null",', f'"x", {passed},')))
    assert refused.value.fix == 'write "null" for a null pointer'


def test_null_is_a_name_like_others_where_an_argument_has_it(tmp_path: Path) -> None:
    text = (
        TEXT.replace("const float *x", "const float *null").replace("x[i]", "null[i]").replace("// x = ", "// null = ")
    )
    contract = load_kernel(written(tmp_path, text)).contract
    (launch,) = concrete_launches(contract.plan, contract, {"n": 64}, {})
    assert launch.args[:3] == ("null", NULL_POINTER, NULL_POINTER)


def test_a_candidate_may_say_it_in_its_lines(tmp_path: Path) -> None:
    kernel = load_kernel(written(tmp_path, TEXT))
    own = written(tmp_path, "// args: x null extra y n\n" + KERNEL, "own.cu")
    own.write_text(own.read_text().replace("__global__", "struct Extra { int a; float b[2]; };\n__global__"))
    plan = load_candidate(own, kernel).plan
    assert plan.launches[0].args == ("x", "null", "extra", "y", "n")
    assert candidate_of(plan_notes(plan) + KERNEL, kernel.contract, "it").plan.launches == plan.launches
    assert judge(own, RefineOptions(kernel.file.path, "host"), timed=False).status == "passed"


def test_what_reads_through_it_is_told_so(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace("mask != nullptr && ", ""))
    with pytest.raises(BaselineError, match=r"read of .*, through a null pointer") as refused:
        judge_own(RefineOptions(path, "host"))
    assert "kernel.cu:20" in refused.value.where


def test_an_address_that_the_processor_does_not_tell_is_no_null_pointer(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace("mask != nullptr && !mask[i]", "((const char *)x)[1ULL << 62]"))
    with pytest.raises(BaselineError, match="an address that no memory can have"):
        judge_own(RefineOptions(path, "host"))


def test_a_launcher_holds_callers_to_it(tmp_path: Path) -> None:
    kernel = load_kernel(written(tmp_path, TEXT))
    forms = parse_kernels(kernel.baseline.source)
    text = launcher_header("k", kernel.contract, kernel.contract.plan, forms)
    assert "const unsigned char *mask, Extra *extra, float *y" in text
    assert "&& mask == nullptr\n        && extra == nullptr" in text
    launch = replace(kernel.contract.plan.launches[0], args=("x", "null", "extra", "y", "n"))
    text = launcher_header("k", kernel.contract, Plan((launch,)), forms)
    assert "(x, nullptr, extra, y, n)" in text


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("text", [TEXT, PLAN])
def test_what_it_computes_is_found(tmp_path: Path, text: str) -> None:
    assert computed(tmp_path, text) == ["y[i] = x[i] * 2.0"]


def test_a_reference_gets_none(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("def twice(x, mask, extra):\n    return 2 * x if mask is extra is None else x\n")
    path = written(tmp_path, TEXT.replace('// entry = "k"', '// entry = "k"\n// reference = "r.py:twice"'))
    contract = load_kernel(path).contract
    case = smoke(contract, 0)
    data = build(contract, case)
    assert (reference_outputs(contract, case, data, tmp_path)["y"] == 2 * data.arrays["x"]).all()


def test_its_role_is_none_of_memory(tmp_path: Path) -> None:
    contract = load_kernel(written(tmp_path, TEXT)).contract
    assert [a.name for a in contract.buffers()] == ["x", "y"]
    assert [a.name for a in contract.drawn()] == ["x"]
    assert contract.argument("null").role is Role.NULL
