"""Products by Hopper's wgmma: right at every size and layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.guard.check import guard
from fsr.lifting.lift import lift
from fsr.transform.computed.action import FROM_COMPUTATION
from tests.transform.computed.test_tensor import linear

ACTION = next(action for action in FROM_COMPUTATION if action.name == "warpgroup-contraction")
SIZES = {"n": 70, "m": 136, "c": 200}


def smallest(subject):
    """The candidate of the move with the fewest sums."""
    moves = list(ACTION.moves(subject))
    return ACTION.apply(subject, min(moves, key=lambda x: int(x.param("bm")) * int(x.param("bn"))))


@pytest.mark.parametrize(("transposed", "sizes"), [(True, SIZES), (False, {"n": 37, "m": 70, "c": 45})])
def test_products_of_halves(runner, transposed, sizes):
    subject = linear(out="float16" if transposed else "float32", transposed=transposed)
    made = smallest(subject)
    assert guard(made, subject.candidate) is None
    want, got = (runner.outputs(x, subject.contract, sizes)["y"].astype(float) for x in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_it_is_the_same_sum_when_it_is_watched():
    subject = linear()
    made = smallest(subject)
    found = lift(subject.contract, made)
    assert found.computation == subject.computation, found.why


def test_only_where_the_gpu_has_it():
    subject = linear()
    assert not list(ACTION.moves(replace(subject, target="sm_80")))
    assert not list(ACTION.moves(replace(subject, target="sm_100")))
    assert not list(ACTION.moves(linear("float32")))
