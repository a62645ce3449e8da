"""stage-rows on composed recurrences: sweeps up and down over the same rows, of turns that are the same for all, a
thread's own, or told by data, and what a turn reads of those before it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fsr.guard.check import guard
from fsr.transform.slices.stage_rows import StageRows

ACTION = StageRows()
SIZES = [(1, 1), (5, 3), (33, 40), (64, 700), (100, 2500), (257, 4000)]
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// {size} = {{min = 1, max = 4000000, timed = {timed}}}
// [args]
// x = {{dtype = "{type}", role = "in", shape = {shape}, low = -1, high = 1}}
// at = {{role = "in", shape = ["n + 1"]{offsets}}}
// y = {{dtype = "{type}", role = "{out}", shape = {shape}}}
// z = {{dtype = "{type}", role = "out", shape = {shape}}}
// n = {{value = "n"}}
// d = {{value = "{size}"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
ROWS = {  # what says where a thread's row begins; its first turn, the end of its turns, an element
    "same": ("const int base = i * d;", "0", "d", "base + k"),
    "pointers": ("const T *__restrict__ xr = x + (size_t)i * d; T *__restrict__ yr = y + i * d;", "0", "d", "k"),
    "own": ("const int base = i * d, many = d - i % 3;", "i % 2", "many", "base + k"),
    "told": ("int base = at[i]; const int many = at[i + 1] - base;", "0", "many", "base + k"),
    "told by heads": ("", "at[i]", "at[i + 1]", "k"),
    "told, wide": ("const long long from = at[i], to = at[i + 1];", "from", "to", "k"),
}


def composed(seed: int, rows: str | None = None) -> str:
    """A kernel with two sweeps over the rows."""
    random = Random(seed)
    rows = random.choice(list(ROWS)) if rows is None else rows
    type_ = random.choice(["float", "double"])
    lead, first, end, at = ROWS[rows]
    told = rows.startswith("told")
    size = "total" if told else "d"
    head = HEAD.format(
        type={"float": "float32", "double": "float64"}[type_],
        size=size, timed=4096 * 64 if told else 64, shape='["total"]' if told else '["n", "d"]',
        offsets=', offsets = "total"' if told else ", low = 0, high = 1", out="inout" if rows == "own" else "out",
    )  # fmt: skip
    counter = "long long" if rows == "told, wide" else "int"
    sweeps = [_sweep(random, number, (counter, first, end, at)) for number in range(2)]
    body = "    ".join([f"{lead} T s = i % 7, r = 1;\n", *sweeps])
    if rows == "pointers":
        body = body.replace("x[", "xr[").replace("y[", "yr[").replace("z[k", "z[i * d + k")
    if rows == "own":
        body = f"for (int k = 0; k < d; ++k) z[i * d + k] = 0;\n    {body}"
    guarded = f"if (i >= n) return;\n    {body}" if random.random() < 0.5 else f"if (i < n) {{\n    {body}    }}\n"
    return (
        f"{head}typedef {type_} T;\n__global__ void k(const T *x, const int *at, T *y, T *z, int n, int d)\n{{\n"
        f"    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {guarded}}}\n"
    )


def _sweep(random: Random, number: int, loop: tuple[str, str, str, str]) -> str:
    counter, first, end, at = loop
    up = random.random() < 0.5
    back = random.choice([0, 1, 1, 2])
    before, there = (f"{at} - {back}", f"k >= {first} + {back}") if up else (f"{at} + {back}", f"k + {back} < {end}")
    head = f"{counter} k = {first}; k < {end}; ++k" if up else f"{counter} k = {end} - 1; k >= {first}; --k"
    of = random.choice("xy")
    read = f"({there} ? {of}[{before}] : T(0.25))" if back else "T(2)"
    steps = [f"const T v = x[{at}] + {read};", "s = s * T(0.5) + v;"]
    steps.append(f"y[{at}] = s;" if number == 0 else f"y[{at}] = y[{at}] * T(0.5) + s;")
    if random.random() < 0.5:
        steps.append(f"if (s > r) {{ z[{at}] = 1; r = s; }} else z[{at}] = r;")
    elif number == 0:
        steps.append(f"z[{at}] = v;")
    return f"for ({head}) {{ {' '.join(steps)} }}\n"


TOLD = (
    composed(0, "told").split("typedef")[0]
    + """typedef double T;
__global__ void k(const T *x, const int *at, T *y, T *z, int n, int d)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int from = at[i];
    T s = 0;
    for (int k = from; k < at[i + 1]; ++k) { s = s * T(0.5) + x[k]; y[k] = s; z[k] = s; }
}
"""
)
REFUSED = {
    "the same for a block": ("at[i]", "at[blockIdx.x]"),
    "a beginning that moves": ("T s = 0;", "T s = 0; int to = from; to += i;", "k = from", "k = to"),
    "an end that changes": ("at[i + 1]", "y[i + 1]"),
    "a fraction for an end": ("at[i + 1]", "x[i + 1]"),
    "an end that moves": ("T s = 0;", "T s = 0; int to = at[i + 1];", "at[i + 1]; ++k) {", "to; ++k) { to -= 1;"),
    "a turn left out": ("s = s * T(0.5)", "if (s > 2) continue; s = s * T(0.5)"),
    "rows that are short": ("timed = 262144", "timed = 8192"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_are_not_told_stay(name: str, subject_from) -> None:
    changed, pairs = TOLD, REFUSED[name]
    assert list(ACTION.moves(subject_from(TOLD)))
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in changed
        changed = changed.replace(old, new)
    assert list(ACTION.moves(subject_from(changed))) == []


def sizes_of(text: str) -> list[dict[str, int]]:
    """Sizes, few rows and many, short and long ones."""
    told = "total =" in text
    return [{"n": n, "total": many} if told else {"n": n, "d": min(many, 70)} for n, many in SIZES]


def given_at(sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    """Where rows begin, some of them empty."""
    total = sizes.get("total", 0)
    inner = np.sort(np.random.default_rng(seed).integers(0, total + 1, sizes["n"] - 1))
    return {"at": np.concatenate([[0], inner, [total]])}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("seed", range(4))
def test_composed_sweeps_compute_the_same(rows: str, seed: int, subject_from, runner) -> None:
    text = composed(seed * 100 + len(rows), rows)
    subject = subject_from(text)
    moves = list(ACTION.moves(subject))
    assert any(m.region == "kernel" for m in moves), text
    for move in moves[seed % 2 :: 2]:
        changed = ACTION.apply(subject, move)
        assert guard(changed, subject.candidate) is None
        for number, sizes in enumerate(sizes_of(text)):
            given = given_at(sizes, number + seed)
            want, got = (runner.outputs(c, subject.contract, sizes, given=given) for c in (subject.candidate, changed))
            for name in want:
                np.testing.assert_array_equal(got[name], want[name], err_msg=f"{move} {name} {sizes}")
        sizes = sizes_of(text)[3]
        recorded = runner.outputs(changed, subject.contract, sizes, given=given_at(sizes, 3), instrumented=True)
        assert list(recorded["faults"]) == []
