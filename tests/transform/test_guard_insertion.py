"""guard-insertion: a sorted list's last element is asked before a place is looked for; others are left alone."""

from __future__ import annotations

import pytest

from fsr.transform.details.guarded_insertion import GuardInsertion

ACTION = GuardInsertion()
SIZES = [{"n": n, "m": m, "k": k} for n, m, k in [(1, 1, 1), (33, 4, 7), (70, 90, 16)]]


def kernel(insert: str, begin: str = "best[j] = 1e30f; at[j] = -1;", more: str = "") -> str:
    return f"""
// /// fsr
// entry = "nearest"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// m = {{min = 1, max = 4096, timed = 512}}
// k = {{min = 1, max = 16, timed = 16}}
// [args]
// x = {{role = "in", shape = ["n"], low = -9, high = 9}}
// y = {{role = "in", shape = ["m"], low = -9, high = 9}}
// out = {{role = "out", shape = ["n", "k"], dtype = "int32"}}
// far = {{role = "out", shape = ["n", "k"]}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// k = {{value = "k"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void nearest(const float *x, const float *y, int *out, float *far, int n, int m, int k)
{{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    float best[16];
    int at[16];
    for (int j = 0; j < k; j++) {{ {begin} }}
    for (int i = 0; i < m; i++) {{
        float d = fabsf(x[p] - y[i]);
        int own = i;
        {insert}
        {more}
    }}
    for (int j = 0; j < k; ++j) {{ out[p * k + j] = at[j]; far[p * k + j] = best[j]; }}
}}
"""


SHIFT = """for (int j = 0; j < k; j++)
            if (best[j] > d) {
                for (int l = k - 1; l > j; l--) { best[l] = best[l - 1]; at[l] = at[l - 1]; }
                best[j] = d;
                at[j] = own;
                break;
            }"""
SWAP = """for (int j = 0; j < k; ++j) {
            if (d < best[j]) {
                float before = best[j];
                int there = at[j];
                best[j] = d;
                at[j] = own;
                d = before;
                own = there;
            }
        }"""
LISTS = {
    "moved on": kernel(SHIFT),
    "equal ones first": kernel(SHIFT.replace("best[j] > d", "d <= best[j]")),
    "swapped along": kernel(SWAP),
    "the farthest": kernel(SHIFT.replace("best[j] > d", "best[j] < d"), "best[j] = -1; at[j] = 0;"),
    "infinity at first": kernel(SHIFT, "best[j] = INFINITY; at[j] = j;"),
    "of a number of elements": kernel(SHIFT.replace("< k", "< 16").replace("k - 1", "15"), "", "").replace(
        "for (int j = 0; j < k; j++) {  }", "for (int j = 0; j < 16; j++) { best[j] = 1e30f; at[j] = -1; }"
    ),
}


@pytest.mark.parametrize("style", LISTS)
def test_lists_are_what_they_were(style, subject_from, runner):
    subject = subject_from(LISTS[style])
    moves = list(ACTION.moves(subject))
    assert [m.region for m in moves] == ["loop:j#2"]
    changed = ACTION.apply(subject, moves[0])
    runner.check(subject, changed, *SIZES)
    assert list(ACTION.moves(subject_from(changed.source))) == []  # it is asked once


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("best[j] = 1e30f;", "best[j] = j;"),
        ("best[j] = 1e30f;", "best[j] = x[p];"),
        ("j < k; j++) { best", "j < k - 1; j++) { best"),
        ("best[j] = d;", "best[j] = d + 1;"),
        ("best[l] = best[l - 1];", "best[l] = best[l - 1] * 0.5f;"),
        ("best[l] = best[l - 1];", ""),
        ("int l = k - 1", "int l = k - 2"),
        ("l > j", "l > 0"),
        ("int j = 0; j < k; j++)\n            if", "int j = 1; j < k; j++)\n            if"),
        ("break;", ""),
        ("int own = i;", "int own = i; best[0] = 2;"),
        ("float best[16];", "float best[16]; float *direct = best; direct[0] = 1;"),
        ("int own = i;", "int own = i; k = k > 1 ? k - 1 : 1;"),
        ("at[j] = own;", "at[j] = own; far[p] = d;"),
    ],
)
def test_a_list_that_may_be_in_no_order_is_left_alone(old, new, subject_from):
    text = kernel(SHIFT)
    assert old in text
    assert list(ACTION.moves(subject_from(text.replace(old, new, 1)))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("best[j] = d;", "best[j] = 2 * d;"), ("d = before;", "d = d;"), ("d = before;", ""), ("own = there;", "")],
)
def test_what_only_looks_like_swapping_is_left_alone(old, new, subject_from):
    assert list(ACTION.moves(subject_from(kernel(SWAP.replace(old, new))))) == []


def test_what_asks_already_is_left_alone(subject_from):
    assert list(ACTION.moves(subject_from(kernel("if (best[k - 1] > d) {" + SHIFT + "}")))) == []
