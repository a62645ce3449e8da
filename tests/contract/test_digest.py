"""What caches know a contract by: a contract that says nothing new keeps its digest."""

from __future__ import annotations

from pathlib import Path

from fsr.runs.kernel import load_kernel

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 4096}
// [args]
// x = {shape = ["n", 2], low = -1, high = 0.5, alignment = 8}
// at = {shape = ["n"], low = 0, high = "n - 1", sorted = true}
// count = {role = "inout", shape = [1], value = 0}
// y = {role = "out", shape = ["n"]}
// mode = {low = 0, high = 3}
// taps = {low = 0, high = 2}
// [[launch]]
// grid = "ceil_div(n, 64)"
// block = 64
// args = ["x", "at", "count", "part", "mode", "n"]
// [[launch]]
// grid = "ceil_div(n, 64)"
// block = 64
// args = ["x", "at", "count", "y", {value = "n % 4"}, "n"]
// [scratch.part]
// dtype = "float32"
// count = "n"
// ///
__constant__ float taps[3];
__global__ void k(const float2 *x, const int *at, int *count, float *y, int mode, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = mode ? x[at[i]].x * taps[mode % 3] : count[0];
}
"""
DIGEST = (
    "ec7b53065ab7a5b444c2da92cc64a2cf8ba56de1a5101fc58508078d9d55e2bf"  # of version 0.1.0 before pointers could be null
)


def test_a_contract_that_says_nothing_new_keeps_its_digest(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(TEXT)
    assert load_kernel(tmp_path / "k.cu").contract_digest() == DIGEST
