"""Dimensions that stand next to each other everywhere become one: rows of rows are rows, a picture is a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from fsr.computation.computation import Statement
from fsr.computation.expression import Expr, Fold, Load, Number, children, names_in, rebuilt, walk
from fsr.transform.computed.parts import Domain, Part, name_of, value_of

_Shape = tuple[str, ...]


class _Apart(Exception):  # noqa: N818
    """The two do not stand next to each other everywhere."""


def joined(part: Part, fits: Callable[[str], bool]) -> Part:
    """The part with as few dimensions as it can be told with. ``fits``: whether a kernel's index counts that far, for
    a size expression."""
    for (first, _), (second, _) in zip(part.domain, part.domain[1:], strict=False):
        try:
            return joined(_Joining(part, (first, second), fits).done(), fits)
        except _Apart:
            continue
    return part


class _Joining:
    def __init__(self, part: Part, pair: tuple[str, str], fits: Callable[[str], bool]) -> None:
        self.part, self.pair = part, pair
        self.extents = dict(part.domain)
        self.both = f"({self.extents[pair[0]]}) * ({self.extents[pair[1]]})"
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
        return replace(self.part, buffers=buffers, domain=self._domain(self.part.domain), made=made, outputs=outputs)

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
        if set(self.pair) & names_in(e):
            bound = {n for _, x in e.dims for n, _ in x.terms} if isinstance(e, Fold) else set()
            if isinstance(e, Number) or bound & set(self.pair):
                raise _Apart
        return rebuilt(e, tuple(map(self._expr, children(e))))

    def _load(self, e: Load) -> Load:
        shape = self.old[e.buffer]
        at = [n for n, index in enumerate(e.indices) if set(self.pair) & names_in(index)]
        if not at:
            self.shapes.setdefault(e.buffer, set()).add(shape)
            if any(isinstance(x, Load) for index in e.indices for x in walk(index)):
                return replace(e, indices=tuple(map(self._expr, e.indices)))
            return e
        if len(at) != 2 or at[1] != at[0] + 1 or [name_of(e.indices[n]) for n in at] != list(self.pair):
            raise _Apart
        if shape[at[1]] != self.extents[self.pair[1]] or shape[at[0]] != self.extents[self.pair[0]]:
            raise _Apart
        self.shapes.setdefault(e.buffer, set()).add((*shape[: at[0]], self.both, *shape[at[1] + 1 :]))
        return replace(e, indices=(*e.indices[: at[0]], e.indices[at[0]], *e.indices[at[1] + 1 :]))
