"""Products of floats in two terms of tf32: right at every size and layout, as exact as floats', whatever they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.device import open_host_device
from fsr.computation.expression import Affine, Load, Op
from fsr.transform.computed.action import FROM_COMPUTATION
from tests.transform.computed.test_families import at, computed, over
from tests.transform.computed.test_plans import attention, of_file, softmax_parts
from tests.transform.computed.test_tensor import linear
from tests.transform.conftest import Runner, subject_of

FAMILY = {action.name: action for action in FROM_COMPUTATION}
MATRICES = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// m = {min = 1, max = 4096, timed = 1024}
// c = {min = 1, max = 4096, timed = 1024}
// [args]
// y = {role = "out", shape = ["n", "m"]}
// a = {role = "in", shape = [A_SHAPE]}
// b = {role = "in", shape = [B_SHAPE]}
// n = {value = "n"}
// m = {value = "m"}
// c = {value = "c"}
// [launch]
// grid = "ceil_div(n * m, 64)"
// block = 64
// [tolerance]
// sum_length = "c"
// ///
__global__ void k(float* y, const float* a, const float* b, int n, int m, int c) {
  int at = blockIdx.x * 64 + threadIdx.x, i = at / m, j = at % m;
  if (at >= n * m) return;
  float s = 0.0f;
  for (int k = 0; k < c; k++) s += a[A_PLACE] * b[B_PLACE];
  y[at] = s;
}
"""
LAYOUTS = [(a, b) for a in (False, True) for b in (False, True)]


def matrices(a_across, b_across):
    """y = a b, either factor with its rows along the sum or across it."""
    a = ("k0", "i") if a_across else ("i", "k0")
    b = ("k0", "j") if b_across else ("j", "k0")
    size, place = {"i": "n", "j": "m", "k0": "c"}, {"i": "i", "j": "j", "k0": "k"}
    text = MATRICES
    for name, dims in (("A", a), ("B", b)):
        text = text.replace(f"{name}_SHAPE", ", ".join(f'"{size[d]}"' for d in dims))
        text = text.replace(f"{name}_PLACE", f"{place[dims[0]]} * {size[dims[1]]} + {place[dims[1]]}")
    product = Op("prod", (Load("a", at(*a), "float32"), Load("b", at(*b), "float32")))
    return computed(subject_of(text), {"y": over("sum", "c", product)}, ("n", "m", "c"))


@pytest.fixture(scope="module")
def runner():
    """Tiles are unrolled, and executed once: to optimise them less takes a third of the time."""
    device = open_host_device()
    yield Runner(device, "-O1")
    device.close()


def drawn(subject, sizes, seed=3):
    rng = np.random.default_rng(seed)
    read = [a for a in subject.contract.buffers() if a.role.value != "out"]
    return {a.name: rng.standard_normal(subject.contract.shape(a, sizes)).astype("f4") for a in read}


def moves(subject, family):
    return list(FAMILY[family].moves(subject))


def small(subject, family="split-contraction"):
    """What the move with the smallest block makes."""
    action = FAMILY[family]
    return action.apply(subject, min(action.moves(subject), key=lambda m: int(m.param("bm")) * int(m.param("bn"))))


@pytest.mark.parametrize(("a_across", "b_across"), LAYOUTS)
def test_products_in_every_layout_and_tiling(runner, a_across, b_across):
    subject = matrices(a_across, b_across)
    sizes = {"n": 70, "m": 132, "c": 52}
    given = drawn(subject, sizes)
    a, b = (given[x].astype("f8") for x in "ab")
    exact = (a.T if a_across else a) @ (b if b_across else b.T)
    some = slice(None, None, 4)
    for move in moves(subject, "split-contraction")[some]:
        made = FAMILY["split-contraction"].apply(subject, move)
        got = runner.outputs(made, subject.contract, sizes, given=given)["y"]
        np.testing.assert_allclose(got, exact, atol=2e-5, err_msg=move.name)


@pytest.mark.parametrize("sizes", [(37, 70, 45), (1, 1, 1), (130, 33, 7)])
@pytest.mark.parametrize("transposed", [True, False])
def test_odd_sizes_and_what_is_made_of_the_sum(runner, transposed, sizes):
    subject = linear("float32", transposed=transposed)
    names = dict(zip(("n", "m", "c"), sizes, strict=True))
    given = drawn(subject, names)
    want, got = (
        runner.outputs(x, subject.contract, names, given=given)["y"] for x in (subject.candidate, small(subject))
    )
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-5)


def test_no_fault_in_a_recorded_run(runner):
    subject = matrices(a_across=True, b_across=False)
    assert runner.faults(small(subject), subject.contract, {"n": 70, "m": 64, "c": 72}) == []


def test_sums_are_as_exact_as_those_of_floats(runner):
    """Of one sign, where what is cut off adds up; tf32 alone is off by 2^-12."""
    subject = matrices(a_across=False, b_across=True)
    sizes = {"n": 16, "m": 16, "c": 2048}
    given = {name: np.abs(values) for name, values in drawn(subject, sizes).items()}
    exact = given["a"].astype("f8") @ given["b"].astype("f8")
    plain, split = (
        np.abs(runner.outputs(x, subject.contract, sizes, given=given)["y"] / exact - 1).max()
        for x in (subject.candidate, small(subject))
    )
    assert split < min(1e-6, 2.0 * plain)


@pytest.mark.parametrize(("terms", "times"), [(5, 2.5), (17, 2.0), (33, 1.5)])
def test_short_sums_are_nearly_as_exact_as_those_of_floats(runner, terms, times):
    """The worst of many, beside what the products of each come to without their signs."""
    subject = matrices(a_across=False, b_across=True)
    sizes = {"n": 192, "m": 128, "c": terms}
    given = drawn(subject, sizes)
    a, b = (given[x].astype("f8") for x in "ab")
    plain, split = (
        (np.abs(runner.outputs(x, subject.contract, sizes, given=given)["y"] - a @ b) / (np.abs(a) @ np.abs(b))).max()
        for x in (subject.candidate, small(subject))
    )
    assert split < times * plain


@pytest.mark.parametrize("odd", [1e-40, 3e38, np.inf, np.nan])
def test_factors_of_extraordinary_size_are_left_to_the_ordinary_kernel(runner, odd):
    subject = matrices(a_across=False, b_across=False)
    sizes = {"n": 40, "m": 36, "c": 24}
    given = drawn(subject, sizes)
    given["a"][7] *= 0.0
    given["a"][7, 5] = odd
    want, got = (
        runner.outputs(x, subject.contract, sizes, given=given)["y"] for x in (subject.candidate, small(subject))
    )
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[7], want[7], rtol=1e-6)


def test_where_it_is_not_offered():
    for other in (linear(), linear("float32", summed="float64")):  # halves, and sums in double
        assert not moves(other, "split-contraction")
    subject = matrices(a_across=False, b_across=False)
    assert moves(subject, "split-contraction")
    assert not moves(replace(subject, target="sm_75"), "split-contraction")
    exact = replace(subject.contract, tolerance=replace(subject.contract.tolerance, exact=True))
    assert not moves(replace(subject, contract=exact), "split-contraction")
    assert not moves(replace(subject, keep_launch=True), "split-contraction")


# ---------------------------------------------------------------- attention


def attended(causal):
    """Attention with heads of any width: of a plan of three launches."""
    if causal:
        length, name = Affine((("j", 1),), 1), "attention_causal_three"
        return computed(of_file(name), {"out": attention(length)}, ("heads", "t", "d"))
    weighed, total = softmax_parts(Affine((("t", 1),)))
    return computed(of_file("attention_three"), {"out": Op("div", (weighed, total))}, ("heads", "t", "d"))


@pytest.mark.parametrize("sizes", [(2, 71, 5), (1, 150, 40), (1, 1, 1)])
@pytest.mark.parametrize("causal", [True, False])
def test_attention(runner, causal, sizes):
    subject = attended(causal)
    names = dict(zip(("heads", "t", "d"), sizes, strict=True))
    given = drawn(subject, names)
    action = FAMILY["split-attention"]
    want = runner.outputs(subject.candidate, subject.contract, names, given=given)["out"]
    for move in moves(subject, "split-attention")[:: 3 if sizes[1] == 71 else 8]:
        made = action.apply(subject, move)
        assert [launch.entry.split("<")[0].rpartition("_")[2] for launch in made.plan.launches][1:] == [
            "ordinary", "attention",
        ]  # fmt: skip
        got = runner.outputs(made, subject.contract, names, given=given)["out"]
        np.testing.assert_allclose(got, want, atol=2e-6, err_msg=move.name)


def test_attention_is_as_exact_as_that_of_floats(runner):
    subject = attended(causal=False)
    sizes = {"heads": 1, "t": 400, "d": 32}
    given = drawn(subject, sizes)
    q, k, v = (given[n][0].astype("f8") for n in "qkv")
    weights = np.exp(q @ k.T / np.sqrt(32))
    exact = weights @ v / weights.sum(axis=1, keepdims=True)
    made = FAMILY["split-attention"].apply(subject, moves(subject, "split-attention")[0])
    plain, split = (
        np.abs(runner.outputs(x, subject.contract, sizes, given=given)["out"][0] - exact).max()
        for x in (subject.candidate, made)
    )
    assert split < 2.0 * plain


def test_attention_to_tiny_values_is_left_to_the_ordinary_kernel(runner):
    subject = attended(causal=True)
    sizes = {"heads": 1, "t": 33, "d": 8}
    given = drawn(subject, sizes)
    given["v"] *= np.float32(1e-39)
    made = FAMILY["split-attention"].apply(subject, moves(subject, "split-attention")[0])
    want, got = (runner.outputs(x, subject.contract, sizes, given=given)["out"] for x in (subject.candidate, made))
    assert np.abs(want).max() > 0
    np.testing.assert_allclose(got, want, atol=3e-44)


def test_no_fault_in_attention(runner):
    subject = attended(causal=True)
    made = FAMILY["split-attention"].apply(subject, moves(subject, "split-attention")[0])
    assert runner.faults(made, subject.contract, {"heads": 2, "t": 70, "d": 40}) == []
