"""invariant-division: the same numbers for every dividend and divisor, and reciprocals only of what stays the same."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.transform.details.invariant_division import InvariantDivision

ACTION = InvariantDivision()
COUNT = 64
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// m = {min = 1, max = 4096, timed = 1024}
// w = {min = LEAST, max = 512, timed = 64}
// [args]
// x = {role = "in", shape = ["m"], dtype = "DTYPE"}
// by = {role = "in", shape = ["m"], dtype = "DTYPE", low = 1}
// y = {role = "out", shape = ["m"], dtype = "DTYPE"}
// m = {value = "m"}
// w = {value = "w"}
// [launch]
// grid = "ceil_div(m, 64)"
// block = 64
// ///
#define SIDE 8
#define ONE(a) ((a) |= 1)
#define SWAP(a, b) (b += ONE(a))
#define NEXT n++
constexpr __device__ int fixed(int n) { int s = 0; for (int i = 3; i < 9; i++) s += i * i % n; return s; }
typedef TYPE num;
__device__ num times(num a, num b, num mod) { return a * b % mod; }
__device__ num squared(num a, num mod) { num b = times(a, a, mod); return b; }
__device__ num power(num a, int e, num mod) {
  num r = 1 % mod;
  for (; e > 0; e >>= 1) { if (e & 1) r = r * a % mod; a = a * a % mod; }
  return r;
}
__device__ void change(num &a) { a += 1; }
__global__ void k(const num *x, const num *by, num *y, int m, int w) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= m) return;
  num n = by[i], s = 0;
  BODY
  y[i] = s;
}"""
DTYPES = {"int": "int32", "unsigned": "uint32", "long long": "int64", "unsigned long": "uint64"}
EACH = "for (int j = 0; j < m; j++) "


def text(body, type_="unsigned long", least=1):
    return (
        TEXT.replace("BODY", body).replace("DTYPE", DTYPES[type_]).replace("TYPE", type_).replace("LEAST", str(least))
    )


def changed(subject, what="all"):
    (move,) = (m for m in ACTION.moves(subject) if m.param("what") == what)
    return ACTION.apply(subject, move)


def values(type_, chance, *, divisors):
    """Numbers of all lengths, and those where a quotient off by one would show."""
    info = np.iinfo(DTYPES[type_])
    bits = chance.integers(1, info.bits, COUNT)
    found = [int(chance.integers(0, 1 << 62)) * 4 + 3 >> 64 - int(b) for b in bits]
    edges = [1, 2, 3, info.max, info.max - 1, info.max // 2, info.max // 2 + 1, (1 << 16) + 1, 10, 7]
    found[: len(edges)] = edges
    signs = chance.choice([-1, 1], COUNT) if info.min < 0 else [1] * COUNT
    found = [v * int(s) for v, s in zip(found, signs, strict=True)]
    if divisors:
        return np.array([v or 1 for v in found], info.dtype)
    return np.array([*found[:-3], info.max, info.min + 1, 0], info.dtype)


def same(runner, subject, candidate, type_, **given):
    sizes = {"m": COUNT, "w": 7}
    for seed in range(3):
        chance = np.random.default_rng(seed)
        arrays = {"x": values(type_, chance, divisors=False), "by": values(type_, chance, divisors=True), **given}
        want = runner.outputs(subject.candidate, subject.contract, sizes, given=arrays)["y"]
        np.testing.assert_array_equal(runner.outputs(candidate, subject.contract, sizes, given=arrays)["y"], want)


@pytest.mark.parametrize("width", [8, 12])
def test_one_correction_is_enough_for_every_dividend_and_divisor(width):
    ends = (1 << width) - 1
    a = np.arange(ends + 1, dtype=np.int64)
    for n in range(1, ends + 1):
        quotient = a * (ends // n) >> width
        quotient += a - quotient * n >= n
        assert np.array_equal(quotient, a // n)


@pytest.mark.parametrize("type_", list(DTYPES))
@pytest.mark.parametrize(
    "body",
    [
        EACH + "s = s * 31 + x[j] % n;",
        EACH + "s = s * 31 + x[j] / n;",
        EACH + "{ num a = x[j]; s += a / n; a %= n; s = s * 5 + a; a = x[j]; a /= n; s ^= a; }",
        "s = x[0] / n + x[1 % m] % n * 3 + x[2 % m] % n;",
    ],
)
def test_every_value_is_divided_as_before(body, type_, subject_from, runner):
    subject = subject_from(text(body, type_))
    candidate = changed(subject)
    bits = np.iinfo(DTYPES[type_]).bits
    assert f"inverse = fsr_inverse<{'true' if DTYPES[type_][0] == 'i' else 'false'}," in candidate.source
    assert ("unsigned long long>(n)" in candidate.source) == (bits == 64)
    same(runner, subject, candidate, type_)


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("unsigned u = x[0]; " + EACH + "s += (unsigned)x[j] % (u | 1) + n % 7; " + EACH + "s += j % w;",
         ["fsr_rest<false>(j, w, inverse)", "fsr_inverse<false, unsigned int>(w)"]),
        (EACH + "s += (x[j] & 255) / (num)w;", ["fsr_inverse<false, unsigned int>((num)w)"]),
        (EACH + "{ auto d = n + 0; s += x[j] % d; }", ["fsr_inverse<false, unsigned long long>(n + 0)"]),
        (EACH + "s += x[j] % w;", ["fsr_inverse<false, unsigned long long>(w)"]),
        (EACH + "{ const int d = w * 2 + 1; s += j / d; }", ["fsr_inverse<false, unsigned int>((int)(w * 2 + 1))"]),
        (EACH + "s += (x[j] + j) % blockDim.x;", ["fsr_inverse<false, unsigned long long>(blockDim.x)"]),
        (EACH + "{ if (j & 1) n = n * 2 | 1; for (int l = 0; l < 4; l++) s += (x[j] + l) % n; }",
         ["fsr_inverse<false, unsigned long long>(n)"]),
        (EACH + "{ short t = (short)x[j]; s += (unsigned long)(t % w); }", ["fsr_inverse<true, unsigned int>(w)"]),
        (EACH + "s = times(s + 3, x[j], n);", ["num a = s + 3;", "fsr_rest<false>(a * b, n, inverse)"]),
        (EACH + "s += squared(x[j], n);", ["fsr_inverse<false, unsigned long long>(n)"]),
        ("s = power(x[i], 1000 + i, n);", ["fsr_rest<false>(r * a, mod, inverse)"]),
        ("if (i > 3) { s = x[i] % n; " + EACH + "s += x[j] % n; }", ["{\n        const unsigned long long inverse"]),
        ("for (num e = n; e > 0; e /= 2) s += x[e % m];", ["fsr_rest<false>(e, m, inverse)"]),
    ],
)  # fmt: skip
def test_divisors_that_stay_the_same(body, new, subject_from, runner):
    subject = subject_from(text(body))
    candidate = changed(subject)
    for part in new:
        assert part in candidate.source, candidate.source
    same(runner, subject, candidate, "unsigned long")


@pytest.mark.parametrize("type_", list(DTYPES))
def test_a_loop_that_never_divides_by_nought(type_, subject_from, runner):
    subject = subject_from(text(EACH + "if (n) s += x[j] % n;", type_))
    candidate = changed(subject)
    same(runner, subject, candidate, type_, by=np.arange(COUNT) % 3)


def test_the_wide_ones_alone(subject_from, runner):
    subject = subject_from(text("for (int j = 0; j < m; j++) s += x[j] % n + (i + j) % w;"))
    candidate = changed(subject, "64bit")
    assert "(i + j) % w" in candidate.source
    assert "fsr_rest<false>(x[j], n, inverse)" in candidate.source
    same(runner, subject, candidate, "unsigned long")
    assert [m.param("what") for m in ACTION.moves(subject_from(text(EACH + "s += x[j] % n;")))] == ["all"]


@pytest.mark.parametrize(
    "body",
    [
        EACH + "s += x[j] % 7 + x[j] / SIDE + x[j] % sizeof(num);",
        "const int c = 12, d = c * 2; " + EACH + "s += x[j] % c + x[j] / d;",
        EACH + "{ s += x[j] % n; n |= j; }",
        EACH + "{ s += x[j] % n; change(n); }",
        "num *p = &n; " + EACH + "{ s += x[j] % n; *p |= 1; }",
        "num &r = n; " + EACH + "{ s += x[j] % n; r |= 1; }",
        "auto f = [&] { n |= 1; }; " + EACH + "{ s += x[j] % n; f(); }",
        "__shared__ num z; z = 3; __syncthreads(); " + EACH + "s += x[j] % z;",
        "volatile num z = 3; " + EACH + "s += x[j] % z;",
        EACH + "s += x[j] % by[i];",
        EACH + "{ num n = x[j] | 1; s += i % n; }",
        "s = x[i] % n + x[i] / n;",
        "for (int j = 0; j < 2; j++) s += x[j % 2] % n;",
        EACH + "s += x[j] + i % n;",
        "float f = 3; " + EACH + "s += (float)x[j] / f;",
        "goto end; end: " + EACH + "s += x[j] % n;",
        EACH + "s += times(x[j], 2, 1000007);",
        EACH + "{ s += x[j] % n; SWAP(n, s); }",
        EACH + "{ s += x[j] % n; NEXT; }",
        EACH + "{ s += x[j] % n; swap(n, s); }",
        EACH + "s += fixed(j);",
    ],
    ids=["numbers", "named numbers", "assigned", "by reference", "by address", "by a reference", "in a lambda",
         "of others", "volatile", "from memory", "of a turn", "too few", "two turns", "one quotient", "floats",
         "jumps", "a call's number", "by a macro", "by a named macro", "by another file's function",
         "a constant expression"],
)  # fmt: skip
def test_what_changes_or_is_known_stays(body, subject_from):
    subject = subject_from(text(body))
    assert list(ACTION.moves(subject)) == []


def test_a_size_that_may_be_nought_or_values_that_may_be_negative(subject_from, runner):
    subject = subject_from(text(EACH + "s += (j - 5) % w + (x[j] & 1);", "int", least=0))
    candidate = changed(subject)
    assert "fsr_rest<true>(j - 5, w, inverse)" in candidate.source
    same(runner, subject, candidate, "int")
