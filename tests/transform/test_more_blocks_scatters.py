"""more-blocks: turns that write where data say, and nothing else, are those of any blocks; so are those whose variables
hide others."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.source.emit import emit_stmts
from fsr.source.parse import parse_kernels
from fsr.source.shadows import unshadowed
from fsr.transform.turns.action import MoreBlocks

SCATTER = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 1048576, timed = 1048576}
// [args]
// at = {role = "in", shape = ["4 * n"], dtype = "int32", low = 0, high = "4 * n - 1", unique = true, alignment = 16}
// x = {role = "in", shape = ["4 * n"], dtype = "int32", alignment = 16}
// table = {role = "inout", shape = ["4 * n"], dtype = "int32"}
// n = {value = "4 * n"}
// [launch]
// grid = 16
// block = 256
// ///
__global__ void k(const int *at, const int *x, int *table, int n)
{
    for (size_t i = 4 * (threadIdx.x + blockIdx.x * blockDim.x); i < n; i += 4 * blockDim.x * gridDim.x) {
        int4 places = *reinterpret_cast<const int4 *>(at + i);
        int all[4] = {places.x, places.y, places.z, places.w};
        for (int j = 0; j < 4; ++j) {
            int place = at[i + j], x_ = x[i + j];
            { int n = place; table[n] = x_ + places.x - all[0]; }
        }
    }
}
"""


def test_scatters_are_done_by_any_blocks(subject_from, runner) -> None:
    subject, action = subject_from(SCATTER), MoreBlocks()
    moves = list(action.moves(subject))
    assert moves
    changed = action.apply(subject, moves[0])
    for n in (1, 5000):
        at = {"at": np.random.default_rng(n).permutation(4 * n).astype(np.int32)}
        was, now = (runner.outputs(c, subject.contract, {"n": n}, given=at) for c in (subject.candidate, changed))
        assert np.array_equal(was["table"], now["table"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("table[n] =", "table[n] +="),  # meets others by what it reads
        ("+ places.x", "+ table[i]"),
        ("table[n] =", "table[(threadIdx.x + n) % 64] ="),  # a place of the thread's, which its last turn fills
        ("{ int n = place;", "{ int own = threadIdx.x; int n = place % 16 + own * 16;"),
        ("int place = at[i + j]", "int place = (i + j) * 5 % n"),  # no data: a number of the turn, which strides know
        ("int place = at[i + j]", "int place = table[i + j] & 3"),
    ],
)
def test_no_move_where_turns_may_meet(old: str, new: str, subject_from) -> None:
    assert old in SCATTER
    assert list(MoreBlocks().moves(subject_from(SCATTER.replace(old, new)))) == []


def test_declarations_that_hide_others_get_names_of_their_own() -> None:
    body = """
        int i = 0;
        for (int i = 0; i < n; ++i) { int n = i; { float n = 2; x[i] = n; } x[n] += 1; }
        if (n) { int x = 3, n = x; i = n; } else { i = n; }
        for (int m = 0; m < n; ++m) x[m] = i;
    """
    (form,) = parse_kernels(f"__global__ void k(float *x, int n) {{ {body} }}").values()
    assert emit_stmts(unshadowed(form.body, ("x", "n"))) == emit_stmts(
        parse_kernels(
            """__global__ void k(float *x, int n) {
        int i = 0;
        for (int i2 = 0; i2 < n; ++i2) { int n2 = i2; { float n22 = 2; x[i2] = n22; } x[n2] += 1; }
        if (n) { int x2 = 3, n3 = x2; i = n3; } else { i = n; }
        for (int m = 0; m < n; ++m) x[m] = i;
    }"""
        )["k"].body
    )
