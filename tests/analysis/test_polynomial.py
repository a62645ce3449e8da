"""Index expressions as polynomials: equal values have equal polynomials, and coefficients are strides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fsr.analysis.polynomial import Poly, constant, polynomial, symbol
from fsr.source.form import Assign, Expr, Literal
from fsr.source.parse import parse_kernels
from fsr.source.walk import integer


def expr(text: str) -> Expr:
    (stmt,) = parse_kernels(f"__global__ void f(int a, int b) {{ x = {text}; }}")["f"].body
    assert isinstance(stmt, Assign)
    return stmt.value


def poly(text: str, **known: Poly) -> Poly:
    return polynomial(expr(text), known)


def test_the_same_value_written_differently_is_the_same_polynomial():
    assert poly("(i + 1) * n + j - n") == poly("j + n * i")
    assert poly("(size_t)i * n + (int)j") == poly("size_t(n) * i + j")
    assert poly("(i << 4) + 2 * 8") == poly("16u * (i + 0x1)")
    assert poly("-(a - b)") == poly("b - a")


def test_what_narrows_is_no_look_through():
    assert poly("(unsigned long)i + (int64_t)j") == poly("i + j")
    for cast in ("(unsigned char)i", "(short)i", "(bool)i", "char(i)", "(float)i"):
        assert poly(cast) != poly("i")
        assert poly(cast).coefficient("i") is None


def test_text_is_what_people_write():
    assert [poly(t).text() for t in ("n - 1", "-n", "3 + i * n - 2 * (j / 4)", "n - n", "-3")] == [
        "n - 1", "-n", "i * n + 3 - 2 * (j / 4)", "0", "-3",
    ]  # fmt: skip


def test_coefficients_are_strides():
    access = poly("batch * rows * cols + row * cols + col + 3")
    assert access.coefficient("row") == symbol("cols")
    assert access.coefficient("col") == constant(1)
    assert access.coefficient("other") == constant(0)
    assert poly("row * row").coefficient("row") is None
    assert poly("(row % 4) * n").coefficient("row") is None


def test_what_is_no_polynomial_keeps_its_names():
    value = poly("a[i / n] + k", n=symbol("width"))
    assert {"a", "i", "width", "k"} <= value.names()
    assert poly("threadIdx.x / 2").names() == {"threadIdx.x"}


def test_literals():
    assert [integer(Literal(t)) for t in ("12", "0x1Fu", "010", "1'000", "3ull", "1.0f", "'a'")] == [
        12, 31, 8, 1000, 3, None, None,
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(-5, 5), st.sampled_from(["a", "b", "a * b", "1"])), min_size=1, max_size=6),
       st.integers(-9, 9), st.integers(-9, 9))  # fmt: skip
def test_text_has_the_value(terms, a, b):
    text = " + ".join(f"({c}) * ({t})" for c, t in terms)
    assert eval(poly(text).text(), {"a": a, "b": b}) == eval(text, {"a": a, "b": b})
