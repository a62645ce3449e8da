"""Dimensions that stand next to each other everywhere become one: rows of rows are rows, a picture is a line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from fsr.computation.computation import Statement
from fsr.computation.expression import (
    Affine,
    Expr,
    Fold,
    Load,
    Number,
    affine,
    children,
    distinct,
    indices_of,
    names_in,
    rebuilt,
    renamed,
)  # fmt: skip
from fsr.computation.printing import affine_text
from fsr.transform.computed.parts import Domain, Part, name_of, value_of

_Shape = tuple[str, ...]


class _Apart(Exception):  # noqa: N818
    """The two do not stand next to each other everywhere."""


def joined(part: Part, fits: Callable[[str], bool]) -> Part:
    """The part with as few dimensions as it can be told with, those that folds go over too. ``fits``: whether a
    kernel's index counts that far, for a size expression."""
    return _joined(_apart(part), fits)


def _joined(part: Part, fits: Callable[[str], bool]) -> Part:
    for pair in (*itertools.pairwise(part.domain), *_folded(part)):
        try:
            return _joined(_Joining(part, pair, fits).done(), fits)
        except _Apart:
            continue
    return part


def _folded(part: Part) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Neighbouring dimensions of folds whose extents are sizes, with their extents."""
    found = (e for s in (*part.made, *part.outputs) for e in distinct(value_of(s)) if isinstance(e, Fold))
    for fold in dict.fromkeys(found):
        named = [(n, affine_text(x)) for n, x in fold.dims]
        yield from (pair for pair in itertools.pairwise(named) if all(x in part.sizes for _, x in pair))


def _apart(part: Part) -> Part:
    """The part with dimensions of folds over several called alike only where their extents are."""
    known: dict[tuple[Affine, ...], int] = {}

    def told(e: Expr) -> Expr:
        e = rebuilt(e, tuple(map(told, children(e))))
        if not isinstance(e, Fold) or len(e.dims) < 2:
            return e
        number = known.setdefault(tuple(x for _, x in e.dims), len(known))
        names = {n: f"{n}_{number}" for n, _ in e.dims}
        return renamed(e, lambda n: names.get(n, n))

    made, outputs = (tuple(replace(s, value=told(value_of(s))) for s in way) for way in (part.made, part.outputs))
    return replace(part, made=made, outputs=outputs)


class _Joining:
    def __init__(self, part: Part, pair: tuple[tuple[str, str], tuple[str, str]], fits: Callable[[str], bool]) -> None:
        self.part, self.extents = part, dict(pair)
        self.pair = pair[0][0], pair[1][0]
        self.both = f"({pair[0][1]}) * ({pair[1][1]})"
        self.shapes: dict[str, set[_Shape]] = {}  # what each buffer's has to be for its reads and writes
        self.old: Mapping[str, _Shape] = {b.name: b.shape for b in part.buffers}
        if not fits(self.both):
            raise _Apart

    def done(self) -> Part:
        """The part with the pair as one dimension, called as the first. Raises _Apart."""
        made, outputs = self._statements(self.part.made), self._statements(self.part.outputs)
        if any(len(found) != 1 for found in self.shapes.values()):
            raise _Apart
        new = {name: next(iter(found)) for name, found in self.shapes.items()}
        buffers = tuple(replace(b, shape=new.get(b.name, b.shape)) for b in self.part.buffers)
        sizes = tuple(dict.fromkeys((*self.part.sizes, self.both)))
        domain = self._domain(self.part.domain)
        return replace(self.part, sizes=sizes, buffers=buffers, domain=domain, made=made, outputs=outputs)

    def _statements(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        found = []
        for s in statements:
            place = self._load(Load(s.target, s.place, ""))
            found.append(replace(s, domain=self._domain(s.domain), value=self._expr(value_of(s)), place=place.indices))
        return tuple(found)

    def _domain(self, domain: Domain) -> Domain:
        first, second = self.pair
        names = [n for n, _ in domain]
        if first not in names and second not in names:
            return domain
        if second not in names or first not in names or names.index(second) != names.index(first) + 1:
            raise _Apart
        if any(dict(domain)[n] != self.extents[n] for n in self.pair):
            raise _Apart
        return tuple((n, self.both if n == first else x) for n, x in domain if n != second)

    def _expr(self, e: Expr) -> Expr:
        if isinstance(e, Load) and e.indices:
            return self._load(e)
        if isinstance(e, Fold) and {n for n, _ in e.dims} & set(self.pair):
            dims = self._domain(tuple((n, affine_text(x)) for n, x in e.dims))
            kept = dict(e.dims)
            joint = tuple((n, affine(self.both) if x == self.both else kept[n]) for n, x in dims)
            return replace(e, dims=joint, body=self._expr(e.body))
        if any(n in self.pair for x in indices_of(e) for n, _ in x.terms):
            raise _Apart
        return rebuilt(e, tuple(map(self._expr, children(e))))

    def _load(self, e: Load) -> Load:
        shape = self.old[e.buffer]
        e = replace(e, indices=tuple(i if isinstance(i, Number) else self._expr(i) for i in e.indices))
        at = [n for n, i in enumerate(e.indices) if isinstance(i, Number) and set(self.pair) & names_in(i)]
        if not at:
            self.shapes.setdefault(e.buffer, set()).add(shape)
            return e
        if len(at) != 2 or at[1] != at[0] + 1 or [name_of(e.indices[n]) for n in at] != list(self.pair):
            raise _Apart
        if shape[at[1]] != self.extents[self.pair[1]] or shape[at[0]] != self.extents[self.pair[0]]:
            raise _Apart
        self.shapes.setdefault(e.buffer, set()).add((*shape[: at[0]], self.both, *shape[at[1] + 1 :]))
        return replace(e, indices=(*e.indices[: at[0]], e.indices[at[0]], *e.indices[at[1] + 1 :]))
