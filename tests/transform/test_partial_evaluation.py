"""Buffers that a thread fills at a position: known at the timed length, as before at others, and left alone where a
position, a turn or a meaning is not known."""

from __future__ import annotations

import pytest

from fsr.transform.evaluated.action import PartialEvaluation
from fsr.transform.evaluated.c_numbers import INT, LONG, UNSIGNED, Kind, Number, Unfit, binary, converted, literal

CONTRACT = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 64}
// len = {min = 1, max = 64, timed = 21}
// [args]
// x = {role = "in", shape = ["n", "len"], dtype = "uint32"}
// y = {role = "out", shape = ["n", 4], dtype = "uint32"}
// n = {value = "n"}
// len = {value = "len"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
CONTEXT = (
    CONTRACT
    + """
typedef unsigned char byte;
#define BLOCK 8
typedef struct { byte data[BLOCK]; unsigned fill; unsigned long long total; unsigned state[4]; } Context;
__device__ void mix(Context *c)
{
    for (int i = 0; i < 4; ++i) c->state[i] = c->state[i] * 31u + c->data[2 * i] + (c->data[2 * i + 1] << 8);
}
__device__ void update(Context *c, const unsigned *in, size_t count)
{
    for (unsigned i = 0; i < count; ++i) {
        c->data[c->fill] = in[i];
        c->fill++;
        if (c->fill == BLOCK) { mix(c); c->total += 8 * BLOCK; c->fill = 0; }
    }
}
__device__ void finish(Context *c, unsigned *out)
{
    unsigned i = c->fill;
    c->data[i++] = 0x80;
    if (c->fill < 6) { while (i < 6) c->data[i++] = 0; }
    else { while (i < BLOCK) c->data[i++] = 0; mix(c); memset(c->data, 0, 6); }
    c->total += c->fill * 8;
    c->data[7] = c->total;
    c->data[6] = c->total >> 8;
    mix(c);
    for (int j = 0; j < 4; ++j) out[j] = c->state[j];
}
__global__ void k(const unsigned *x, unsigned *y, int n, int len)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    Context c;
    c.fill = 0; c.total = 0;
    for (int i = 0; i < 4; ++i) c.state[i] = i + 1;
    update(&c, x + t * len, len);
    finish(&c, y + t * 4);
}
"""
)
PACKED = (
    CONTRACT
    + """
__global__ void k(const unsigned *x, unsigned *y, int n, int len)
{
    const int row = threadIdx.x + blockIdx.x * blockDim.x;
    if (row < n) {
        unsigned words[16];
        for (int w = 0; w < 16; ++w) words[w] = 0u;
        int at = 0, used = 0, j = 0;
        while (j < len) {
            words[at] |= (x[row * len + j] & 31u) << used;
            used += 5;
            if (used > 27) { at++; used = 0; }
            ++j;
        }
        for (int w = 0; w < 4; ++w) y[row * 4 + w] = words[w] ^ words[w + 4] ^ words[w + 8] ^ words[w + 12];
    }
}
"""
)
SIZES = [{"n": 70, "len": count} for count in (1, 5, 8, 20, 21, 22, 48, 64)]


@pytest.mark.parametrize("text", [CONTEXT, PACKED], ids=["context", "packed"])
def test_the_timed_length_has_a_way_and_others_stay(subject_from, apply_move, runner, text):
    subject = subject_from(text)
    changed = apply_move(PartialEvaluation(), subject, "partial-evaluation@kernel")
    way = changed.source[changed.source.index("if (len == 21)") :].partition("} else {")[0]
    assert "while" not in way
    assert "for (" not in way
    runner.check(subject, changed, *SIZES)
    assert runner.faults(changed, subject.contract, {"n": 65, "len": 21}) == []


def test_calls_that_move_no_position_stay(subject_from, apply_move):
    changed = apply_move(PartialEvaluation(), subject_from(CONTEXT), "@kernel")
    way = changed.source[changed.source.index("if (len == 21)") :].partition("} else {")[0]
    assert way.count("mix(&") == 3
    assert "update(" not in way


@pytest.mark.parametrize("timed", [8, 13, 14, 16, 22])
def test_whatever_length_is_timed(subject_from, apply_move, runner, timed):
    subject = subject_from(CONTEXT.replace("timed = 21", f"timed = {timed}"))
    changed = apply_move(PartialEvaluation(), subject, "@kernel")
    runner.check(subject, changed, {"n": 70, "len": timed}, {"n": 3, "len": timed + 1})


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("data tells the position", "c.fill = 0;", "c.fill = x[t * len] & 3u;"),
        ("data tells how often", "x + t * len, len)", "x + t * len, x[t * len] & 7u)"),
        ("data tells whether it moves", "if (c->fill == BLOCK)", "if (in[i] == 3u)"),
        ("several lengths are timed", "len = {min = 1, max = 64, timed = 21}",
         "len = {min = 1, max = 64, timed = [21, 22]}"),
        ("beyond the array", "if (c->fill == BLOCK)", "if (c->fill == BLOCK + 1)"),
        ("not in order", "c->data[i++] = 0x80;", "c->data[i++] = i;"),
        ("a variable of the kernel of a file's name", "c->data[c->fill] = in[i];",
         "c->data[c->fill] = in[i] + t;"),
        ("a macro that names a variable", "c->data[c->fill] = in[i];", "c->data[c->fill] = NEXT;"),
        ("the structure's address goes on", "c->total = 0;", "c->total = (unsigned long long)c;"),
        ("a sign that depends on the host", "unsigned fill;", "char fill;"),
        ("changes that may be seen by others", "unsigned fill;", "volatile unsigned fill;"),
        ("a barrier", "finish(&c, y", "__syncthreads(); finish(&c, y"),
        ("functions of one name", "__global__ void k",
         "__device__ void mix(unsigned *c) { c[0] = 0; }\n__global__ void k"),
        ("the length changes", "    update(&c", "    len = len - 1; update(&c"),
    ],
)  # fmt: skip
def test_nothing_is_offered_where(subject_from, why, old, new):
    text = CONTEXT.replace("__device__ void mix", "__device__ int t = 3;\n#define NEXT in[i]\n__device__ void mix", 1)
    changed = text.replace(old, new)
    if why == "the structure's address goes on":
        changed = text.replace("c->total += c->fill * 8;", "c->total += (unsigned long long)c;")
    assert changed != text
    first = text if "NEXT" in new else text.replace("#define NEXT in[i]\n", "")
    if "NEXT" not in new:
        changed = changed.replace("#define NEXT in[i]\n", "")
        assert list(PartialEvaluation().moves(subject_from(first)))
    assert not list(PartialEvaluation().moves(subject_from(changed))), why


def test_arrays_that_constant_loops_go_through_are_for_the_compiler(subject_from):
    text = PACKED.replace("words[at]", "words[j & 15]").replace("while (j < len) {", "for (j = 0; j < len; ++j) {")
    text = text.replace("            ++j;\n", "").replace("int at = 0, used = 0, j = 0;", "int at = 0, used = 0, j;")
    assert not list(PartialEvaluation().moves(subject_from(text)))


def test_branches_on_data_may_set_elements(subject_from, apply_move, runner):
    text = PACKED.replace("used += 5;", "if (x[row * len + j] > 2u) { words[at] ^= 1u; }\n            used += 5;")
    subject = subject_from(text)
    runner.check(subject, apply_move(PartialEvaluation(), subject, "@kernel"), *SIZES)
    text = PACKED.replace("used += 5;", "if (x[row * len + j] > 2u) { used = 9; }\n            used += 5;")
    assert not list(PartialEvaluation().moves(subject_from(text)))


@pytest.mark.parametrize(
    ("op", "a", "b", "value", "kind"),
    [
        ("-", Number(0, UNSIGNED), Number(1, INT), 0xFFFFFFFF, UNSIGNED),
        ("+", Number(255, Kind(1, False)), Number(1, Kind(1, False)), 256, INT),
        ("<", Number(-1, INT), Number(1, UNSIGNED), 0, INT),
        ("<", Number(-1, INT), Number(1, LONG), 1, INT),
        ("/", Number(-7, INT), Number(2, INT), -3, INT),
        ("%", Number(-7, INT), Number(2, INT), -1, INT),
        (">>", Number(-8, INT), Number(1, LONG), -4, INT),
        ("<<", Number(1, UNSIGNED), Number(31, INT), 1 << 31, UNSIGNED),
    ],
)
def test_numbers_are_those_of_c(op, a, b, value, kind):
    assert binary(op, a, b) == Number(value, kind)


@pytest.mark.parametrize(
    ("op", "a", "b"), [("+", 2**31 - 1, 1), ("<<", 1, 32), ("<<", -1, 1), ("<<", 1, 31), ("/", 1, 0), ("%", 1, 0)]
)
def test_what_c_leaves_open_is_not_known(op, a, b):
    with pytest.raises(Unfit):
        binary(op, Number(a, INT), Number(b, INT))


def test_literals_have_their_types():
    told = {"7": INT, "0x80000000": UNSIGNED, "2147483648": LONG, "7u": UNSIGNED, "7LL": LONG, "0": INT}
    assert {text: literal(text).kind for text in told} == told
    assert literal("1.0f") is None
    assert converted(Number(300, INT), Kind(1, False)).value == 44
    assert converted(Number(200, INT), Kind(1, True)).value == -56
