"""share-loop where turns add to a sum that keeps what rounding lost: lanes lose no more, in composed kernels."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from fsr.transform.inlining.action import Inlining
from fsr.transform.lanes.action import LANES, ShareLoop

ACTION = Inlining(ShareLoop())

HEAD = """
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 1024}}
// m = {{min = 0, max = 4096, timed = 128}}
// [args]
// x = {{role = "in", shape = ["n", "m"]}}
// ptr = {{role = "in", dtype = "int32", shape = ["n + 1"]}}
// y = {{role = "out", shape = ["n"]}}
// z = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// {tolerance}
// ///
{before}
__global__ void k(const {type} *x, const int *ptr, {type} *y, {type} *z, int n, int m)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {type} s = {start}, c = 0, count = 0;
    {loop}
    y[i] = {result};
    z[i] = count;
}}
"""
ADDITIONS = {
    "Kahan": ("{T} u = {v} - c; {T} t = s + u; c = (t - s) - u; s = t;", "s"),
    "Kahan, what is missing": ("{T} u = {v} + c; {T} t = u + s; c = u - (t - s); s = t;", "s"),
    "Kahan, what is less": ("const {T} u = c + {v}; const {T} t = s + u; c = (s - t) + u; s = t;", "s"),
    "Kahan by macro": ("ADD(s, {v}, c);", "s"),
    "Kahan by function": ("add(s, c, {v});", "s"),
    "Neumaier": (
        "const {T} v = {v}; {T} t = s + v; if (fabs(s) >= fabs(v)) {{ c += (s - t) + v; }} else c += (v - t) + s;"
        " s = t;",
        "s + c",
    ),
    "Neumaier by choice": (
        "const {T} v = {v}; {T} t = s + v; c += fabs(v) > fabs(s) ? (v - t) + s : (s - t) + v; s = t;",
        "s + c",
    ),
    "Knuth": ("{T} v = {v}; {T} t = s + v; {T} b = t - s; c += (s - (t - b)) + (v - b); s = t;", "s + c"),
}
LOOPS = [
    "for (int e = ptr[i]; e < ptr[i + 1]; ++e) {{ {add} count += 1; }}",
    "for (unsigned e = ptr[i]; e < (unsigned)ptr[i + 1]; e++) {{ count += 1; {add} }}",
    "for (int e = ptr[i + 1] - 1; e >= ptr[i]; --e) {{ {add} count += 1; }}",
    "for (int e = ptr[i]; e < ptr[i + 1]; e++) {{ if (x[e] == 0) continue; {add} count += 1; }}",
    "for (int e = ptr[i]; e < ptr[i + 1]; e++) if (x[e] != 0)"
    " {{ if (x[e] < 0) {{ {add} }} else {{ {add} count += 1; }} }}",
]
BEFORE = """
#define ADD(sum, value, rest) do {{ const {T} u_ = (value) - (rest); const {T} t_ = (sum) + u_; \\
    (rest) = (t_ - (sum)) - u_; (sum) = t_; }} while (0)
__device__ inline void add({T} &sum, {T} &rest, {T} value)
{{
    {T} u = value - rest, t = sum + u;
    rest = (t - sum) - u;
    sum = t;
}}
"""
SIZES = [{"n": n, "m": m} for n, m in [(1, 0), (1, 1), (3, 5), (33, 4), (70, 37), (20, 200)]]


def composed(seed: int, addition: str, *, exact: bool = False, loop: str = "") -> tuple[str, str]:
    """A kernel of such a sum, and the type that it is of."""
    rng = random.Random(seed)
    type_ = rng.choice(["float", "double"])
    text, result = ADDITIONS[addition]
    add = text.format(T=type_, v=rng.choice(["x[e]", f"x[e] * ({type_})0.5", "(x[e] - 1)"]))
    found = HEAD.format(
        tolerance="exact = true" if exact else "rtol = 1e-6", before=BEFORE.format(T=type_), type=type_,
        start=rng.choice(["0", "0.0", f"({type_})0", "1", "1000"]), result=result,
        loop=(loop or rng.choice(LOOPS)).format(add=add),
    )  # fmt: skip
    return found, type_


def given(sizes: dict[str, int], type_: str, *, wild: bool = False) -> dict[str, np.ndarray]:
    """Lists of all lengths, of numbers of very different sizes that nearly cancel, or some of them infinite."""
    n, m = sizes["n"], sizes["m"]
    rng = np.random.default_rng(n + m)
    most = 12 if type_ == "double" else 6
    x = rng.normal(size=(n, m)) * 10.0 ** rng.integers(0, most, size=(n, m))
    x[:, 1::2] = -x[:, : m // 2 * 2 : 2] + rng.normal(size=(n, m // 2))
    x[rng.random((n, m)) < 0.1] = 0.0
    if wild:
        x[rng.random((n, m)) < 0.02] = np.inf
    lengths = rng.integers(0, m + 1, size=n)
    return {"x": x, "ptr": np.concatenate([[0], np.cumsum(lengths)])}


@pytest.mark.parametrize("addition", ADDITIONS)
@pytest.mark.parametrize("seed", range(4))
def test_lanes_lose_no_more(addition, seed, subject_from, runner):
    text, type_ = composed(100 * seed + list(ADDITIONS).index(addition), addition)
    subject = subject_from(text)
    moves = list(ACTION.moves(subject))
    assert {m.param("lanes") for m in moves} == set(LANES)
    unit = float(np.finfo(np.float32 if type_ == "float" else np.float64).eps)
    for sizes in SIZES:
        held = given(sizes, type_)
        ends = held["ptr"][1:]
        running = np.concatenate([[0.0], np.cumsum(np.abs(held["x"]) + 1.0)])
        size = running[ends] - running[held["ptr"][:-1]] + 1000
        bound = size * (4 * unit if addition.startswith("Kahan") else 64 * unit**2)
        want = runner.outputs(subject.candidate, subject.contract, sizes, given=held)
        for move in moves:
            got = runner.outputs(ACTION.apply(subject, move), subject.contract, sizes, given=held)
            np.testing.assert_array_equal(got["z"], want["z"])
            assert (np.abs(got["y"] - want["y"]) <= 4 * unit * np.abs(want["y"]) + bound).all(), f"{move.name} {sizes}"
    told = runner.outputs(
        ACTION.apply(subject, moves[0]), subject.contract, SIZES[4], given=given(SIZES[4], type_), instrumented=True
    )
    assert [str(f) for f in told["faults"]] == []


@pytest.mark.parametrize("addition", ADDITIONS)
def test_what_is_infinite_and_what_is_no_number_stays_so(addition, subject_from, runner):
    for seed, loop in enumerate(LOOPS):
        text, type_ = composed(seed, addition, loop=loop)
        subject = subject_from(text)
        held = given(SIZES[-1], type_, wild=True)
        want = runner.outputs(subject.candidate, subject.contract, SIZES[-1], given=held)["y"]
        assert np.isnan(want).any()
        assert np.isfinite(want).any()
        for move in ACTION.moves(subject):
            got = runner.outputs(ACTION.apply(subject, move), subject.contract, SIZES[-1], given=held)["y"]
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=f"{move.name} {text}")
            np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s = t;", "s = t; z[i] = s;"),
        ("s = t;", "s = t; s += x[e];"),
        ("s = t;", "s = t; z[i] = t;"),
        ("c = (t - s) - u;", "c = (t - s) + u;"),
        ("c = (t - s) - u;", "c = (s - t) - u;"),
        ("c = (t - s) - u;", "c += (t - s) - u;"),
        ("x[e] - c;", "x[e] + c;"),
        ("x[e] - c;", "x[e] * s - c;"),
        ("x[e] - c;", "x[e] * c - c;"),
        ("t = s + u;", "t = s - u;"),
        ("s = t;", "s = u;"),
        ("s = t;", "s = t; if (c > 1) break;"),
    ],
)
def test_no_move_where_it_is_no_such_sum(old, new, subject_from):
    text = HEAD.format(
        tolerance="rtol = 1e-6", before="", type="double", start="0", result="s",
        loop="for (int e = ptr[i]; e < ptr[i + 1]; ++e)"
        " { double u = x[e] - c; double t = s + u; c = (t - s) - u; s = t; }",
    )  # fmt: skip
    assert text.count(old) == 1
    assert list(ACTION.moves(subject_from(text)))
    assert list(ACTION.moves(subject_from(text.replace(old, new)))) == []


def test_no_move_where_results_must_be_exact(subject_from):
    assert list(ACTION.moves(subject_from(composed(1, "Kahan", exact=True)[0]))) == []


def test_known_answers(subject_from, runner):
    """A sum that cancels, as near to the exact one as the thread's was."""
    text = HEAD.format(
        tolerance="rtol = 1e-12", before="", type="double", start="0", result="s",
        loop="for (int e = 0; e < m; ++e) { double u = x[i * m + e] - c; double t = s + u; c = (t - s) - u; s = t; }",
    )  # fmt: skip
    subject, sizes = subject_from(text), {"n": 9, "m": 333}
    x = np.random.default_rng(5).normal(size=(9, 333)) * 1e9 + 1.0
    held = {"x": x, "ptr": np.zeros(10, int)}
    exact = [math.fsum(row) for row in x]
    for move in ACTION.moves(subject):
        got = runner.outputs(ACTION.apply(subject, move), subject.contract, sizes, given=held)["y"]
        np.testing.assert_allclose(got, exact, rtol=1e-14)
