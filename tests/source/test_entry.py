"""Entries that name macros: what they stand for, and what is said of words that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.app.checking import judge
from fsr.contract.load import load_contract
from fsr.errors import BaselineError
from fsr.runs.options import RefineOptions
from fsr.source.file import KernelFile

GOOD = """entry = "k"
[sizes]
n = {min = 0, max = 1000, timed = [100, 1000]}
[args]
x = {shape = ["n"]}
y = {role = "out", shape = ["n"]}
a = {low = -1, high = 1.5}
[launch]
grid = "ceil_div(n, 128)"
block = 128
"""
SIZED = """
#define TPB 256
#define HALF (TPB / 2)
#define REAL float
#define TWICE(n) ((n) * 2)
namespace of { template <typename T, int B> __global__ void k(const T *x, T *y, int n, float a)
{
    int i = blockIdx.x * B + threadIdx.x;
    if (i < n) y[i] = a * x[i];
} }
"""


def block(toml: str, kernel: str) -> KernelFile:
    """A kernel file with this contract."""
    lines = "".join(f"// {line}".rstrip() + "\n" for line in toml.rstrip("\n").split("\n"))
    return KernelFile.from_text(f"// /// fsr\n{lines}// ///\n{kernel}", "dir/k.cu")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("k<float, TPB>", "of::k<float, 256>"),
        ("of::k<float, HALF>", "of::k<float, 128>"),
        ("k<REAL, 2 * TPB>", "of::k<float, 2 * 256>"),
        ("k<REAL, TWICE(TPB)>", "of::k<float, ((256) * 2)>"),
        ("k<float, OTHER>", "of::k<float, OTHER>"),
    ],
)
def test_macros_in_an_entry_are_written_out(entry, told):
    contract = load_contract(block(GOOD.replace('"k"', f'"{entry}"'), SIZED))
    assert contract.entry == told
    assert contract.plan.entries == (told,)
    assert contract.argument("x").dtype == "float32"
    one = load_contract(block(GOOD.replace('"k"', f'"{told}"'), SIZED))
    assert one.plan == contract.plan
    named = GOOD.replace("[launch]", "[[launch]]").replace("block = 128", f'block = 128\nentry = "{entry}"')
    assert load_contract(block(named.replace('"k"', '"of::k<float, 8>"'), SIZED)).plan.entries == (told,)


def test_macros_in_an_entry_have_the_meaning_that_is_given():
    text = SIZED.replace("#define TPB 256", "#ifndef TPB\n#define TPB 256\n#endif")
    stated = GOOD.replace('"k"', '"k<float, TPB>"\ndefines = ["TPB=64"]')
    assert load_contract(block(stated, text)).entry == "of::k<float, 64>"
    twice = SIZED.replace("#define TPB 256", "#ifdef WIDE\n#define TPB 256\n#else\n#define TPB 128\n#endif")
    assert load_contract(block(GOOD.replace('"k"', '"k<float, TPB>"'), twice)).entry in (
        "of::k<float, 128>",
        "of::k<float, TPB>",
    )


def test_macros_of_the_launch_that_is_inferred_are_written_out():
    host = (
        "void run(float *x, float *y, int n, float a) { of::k<float, TPB><<<(n + TPB - 1) / TPB, TPB>>>(x, y, n, a); }"
    )
    assert load_contract(KernelFile.from_text(SIZED + host, "k.cu")).entry == "of::k<float, 256>"


@pytest.mark.parametrize(("arguments", "word"), [("float, WIDTH", "WIDTH"), ("Real, 128", "Real"), ("float, n", "n")])
def test_a_word_that_the_file_does_not_declare_is_told(tmp_path: Path, arguments, word):
    path = tmp_path / "k.cu"
    text = SIZED + "int main() { const int WIDTH = 128; typedef float Real; }\n"
    path.write_text(
        block(
            GOOD.replace('"k"', f'"k<{arguments}>"')
            .replace("= {shape", '= {dtype = "float32", shape')
            .replace("= {role", '= {dtype = "float32", role'),
            text,
        ).text
    )
    with pytest.raises(BaselineError) as caught:
        judge(path, RefineOptions(path, device="host"), timed=False)
    assert f"{word} in the entry 'of::k<{arguments}>' is nothing that kernels see" in str(caught.value)
    assert f"write in entry what {word} stands for" in str(caught.value)
