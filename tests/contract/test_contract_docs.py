"""docs/contract.md: its block is a contract, and it names every key of the format."""

import re
from pathlib import Path

from fsr.contract.arguments import ARG_KEYS
from fsr.contract.build import TOP_KEYS
from fsr.contract.load import load_contract
from fsr.source.file import KernelFile

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()


def test_the_example_is_a_contract():
    (example,) = re.findall(r"```c\+\+\n(.*?)```", PAGE, re.DOTALL)
    contract = load_contract(KernelFile.from_text(example.rstrip() + " { }\n"))
    assert contract.entry == "softmax"
    assert [a.value for a in contract.args] == [None, None, "rows", "cols"]


def test_every_key_is_documented():
    for key in (*TOP_KEYS, *ARG_KEYS, "symbol"):
        assert re.search(rf"[`\[]{key}\b", PAGE), key


def test_the_plan_of_the_page_is_a_plan(tmp_path):
    *_, plan = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "k.cu"
    path.write_text(
        "__global__ void partial_sums(const float *x, float *partial, int n) {}\n"
        "__global__ void finish(const float *partial, float *total, int count, float scale) {}\n"
    )
    head = 'sizes.n = 1000\n[args]\nx = {shape = ["n"]}\ntotal = {role = "out", shape = 1}\nn = {value = "n"}\n'
    (tmp_path / "k.fsr.toml").write_text(head + plan)
    assert [launch.entry for launch in load_contract(path).plan.launches] == ["partial_sums", "finish"]


def test_the_structure_of_the_page_is_described(tmp_path):
    args, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    declared = re.search(r"`(struct Grid \{.*?\};)`", PAGE)
    head = re.search(r"`(__global__ void k\(Grid .*?\))`", PAGE)
    assert declared is not None
    assert head is not None
    body = "{ g.out[g.ny] = g.in[g.nx] * g.w[0] * g.w[2] + shift.y; }"
    path = tmp_path / "k.cu"
    path.write_text(f"{declared[1]}\n{head[1]} {body}\n")
    (tmp_path / "k.fsr.toml").write_text(f"sizes.nx = 4\nsizes.ny = 2\n{args}[launch]\ngrid = 1\nblock = 1\n")
    told = {a.member: a.value for a in load_contract(path).args}
    assert told == {
        "g.nx": "nx",
        "g.ny": "ny",
        "g.in": None,
        "g.out": None,
        "g.w[0]": "1",
        "g.w[2]": "3",
        "shift.y": None,
    }


def test_the_buffer_of_structures_of_the_page_is_described(tmp_path):
    _, args, _ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    declared = re.search(r"`(struct Pair \{.*?\};)`", PAGE)
    assert declared is not None
    path = tmp_path / "k.cu"
    path.write_text(f"{declared[1]}\n__global__ void gradient(const Pair *pairs, double *out) {{ }}\n")
    out = '[args.out]\nrole = "out"\nshape = ["n"]\n'
    (tmp_path / "k.fsr.toml").write_text(f"sizes.n = 4\nsizes.pairs = 9\n{args}{out}[launch]\ngrid = 1\nblock = 1\n")
    layout = load_contract(path).argument("pairs").layout
    assert layout is not None
    assert [(f.path, f.constraints.low) for f in layout.fields][2:] == [
        ("d[0]", "-1"), ("d[1]", "-1"), ("d[2]", "-2"), ("weight", "0.0"),
    ]  # fmt: skip
