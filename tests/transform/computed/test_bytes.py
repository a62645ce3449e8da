"""Elements without a sign: lifted by what their bits are, and written anew with the values that they have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.transform.computed.action import FROM_COMPUTATION
from fsr.transform.protocol import Subject
from fsr.transform.registry import all_actions
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
ACTIONS = {action.name: action for action in FROM_COMPUTATION}

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 65536, timed = 65536}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// y = {{role = "{role}", shape = {shape}{value}}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const {type} *x, {out} *y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ {body} }}
}}
"""
POINTS = {
    "threshold": ("unsigned char", "y[i] = x[i] > 127 ? 255 : 0;"),
    "above a number": ("unsigned char", "y[i] = x[i] >= 200 ? 250 : x[i];"),
    "inverted": ("unsigned char", "y[i] = 255 - x[i];"),
    "brighter": ("unsigned char", "int v = x[i] + 40; y[i] = v > 255 ? 255 : v;"),
    "contrast": ("unsigned char", "y[i] = min(max(x[i] * 2 - 50, 0), 255);"),
    "one of all": ("unsigned char", "y[i] = x[i] == 255;"),
    "the larger": ("unsigned char", "y[i] = max(x[i], (unsigned char)90);"),
    "a third": ("unsigned char", "y[i] = x[i] / 3 + x[i] % 7;"),
    "to float and back": ("unsigned char", "y[i] = (unsigned char)(sqrtf(x[i] / 255.0f) * 255.0f);"),
    "sixteen bits": ("unsigned short", "y[i] = x[i] > 40000 ? x[i] - 40000 : x[i] / 5;"),
    "words": ("unsigned", "y[i] = x[i] > 3000000000u ? x[i] / 7u : x[i] % 11u;"),
    "mixed bits": ("unsigned", "unsigned v = x[i] * 2654435761u + 12345u; y[i] = v ^ (v >> 13);"),
    "counted bits": ("unsigned", "unsigned v = x[i]; int c = 0; for (; v; ++c) v &= v - 1; y[i] = c;"),
}


def lifted(type_: str, body: str, out: str = "", shape: str = '["n"]', value: str = "", role: str = "out") -> Subject:
    bare = subject_of(KERNEL.format(type=type_, out=out or type_, body=body, shape=shape, value=value, role=role))
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


def check(runner, subject: Subject, family: str) -> None:
    move = next(iter(ACTIONS[family].moves(subject)))
    made = ACTIONS[family].apply(subject, move)
    for n in (1, 37, 4096 + 16):
        both = (subject.candidate, made)
        want, got = (runner.outputs(c, subject.contract, {"n": n}, all_bits=True)["y"] for c in both)
        np.testing.assert_array_equal(got, want, err_msg=f"{made.source}\n{n}")


@pytest.mark.parametrize("name", POINTS)
def test_values_of_elements_without_a_sign(runner, name):
    check(runner, lifted(*POINTS[name]), "pack-elements")


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i] + x[0];",
        "y[i] = x[i] * x[0];",
        "y[i] = x[i] - x[0];",
        "y[i] = -x[i];",
        "y[i] = x[i] > x[0] ? x[i] : -x[i];",
    ],
)
@pytest.mark.parametrize("kind", ["__half", "__nv_bfloat16"])
def test_sixteen_bit_floats_by_their_own_operators(runner, kind, body):
    bare = subject_of(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        + KERNEL.format(type=kind, out=kind, body=body, shape='["n"]', value="", role="out")
    )
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    check(runner, replace(bare, computation=found.computation), "pack-elements")


def test_what_was_read_is_stored_as_it_was():
    subject = lifted("unsigned", "y[i] = x[n - 1 - i];")
    assert lines(subject.computation) == ["y[i] = x[-i + n - 1]"]


def test_a_count_of_eight_bytes_that_four_are_added_to(runner):
    body = "atomicAdd((int *)y, x[i] == x[0]);"
    subject = lifted("int", body, "long long", "[1]", ", value = 0", "inout")
    assert lines(subject.computation)[-1] == "y[i] = zext_int64(_sum)"
    made = ACTIONS["split-rows"].apply(subject, next(iter(ACTIONS["split-rows"].moves(subject))))
    assert runner.image(made)


RECORDS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 65536, timed = 4096}
// [args]
// p = {role = "in", dtype = "float32", shape = ["n", 3]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
DEFINED
__global__ void k(const Point *p, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = p[i].x * p[i].z + p[i].y;
}
"""


@pytest.mark.parametrize(
    "defined", ["struct Point { float x, y, z; };", "typedef struct __align__(4) { float x, y, z; } Point;"]
)
def test_records_of_one_type_are_its_elements(runner, defined):
    bare = subject_of(RECORDS.replace("DEFINED", defined))
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    subject = replace(bare, computation=found.computation)
    (restate,) = (a for a in all_actions() if a.name == "restate")
    made = restate.apply(subject, next(iter(restate.moves(subject))))
    want, got = (runner.outputs(c, subject.contract, {"n": 70})["y"] for c in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=made.source)
