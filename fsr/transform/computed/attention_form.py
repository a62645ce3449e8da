"""Attention: values weighed by a softmax of products, as one fold over keys that the softmax's own folds run beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from fsr.computation.canonical import ordered
from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Const, Expr, Fold, Load, Op, distinct, mapped, names_in, rebuilt
from fsr.computation.simplify import unpeeled
from fsr.computation.types import CASTS, type_of
from fsr.transform.computed.parts import name_of

Dim = tuple[str, str]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Attention:
    """``value``: of an output's element, in which ``fold`` stands: over ``key``, as far as ``length``, of ``v`` times
    ``weight``. In that stands ``power`` once, e to ``score`` less its maximum ``top``; in weight or value ``totals``,
    the sum of the powers (however it is spelt). In the score stands ``product``, over ``depth``, of ``q`` and ``k``.
    ``query``, ``column``: dimensions of the output that q has and k has not, and only v has; ``lead``: the rest."""

    output: Statement
    value: Expr
    fold: Fold
    v: Expr
    weight: Expr
    power: Expr
    score: Expr
    top: Fold
    totals: tuple[Fold, ...]
    product: Fold
    q: Expr
    k: Expr
    query: Dim
    column: Dim
    lead: tuple[Dim, ...]

    @property
    def key(self) -> str:
        """The dimension that is folded."""
        return self.fold.dims[0][0]

    @property
    def length(self) -> Affine:
        """How many keys a query has."""
        return self.fold.dims[0][1]


def attention(s: Statement, whole: Expr, sizes: Sequence[str]) -> Attention | None:
    """An output's value (folds written out) as attention; None where it is none."""
    value = unpeeled(whole)
    tops, last = _topmost(value), s.domain[-1][0]
    fold = _only([f for f in tops if last in names_in(f)])
    if fold is None or fold.op != "sum" or len(fold.dims) != 1 or fold.inside or type_of(fold) != "float32":
        return None
    weighed = _weighed(fold, s)
    if weighed is None:
        return None
    v, weight = weighed
    key = fold.dims[0][0]
    power = _only([x for x in _above_folds(weight) if isinstance(x, Op) and x.name == "exp" and key in names_in(x)])
    if power is None or key in names_in(_put(weight, power)) or not _linear(weight, power):
        return None
    totals = tuple(dict.fromkeys((*_topmost(_put(weight, power)), *(f for f in tops if f != fold))))
    parts = _less_top(power)
    if parts is None or not totals or not all(_same_keys(fold, f, power) and f.op == "sum" for f in totals):
        return None
    score, top = parts
    product = _only(_topmost(score))
    if product is None or not _same_keys(fold, top, score) or len({type_of(f) for f in totals}) != 1:
        return None
    sides = _sides(product, key)
    if sides is None:
        return None
    q, k = sides
    nowhere = ("", "")
    found = Attention(s, value, fold, v, weight, power, score, top, totals, product, q, k, nowhere, nowhere, ())
    return _over(s, found, sizes)


def _over(s: Statement, found: Attention, sizes: Sequence[str]) -> Attention | None:
    """With the output's dimensions told apart: of those that only q has, keys are as many as one says, or the last."""
    names = [n for n, _ in s.domain]
    only_q, last = names_in(found.q) - names_in(found.k) - names_in(found.v), s.domain[-1]
    terms, constant = found.length.terms, found.length.constant
    whole = {n for n, _ in terms} <= set(sizes)
    own = [d for d in s.domain if d[0] in only_q and (whole or (terms == ((d[0], 1),) and constant >= 1))]
    if not own or own[-1] == last or [name_of(i) for i in s.place] != names:
        return None
    if last[0] not in names_in(found.v) or last[0] in names_in(found.q) | names_in(found.k):
        return None
    if {n for n, _ in found.product.dims[0][1].terms} - set(sizes):
        return None
    return replace(found, query=own[-1], column=last, lead=tuple(d for d in s.domain if d not in (own[-1], last)))


def _only(found: Sequence[_T]) -> _T | None:
    return found[0] if len(found) == 1 else None


def _topmost(e: Expr) -> list[Fold]:
    """The folds of an expression that stand in no other, each once."""
    return list(dict.fromkeys(x for x in _outside_folds(e) if isinstance(x, Fold)))


def _above_folds(e: Expr) -> list[Expr]:
    """All that stands in an expression in no fold, each once."""
    return list(dict.fromkeys(x for x in _outside_folds(e) if not isinstance(x, Fold)))


def _outside_folds(e: Expr) -> Iterator[Expr]:
    return distinct(e, lambda x: not isinstance(x, Fold))


def _put(e: Expr, power: Expr) -> Expr:
    """The expression with a number for the power where it stands in no fold."""

    def put(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        return e if isinstance(e, Fold) else Const(1.0, "float32") if e == power else rebuilt(e, parts)

    return mapped(e, put)


def _linear(weight: Expr, power: Expr) -> bool:
    """Whether the weight is the power, or a quotient or product of it."""
    if weight == power:
        return True
    if not isinstance(weight, Op) or weight.name not in ("div", "prod"):
        return False
    holding = [n for n, a in enumerate(weight.args) if power in _above_folds(a)]
    return len(holding) == 1 and (weight.name == "prod" or holding == [0]) and _linear(weight.args[holding[0]], power)


def _weighed(fold: Fold, s: Statement) -> tuple[Expr, Expr] | None:
    """What is read of the output's last dimension, and what it is multiplied with."""
    body, last = fold.body, s.domain[-1][0]
    if not isinstance(body, Op) or body.name != "prod":
        return None
    reads = [f for f in body.args if isinstance(uncast(f), Load) and last in names_in(f)]
    rest = tuple(f for f in body.args if f not in reads)
    if len(reads) != 1 or not rest or fold.dims[0][0] not in names_in(reads[0]):
        return None
    return reads[0], rest[0] if len(rest) == 1 else Op("prod", rest)


def _less_top(power: Expr) -> tuple[Expr, Fold] | None:
    """The score and its maximum."""
    assert isinstance(power, Op)
    inner = power.args[0]
    if not isinstance(inner, Op) or inner.name != "sum":
        return None
    tops = [a.args[0] for a in inner.args if isinstance(a, Op) and a.name == "neg" and isinstance(a.args[0], Fold)]
    tops = [t for t in tops if isinstance(t, Fold) and t.op == "max"]
    rest = tuple(a for a in inner.args if not (isinstance(a, Op) and a.args[0] in tops and a.name == "neg"))
    if len(tops) != 1 or not rest or not isinstance(tops[0], Fold):
        return None
    return rest[0] if len(rest) == 1 else Op("sum", rest), tops[0]


def _same_keys(fold: Fold, other: Fold, body: Expr) -> bool:
    """Whether another fold goes over the same keys, of this body."""
    if len(other.dims) != 1 or other.dims[0][1] != fold.dims[0][1] or other.inside:
        return False
    alike = Fold(other.op, fold.dims, body)
    return ordered(alike) in (ordered(other), ordered(Fold(other.op, other.dims, uncast(other.body))))


def _sides(product: Fold, key: str) -> tuple[Expr, Expr] | None:
    """What of a product of two reads does not go along the keys, and what does."""
    body = product.body
    if product.op != "sum" or len(product.dims) != 1 or product.inside or type_of(product) != "float32":
        return None
    if not isinstance(body, Op) or body.name != "prod" or len(body.args) != 2:
        return None
    if not all(isinstance(uncast(f), Load) and product.dims[0][0] in names_in(f) for f in body.args):
        return None
    q, k = sorted(body.args, key=lambda f: key in names_in(f))
    return (q, k) if key in names_in(k) and key not in names_in(q) else None


def uncast(e: Expr) -> Expr:
    """What is converted, or the expression itself."""
    return e.args[0] if isinstance(e, Op) and e.name in CASTS else e
