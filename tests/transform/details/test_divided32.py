"""64-bit divisions of indices in 32 bits (``index32``)."""

import pytest

from fsr.transform.details.index32 import Index32

KERNEL = """
// /// fsr
// entry = "k"
// [sizes]
// h = {{min = {least}, max = {most}, timed = 64}}
// w = {{min = {least}, max = {most}, timed = 64}}
// c = {{min = 1, max = 32, timed = 4}}
// [args]
// x = {{role = "in", shape = ["c", "h", "w"]}}
// y = {{role = "out", shape = ["c", "h", "w"]}}
// C = {{value = "c"}}
// H = {{value = "h"}}
// W = {{value = "w"}}
// [launch]
// grid = "ceil_div(c * h * w, 64)"
// block = 64
// ///
typedef long long idx_t;
__global__ void k(const float *x, float *y, {size} C, {size} H, {size} W) {{ {body} }}
"""
SIZES = ({"c": 3, "h": 7, "w": 11}, {"c": 1, "h": 1, "w": 1}, {"c": 2, "h": 33, "w": 5})
TURNED = "y[(n * W + s) * H + r] = x[at];"
ID = "at = ({0})blockIdx.x * blockDim.x + threadIdx.x; if (at >= C * H * W) return;"


def kernel(body, size="long long", *, least=1, most=512):
    return KERNEL.format(body=body, size=size, least=least, most=most)


@pytest.mark.parametrize(
    ("size", "body", "divided"),
    [
        ("const long long", "const long long " + ID.format("long long") + """
         const int s = at % W, row = at / W; const int n = row / H, r = row % H;""",
         ["int s = at % (int)W;", "int row = at / (int)W;", "int n = row / (int)H;"]),
        ("size_t", "size_t " + ID.format("size_t") + "size_t n = at / (H * W); size_t r = at / W % H, s = at % W;",
         ["size_t n = at / (int)(H * W);", "size_t r = at / (int)W % (int)H;"]),
        ("int64_t", "int64_t " + ID.format("int64_t") + """
         int64_t n = at; int64_t s = n % W; n /= W; int64_t r = n % H; n = n / H;""",
         ["s = (int)n % (int)W;", "n = (int)n / (int)W;", "n = (int)n / (int)H;"]),
        ("long", "int at = threadIdx.x + blockIdx.x * blockDim.x; if (at >= C * H * W) return;"
         "int n = at / (H * W), i = at - n * (H * W); long r = i / W, s = i % W;",
         ["int n = at / (int)(H * W);", "r = i / (int)W;"]),
        ("idx_t", "idx_t plane = H * W; idx_t " + ID.format("idx_t") + """
         idx_t n = at / plane, i = at % plane, r = i / W; auto s = i % W;""",
         ["n = (int)at / (int)plane;", "r = (int)i / (int)W;", "auto s = (long long)((int)i % (int)W);"]),
        ("unsigned long", "unsigned at = blockIdx.x * blockDim.x + threadIdx.x; if (at >= C * H * W) return;"
         "unsigned long n = at / W / H, r = (at / W) % H, s = at % W; s = min(s, at % W);",
         ["n = at / (int)W / (int)H;", "min(s, (unsigned long)(at % (int)W))"]),
    ],
)  # fmt: skip
def test_divisions_take_32_bits(size, body, divided, subject_from, apply_move, runner):
    subject = subject_from(kernel(body + TURNED, size))
    changed = apply_move(Index32(), subject, "@kernel")
    for text in divided:
        assert text in changed.source, changed.source
    runner.check(subject, changed, *SIZES)


AT = "long long " + ID.format("long long")


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"most": 1 << 15}, AT + "y[at] = x[at / W];"),
        ({"least": 0}, AT + "if (W > 0) y[at] = x[at / W];"),
        ({}, AT + "long long i = at - 5; y[at] = i / W;"),
        ({}, AT + "long long i = at; i -= 5; y[at] = i / W;"),
        ({}, AT + "long long i = at; i /= 2; i += H * W * 8000000; y[at] = i / W;"),
        ({}, AT + "long long q = at; q /= 2; long long d = q / H; q /= H; long long i = q - d * H; y[at] = i / W;"),
        ({}, AT + "y[at] = x[at / W]; W = 3;"),
        ({}, AT + "y[at] = (long long)x[at] / W;"),
        ({}, AT + "long long d = W - 1; if (d) y[at] = x[at / d];"),
        ({}, AT + "long long i = at; i /= (W - 1) | 1; y[at] = i / W;"),
        ({}, AT + "for (int i = 0; i < 9; i++) { if (at == 3) i -= 7; y[at] = (long long)i / W; }"),
    ],
    ids=["large", "by zero", "a difference", "changed", "grown", "another remainder", "no longer the size", "data",
         "by what may be zero", "left of what is not known", "a turn's own number, changed"],
)  # fmt: skip
def test_divisions_stay_wide(given, body, subject_from):
    subject = subject_from(kernel(body, **given))
    sources = [Index32().apply(subject, m).source for m in Index32().moves(subject)]
    assert not any("(int)W" in s or "(int)d" in s or "(int)i" in s for s in sources), sources


RING = (
    AT
    + """long long s = at % W, r = at / W;
    long long left = (s - 1 + W) % W + r * W, up = s + (r - 1 + H) % H * W;
    y[at] = x[left] - x[up];"""
)


def test_wrapped_neighbours_take_32_bits(subject_from, apply_move, runner):
    """What is below nought between has a sign, and the whole part of a number times its divisor is at most that."""
    subject = subject_from(kernel(RING))
    changed = apply_move(Index32(), subject, "@kernel")
    assert not any(f"long long {name}" in changed.source for name in ("s", "r", "left", "up"))
    assert "(int)(s - 1 + W) % (int)W" in changed.source
    runner.check(subject, changed, *SIZES)


PLANES = (
    AT
    + """long long s = at % W, row = at / W, n = row / H, r = row % H, whole = at / (W * H);
    long long left = (s - 1 + W) % W + r * W + n * H * W, up = s + (r - 1 + H) % H * W + whole * (H * W);
    y[at] = x[left] - x[up];"""
)


def test_whole_parts_of_several_divisions_are_no_more_than_what_was_divided(subject_from, apply_move, runner):
    subject = subject_from(kernel(PLANES))
    changed = apply_move(Index32(), subject, "@kernel")
    assert not any(f"long long {name}" in changed.source for name in ("s", "row", "n", "r", "whole", "left", "up"))
    runner.check(subject, changed, *SIZES)
    other = subject_from(kernel(PLANES.replace("n * H * W", "n * H * W * H"), most=1024))
    assert all("long long n " in Index32().apply(other, m).source for m in Index32().moves(other))


@pytest.mark.parametrize(
    ("size", "body"),
    [
        ("long long", RING.replace("(s - 1 + W)", "(s - 1)")),
        ("long long", RING.replace("(s - 1 + W)", "(threadIdx.x - 1 + W)")),
        ("long long", RING.replace("(s - 1 + W)", "((unsigned)s - 1 + W)")),
        ("size_t", RING.replace("long long", "size_t").replace("(s - 1 + W)", "(s - 2 + W)")),
    ],
    ids=["below nought", "a wrapped id", "a wrapped number", "too far below"],
)
def test_what_may_wrap_keeps_its_64_bits(size, body, subject_from):
    subject = subject_from(kernel(body, size))
    sources = [Index32().apply(subject, m).source for m in Index32().moves(subject)]
    assert not any("int left" in s or "- 1) % (int)W" in s or "+ W) % (int)W" in s for s in sources), sources


def test_what_is_made_of_a_quotient_keeps_its_64_bits(subject_from, apply_move, runner):
    body = AT + "long long big = (at / W) * 4000000000; y[at] = (float)(big + (at % W) * 4000000000);"
    subject = subject_from(kernel(body))
    changed = apply_move(Index32(), subject, "@kernel")
    assert "(long long)((int)at / (int)W) * 4000000000" in changed.source
    runner.check(subject, changed, *SIZES)
