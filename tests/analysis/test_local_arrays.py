"""Which arrays of a thread are indexed by what no compiler knows."""

from __future__ import annotations

import pytest

from fsr.analysis.local_arrays import in_local_memory
from fsr.source.parse import parse_device_functions, parse_kernels

AT_RUN_TIME = {
    "by data": "for (int i = 0; i < n; i++) a[x[i]]++;",
    "by a parameter": "a[1] = x[0]; y[0] = a[n];",
    "by a thread's id": "a[threadIdx.x % 8] = 1;",
    "by a loop of run-time length": "for (int i = -n; i <= n; i++) a[c++] = x[i + n];",
    "by a loop that data ends": "int j = 7; while (j > 0 && a[j - 1] > x[0]) { a[j] = a[j - 1]; j--; }",
    "by a for loop that data ends": "for (int j = 7; j > 0 && a[j - 1] > x[0]; j--) a[j] = a[j - 1];",
    "by a count of some turns": "for (int i = 0; i < 8; i++) { if (x[i] < 0) continue; a[c++] = x[i]; }",
    "by a count under a condition": "for (int i = 0; i < 8; i++) if (x[i] > 0) { a[c] = x[i]; c += 1; }",
    "by where a loop ended": "int j; for (j = 0; j < 8; j++) if (x[j]) break; a[j] = 1;",
    "by what a function found": "find(x, &c); a[c] = 2;",
}
IN_REGISTERS = {
    "by constants": "a[1] = x[0]; y[0] = a[1];",
    "by loops of constant lengths": "for (int i = 0; i < 8; i++) a[i] = n; for (int i = 7; i >= 0; i--) y[i] = a[i];",
    "by what these count": "for (int i = -1; i < 2; i++) for (int j = 0; j < 2; j++) a[c++] = x[i + j + n];",
    "in a loop that data ends": "for (int i = 0; i < 8; i++) { if (x[i] < 0) break; a[i] = x[i]; }",
    "in a branch": "if (x[0]) { int j = 2; j += 1; for (int i = 0; i < 4; i++) a[j + i] = n; }",
    "by variables of the same names as others": """for (int i = threadIdx.x; i < n; i += 32) y[i] = 0;
        for (int i = 0; i < 4; i++) { int j = 2 * i; a[j] = x[i]; } int j = n; y[0] = a[6] + j;""",
    "beside inline assembly": """for (int i = 0; i < 4; i++) {
          int j = 2 * i;
          asm volatile("add.s32 %0, %1, %2;" : "=r"(a[j]) : "r"(x[i]), "r"(j));
          a[j + 1] = a[j];
        }""",
    "in a loop's switch": "for (int i = 0; i < 8; i++) { switch (i) { case 1: c = 3; } a[i] = c; }",
    "with others at run time": "for (int k = 0; k < n; k++) for (int i = 0; i < 8; i++) a[i] += x[k * 8 + i];",
}


def found(body: str) -> list[str]:
    text = f"__global__ void k(const int *x, int *y, int n) {{ int a[8], c = 0; {body} }}"
    return [array.name for array in in_local_memory(parse_kernels(text)["k"])]


@pytest.mark.parametrize("body", AT_RUN_TIME.values(), ids=AT_RUN_TIME)
def test_an_index_that_is_known_at_run_time_only(body: str) -> None:
    assert found(body) == ["a"]


@pytest.mark.parametrize("body", IN_REGISTERS.values(), ids=IN_REGISTERS)
def test_indices_that_are_constants_once_loops_are_unrolled(body: str) -> None:
    assert found(body) == []


def test_shared_arrays_are_nobodys_own() -> None:
    assert found("__shared__ int s[8]; s[x[0]] = 1; y[0] = s[x[1]];") == []


def test_arguments_of_a_function_may_be_constants() -> None:
    text = """__device__ int f(const int *x, int n) {
      int a[8], b[8];
      for (int i = 0; i < n; i++) { a[i] = x[i]; b[x[i]] = i; }
      return a[n - 1] + b[1];
    }"""
    assert [array.name for array in in_local_memory(parse_device_functions(text)["f"])] == ["b"]
