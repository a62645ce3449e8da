"""Another formula is told from another rounding."""

import math

import numpy as np

from fsr.bench.agreement import agrees, disagreement


def test_rounding_agrees_and_another_formula_does_not():
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    assert agrees(disagreement(np.tanh(x), np.tanh(x.astype(np.float64)).astype(np.float32)), "float32")
    assert not agrees(disagreement(x, np.tanh(x)), "float32")


def test_a_long_sum_of_both_signs_may_round_and_no_more():
    share = disagreement(np.array([810.0], np.float32), np.array([800.0], np.float32), terms=1 << 26)
    assert agrees(share, "float32")
    assert not agrees(disagreement(np.array([0.0], np.float32), np.array([800.0], np.float32), 1 << 26), "float32")


def test_numbers_that_are_none_and_shapes():
    x = np.array([1.0, np.nan, np.inf], np.float32)
    assert disagreement(x, x) == 0.0
    assert disagreement(x, np.array([1.0, 2.0, np.inf], np.float32)) == math.inf
    assert disagreement(x, x[:2]) == math.inf


def test_integers_agree_when_equal():
    assert disagreement(np.array([1, 2, 3]), np.array([1, 2, 4])) == 1 / 3
    assert agrees(0.0, "int32")
    assert not agrees(0.1, "int32")
