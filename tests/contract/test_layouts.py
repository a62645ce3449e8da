"""Buffers of structures with members of several types: said, drawn, run and compared member by member."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge, judge_own
from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.contract.show import with_block
from fsr.errors import BaselineError, ContractError
from fsr.evaluation.compiling import with_layouts_asserted
from fsr.hardware.dtypes import is_float
from fsr.records import Case, CaseKind
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.runs.outputs import render_files
from fsr.source.file import KernelFile
from fsr.testgen.cases import families_of, held_out_cases, search_cases
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.large import far_cases
from fsr.testgen.reference import reference_outputs, widened_data
from fsr.testgen.shaking import nudged, perturbed
from fsr.testgen.structured import apart, layouts_of, together
from fsr.testgen.unstated import unstated
from fsr.testgen.values import build, repoisoned

ARGS = """[args]
hits = {shape = ["n"], kind = {values = [0, 1, 7]}, box = {low = -1, high = 1}, w = {low = [0, 5], high = 9}}
"hits.box.hi.y" = {low = 2, high = 3}
state = {role = "inout", shape = ["n"], count = {low = 0, high = 100, sorted = true}, x = {low = -10, high = 10}}
res = {role = "out", shape = ["n"]}
"""
REST = '[launch]\ngrid = "ceil_div(n, 64)"\nblock = 64\n'
SIZES = "[sizes]\nn = {min = 0, max = 8192, timed = 4096}\n"
TYPES = """struct P2 { float x, y; };
struct Box { P2 lo, hi; };
struct Hit { char kind; Box box; short w[2]; };
struct State { unsigned char count; double x; };
struct Res { float area; int n; char tag; };
"""
BODY = """__global__ void step(const Hit *hits, State *state, Res *res, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    Hit h = hits[i];
    Res r;
    r.area = (h.box.hi.x - h.box.lo.x) * (h.box.hi.y - h.box.lo.y);
    r.n = h.w[0] - h.w[1] + state[i].count;
    r.tag = h.kind == 7 ? 'x' : 'o';
    res[i] = r;
    if (h.kind) { state[i].x = state[i].x * 0.5 + h.box.lo.x; state[i].count += 1; }
}
"""
CASE = Case("c", (("n", 200),), "uniform", 7)


def text_of(args: str = ARGS, types: str = TYPES, body: str = BODY, top: str = "") -> str:
    block = "".join(f"// {line}\n" for line in (top + SIZES + args + REST).splitlines())
    return f"// /// fsr\n{block}// ///\n{types}{body}"


def load(args: str = ARGS, types: str = TYPES, body: str = BODY) -> Contract:
    return load_contract(KernelFile.from_text(text_of(args, types, body), "k.cu"))


def test_members_lie_as_the_compiler_has_them() -> None:
    found = layouts_of(load())
    assert {n: (found[n].bytes, found[n].alignment, found[n].word) for n in found} == {
        "hits": (24, 4, 4), "state": (16, 8, 4), "res": (12, 4, 4),
    }  # fmt: skip
    assert [(f.path, f.dtype, f.offset) for f in found["hits"].fields] == [
        ("kind", "int8", 0), ("box.lo.x", "float32", 4), ("box.lo.y", "float32", 8), ("box.hi.x", "float32", 12),
        ("box.hi.y", "float32", 16), ("w[0]", "int16", 20), ("w[1]", "int16", 22),
    ]  # fmt: skip
    assert [(f.dtype, f.offset) for f in found["hits"].widened().fields][1:3] == [("float64", 8), ("float64", 16)]
    assert (found["hits"].widened().bytes, found["state"].widened().bytes) == (48, 16)


def test_values_are_drawn_for_each_member_by_its_own_type() -> None:
    contract = load()
    for case in [
        *search_cases(contract, contract.plan, 0),
        *held_out_cases(contract, 0),
        *corner_cases(contract, 0, 4096),
    ]:
        data = build(contract, case)
        assert set(data.arrays) == {"hits", "state", "res"}
        assert data.arrays["hits"].dtype == np.uint32
        values = data.apart().arrays
        assert set(np.unique(values["hits.kind"])) <= {0, 1, 7}
        assert (np.abs(values["hits.box.lo.x"]) <= 1).all()
        assert ((values["hits.box.hi.y"] >= 2) & (values["hits.box.hi.y"] <= 3)).all()
        assert ((values["hits.w[1]"] >= 5) & (values["hits.w[1]"] <= 9)).all()
        assert (np.diff(values["state.count"].astype(int)) >= 0).all()
        assert (np.abs(values["state.x"]) <= 10).all()
        raw = data.arrays["state"].view(np.uint8).reshape(-1, 16)
        assert not raw[:, 1:8].any(), "bytes that nothing fills"


def test_members_vary_apart_and_by_families() -> None:
    contract = load()
    assert "far rows" in families_of(contract)
    values = build(contract, CASE).apart().arrays
    assert len(np.unique(values["hits.box.lo.x"])) > 100
    assert abs(np.corrcoef(values["hits.box.lo.x"], values["hits.box.lo.y"])[0, 1]) < 0.5
    assert (build(contract, CASE).arrays["hits"] == build(contract, CASE).arrays["hits"]).all()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_apart_and_together_again(count: int) -> None:
    contract = load()
    layouts = layouts_of(contract)
    data = build(contract, replace(CASE, sizes=(("n", count),)))
    again = together(apart(data.arrays, layouts), layouts)
    assert all((again[name] == array).all() and again[name].shape == array.shape for name, array in data.arrays.items())


def test_poison_is_of_each_member() -> None:
    contract = load()
    one = build(contract, CASE, 1)
    two = repoisoned(contract, CASE, one, 2)
    assert all((two.arrays[n] == build(contract, CASE, 2).arrays[n]).all() for n in ("hits", "state", "res"))
    assert np.isnan(two.apart().arrays["res.area"]).all()
    assert unstated(contract, one) is None


def test_floating_members_are_moved_within_their_limits() -> None:
    contract = load()
    data = build(contract, CASE)
    for moved in [*perturbed(contract, CASE, data), nudged(contract, CASE, widened_data(data), 1)]:
        before, behind = data.apart().arrays, moved.apart().arrays
        assert all((before[n] == behind[n]).all() for n in before if not is_float(before[n].dtype))
        assert (np.abs(behind["hits.box.lo.x"]) <= 1).all()
    assert any((data.arrays["hits"] != m.arrays["hits"]).any() for m in perturbed(contract, CASE, data))
    wide = widened_data(data)
    assert wide.arrays["hits"].shape == (200, 12)
    assert (wide.apart().arrays["hits.box.lo.x"] == data.apart().arrays["hits.box.lo.x"]).all()


OTHERWISE = """[args.hits]
shape = ["n"]
kind = {values = [0, 1, 7]}
box = {low = -1, high = 1}
"box.hi.y" = {low = 2, high = 3}
w = {low = [0, 5], high = 9}
[args.state]
role = "inout"
shape = ["n"]
[args."state.count"]
low = 0
high = 100
sorted = true
[args."state.x"]
low = -10
high = 10
[args.res]
role = "out"
shape = ["n"]
"""


def test_another_spelling_says_the_same() -> None:
    assert load(OTHERWISE).args == load().args


def test_what_is_shown_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(text_of())
    contract = load_kernel(path).contract
    path.write_text(with_block(text_of(), contract))
    assert load_kernel(path).contract.args == contract.args


@pytest.mark.parametrize(
    ("old", "new", "what", "told", "line"),
    [
        ("kind = {", "kin = {", "the contract names the member hits.kin", "kind", 5),
        ('shape = ["n"], kind', 'shape = ["n"], low = 0, kind', "hits has the key 'low'", "a table for a member", 5),
        ('hits = {shape = ["n"], ', "hits = {", "the buffer hits has no shape", 'shape = ["n"]', 5),
        ("x = {low = -10", "x = {lo = -10", "names the member state.x.lo", "count", 7),
        ("x = {low = -10", "x = {low = [-10, 3]", "low is [-10, 3]", "one low", 7),
        ("x = {low = -10, high = 10}", "x = {low = 10, high = 1}", "go from 10 to 1", "low at most high", 7),
        ("values = [0, 1, 7]", "values = [0, 1, 700]", "have 700", "-128 to 127", 5),
        ('res = {role = "out", shape = ["n"]}', 'res = {role = "out", shape = ["n"], n = {low = 0}}',
         "is out, and says", "inout", 8),
    ],
)  # fmt: skip
def test_mistakes_are_told_where_they_stand(old: str, new: str, what: str, told: str, line: int) -> None:
    assert old in ARGS
    with pytest.raises(ContractError) as fault:
        load(ARGS.replace(old, new))
    assert what in fault.value.what
    assert told in (fault.value.expected or "") + (fault.value.fix or "")
    assert fault.value.where == f"k.cu:{line}"


@pytest.mark.parametrize(
    ("member", "why"),
    [("float *p;", "it holds pointers"), ("union { int a; float b; } u;", ""), ("int a : 3;", "")],
)
def test_what_cannot_be_said_is_told(member: str, why: str) -> None:
    with pytest.raises(ContractError, match="which fsr cannot make values of") as fault:
        load(types=TYPES.replace("unsigned char count;", f"unsigned char count; {member}"))
    assert "the argument state" in fault.value.what
    assert why in fault.value.what


def test_a_dtype_says_what_else_they_are_read_as() -> None:
    contract = load(ARGS.replace(ARGS.split("\n")[3], 'state = {role = "inout", shape = ["n", 4], dtype = "int32"}'))
    assert contract.argument("state").layout is None
    assert contract.argument("state").dtype == "int32"


def test_of_one_type_lists_say_it() -> None:
    args = 'p = {shape = ["n", 2], x = {low = 0}}\ny = {role = "out", shape = ["n"]}\n'
    body = "__global__ void k(const P2 *p, float *y, int n) { y[0] = p[0].x; }\n"
    with pytest.raises(ContractError, match="says something of 'x', and its elements") as fault:
        load("[args]\n" + args, "struct P2 { float x, y; };\n", body)
    assert "low = [...]" in (fault.value.fix or "")


def test_no_memory_is_shared() -> None:
    args = 'aliasing = [["state", "res"]]\n'
    with pytest.raises(ContractError, match="whose elements are structures"):
        load_contract(KernelFile.from_text(text_of(top=args), "k.cu"))


def test_nothing_is_drawn_in_parts() -> None:
    assert not far_cases(load(), 0)


def written(tmp_path: Path, candidate: str, text: str) -> str:
    (tmp_path / "kernel.cu").write_text(text)
    (tmp_path / "candidate.cu").write_text(candidate)
    return judge(tmp_path / "candidate.cu", RefineOptions(tmp_path / "kernel.cu", "host"), timed=False).status


def changed(old: str, new: str) -> str:
    assert old in BODY
    return TYPES + BODY.replace(old, new)


@pytest.mark.parametrize(
    ("candidate", "status"),
    [
        (changed("res[i] = r;", "res[i].area = r.area; res[i].n = r.n; res[i].tag = r.tag;"), "passed"),
        (changed("Res r;", "Res r; ((int *)&r)[2] = 0x7a7a7a7a + i;"), "passed"),  # between members
        (changed("h.kind == 7", "h.kind >= 7"), "passed"),
        (changed("* 0.5 +", "/ 2.0 +"), "passed"),
        (changed("h.kind == 7", "h.kind >= 1"), "failed"),
        (changed("r.area = ", "r.area = 1.0001f * "), "failed"),
        (changed("state[i].x * 0.5", "(float)state[i].x * 0.5"), "failed"),
        (changed("state[i].count += 1;", "state[i].count += state[i].count < 100;"), "failed"),
        (changed("h.w[0] - h.w[1]", "h.w[0] - (h.w[1] & 7)"), "failed"),
        (changed("res[i] = r;", "res[i].area = r.area; res[i].n = r.n;"), "failed"),
    ],
)
def test_results_are_compared_member_by_member(tmp_path: Path, candidate: str, status: str) -> None:
    assert written(tmp_path, candidate, text_of()) == status


def test_a_kernel_of_structures_passes_its_own_tests(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(text_of())
    assert judge_own(RefineOptions(tmp_path / "kernel.cu", "host")).status == "passed"


def test_the_compiler_is_asked_whether_members_lie_there(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(text_of())
    kernel = load_kernel(tmp_path / "kernel.cu")
    text = with_layouts_asserted(kernel.baseline, kernel.contract).source
    assert "static_assert(sizeof(const Hit) == 24 && alignof(const Hit) == 4" in text
    assert "__builtin_offsetof(const Hit, box.hi.y) == 16" in text
    assert text.count("\n") == kernel.baseline.source.count("\n")
    (tmp_path / "kernel.cu").write_text(text_of(types="#define short int\n" + TYPES))
    with pytest.raises(BaselineError, match="another layout"):
        judge_own(RefineOptions(tmp_path / "kernel.cu", "host"))


def test_a_reference_has_members_by_name(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(
        "def f(hits, state, n):\n"
        "    x = state['x'] * 0.5 + hits['box.lo.x']\n"
        "    on = hits['kind'] != 0\n"
        "    area = (hits['box.hi.x'] - hits['box.lo.x']) * (hits['box.hi.y'] - hits['box.lo.y'])\n"
        "    n = hits['w[0]'].astype(int) - hits['w[1]'] + state['count']\n"
        "    tag = [120 if k == 7 else 111 for k in hits['kind']]\n"
        "    return {'state.x': on * x + ~on * state['x'], 'state.count': state['count'] + on, 'res.area': area,\n"
        "            'res.n': n, 'res.tag': tag}\n"
    )
    (tmp_path / "kernel.cu").write_text(text_of(top='reference = "r.py:f"\n'))
    contract = load_kernel(tmp_path / "kernel.cu").contract
    found = reference_outputs(contract, CASE, build(contract, CASE), tmp_path)
    assert set(found) == {"state.count", "state.x", "res.area", "res.n", "res.tag"}
    assert judge_own(RefineOptions(tmp_path / "kernel.cu", "host")).status == "passed"


def test_a_function_of_inputs_makes_members(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import numpy as np\ndef f(n, rng):\n    kind = rng.choice([0, 7], n)\n"
        "    return {'hits.kind': kind, 'state.count': np.arange(n) % 101 // 101, 'hits.w[0]': kind}\n"
    )
    text = text_of(top='inputs = "m.py:f"\n').replace("w = {low = [0, 5], high = 9}", "w = {high = 9}")
    (tmp_path / "kernel.cu").write_text(text)
    contract = load_kernel(tmp_path / "kernel.cu").contract
    data = build(contract, replace(CASE, kind=CaseKind.HELD_OUT))
    assert data.made == {"hits.kind", "state.count", "hits.w[0]"}
    values = data.apart().arrays
    assert (values["hits.kind"] == values["hits.w[0]"]).all()
    found = judge_own(RefineOptions(tmp_path / "kernel.cu", "host"))
    assert found.status == "passed"
    assert any("hits.kind, state.count, hits.w[0]: tests have what m.py:f makes" in note for note in found.notes)


def test_a_launcher_takes_them_as_the_original_does(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(text_of())
    kernel = load_kernel(tmp_path / "k.cu")
    launch = replace(kernel.contract.plan.launches[0], grid=("ceil_div(n, 128)", "1", "1"), block=("128", "1", "1"))
    plan = replace(kernel.contract.plan, launches=(launch,))
    text = render_files(kernel, replace(kernel.baseline, plan=plan), {}, "best")["best.cuh"]
    assert "fsr_launch_step(const Hit *hits, State *state, Res *res, int n, cudaStream_t stream)" in text
