"""Vector casts of pointers that nobody promised to be aligned are found in the text; careful ones are let be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.guard.alignment import unpromised_alignment
from fsr.records import Candidate, Fault

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
HEAD = "__global__ void saxpy(int n, float a, const float *__restrict__ x, float *y) {{ int i = threadIdx.x; {} }}"


def judge(body: str, promised: int = 0, base: str = "") -> Fault | None:
    contract = load_contract(EXAMPLE)
    args = tuple(replace(a, alignment=promised) for a in contract.args)
    baseline = Candidate(base or EXAMPLE.read_text(), contract.plan)
    return unpromised_alignment(Candidate(HEAD.format(body), contract.plan), baseline, replace(contract, args=args))


@pytest.mark.parametrize(
    "body",
    [
        "float4 v = reinterpret_cast<const float4 *>(x)[i];",
        "float2 v = ((const float2 *)x)[i];",
        "*(float4*)(y + 4 * i) = v;",
        "int4 v = reinterpret_cast<int4 *>(&y[4 * i])[0];",
    ],
)
def test_careless_casts_are_found(body: str) -> None:
    fault = judge(body)
    assert fault is not None
    assert fault.kind == "misaligned"
    assert "callers promise 4" in fault.detail
    assert fault.line == 1


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = a * x[i];",
        "if ((size_t)x % 16 == 0) { float4 v = reinterpret_cast<const float4 *>(x)[i]; }",
        "if (reinterpret_cast<uintptr_t>(x) % 16 == 0) { float4 v = ((const float4 *)x)[i]; }",
        "if (fsr_aligned<16>(x)) { float4 v = ((const float4 *)x)[i]; }",
        "__shared__ float s[64]; float4 v = reinterpret_cast<float4 *>(s)[i];",
        "float b = (float)i * (n);",
    ],
)
def test_careful_ones_are_let_be(body: str) -> None:
    assert judge(body) is None


def test_what_the_contract_promises_may_be_used() -> None:
    assert judge("float4 v = ((const float4 *)x)[i];", promised=16) is None
    assert judge("float4 v = ((const float4 *)x)[i];", promised=8) is not None
    assert judge("float2 v = ((const float2 *)x)[i];", promised=8) is None


def test_what_the_original_does_its_callers_allow() -> None:
    body = "float4 v = ((const float4 *)x)[i];"
    assert judge(body, base=HEAD.format(body)) is None
