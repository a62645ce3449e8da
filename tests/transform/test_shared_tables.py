"""shared-tables: arrays of the file that threads look up are read from a copy in shared memory; others stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.guard.check import guard
from fsr.source.parse import parse_kernels
from fsr.transform.details.shared_tables import SharedTables

ACTION = SharedTables()
SIZES = [{"n": n} for n in (1, 33, 200)]
BYTES = "{" + ", ".join(str((7 * i + 3) % 256) for i in range(256)) + "}"


def kernel(table: str, work: str, more: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// [args]
// text = {{role = "in", shape = ["n"]}}
// out = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
{table}
{more}
__global__ void k(const unsigned char *text, int *out, int n)
{{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    {work}
}}
"""


CONSTANT = f"__constant__ unsigned char T[256] = {BYTES};"
LOOKED_UP = {
    "constant": (CONSTANT, "out[at] = T[text[at]];", ""),
    "of the device": (f"static __device__ const unsigned char T[256] = {BYTES};", "out[at] = T[text[at]] & T[3];", ""),
    "of two dimensions": (
        f"typedef unsigned char byte;\n__constant__ byte T[16][16] = {BYTES};",
        "out[at] = T[text[at] >> 4][text[at] & 15];",
        "",
    ),
    "in a function": (CONSTANT, "out[at] = twice(text[at]);", "__device__ int twice(int i) { return T[T[i]]; }"),
    "in a function of a function": (
        CONSTANT,
        "out[at] = more(text[at]);",
        """__device__ int once(int i) { return T[i] == 7 ? 1 : T[i & 15] << 2; }
        __device__ int more(int T2) { return once(T2) + once(T2 / 2); }""",
    ),
    "by another word": (f"#define TABLE __constant__\nTABLE short T[256] = {BYTES};", "out[at] = -T[text[at]];", ""),
}
OTHERS = {
    "one place": (CONSTANT, "out[at] = T[5] + text[at];", ""),
    "one that is written": (
        f"__device__ unsigned char T[256] = {BYTES};", "T[text[at]] = 1; out[at] = T[text[at]];", "",
    ),
    "one that is shifted": (
        f"__device__ unsigned char T[256] = {BYTES};", "T[text[at]] <<= 1; out[at] = T[text[at]];", "",
    ),
    "one that is passed on": (
        CONSTANT, "out[at] = of(T, text[at]) + T[text[at]];",
        "__device__ int of(const unsigned char *t, int i) { return t[i]; }",
    ),
    "one whose address is taken": (CONSTANT, "const unsigned char *p = &T[text[at]]; out[at] = *p;", ""),
    "a variable of its name": (
        CONSTANT, "int T[4] = {1, 2, 3, 4}; out[at] = T[text[at] & 3];", "",
    ),
    "a parameter of its name": (
        CONSTANT, "out[at] = of(text, at);", "__device__ int of(const unsigned char *T, int i) { return T[T[i]]; }",
    ),
    "a large one": ("__constant__ int T[8192] = {1, 2, 3};", "out[at] = T[text[at]];", ""),
    "records": (
        "struct Pair { int a, b; };\n__constant__ Pair T[32] = {{1, 2}, {3, 4}};", "out[at] = T[text[at] & 31].b;", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("table", "work", "more"), LOOKED_UP.values(), ids=LOOKED_UP)
def test_a_block_looks_up_its_own_copy(table: str, work: str, more: str, subject_from, runner) -> None:
    subject = subject_from(kernel(table, work, more))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert "T_shared()" in changed.source
    assert guard(changed, subject.candidate) is None
    assert "__syncthreads();" in changed.source
    runner.check(subject, changed, *SIZES)
    assert not list(ACTION.moves(replace(subject, candidate=changed, kernels=parse_kernels(changed.source))))


@pytest.mark.parametrize(("table", "work", "more"), OTHERS.values(), ids=OTHERS)
def test_others_stay_where_they_are(table: str, work: str, more: str, subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(table, work, more))))


def test_what_another_kernel_looks_up_stays(subject_from) -> None:
    """It would read a copy that nobody made."""
    subject = subject_from(kernel(CONSTANT, "out[at] = T[text[at]];"))
    source = subject.candidate.source + "\n__global__ void other(int *out) { out[0] = T[out[1]]; }\n"
    assert list(ACTION.moves(subject))
    assert not list(ACTION.moves(replace(subject, candidate=replace(subject.candidate, source=source))))
