"""Numbers that a source names are found however they are spelled."""

from __future__ import annotations

import pytest

from fsr.testgen.numbers import folded, numbers, products, values


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("if (n == 1048576) return;", 1048576),
        ("if (n == 0x100000) return;", 1048576),
        ("if (n == 0x1770u) return;", 6000),
        ("if (n == 0b1111'0000) return;", 240),
        ("if (n == 04000) return;", 2048),
        ("if (n == 1'000'000ull) return;", 1000000),
        ("if (n == (1 << 20)) return;", 1 << 20),
        ("if (n == 1u << 13) return;", 1 << 13),
        ("#define SIZE 77\nif (n == SIZE) return;", 77),
        ("#define A 8\n#define B (A * 12)\nif (n == B) return;", 96),
        ("constexpr int tile = 5 * 7; if (n % tile) return;", 35),
        ("enum { kRows = 48 }; if (n == kRows) return;", 48),
        ("const int a = 6, b = a; if (n == a * 1000) return;", 6000),
        ("if (n == 6 * 1000) return;", 6000),
        ("static constexpr unsigned k = 3 << 4;", 48),
    ],
)
def test_a_number_is_found_in_any_spelling(source: str, wanted: int) -> None:
    assert wanted in numbers(source)


def test_what_is_no_whole_number_is_left_alone() -> None:
    assert numbers('float a = 1.5f + x77; const char *s = "123"; // 456') == set()
    assert numbers("int a = 1 << 99; int b = 5 / 0;") == {5, 99}


def test_products_of_two_go_up_to_a_limit() -> None:
    assert products([3, 256], 1000) == {9, 768}


def test_what_two_numbers_hide_in_a_comparison_is_found() -> None:
    assert 1867 in folded([15651, 14952], 8192)  # (n ^ 15651) == 14952
    assert 9227 in folded([5, 46135], 10_000)  # n * 5 == 46135
    assert 19070 in folded([19063, 7], 20_000)  # n - 19063 == 7
    assert folded([5, 46135], 100) == []


def test_values_are_the_numbers_that_a_value_may_be_compared_with() -> None:
    assert values("if (v > 2.5e3f || v == -0.125) return 7; // 9.5") == {2500.0, 0.125, 7.0}
