"""Loops go from one turn that does something to the next; where that cannot be told they stay."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.transform.details.strided_turns import StridedTurns

ACTION = StridedTurns()
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// m = {min = 0, max = 64, timed = 9}
// s = {min = 1, max = 5, timed = 2}
// pad = {min = 0, max = 4, timed = 1}
// [args]
// x = {role = "in", shape = ["n"]}
// w = {role = "in", shape = ["64"]}
// by = {role = "in", dtype = "int32", shape = ["n"], low = 2, high = 7}
// any = {role = "in", dtype = "int32", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// m = {value = "m"}
// s = {value = "s"}
// pad = {value = "pad"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// exact = true
// ///
#define TWO 2
"""
SIGNATURE = """__global__ void k(const float *x, const float *w, const int *by, const int *any, float *y, int n, int m,
                  int s, int pad) {
int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i >= n) return;
float sum = 0.0f;
"""
SIZES = tuple({"n": n, "m": m, "s": s, "pad": pad}
              for n, m, s, pad in ((1, 0, 1, 0), (1, 64, 2, 1), (70, 64, 3, 0), (70, 9, 2, 4), (40, 64, 5, 3),
                                   (33, 7, 1, 2), (90, 64, 4, 1)))  # fmt: skip
BODY = "int q = t / s; if (q < 0 || q >= n) continue; sum = sum * 0.5f + x[q] * w[k];"
WHOLE = "for (int k = 0; k < m; k++) { int t = i + pad - k; if (t % s != 0) continue; " + BODY + " }"


def kernel(body: str) -> str:
    """The text of a kernel with its contract."""
    return f"{HEAD}{SIGNATURE}{body}\ny[i] = sum;\n}}\n"


MADE = {
    "a remainder other than zero": (WHOLE, "k_rest = (i + pad) % s"),
    "as a truth": (WHOLE.replace("t % s != 0", "t % s"), "k += s"),
    "not a remainder": (WHOLE.replace("t % s != 0", "!(t % s == 0)"), "k += s"),
    "one of several that leave": (WHOLE.replace("t % s != 0", "t < 0 || 0 != t % s"), "if (t < 0) continue;"),
    "behind another that leaves": (WHOLE.replace("if (t %", "if (t < 0) continue; if (t %"), "k += s"),
    "all that is done": (
        "for (int k = 0; k < m; k++) { int t = i + pad - k; if (!(t % s) && t >= 0 && t / s < n)"
        " { float v = x[t / s]; sum = sum * 0.5f + v * w[k]; } }", "if (t >= 0 && t / s < n) {",
    ),
    "within another condition": (
        "for (int k = 0; k < m; k++) { int t = i + pad - k; if (t >= 0) { if (t % s == 0) { " + BODY + " } } }",
        "k += s",
    ),
    "by its bits": (WHOLE.replace("t % s != 0", "(t & 3) != 0").replace("/ s", "/ 4"), "k += 4"),
    "by a macro": (WHOLE.replace("% s", "% TWO").replace("/ s", "/ TWO"), "k += TWO"),
    "by a quotient": (
        "for (int k = 0; k < m; k++) { int t = i + pad - k; int q = t / s; if (q * s != t) continue;"
        " if (q >= 0 && q < n) sum = sum * 0.5f + x[q] * w[k]; }", "k += s",
    ),
    "a remainder by name": (WHOLE.replace("if (t % s != 0)", "int r = t % s; if (r != 0)"), "k += s"),
    "going up": (WHOLE.replace("i + pad - k", "k - pad - i"), "s - k_rest : -k_rest"),
    "from somewhere on": (WHOLE.replace("k = 0", "k = pad"), "k = pad + ("),
    "up to the last": (WHOLE.replace("k < m", "k <= m - 1"), "k <= m - 1; k += s"),
    "downwards": (WHOLE.replace("k = 0; k < m; k++", "k = m - 1; k >= 0; k--"), "k -= s"),
    "downwards what goes up": (
        WHOLE.replace("k = 0; k < m; k++", "k = m - 1; k > -1; --k").replace("i + pad - k", "k - pad - i"), "k -= s",
    ),
    "a start that is not limited": ("int a = any[i]; " + WHOLE.replace("k = 0", "k = a"), "if (a < m) {"),
    "a variable without a sign": (
        "for (unsigned k = 1; k < (unsigned)m; k++) if (k % s == 0) sum = sum * 0.5f + w[k];", "k += s",
    ),
    "one that wraps around, by a power of two": (
        WHOLE.replace("int t = i + pad - k", "unsigned t = (unsigned)i - k").replace("s ", "2u ").replace(" s;", " 2u;")
        .replace("int q", "unsigned q"), "k += 2u",
    ),
    "in 64 bits": (WHOLE.replace("int t =", "long long t = (long long)"), "k += s"),
    "loops in one another": (
        "for (int j = 0; j < 4; j++) { int u = i + pad - j; if (u % s != 0) continue; " + WHOLE + " }",
        "for (int j = j_rest < 0 ? j_rest + s : j_rest; j < 4; j += s) {",
    ),
    "both asked in the inner one": (
        "for (int j = 0; j < 4; j++) for (int k = 0; k < m; k++) { int u = i + 1 - j, t = i + pad - k;"
        " if (u % s == 0 && t % s == 0) { " + BODY + " } }", "j += s",
    ),
    "one that the turn changes behind": (
        "for (int k = 0; k < m; k++) { int t = i + pad - k; if (t % s == 0) { t /= s; if (t >= 0 && t < n)"
        " sum = sum * 0.5f + x[t] * w[k]; } }", "k += s",
    ),
    "a stride that is read": (
        "int p = by[i]; for (int k = 0; k < m; k++) { if ((i + k) % p == 0) sum = sum * 0.5f + w[k]; }", "k += p",
    ),
    "a wide number that starts as a narrow one": (
        "int a = any[i]; " + WHOLE.replace("int k = 0", "long long k = a").replace("int t =", "long long t ="),
        "(long long)a",
    ),
    "that ends early": (WHOLE.replace("sum =", "if (sum > 9.0f) break; sum ="), "k += s"),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_turns_that_do_nothing_are_left_out(name: str, subject_from, runner) -> None:
    body, told = MADE[name]
    subject = subject_from(kernel(body))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert told in made.source
    for sizes in SIZES:
        given = {"by": np.arange(sizes["n"]) % 6 + 2}
        want, got = (runner.outputs(c, subject.contract, sizes, given=given)["y"] for c in (subject.candidate, made))
        np.testing.assert_array_equal(got, want, err_msg=str(sizes))


def test_remainders_stand_before_all_loops_that_keep_them(subject_from) -> None:
    subject = subject_from(kernel("for (int c = 0; c < n; c++) { " + WHOLE + " }"))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert made.source.index("k_rest =") < made.source.index("for (int c")


LEFT = {
    "a stride that may be zero": ("% s", "% any[0]"),
    "a stride that a turn changes": ("sum =", "s++; sum ="),
    "what is divided changes": ("sum =", "pad = q; sum ="),
    "the number changes": ("sum =", "k++; sum ="),
    "the end changes": ("sum =", "m = q; sum ="),
    "the end is not limited": ("k < m", "k < any[0]"),
    "something happens before": ("int t =", "sum += 1.0f; int t ="),
    "something is called before": ("int t =", "float z = atomicAdd(&y[i], 1.0f); int t ="),
    "it ends there": ("continue; int q", "break; int q"),
    "another remainder": ("!= 0", "!= 1"),
    "the opposite": ("!= 0", "== 0"),
    "several at a time": ("k++", "k += 2"),
    "two a turn": ("pad - k", "pad - 2 * k"),
    "a number that wraps around": ("int t =", "unsigned t ="),
    "a stride without a sign": ("t % s", "t % (unsigned)s"),
    "a start that wraps around": ("int k = 0", "unsigned k = any[0]"),
    "an end that is compared without a sign": ("int k = 0; k < m", "int k = any[0]; k < (unsigned)m"),
    "an end below zero without a sign": ("int k = 0; k < m; k++", "int k = m - 1; k >= 0u; k--"),
    "one that wrapped around in 64 bits": ("int t = i + pad - k", "long long t = (unsigned)i + pad - k"),
    "through memory": ("i + pad - k", "any[k] - k"),
    "lanes that meet": ("sum =", "__syncwarp(); sum ="),
    "a number that is used behind": ("for (int k = 0;", "int k; for (k = 0;"),
    "no loop to leave out of": ("t % s != 0", "t % 1 != 0"),
}  # fmt: skip


OTHERS = {
    "something happens behind": (
        WHOLE.replace("if (t % s != 0) continue;", "if (t % s == 0) {").replace("w[k]; }", "w[k]; } }"),
        "w[k]; }", "w[k]; } sum += 1.0f;",
    ),
    "a number below zero, a stride without a sign": (
        WHOLE.replace("t % s", "k % (unsigned)s"), "int k = 0", "int k = -3",
    ),
    "a stride without a sign, a wide number": (
        WHOLE.replace("t % s", "t % (unsigned)s").replace("int t", "long long t"), "int k", "long long k",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*LEFT, *OTHERS])
def test_what_cannot_be_told_stays(name: str, subject_from) -> None:
    body, old, new = OTHERS[name] if name in OTHERS else (WHOLE, *LEFT[name])
    assert old in body
    behind = " sum += k;" if "used behind" in name else ""
    assert list(ACTION.moves(subject_from(kernel(body))))
    assert not list(ACTION.moves(subject_from(kernel(body.replace(old, new, 1) + behind))))


def test_a_stride_of_one_is_left(subject_from) -> None:
    plain = kernel(WHOLE)
    one = plain.replace("max = 5, timed = 2", "max = 5, timed = 1")
    assert one != plain
    assert not list(ACTION.moves(subject_from(one)))
