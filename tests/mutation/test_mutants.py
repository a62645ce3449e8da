"""Planted faults: one slip each, in code only, told by what and where, the same for a seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.mutation.mutants import Mutant, mutants, sampled
from fsr.records import Candidate, Launch, Plan, Scratch
from fsr.runs.kernel import load_kernel
from fsr.source.tokens import tokenize

EXAMPLES = Path(__file__).parents[2] / "examples"

SUM = """// for (i < n) in a comment, with an é
#include <cuda_fp16.h>
__device__ float half_of(float a) { return a < 1.0f ? a : 2.0f; }
__global__ void total(const float *x, float *y, int n, int m)
{
    __shared__ volatile float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int j = i; j < n && j < m; j += blockDim.x * gridDim.x) {
        float v = x[j];
        sum += 0.5f * half_of(v);
    }
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int o = blockDim.x / 2; o > 0; o /= 2) {
        if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
        __syncthreads();
    }
    __threadfence();
    if (!(threadIdx.x == 0)) return;
    atomicAdd(y, fmaxf(s[0], -INFINITY));
    y[1] = s[0];
}
"""
PLAN = Plan(
    (Launch("total", ("ceil_div(n, 256)", "1", "1"), ("256", "1", "1"), "0", ("x", "y", "n", "m")),),
    (Scratch("t", "float32", "n", zeroed=True),),
)
CANDIDATE = Candidate(SUM, PLAN)


@pytest.fixture(scope="module")
def found() -> list[Mutant]:
    return mutants(CANDIDATE)


def changed(mutant: Mutant) -> list[str]:
    before = SUM.splitlines()
    return [line.strip() for line in mutant.candidate.source.splitlines() if line not in before]


def test_no_two_are_the_same_text_but_for_blanks(found: list[Mutant]) -> None:
    """A generous pool with repeats in it, of statements that stand twice."""
    twice = SUM.replace("    y[1] = s[0];", "    y[1] = s[0];\n    y[1]  = s[0];  // once more")
    for mutated, source in ((found, SUM), (mutants(Candidate(twice, PLAN)), twice)):
        texts = [tuple(t.text for t in tokenize(m.candidate.source)) for m in mutated if m.line]
        assert len(texts) == len(set(texts)) > 100
        assert tuple(t.text for t in tokenize(source)) not in texts


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        ("relation-loosened", "if (threadIdx.x <= o) s[threadIdx.x] += s[threadIdx.x + o];"),
        ("relation-reversed", "for (int o = blockDim.x / 2; o < 0; o /= 2) {"),
        ("bound-short", "for (int j = i; j < n - 1 && j < m; j += blockDim.x * gridDim.x) {"),
        ("condition-true", "if (true) s[threadIdx.x] += s[threadIdx.x + o];"),
        ("condition-left-only", "for (int j = i; j < n || 0 && j < m; j += blockDim.x * gridDim.x) {"),
        ("choice-second", "__device__ float half_of(float a) { return a < 1.0f && false ? a : 2.0f; }"),
        ("negation-dropped", "if ((threadIdx.x == 0)) return;"),
        ("return-dropped", "if (!(threadIdx.x == 0)) ;"),
        ("operator-swapped", "int i = blockIdx.x + blockDim.x + threadIdx.x;"),
        ("operand-dropped", "int i = blockIdx.x * blockDim.x ;"),
        ("assignment-swapped", "sum -= 0.5f * half_of(v);"),
        ("function-swapped", "atomicAdd(y, fminf(s[0], -INFINITY));"),
        ("sign-dropped", "atomicAdd(y, fmaxf(s[0], INFINITY));"),
        ("infinity-zero", "atomicAdd(y, fmaxf(s[0], 0.0f));"),
        ("constant-nudged", "sum += (0.5f * 1.001f) * half_of(v);"),
        ("constant-more", "y[1] = s[1];"),
        ("array-short", "__shared__ volatile float s[256 - 1];"),
        ("initial-value", "float sum = 1;"),
        ("index-further", "float v = x[(j) + 1];"),
        ("thread-for-block", "int i = blockIdx.x * blockDim.x + blockIdx.x;"),
        ("block-for-grid", "int i = blockIdx.x * gridDim.x + threadIdx.x;"),
        ("factor-dropped", "for (int j = i; j < n && j < m; j += blockDim.x ) {"),
        ("stride-longer", "for (int j = i; j < n && j < m; j += (blockDim.x * gridDim.x + 1)) {"),
        ("barrier-narrowed", "__syncwarp();"),
        ("barrier-early", "__syncthreads(); s[threadIdx.x] = sum;"),
        ("fence-narrowed", "__threadfence_block();"),
        ("fence-dropped", "(void)0;"),
        ("volatile-dropped", "__shared__  float s[256];"),
        ("atomic-plain", "*(y) += fmaxf(s[0], -INFINITY);"),
        ("atomic-narrowed", "atomicAdd_block(y, fmaxf(s[0], -INFINITY));"),
        ("store-not-by-one", "if (threadIdx.x != 17) { y[1] = s[0]; }"),
        ("nan-lost", "y[1] = ((s[0]) == (s[0]) ? (s[0]) : 0.0f);"),
        ("store-in-half", "y[1] = __half2float(__float2half(s[0]));"),
        ("sum-in-half", "sum = __half2float(__float2half(sum + (0.5f * half_of(v))));"),
        ("sum-by-half", "if (threadIdx.x % 2 == 0) { sum += 0.5f * half_of(v); }"),
        ("last-block", "{ if (gridDim.x > 1 && blockIdx.x == gridDim.x - 1) return;"),
        ("size-multiple", "{ if (n % 64 == 0 && n > 0) return;"),
        ("value-one", "float v = x[j]; if (v == 1) v += 1;"),
        ("index-in-half", "int i = (int)(__half2float(__float2half((float)(blockIdx.x * blockDim.x + threadIdx.x))));"),
    ],
)
def test_each_kind_of_slip_is_planted(found: list[Mutant], operator: str, line: str) -> None:
    assert line in [text for m in found if m.operator == operator for text in changed(m)]


def test_faults_of_the_plan_are_planted(found: list[Mutant]) -> None:
    plans = {m.operator: m.candidate.plan for m in found if m.name.endswith("@plan")}
    assert plans["grid-short"].launches[0].grid[0] == "max((ceil_div(n, 256)) - 1, 1)"
    assert plans["grid-without-rest"].launches[0].grid[0] == "max(((n) // (256)), 1)"
    assert plans["arguments-swapped"].launches[0].args == ("x", "y", "m", "n")
    assert not plans["scratch-not-cleared"].scratch[0].zeroed


def test_one_repetition_too_few_is_planted() -> None:
    again = replace(PLAN, launches=(replace(PLAN.launches[0], repeat="m"),))
    plans = {m.operator: m.candidate.plan for m in mutants(replace(CANDIDATE, plan=again)) if m.name.endswith("@plan")}
    assert plans["repeat-short"].launches[0].repeat == "max((m) - 1, 0)"


def test_only_code_changes_one_place_at_a_time(found: list[Mutant]) -> None:
    for mutant in found:
        assert mutant.candidate.source.startswith(("// for (i < n) in a comment", "#include <cuda_fp16.h>"))
        assert len(changed(mutant)) <= 2
        assert (mutant.candidate.source != SUM) != (mutant.candidate.plan != PLAN)


def test_there_are_at_least_forty_kinds_and_no_two_are_alike(found: list[Mutant]) -> None:
    assert len({m.operator for m in found}) >= 60
    assert len({(m.candidate.source, m.candidate.plan) for m in found}) == len(found)


def test_a_mutant_tells_what_it_changes(found: list[Mutant]) -> None:
    (mutant,) = [m for m in found if m.operator == "sign-dropped"]
    assert mutant.name == "sign-dropped@21:30"
    assert "+    atomicAdd(y, fmaxf(s[0], INFINITY));" in mutant.diff(CANDIDATE).splitlines()


def test_a_sample_is_fair_and_the_same_for_a_seed(found: list[Mutant]) -> None:
    kinds = {m.operator for m in found}
    some = sampled(found, len(kinds), 3)
    assert {m.operator for m in some} == kinds
    assert sampled(found, len(kinds), 3) == some != sampled(found, len(kinds), 4)
    assert sampled(found, 10**6, 3) == found


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cu")), ids=lambda p: p.stem)
def test_every_example_offers_mutants(path: Path) -> None:
    found = mutants(load_kernel(path, None).baseline)
    assert len(found) >= 30
    assert len({m.operator for m in found}) >= 25
