"""Parameters that a kernel moves once: each name is one address afterwards."""

from __future__ import annotations

import pytest

from fsr.source.emit import emit_kernel
from fsr.source.moved_pointers import with_own_pointers
from fsr.source.parse import parse_kernels


def moved(statement: str) -> str:
    text = f"__global__ void k(float *x, const int *at, int n) {{ {statement} x[n] = 1.0f; }}"
    return " ".join(emit_kernel(with_own_pointers(parse_kernels(text)["k"])).split())


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("x += at[0] * n;", "x + at[0] * n"),
        ("x = x + n;", "x + n"),
        ("x = x + at[0] + n;", "x + at[0] + n"),
        ("x = x + at[0] * n + n + 1;", "x + at[0] * n + n + 1"),
    ],
)
def test_where_it_is_moved_to_is_a_pointer_of_its_own(statement: str, place: str) -> None:
    assert f"x_own = {place}; x_own[n] = 1.0f;" in moved(statement)


@pytest.mark.parametrize("statement", ["x = x - n;", "x = x + n - 1;", "x = x + n; x += 1;", "if (n) x = x + 1 + n;"])
def test_other_moves_stay(statement: str) -> None:
    assert "x_own" not in moved(statement)
