"""Kernels that read by wider types than their elements: which alignment their contract lacks."""

from __future__ import annotations

import pytest

from fsr.app.checking import judge
from fsr.errors import BaselineError
from fsr.evaluation.alignments import lacking
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions

PAIRS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// x = {role = "in", shape = ["4 * n"]PROMISED}
// y = {role = "out", shape = ["4 * n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
struct __align__(16) Four { float a, b, c, d; };
typedef float2 Pair;
__global__ void k(float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
    y[4 * i] = v.x; y[4 * i + 1] = v.y; y[4 * i + 2] = 0; y[4 * i + 3] = 0;
}
"""
READ = "float2 v = reinterpret_cast<const float2 *>(x)[2 * i];"


def kernel_file(folder, body: str = READ, promised: str = ""):
    path = folder / "k.cu"
    path.write_text(PAIRS.replace("BODY", body).replace("PROMISED", promised))
    return path


@pytest.mark.parametrize(
    ("body", "promised", "told"),
    [
        (READ, "", {"x": 8}),
        (READ, ", alignment = 4", {"x": 8}),
        (READ, ", alignment = 8", {}),
        ("const float *row = x + 4 * i; Pair v = *(Pair *)row;", "", {"x": 8}),
        ("auto v = *(const float4 *)&x[4 * i]; *(float2 *)(y + 4 * i) = {0, 0};", "", {"x": 16, "y": 8}),
        ("auto *f = (Four *)x + i; float2 v = {f->a, f->b};", "", {"x": 16}),
        ("float3 v = ((float3 *)x)[i];", "", {}),
        ("float2 v = {x[i], ((unsigned char *)x)[i] + (float)*(int *)x};", "", {}),
        ("double2 v = {((double *)x)[i], 0};", "", {"x": 8}),
    ],
)
def test_what_the_contract_does_not_promise(tmp_path, body, promised, told):
    kernel = load_kernel(kernel_file(tmp_path, body, promised))
    assert lacking(kernel.baseline, kernel.contract) == told


def test_the_message_names_it_and_it_is_the_cure(tmp_path):
    path = kernel_file(tmp_path)
    with pytest.raises(BaselineError, match="misaligned") as caught:
        judge(path, RefineOptions(path, device="host"), timed=False)
    assert "write alignment = 8 for x in its contract" in str(caught.value)
    kernel_file(tmp_path, promised=", alignment = 8")
    assert judge(path, RefineOptions(path, device="host"), timed=False).status == "passed"


def test_nothing_is_told_of_pointers_that_are_promised_enough(tmp_path):
    path = kernel_file(tmp_path, READ.replace("(x)", "(x + 1)"), ", alignment = 16")
    with pytest.raises(BaselineError, match="misaligned") as caught:
        judge(path, RefineOptions(path, device="host"), timed=False)
    assert "alignment =" not in str(caught.value)
