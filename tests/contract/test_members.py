"""Contracts of kernels that take structures by value: members are named, and so are mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.contract.show import contract_toml, with_block
from fsr.errors import ContractError
from fsr.records import Role
from fsr.runs.kernel import load_kernel
from fsr.source.file import KernelFile

KERNEL = """struct Grid { int nx; int ny; float scale; float w[3]; const float *in; float *out; void *user; };
__global__ void k(Grid g, float3 shift)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i < g.nx && j < g.ny) g.out[j * g.nx + i] = g.scale * g.in[j * g.nx + i] + g.w[1] * shift.y + shift.z;
}
"""
SIZES = "[sizes]\nnx = {min = 1, max = 1000, timed = 512}\nny = {min = 1, max = 100, timed = 64}\n"
ARGS = """[args]
g.scale = {low = 0, high = 2}
g.w = {value = [1, 2, 3]}
g.in = {shape = ["ny", "nx"]}
g.out = {role = "out", shape = ["ny", "nx"]}
shift = {low = [-1, -2, -3], high = 3}
"""
LAUNCH = '[launch]\ngrid = ["ceil_div(nx, 128)", "ny"]\nblock = 128\n'


def load(toml: str, kernel: str = KERNEL) -> Contract:
    block = "".join(f"// {line}\n" for line in toml.splitlines())
    return load_contract(KernelFile.from_text(f"// /// fsr\n{block}// ///\n{kernel}", "k.cu"))


def test_members_have_entries_and_sizes_need_none() -> None:
    contract = load(SIZES + ARGS + LAUNCH)
    assert [(a.member, a.name) for a in contract.args] == [
        ("g.nx", "g_nx"), ("g.ny", "g_ny"), ("g.scale", "g_scale"), ("g.w[1]", "g_w_1"), ("g.in", "g_in"),
        ("g.out", "g_out"), ("shift.y", "shift_y"), ("shift.z", "shift_z"),
    ]  # fmt: skip
    told = {a.member: a for a in contract.args}
    assert (told["g.nx"].value, told["g.w[1]"].value) == ("nx", "2")
    assert (told["g.in"].role, told["g.out"].role) == (Role.IN, Role.OUT)
    assert (told["shift.y"].constraints.low, told["shift.z"].constraints.high) == ("-2", "3")
    assert contract.plan.launches[0].args == tuple(a.name for a in contract.args)


@pytest.mark.parametrize(
    "args",
    [
        '[args.g]\nscale = {low = 0, high = 2}\nw = {value = 2}\nin = {shape = ["ny", "nx"]}\n'
        'out = {role = "out", shape = ["ny", "nx"]}\n'
        "[args.shift]\ny = {low = -2, high = 3}\nz = {low = -3, high = 3}\n",
        '[args]\n"g.scale" = {low = 0, high = 2}\n"g.w[1]" = {value = 2}\n"g.in" = {shape = ["ny", "nx"]}\n'
        '"g.out" = {role = "out", shape = ["ny", "nx"]}\n"shift.y" = {low = -2, high = 3}\n'
        '"shift.z" = {low = -3, high = 3}\ng.nx = {value = "nx"}\ng.user = {null = true}\n',
    ],
)
def test_other_spellings_say_the_same(args: str) -> None:
    assert load(SIZES + args + LAUNCH).args == load(SIZES + ARGS + LAUNCH).args


def test_what_is_shown_says_the_same() -> None:
    contract = load(SIZES + ARGS + LAUNCH)
    shown = load_contract(KernelFile.from_text(with_block(KERNEL, contract), "k.cu"))
    assert (shown.args, shown.plan, shown.structures) == (contract.args, contract.plan, contract.structures)
    assert 'g.out    = {dtype = "float32", role = "out"' in contract_toml(contract)


def test_nothing_is_needed_where_the_code_says_it(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "struct P { int n; float a; const float *x; float *y; };\n"
        "__global__ void k(P p)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < p.n) p.y[i] = p.a * p.x[i];\n}\n"
    )
    contract = load_contract(tmp_path / "k.cu")
    assert {a.member: a.shape for a in contract.buffers()} == {"p.x": ("p_n",), "p.y": ("p_n",)}
    assert 'p.y = {dtype = "float32", role = "out", shape = ["p_n"]}' in contract_toml(contract)


def test_a_draft_lists_the_members() -> None:
    with pytest.raises(ContractError, match="the code leaves open") as told:
        load_contract(KernelFile.from_text("struct P { int q; float *y; };\n"
                                           "__global__ void k(P p) { p.y[threadIdx.x] = p.q; }\n"))  # fmt: skip
    assert 'p.q = {value = "?"}' in told.value.expected


def test_a_structure_of_which_nothing_is_used_needs_no_entry() -> None:
    kernel = "struct Box { float *h; int n; };\n__global__ void k(Box box, float *y) { y[threadIdx.x] = 1; }\n"
    args = '[args]\ny = {role = "out", shape = ["m"]}\n'
    contract = load(f"[sizes]\nm = 8\n{args}[launch]\ngrid = 1\nblock = 8\n", kernel)
    assert (contract.args[0].member, contract.args[0].constraints.high) == ("box.n", "2 ** 31 - 1")


PLAN = """struct P { int n; float *x; float *y; int m; };
__global__ void a(P p) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < p.n) p.y[i] = 2 * p.x[i]; }
__global__ void b(int step, P q) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < q.m) q.y[i] += step; }
"""
TWO = """[sizes]
n = {min = 1, max = 1000, timed = 512}
[args]
s.x = {role = "in", shape = ["n"]}
s.y = {role = "out", shape = ["n"]}
s.m = {value = "n"}
[[launch]]
entry = "a"
grid = "ceil_div(n, 128)"
block = 128
args = ["s"]
[[launch]]
entry = "b"
grid = "ceil_div(n, 128)"
block = 128
args = [3, "s"]
"""


def test_launches_of_a_plan_pass_structures() -> None:
    contract = load(TWO, PLAN)
    first, second = contract.plan.launches
    assert first.args == ("s_n", "s_x", "s_y")
    assert second.args[1:] == ("s_y", "s_m")
    assert {a.name: a.value for a in contract.args if a.role is Role.SCALAR} == {"s_n": "n", "s_m": "n"}
    toml = contract_toml(contract)
    assert 'args = ["s"]' in toml
    assert 'args = [{dtype = "int32", value = 3}, "s"]' in toml
    assert load(toml, PLAN).plan == contract.plan


@pytest.mark.parametrize(
    ("old", "new", "says", "line"),
    [
        ("g.scale", "g.skale", r"names the member g.skale, which Grid does not have", 6),
        ("g.w =", "g.w.x =", r"names the member g.w.x, which Grid", 7),
        ("g.scale = {low = 0, high = 2}\n", "", r"says nothing of the argument 'g.scale' \(float\)", 5),
        ("g.in = {shape", 'g.in = {role = "out", shape', r"g.in is a pointer to const and has the role 'out'", 8),
        ("g.scale = {low = 0", "g.scale = {shape = 3, low = 0", "scalar g.scale has a shape", 6),
        ('g.out = {role = "out",', "g.out = {", r"the role of g.out \(float\*\) is not stated", 9),
        ("shift = {low = [-1, -2, -3], high = 3}", "shift = 3", "args.shift is 3", 10),
        ("shift = {low", "shift = {lov", "names the member shift.lov", 10),
    ],
)
def test_mistakes_are_told_where_they_stand(old: str, new: str, says: str, line: int) -> None:
    toml = SIZES + ARGS + LAUNCH
    assert old in toml
    with pytest.raises(ContractError, match=says) as told:
        load(toml.replace(old, new, 1))
    assert told.value.where == f"k.cu:{line}"
    assert "g_" not in str(told.value)


def test_a_member_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(ContractError) as told:
        load((SIZES + ARGS + LAUNCH).replace("g.scale", "g.skale"))
    assert told.value.expected == "one of: nx, ny, scale, w, in, out, user"
    assert told.value.fix == "did you mean 'scale'?"


@pytest.mark.parametrize(
    ("declared", "says", "fix"),
    [
        ("union Grid { int nx; float *out; };", "Grid is a union", "put a kernel beside it"),
        ("struct Grid { int nx : 4; float *out; };", "Grid has bit-fields", "put a kernel beside it"),
        ("", "declared in no file that fsr has read", "name the folder of the header that declares it with -I"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(declared: str, says: str, fix: str) -> None:
    kernel = declared + "\n__global__ void k(Grid g) { g.out[0] = g.nx; }\n"
    toml = "[sizes]\nnx = 3\n[args]\ng.nx = {value = 3}\n[launch]\ngrid = 1\nblock = 1\n"
    with pytest.raises(ContractError, match=says) as told:
        load(toml, kernel)
    assert fix in told.value.fix


def test_digests_ask_for_the_same_winner(tmp_path: Path) -> None:
    """How members are written does not count, nor what fsr calls their parameters."""
    found = set()
    for name, args in (("a", ARGS), ("b", ARGS.replace("g.scale", '"g.scale"'))):
        path = tmp_path / f"{name}.cu"
        path.write_text(KERNEL)
        (tmp_path / f"{name}.fsr.toml").write_text(SIZES + args + LAUNCH)
        found.add(load_kernel(path).contract_digest())
    assert len(found) == 1
