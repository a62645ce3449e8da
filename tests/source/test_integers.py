"""Which names of a text are integers known at compile time, and which only look it."""

from __future__ import annotations

import pytest

from fsr.source.integers import integer_of, integers

TEXT = """
#define N 256
#define TWICE (N * 2) // of a block
#define OPEN N * 2
#define CALL(x) 4
#define EPS 1e-5f
#define BOTH 1
#define BOTH 2
#define BELOW (-4)
static const int THIRD = TWICE / 3;
constexpr unsigned long long WIDE = (unsigned int)THIRD << 2u;
__constant__ const std::size_t MASK = static_cast<int>(0x10u) - 1;
const float eps = 1;
const unsigned wrapped = -1;
const int several = 4, more = 5;
const int BYTES = sizeof(float);
  const int local = 3;
"""


def test_what_a_text_fixes() -> None:
    assert integers(TEXT) == {
        "N": 256, "TWICE": 512, "BELOW": -4, "THIRD": 170, "WIDE": 680, "MASK": 15
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [("N * 2 - -1", 513), ("7 / -2", -3), ("(N)", 256), ("n", None), ("", None), ("1.5", None), ("N / 0", None)],
)
def test_expressions(text: str, value: int | None) -> None:
    assert integer_of(text, {"N": 256}) == value


def test_enumerators_are_integers() -> None:
    text = """
enum { LAST = 7, GROUPS = LAST / 2 * 2, /* one more */ NEXT, };
typedef enum Kind { LOW = -2, ZERO = 1 << 3, OPEN = later } Kind;
enum Wide : unsigned long { FIRST, SECOND };
enum class Scoped { A, B };
enum { TWICE = 1 };
#define TWICE 2
    enum { LOCAL = 3 };
"""
    assert integers(text) == {"LAST": 7, "GROUPS": 6, "NEXT": 7, "LOW": -2, "ZERO": 8, "FIRST": 0, "SECOND": 1}
