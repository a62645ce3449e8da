"""Computations executed by NumPy, and their canonical form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.computation.canonical import canonical, ordered
from fsr.computation.computation import Buffer, Computation, Statement, from_record, to_record
from fsr.computation.expression import Affine, Case, Const, Fold, Load, Number, Op, affine
from fsr.computation.interpret import NoMeaning, interpret, interpret_at
from fsr.computation.printing import lines, words


def at(*names):
    return tuple(Number(affine(n), "int64") for n in names)


def matrix(name, *dims):
    return Load(name, at(*dims), "float32")


def product(*, first="A", inside=False):
    body = Op("prod", (matrix("A", "i", "q"), matrix("B", "q", "j")))
    if first == "B":
        body = Op("prod", tuple(reversed(body.args)))
    value = Fold("sum", (("q", affine("n")),), body, inside)
    buffers = (
        Buffer("A", "float32", ("m", "n")),
        Buffer("B", "float32", ("n", "m")),
        Buffer("C", "float32", ("m", "m")),
    )
    return Computation(("m", "n"), buffers, (Statement("map", "C", (("i", "m"), ("j", "m")), value, at("i", "j")),))


def test_a_product_of_matrices_in_its_own_type_and_in_float64():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 7), np.float32), rng.standard_normal((7, 5), np.float32)
    narrow = interpret(product(), {"m": 5, "n": 7}, {"A": a, "B": b})["C"]
    wide = interpret(product(), {"m": 5, "n": 7}, {"A": a, "B": b}, wide=True)["C"]
    assert (narrow.dtype, wide.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(wide, a.astype(np.float64) @ b)


def test_order_and_names_do_not_matter_to_the_canonical_form():
    one, other = canonical(product()), canonical(product(first="B"))
    assert one == other
    assert lines(one) == ["C[i, j] = sum(A[i, k0] * B[k0, j] for k0 in range(n))"]
    assert words(one) == ["C (float32, m × m): sum over n, from A, B"]
    assert from_record(to_record(one)) == one


def test_a_fold_that_two_places_need_is_one_statement():
    total = Fold("sum", (("z", affine("n")),), matrix("A", "i", "z"))
    value = Op("div", (Op("sum", (matrix("A", "i", "j"), total)), total))
    buffers = (Buffer("A", "float32", ("m", "n")), Buffer("C", "float32", ("m", "n")))
    found = canonical(
        Computation(("m", "n"), buffers, (Statement("map", "C", (("i", "m"), ("j", "n")), value, at("i", "j")),))
    )
    assert lines(found) == ["_sum[i] = sum(A[i, k0] for k0 in range(n))", "C[i, j] = (A[i, j] + _sum[i]) / _sum[i]"]
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = interpret(found, {"m": 2, "n": 3}, {"A": a})["C"]
    np.testing.assert_allclose(got[1], (a[1] + 12) / 12)


def test_padding_and_cases_at_an_edge():
    shifted = Load("x", (Number(Affine((("i", 1), ("k", 1)), -1), "int64"),), "float32")
    window = Fold("sum", (("k", Affine((), 3)),), shifted, inside=True)
    value = Case(affine("i"), Affine((), 0), Const(-1.0, "float32"), window)
    buffers = (Buffer("x", "float32", ("n",)), Buffer("y", "float32", ("n",)))
    c = Computation(("n",), buffers, (Statement("map", "y", (("i", "n"),), value, at("i")),))
    got = interpret(c, {"n": 4}, {"x": np.array([1, 2, 3, 4], np.float32)})["y"]
    assert got.tolist() == [-1.0, 6.0, 9.0, 7.0]


def test_scatter_and_unsigned_bytes():
    place = Op("zext_int64", (Load("v", at("i"), "uint8"),))
    s = Statement("scatter", "h", (("i", "n"),), Const(1, "int32"), (place,), "+")
    c = Computation(("n",), (Buffer("v", "uint8", ("n",)), Buffer("h", "int32", ("256",))), (s,))
    data = np.array([3, 200, 200, 3, 3], np.uint8)
    got = interpret(c, {"n": 5}, {"v": data, "h": np.zeros(256, np.int32)})["h"]
    assert (got[3], got[200], got.sum()) == (3, 2, 5)


def test_what_has_no_meaning_is_told():
    c = product()
    unknown = Statement("map", "C", (("i", "m"), ("j", "m")), Op("mystery", (Const(1.0, "float32"),)), at("i", "j"))
    with pytest.raises(NoMeaning, match="mystery"):
        interpret(Computation(c.sizes, c.buffers, (unknown,)), {"m": 2, "n": 2}, {})


def test_folds_over_nothing():
    c = canonical(product())
    got = interpret(c, {"m": 2, "n": 0}, {"A": np.zeros((2, 0), np.float32), "B": np.zeros((0, 2), np.float32)})["C"]
    assert got.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert ordered(Op("sum", (Const(1.0, "float32"), matrix("A", "i", "j")))).args[0] == matrix("A", "i", "j")


def test_what_is_read_outside_of_a_buffer_shows():
    beyond = Load("x", (Number(Affine((("i", 1),), 1), "int64"),), "float32")
    buffers = (Buffer("x", "float32", ("n",)), Buffer("y", "float32", ("n",)))
    guarded = Case(affine("i"), Affine((("n", 1),), -2), beyond, Const(0.0, "float32"))
    for value, last in ((beyond, "nan"), (guarded, "0.0")):
        c = Computation(("n",), buffers, (Statement("map", "y", (("i", "n"),), value, at("i")),))
        got = interpret(c, {"n": 3}, {"x": np.ones(3, np.float32)})["y"]
        assert [str(v) for v in got] == ["1.0", "1.0", last]


def test_single_elements_made_of_kept_ones_are_those_of_the_whole():
    running = Fold("sum", (("q", Affine((("i", 1),), 1)),), Load("x", at("q"), "float32"))
    before = Load("$s", (Number(Affine((("i", 1),), -3), "int64"),), "float32")
    value = Op("sum", (Load("$s", at("i"), "float32"), Case(affine("i"), affine(2), Const(0.0, "float32"), before)))
    buffers = tuple(Buffer(name, "float32", ("n",)) for name in ("x", "$s", "y"))
    statements = (
        Statement("map", "$s", (("i", "n"),), running, at("i")),
        Statement("map", "y", (("i", "n"),), value, at("i")),
    )
    c = Computation(("n",), buffers, statements)
    x = np.random.default_rng(1).standard_normal(20, np.float32)
    whole = interpret(c, {"n": 20}, {"x": x}, wide=True)["y"]
    places = np.array([0, 2, 3, 19, 7])
    np.testing.assert_array_equal(interpret_at(c, {"n": 20}, {"x": x}, "y", [places], wide=True), whole[places])
    beyond = Computation(("n",), buffers, (statements[0], replace(statements[1], value=before)))
    assert np.isnan(interpret_at(beyond, {"n": 20}, {"x": x}, "y", [places])).tolist() == [
        True,
        True,
        False,
        False,
        False,
    ]
