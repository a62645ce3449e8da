"""Running folds over several dimensions (sums over all that lies above and to the left) as one along each in turn: what
has been folded along the last dimension is kept and folded along the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fsr.computation.canonical import ordered
from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import Affine, Expr, Fold, Load, Number, affine, children, names_in, rebuilt, renamed
from fsr.computation.types import type_of
from fsr.transform.computed.folding import folds_in
from fsr.transform.computed.parts import value_of, written_out


def in_turn(c: Computation) -> Iterator[Computation]:
    """The computation with every such fold along one dimension after the other; none where there is none."""
    whole, found = written_out(c), _InTurn()
    last = [found.told(s) for s in whole.statements] if whole is not None else []
    if whole is not None and found.buffers:
        yield replace(whole, buffers=(*whole.buffers, *found.buffers), statements=(*found.statements, *last))


@dataclass
class _InTurn:
    statements: list[Statement] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def told(self, s: Statement) -> Statement:
        """The statement with its folds over several dimensions as folds over the first of them."""
        value = value_of(s)
        known = {f: self._last(f, grown, s) for f in folds_in(value) if (grown := _grown(f, s))}
        return replace(s, value=ordered(_with(value, known)), kind="map") if known else s

    def _last(self, fold: Fold, grown: dict[str, str], s: Statement) -> Fold:
        """The fold along the first of its dimensions, over what is kept of those behind it."""
        order, body = [n for n, _ in s.domain], fold.body
        *behind, first = sorted(fold.dims, key=lambda d: order.index(grown[d[0]]), reverse=True)
        for dim in behind:
            others = {n: own for n, own in grown.items() if n != dim[0]}
            inner = _called(Fold(fold.op, (dim,), body), others)  # a point of those is one of the domain
            body = _called(self._kept(inner, s), {own: n for n, own in others.items()})
        return Fold(fold.op, (first,), body)

    def _kept(self, inner: Expr, s: Statement) -> Load:
        """A read of the buffer in which a fold over the statement's domain is kept, at its own point."""
        name, dtype = f"{KEPT}turn{len(self.buffers) + 1}", type_of(inner)
        place = tuple(Number(affine(n), "int64") for n, _ in s.domain)
        self.buffers.append(Buffer(name, dtype, tuple(x for _, x in s.domain)))
        self.statements.append(Statement("map", name, s.domain, ordered(inner), place))
        return Load(name, place, dtype)


def _grown(fold: Fold, s: Statement) -> dict[str, str]:
    """For each of several dimensions of a fold that of the domain up to which it goes; empty for any other fold."""
    found = {}
    for name, extent in fold.dims:
        match extent:
            case Affine(((own, 1),), 0 | 1) if own in dict(s.domain):
                found[name] = own
    alone = not fold.inside and not names_in(fold.body) & set(found.values()) and not folds_in(fold.body)
    return found if alone and len(fold.dims) == len(found) == len(set(found.values())) > 1 else {}


def _called(e: Expr, names: Mapping[str, str]) -> Expr:
    return renamed(e, lambda n: names.get(n, n))


def _with(e: Expr, known: dict[Fold, Fold]) -> Expr:
    """The expression with other folds in their place."""
    if isinstance(e, Fold) and e in known:
        return known[e]
    return rebuilt(e, tuple(_with(part, known) for part in children(e)))
