"""A kernel that a plan launches in ways that have nothing in common is a kernel for each of them, to actions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.search.proposal import Rules
from fsr.source.entry import function_name
from fsr.source.tokens import tokenize
from fsr.transform.own_copies import own_copies
from fsr.transform.registry import all_actions

PLAN = """// /// fsr
// [sizes]
// n = {min = 1, max = 4000, timed = 1000}
// [args]
// x = {dtype = "float32", role = "in", shape = ["n"], low = -2, high = 2}
// z = {dtype = "float32", role = "in", shape = ["n"], low = -2, high = 2}
// y = {dtype = "float32", role = "inout", shape = ["n"]}
// h = {dtype = "float64", role = "inout", shape = ["n"]}
// LAUNCHES
// ///
"""
ADD = """
#define PAIR(a, b) ((a) + (b))
__global__ void add(const float *a, const float *b, float *out, int n);
__global__ void add(const float *a, const float *b, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += PAIR(a[i], 2.0f * b[i]);
}
"""
SCALE = """
template <typename T, int kMore> __global__ void scale(T *v, const float *by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = v[i] * T(by[i]) + T(kMore);
}
"""


def launched(entry: str, *args: str, block: int = 64) -> str:
    names = ", ".join(f'"{a}"' for a in (*args, "n"))
    shape = f'grid = "ceil_div(n, {block})"\n// block = {block}'
    return f'[[launch]]\n// entry = "{entry}"\n// {shape}\n// args = [{names}]\n// '


def text(code: str, *launches: str) -> str:
    return PLAN.replace("LAUNCHES", "".join(launches).removesuffix("\n// ")) + code


DIFFERENT = [
    launched("add", "x", "z", "y"),
    launched("add", "x", "x", "y"),
    launched("add", "z", "x", "y"),
    launched("add", "x", "z", "y", block=128),
]


def test_each_kind_of_launches_has_a_kernel(runner, subject_from) -> None:
    plain = subject_from(text(ADD, *DIFFERENT))
    made = own_copies(plain.candidate, plain.contract)
    assert [x.entry for x in made.plan.launches] == ["add", "add_2", "add", "add_3"]
    assert [x.args for x in made.plan.launches] == [x.args for x in plain.candidate.plan.launches]
    runner.check(plain, replace(made, actions=("copied",)), {"n": 1}, {"n": 63}, {"n": 1000})
    assert own_copies(made, plain.contract) == made


def test_copies_have_the_linkage_of_their_kernel(runner, subject_from) -> None:
    plain = subject_from(text(ADD.replace("__global__", 'extern "C" __global__'), *DIFFERENT[:2]))
    made = own_copies(plain.candidate, plain.contract)
    assert made.source.count('extern "C" __global__ void add_2(') == 1
    runner.check(plain, replace(made, actions=("copied",)), {"n": 70})


def test_a_member_that_is_called_like_the_kernel_keeps_its_name(runner, subject_from) -> None:
    code = "struct Parts { float add; };\n" + ADD.replace(
        "if (i < n)", "Parts p; if (i < n) p.add = a[i];\n  if (i < n)"
    )
    plain = subject_from(text(code.replace("PAIR(a[i]", "PAIR(p.add"), *DIFFERENT[:2]))
    made = own_copies(plain.candidate, plain.contract)
    runner.check(plain, replace(made, actions=("copied",)), {"n": 70})


def test_actions_are_offered_for_every_one(runner, subject_from) -> None:
    plain = subject_from(text(ADD, *DIFFERENT))
    subject = Rules(plain.contract).subject(plain.candidate)
    moves = [(a, m) for a in all_actions() for m in a.moves(subject)]
    regions = {m.region.partition(".")[0] for _, m in moves}
    assert {"kernel:add", "kernel:add_2", "kernel:add_3"} <= regions
    for action, move in moves:
        if move.region.startswith("kernel:add_"):
            runner.check(plain, action.apply(subject, move), {"n": 1}, {"n": 333})


def test_launches_that_do_the_same_keep_one_kernel(subject_from) -> None:
    alike = text(ADD, launched("add", "x", "z", "y"), launched("add", "z", "x", "y"))
    plain = subject_from(alike)
    assert own_copies(plain.candidate, plain.contract) is plain.candidate
    once = subject_from(text(ADD, launched("add", "x", "z", "y")))
    assert own_copies(once.candidate, once.contract) is once.candidate


def test_instances_of_a_template_are_apart_and_have_their_types(runner, subject_from) -> None:
    plain = subject_from(text(SCALE, launched("scale<float, 1>", "y", "x"), launched("scale<double, 2>", "h", "x")))
    made = own_copies(plain.candidate, plain.contract)
    assert [function_name(x.entry) for x in made.plan.launches] == ["scale", "scale_2"]
    assert made.plan.launches[1].entry == "scale_2<double, 2>"
    runner.check(plain, replace(made, actions=("copied",)), {"n": 1}, {"n": 500})
    subject = Rules(plain.contract).subject(plain.candidate)
    assert [k.params[0].type for k in subject.kernels.values()] == ["float *", "double *"]


def test_a_name_that_is_taken_is_left(runner, subject_from) -> None:
    plain = subject_from(
        text("__device__ float add_2(float a) { return a; }" + ADD.replace("b[i])", "add_2(b[i]))"), *DIFFERENT[:2])
    )
    made = own_copies(plain.candidate, plain.contract)
    assert [x.entry for x in made.plan.launches] == ["add", "add_3"]
    runner.check(plain, replace(made, actions=("copied",)), {"n": 70})


@pytest.mark.parametrize("kinds", [6, 7])
def test_of_many_kinds_none_is_copied(subject_from, kinds: int) -> None:
    plain = subject_from(text(ADD, *(launched("add", "x", "z", "y", block=32 * k) for k in range(1, kinds + 1))))
    made = own_copies(plain.candidate, plain.contract)
    assert sum(t.text == "__global__" for t in tokenize(made.source)) == (6 if kinds == 6 else 1)
