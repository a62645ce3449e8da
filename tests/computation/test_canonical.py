"""What is equal in canonical form, and what stays apart."""

from itertools import permutations

from fsr.computation.canonical import ordered
from fsr.computation.expression import Affine, Expr, Fold, Load, Number, Op, renamed


def _at(name: str) -> Expr:
    return Number(Affine(((name, 1),)), "int64")


def _read(buffer: str, *dims: str) -> Load:
    return Load(buffer, tuple(map(_at, dims)), "float32")


def _sum(body: Expr, dim: str = "k", extent: str = "cols") -> Fold:
    return Fold("sum", ((dim, Affine(((extent, 1),))),), body)


X, Y = _read("x", "i", "k"), _read("y", "i", "k")


def test_sums_over_the_same_elements_are_one():
    apart = Op("sum", (_sum(X), Op("neg", (_read("m", "i"),)), _sum(_read("y", "i", "t"), "t")))
    together = Op("sum", (Op("neg", (_read("m", "i"),)), _sum(Op("sum", (Y, X)))))
    assert ordered(apart) == ordered(together)


def test_other_elements_lengths_and_products_stay_apart():
    for other in (
        _sum(_read("y", "k", "j")),  # one a column
        _sum(Y, extent="rows"),
        Op("neg", (_sum(Y),)),
    ):
        found = ordered(Op("sum", (_sum(X), other)))
        assert isinstance(found, Op)
        assert len(found.args) == 2
    assert isinstance(ordered(Op("prod", (_sum(X), _sum(Y)))), Op)


def test_contractions_keep_a_sum_each():
    gates = [_sum(Op("prod", (_read("x", "i", "k"), _read(w, "k", "j")))) for w in ("w", "u")]
    assert isinstance(ordered(Op("sum", tuple(gates))), Op)


def test_operands_are_equal_in_any_order_and_each_knows_the_one_it_was_written_in():
    terms = (Y, Op("neg", (_read("m", "i"),)), X)
    for written in permutations(terms):
        once = ordered(Op("sum", written))
        assert once == ordered(Op("sum", terms))
        assert isinstance(once, Op)
        again = ordered(renamed(once, lambda n: {"i": "row"}.get(n, n)))
        assert isinstance(again, Op)
        for found, row in ((once, "i"), (again, "row")):
            assert found.as_written == tuple(renamed(t, lambda n, row=row: row if n == "i" else n) for t in written)
    assert Op("sum", terms, (0, 1)).as_written == terms  # an order of other operands
