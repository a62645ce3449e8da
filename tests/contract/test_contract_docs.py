"""docs/contract.md: its block is a contract, and it names every key of the format."""

import re
from pathlib import Path

import numpy as np
import pytest

from fsr.contract.arguments import ARG_KEYS
from fsr.contract.build import TOP_KEYS
from fsr.contract.load import load_contract
from fsr.source.file import KernelFile
from fsr.testgen.cases import new_case
from fsr.testgen.compare import tolerance
from fsr.testgen.values import build

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


HEAD = """[sizes]
n = {min = 1, max = 64, timed = [64, 32]}
m = {min = 1, max = 8, timed = [2, 4]}
skip = {min = 0, max = 1, timed = [1, 0]}
shift = {min = 1, max = 4, timed = 3}
[args]
order = {shape = ["n", "m"], low = 0, high = "n * m - 1", unique = true}
params = {shape = ["n", 2], low = [10, 0], high = [90, 3.14]}
y = {role = "out", shape = ["n"]}
skip_self = {value = "skip"}
max_shift = {shape = [1], value = "shift"}
g.mode = {values = [0, 2]}
[launch]
grid = 1
block = 64
[tolerance]
rtol = 1e-5
sum_length = "n"
"""
SAID = """typedef long long int64_t;
enum class Mode { A, B, C };
struct G { Mode mode; float unused; };
struct Params { float k, theta; };
namespace { namespace inner {
__global__ void k(const int64_t *order, const Params *params, float *y, int skip_self, const int *max_shift, G g,
                  int n) {
    if (threadIdx.x < n && !skip_self && g.mode != Mode::B) y[threadIdx.x] = params[order[0]].k + *max_shift;
}
} }
"""


@pytest.mark.parametrize("entry", ["k", "inner::k"])
def test_what_the_page_says_of_sizes_values_and_names_is_taken(entry, tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SAID)
    (tmp_path / "k.fsr.toml").write_text(f'entry = "{entry}"\n{HEAD}')
    contract = load_contract(path)
    timed = contract.timed_sizes()
    assert timed == [{"n": 64, "m": 2, "skip": 1, "shift": 3}, {"n": 32, "m": 4, "skip": 0, "shift": 3}]  # by position
    data = [build(contract, new_case("t", sizes, "normal", np.random.default_rng(5))) for sizes in timed]
    assert [int(one.scalars["skip_self"].value) for one in data] == [1, 0]
    assert [one.arrays["max_shift"].tolist() for one in data] == [[3], [3]]
    for one, sizes in zip(data, timed, strict=True):  # a permutation over both extents
        assert sorted(one.arrays["order"].reshape(-1).tolist()) == list(range(sizes["n"] * sizes["m"]))
        k, theta = one.arrays["params"].T
        assert k.min() >= 10
        assert theta.max() <= 3.14001
    mode = next(a for a in contract.args if a.member == "g.mode")
    assert mode.constraints.values == (0, 2)
    relative, _ = tolerance(contract, new_case("t", timed[0], "normal", np.random.default_rng(5)), np.dtype(np.float32))
    assert relative == 1e-5  # whatever the number of terms
