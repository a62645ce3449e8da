"""Vectors at addresses that are no multiples of their size: a fault here as on a GPU, and on whole copies too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.protocol import DeviceFault
from fsr.records import FaultKind

COPY = """__global__ void k(const float *x, float *out) {{
  {type} v = *reinterpret_cast<const {type} *>(x + threadIdx.x);
  *reinterpret_cast<{type} *>(out) = v;
}}"""
BYTES = """struct P { int a[4]; };
__constant__ float4 table[2] = {1, 2, 3, 4, 5, 6, 7, 8};
__global__ void k(const float *x, float *out) {
  float4 v = reinterpret_cast<const float4 *>(x)[0];
  P p = __builtin_bit_cast(P, v);
  auto [a, b, c, d] = v;
  out[0] = d + table[1].w + p.a[0] * 0;
}"""


@pytest.mark.parametrize("compiler", [find_compiler().path, "g++"])
@pytest.mark.parametrize("name", ["float2", "float4", "int4", "double2"])
def test_a_whole_vector_copied_from_between_two_is_a_fault(run: Callable[..., Any], name: str, compiler: str) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    source = COPY.format(type=name)
    got = run(source, "k", 1, 1, compiler=compiler, x=x, out=out.copy())["out"]
    assert np.array_equal(got[:2], x[:2])
    with pytest.raises(DeviceFault) as stopped:
        run(source, "k", 1, 2, compiler=compiler, x=x, out=out)
    # g++ may load before it looks, by an instruction that stops as well
    assert stopped.value.fault.kind in (FaultKind.MISALIGNED, FaultKind.OUT_OF_BOUNDS)
    assert stopped.value.fault.line in (2, 3)


@pytest.mark.parametrize("compiler", [find_compiler().path, "g++"])
def test_units_that_take_vectors_for_bytes_still_compile(run: Callable[..., Any], compiler: str) -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(1, np.float32)
    assert run(BYTES, "k", 1, 1, compiler=compiler, x=x, out=out)["out"][0] == 11
