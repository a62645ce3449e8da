"""share-loop where each turn multiplies what the one before left and adds to it: lanes give the same, in composed
kernels; or no move."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fsr.transform.lanes.action import LANES, ShareLoop

TEXT = """
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 1024}}
// m = {{min = 0, max = 4096, timed = 128}}
// [args]
// a = {{role = "in", shape = ["n", "m"]{limits}}}
// b = {{role = "in", shape = ["n", "m"]}}
// f = {{role = "in", dtype = "int32", shape = ["n", "m"]}}
// ptr = {{role = "in", dtype = "int32", shape = ["n + 1"]}}
// y = {{role = "inout", shape = ["n"]}}
// z = {{role = "inout", shape = ["n", "m"]}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// {tolerance}
// ///
__global__ void k(const {type} *a, const {type} *b, const int *f, const int *ptr, {type} *y, {type} *z, int n, int m)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {type} s = {start};
    {loop}
    y[i] = s;
}}
"""
FLOATING = [
    "s = a[e] * s + b[e];",
    "s = b[e] + s * a[e];",
    "s = b[e] - a[e] * s;",
    "s = fma(a[e], s, b[e]);",
    "const {T} w = a[e] * ({T})0.5; {T} d = b[e] + w; s = d + w * s * a[e];",
    "s = (s + b[e]) * a[e];",
    "s = f[e] == 2 ? b[e] : a[e] * s + b[e];",
    "s = f[e] > 2 ? b[e] : (f[e] > 0 ? s : -s * a[e] - b[e]);",
    "s = s + a[e] * (b[e] - s);",
    "s *= a[e];",
    "if (f[e] > 0) {{ const {T} g = a[e]; s = g * s + b[e]; }}",
    "s = f[e] * (s + f[e] * f[e]) * ({T})0.1;",
]
WHOLE = [
    "s = s * 31 + a[e];",
    "s = s * 31u + f[e];",
    "s = (s + f[e]) * 1000003 - a[e];",
    "s = f[e] - s * a[e];",
    "s *= a[e] + 3;",
    "s = f[e] > 3 ? a[e] : 7 * (s - b[e]);",
    "if (f[e] != 1) s = s * f[e] + b[e];",
]
USES = ["", "z[e] = s;", "z[e] = s + b[e];", "if (f[e] != 2) {{ z[e] = s; }}"]
LOOPS = [
    "for (int e = ptr[i]; e < ptr[i + 1]; ++e) {{ {step} {use} }}",
    "for (int e = ptr[i + 1] - 1; e >= ptr[i]; e--) {{ {step} {use} }}",
    "for (int e = ptr[i]; e < ptr[i + 1]; ++e) {{ if (f[e] == 4) continue; {step} {use} }}",
    "for (int e = i * m; e < (i + 1) * m; ++e) {{ z[e] = s; {step} }}",
    "for (int e = ptr[i]; e < ptr[i + 1]; e += 2) {{ {step} {use} }}",
]
SIZES = [{"n": n, "m": m} for n, m in [(1, 0), (3, 5), (33, 4), (70, 37)]]


def composed(rng: random.Random, step: str, type_: str, *, tolerance: str = 'sum_length = "m"') -> str:
    loop = rng.choice(LOOPS).format(step=step.format(T=type_), use=rng.choice(USES).format())
    limits = ", low = -1, high = 1" if type_ == "double" else ""
    start = rng.choice(["0", "1", "2 + i % 3"])
    return TEXT.format(tolerance=tolerance, type=type_, start=start, loop=loop, limits=limits)


def given(sizes: dict[str, int], type_: str) -> dict[str, np.ndarray]:
    n, m = sizes["n"], sizes["m"]
    rng = np.random.default_rng(n + m)
    lengths = rng.integers(0, m + 1, size=n)
    held = {"ptr": np.concatenate([[0], np.cumsum(lengths)]), "f": rng.integers(-5, 6, size=(n, m))}
    if "unsigned" in type_:
        most = np.iinfo(np.uint64 if "long" in type_ else np.uint32).max
        return held | {k: rng.integers(0, most, size=(n, m), dtype=np.uint64) for k in "ab"}
    return held | {"a": rng.uniform(-1.0, 1.0, size=(n, m)), "b": rng.normal(size=(n, m))}


CASES = [(s, t) for s in FLOATING for t in ("float", "double")]
CASES += [(s, t) for s in WHOLE for t in ("unsigned int", "unsigned long long")]


@pytest.mark.parametrize(("step", "type_"), CASES)
def test_lanes_give_what_the_thread_gave(step, type_, subject_from, runner):
    for seed in range(2):
        rng = random.Random(f"{step}{type_}{seed}")
        exact = "unsigned" in type_
        text = composed(rng, step, type_, tolerance="exact = true" if exact else 'sum_length = "m"')
        subject = subject_from(text)
        moves = list(ShareLoop().moves(subject))
        assert {m.param("lanes") for m in moves} == set(LANES), text
        for sizes in SIZES:
            want = runner.outputs(subject.candidate, subject.contract, sizes, given=given(sizes, type_))
            for move in rng.sample(moves, 2):
                changed = ShareLoop().apply(subject, move)
                got = runner.outputs(changed, subject.contract, sizes, given=given(sizes, type_))
                for name in ("y", "z"):
                    near = 0.0 if exact else 1e-4
                    np.testing.assert_allclose(got[name], want[name], near, near, err_msg=f"{move.name} {sizes} {text}")
        changed = ShareLoop().apply(subject, moves[0])
        told = runner.outputs(changed, subject.contract, SIZES[2], given=given(SIZES[2], type_), instrumented=True)
        assert [str(f) for f in told["faults"]] == []


@pytest.mark.parametrize(
    ("step", "type_"),
    [
        ("s = s * s + b[e];", "float"),
        ("s = a[e] / s;", "float"),
        ("s = fmaxf(s * a[e], b[e]);", "float"),
        ("s = s > 1 ? b[e] : a[e] * s + b[e];", "float"),
        ("s = a[e] * s + b[e]; s = s * 0.5f;", "float"),
        ("s = a[e] * s + z[e]; z[i] = s;", "float"),
        ("s = a[e] * s + z[e + 1]; z[e] = s;", "float"),
        ("s = s * 31 + f[e];", "int"),  # a factor of many turns overflows where no turn did
        ("s = (s * 31u + a[e]) % 1009u;", "unsigned int"),
        ("s = s * 1.5f + a[e];", "unsigned int"),
        ("s = a[e] * s + b[e];", "double"),  # a factor of many turns may be more than a double holds
        ("s = s * (1 + exp(b[e])); z[e] = s;", "double"),
        ("s = a[e] * s + b[e]; if (s > 10) break;", "float"),
    ],
)
def test_no_move_where_lanes_cannot_tell(step, type_, subject_from):
    loop = LOOPS[0].format(step=step, use="")
    text = TEXT.format(tolerance='sum_length = "m"', type=type_, start="0", loop=loop, limits="")
    assert list(ShareLoop().moves(subject_from(text))) == []


def test_no_move_where_results_must_be_exact(subject_from):
    text = composed(random.Random(1), FLOATING[0], "float", tolerance="exact = true")
    assert list(ShareLoop().moves(subject_from(text))) == []
