"""Running folds along rows and along one long line."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.computation.expression import Affine, Fold
from tests.transform.computed.test_families import FAMILY, computed
from tests.transform.computed.test_plans import load, of_file


def running(op: str, dim: str, constant: int, *place: str) -> Fold:
    return Fold(op, (("k0", Affine(((dim, 1),), constant)),), load("x", *place))


ROWS = of_file("row_scan"), {"y": running("sum", "j", 1, "i", "k0")}
LONG = of_file("long_scan"), {"y": running("sum", "i", 0, "k0")}


@pytest.mark.parametrize(("case", "chosen", "sizes"), [
    (ROWS, {"threads": 128, "parts": 1}, {"rows": 3, "cols": 2600}),
    (LONG, {"threads": 128, "packs": 1}, {"n": 1}),
    (LONG, {"threads": 128, "packs": 1}, {"n": 9001}),
])  # fmt: skip
def test_scans(runner, case, chosen, sizes):
    subject, values = case
    subject = computed(subject, values, tuple(sizes))
    moves = FAMILY["scan-tiles"].moves(subject)
    move = next(m for m in moves if all(m.param(key) == value for key, value in chosen.items()))
    made = FAMILY["scan-tiles"].apply(subject, move)
    assert len(made.plan.launches) == (1 if move.param("parts") == 1 else 2)
    want, got = (runner.outputs(c, subject.contract, sizes)["y"] for c in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5)
