"""What a body says several times is computed once, and kept no longer than it is asked for."""

from __future__ import annotations

import numpy as np

from fsr.computation import interpret as module
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Fold, Load, Number, Op
from fsr.computation.interpret import interpret
from fsr.computation.repeated import Repeated


def test_a_part_that_comes_again_is_computed_once(monkeypatch):
    calls = []
    monkeypatch.setitem(module._FUNCTIONS, "sqrt", lambda a: calls.append(1) or np.sqrt(a))
    i, k = (Number(Affine(((name, 1),)), "int64") for name in ("i", "k0"))
    root = Op("sqrt", (Op("sum", (Load("x", (k,), "float32"), Load("x", (i,), "float32"))),))
    value = Fold("sum", (("k0", Affine((("n", 1),))),), Op("prod", (root, root, root)))
    shape = (Buffer("x", "float32", ("n",)), Buffer("y", "float32", ("n",)))
    c = Computation(("n",), shape, (Statement("fold", "y", (("i", "n"),), value, (i,)),))
    x = np.array([1.0, 4.0, 7.0], np.float32)
    found = interpret(c, {"n": 3}, {"x": x, "y": x})["y"]
    np.testing.assert_allclose(found, (np.sqrt(x[:, None] + x) ** 3).sum(1), rtol=1e-6)
    assert len(calls) == 1


def test_nothing_is_kept_once_nobody_asks_for_it_again():
    part = Op("sqrt", (Load("x", (), "float32"),))
    kept, made = Repeated(Op("sum", (part, part))), []
    for _ in range(2):
        assert kept.of(part, lambda: made.append(1) or np.zeros(3)).shape == (3,)
    assert len(made) == 1
    assert not kept._known
