"""Slices of large arrays, several at once: each element once, and the same whoever does it."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.testgen import chunks, oracle, shaking
from fsr.testgen.chunks import CACHED, in_chunks


@pytest.mark.parametrize("count", [0, 1, CACHED - 1, CACHED, CACHED + 1, 40 * CACHED + 7])
def test_every_element_is_worked_on_once(count):
    seen = np.zeros(count, np.int64)

    def work(part: slice) -> None:
        seen[part] += 1

    in_chunks(count, work)
    assert (seen == 1).all()


def test_what_is_raised_comes_out():
    def work(part: slice) -> None:
        if part.start >= 33 * CACHED:
            raise ArithmeticError("at the end")

    for count in (34 * CACHED, 40 * CACHED):
        with pytest.raises(ArithmeticError, match="at the end"):
            in_chunks(count, work)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_threads_change_nothing(dtype, monkeypatch):
    rng = np.random.default_rng(3)
    array = (rng.standard_normal((65, 32771)) * 50).astype(dtype)
    array[3, 5], array[4, 6] = np.inf, np.nan
    assert array.size > 32 * CACHED

    def all_of_it():
        moved = shaking._shaken(array, 2.0**-7, shaking._apart(array, np.random.default_rng(5)))
        back = shaking._turned_back(array, moved, np.float64(-40.0), np.float64(40.0))
        rows = shaking._turned_back(array, moved, np.linspace(-50, -40, 32771), np.full(32771, 45.0))
        return moved, back, rows, oracle._change(array, moved)

    several = all_of_it()
    monkeypatch.setattr(chunks, "_MANY", 1 << 60)
    alone = all_of_it()
    monkeypatch.setattr(chunks, "CACHED", array.size)
    for one, other, whole in zip(several, alone, all_of_it(), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, whole)
