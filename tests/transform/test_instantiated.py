"""Templates of types are, for actions, the one instance that a plan launches; what they make computes the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.search.proposal import Rules
from fsr.source.walk import contains_barrier
from fsr.transform.instantiated import instantiated, kernels_of
from fsr.transform.vector.vectorize import Vectorize

SCALE = """
// /// fsr
// entry = "lib::scale<ENTRY>"
// [sizes]
// rows = {min = 1, max = 300, timed = 200}
// n = {min = 1, max = 5000, timed = 4096}
// [args]
// x = {role = "in", shape = ["rows", "n"]}
// y = {role = "out", shape = ["rows", 2, "n"]}
// s = {low = 0.5, high = 1.5}
// [launch]
// grid = ["ceil_div(n, 64)", "ceil_div(rows, 4)"]
// block = [64, 4]
// ///
namespace lib {
template <typename T> __device__ T twice(const T a) { return a + a; }
template <typename scalar_t, bool Both, int kWidth>
__global__ void scale(const scalar_t* x, scalar_t* y, scalar_t s, int rows, int n) {
  const int i = blockIdx.x * kWidth + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || row >= rows) return;
  const int first = row * 2 * n + i, second = i + 0 * n;
  const scalar_t a = static_cast<scalar_t>(s) * x[row * n + i];
  if (Both) {
    y[first] = twice(a);
    y[first + n] = a + scalar_t(1);
  } else {
    y[first] = a;
    y[row * 2 * n + n + second] = twice<scalar_t>(a);
  }
}
}
"""


def text(entry: str) -> str:
    return SCALE.replace("ENTRY", entry)


@pytest.mark.parametrize("both", ["true", "false"])
@pytest.mark.parametrize("type_", ["float", "double", "unsigned int"])
def test_packs_of_planes_are_found_and_right(type_: str, both: str, subject_from, runner) -> None:
    plain = subject_from(text(f"{type_}, {both}, 64"))
    assert not list(Vectorize().moves(plain))
    subject = Rules(plain.contract).subject(plain.candidate)
    moves = {int(m.param("width")): m for m in Vectorize().moves(subject)}
    assert 2 in moves
    for move in moves.values():
        made = Vectorize().apply(subject, move)
        assert [one.entry for one in made.plan.launches] == ["lib::scale<64>"]
        runner.check(plain, made, {"rows": 1, "n": 1}, {"rows": 3, "n": 2}, {"rows": 5, "n": 260}, {"rows": 9, "n": 67})


def test_numbers_stay_parameters(subject_from) -> None:
    plain = subject_from(text("float, true, 64"))
    made = instantiated(plain.candidate)
    assert "template <int kWidth>\n__global__ void scale(const float* x" in made.source
    assert "static_cast<float>(s)" in made.source
    assert "blockIdx.x * kWidth" in made.source
    assert made.plan.launches[0].entry == "lib::scale<64>"
    assert "template <typename T> __device__" in made.source


def test_branches_that_are_not_taken_are_left_out(subject_from) -> None:
    subject = Rules(subject_from(text("float, false, 64")).contract).subject(
        subject_from(text("float, false, 64")).candidate
    )
    body = str(subject.kernels["scale"].body)
    assert "'twice'" in body
    assert "scalar_t" not in body


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("namespace lib {", "#define ONE scalar_t(1)\nnamespace lib {"),  # what a macro means cannot be told
        ("const int i = ", "using limits = typename other<scalar_t>::type;\n  const int i = "),
        ("if (Both)", "if (scalar_t::both)"),
        ("bool Both, int kWidth", "bool Both, int... kWidth"),
        (
            "\n}\n}\n",
            "\n}\ntemplate __global__ void scale<float, true, 64>(const float*, float*, float, int, int);\n}\n",
        ),
    ],
)
def test_what_is_not_sure_stays_as_it_is(old: str, new: str, subject_from) -> None:
    plain = subject_from(text("float, true, 64"))
    assert old in plain.candidate.source
    changed = replace(plain.candidate, source=plain.candidate.source.replace(old, new))
    assert instantiated(changed) == changed


def test_two_instances_stay_a_template(subject_from) -> None:
    plain = subject_from(text("float, true, 64"))
    launch = plain.candidate.plan.launches[0]
    other = replace(launch, entry="lib::scale<double, true, 64>")
    both = replace(plain.candidate, plan=replace(plain.candidate.plan, launches=(launch, other)))
    assert instantiated(both) == both


def test_a_barrier_behind_which_nothing_follows_is_not_seen() -> None:
    body = "y[i] = x[i]; __syncthreads(); __syncthreads();"
    kernels = kernels_of(f"__global__ void k(float *y, const float *x) {{ int i = threadIdx.x; {body} }}")
    assert not contains_barrier(kernels["k"].body)
    assert len(kernels["k"].body) == 2
