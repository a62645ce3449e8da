"""A kernel that reads a `__constant__` mask which host code fills: candidates see the same values, and must keep it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.contract.build import build
from fsr.contract.read import read_contract
from fsr.evaluation.jobs import compile_task, evaluate_task
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, SessionSpec
from fsr.records import Candidate, Status
from fsr.runs.kernel import load_kernel
from fsr.source.file import KernelFile

TEXT = """// /// fsr
// entry = "filter"
// [sizes]
// n = {min = 0, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = 5
// ///
#define RADIUS 2
static __constant__ float mask[2 * RADIUS + 1];
__global__ void filter(const float *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = -RADIUS; j <= RADIUS; j++)
    if (i + j >= 0 && i + j < n) sum += x[i + j] * mask[j + RADIUS];
  y[i] = sum;
}
void upload(const float *given) { cudaMemcpyToSymbol(mask, given, sizeof(mask)); }
"""
SUM = "sum += x[i + j] * mask[j + RADIUS]"


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("y[i] = sum", "y[i] = 0.0f * sum", Status.WRONG, "value"),  # right only where the mask is what it was born as
        (SUM, "sum += x[i + j] * mask[RADIUS - j]", Status.WRONG, "value"),
        ("mask", "weights", Status.INVALID, "callers fill the original's, by name"),
        (
            "float sum = 0.0f;",
            "float m[5], sum = 0.0f; for (int j = 0; j < 5; j++) m[j] = mask[j];",
            Status.CORRECT,
            "",
        ),
    ],
)
def test_candidates_are_judged_with_the_values_that_callers_fill_in(old, new, status, words):
    file = KernelFile.from_text(TEXT, "k.cu")
    raw = read_contract(file.path, file.text)
    assert raw is not None
    contract = build(raw, file, None)
    source = file.cut("filter").text
    spec = SessionSpec(contract, Candidate(source, contract.plan), "host", "sm_90", seed=11, folder=".")
    candidate = Candidate(source.replace(old, new), contract.plan)
    built = compile_task(CompileRequest(spec, candidate))
    outcome = evaluate_task(EvaluateRequest(spec, candidate, built)) if isinstance(built, Binaries) else built
    assert outcome.status == status, outcome.evidence
    assert words in str(outcome.evidence)


@pytest.mark.parametrize(("new", "status"), [(SUM, Status.CORRECT), ("sum += x[i + j]", Status.WRONG)])
def test_a_device_variable_is_filled_and_the_winners_file_has_it_as_a_constant(tmp_path, new, status):
    path = tmp_path / "k.cu"
    told = "// mask = {low = 0, high = 1}\n// [launch]"
    path.write_text(TEXT.replace("static __constant__", "static __device__").replace("// [launch]", told))
    kernel = load_kernel(path)
    assert [a.symbol for a in kernel.contract.symbols()] == ["mask"]
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", seed=11, folder=".")
    candidate = replace(kernel.baseline, source=kernel.baseline.source.replace(SUM, new))
    built = compile_task(CompileRequest(spec, candidate))
    assert isinstance(built, Binaries)
    outcome = evaluate_task(EvaluateRequest(spec, candidate, built))
    assert outcome.status == status, outcome.evidence
    assert "static __constant__ float mask" in kernel.file.splice(kernel.unit, kernel.baseline.source)
