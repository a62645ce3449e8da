"""One form for equal computations: operands in order, dimensions named by place, every fold a statement of its own.

What a statement folds and another reads gets a name, once: ``_max[i] = max(x[i, k] ...)``. Two kernels that compute the
same over the same buffers then have equal computations, in whatever order and however often they do it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import (
    ASSOCIATIVE,
    Affine,
    Case,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    Recurrence,
    children,
    mapped,
    moved,
    names_in,
    rebuilt,
    renamed,
    shared,
    walk,
)  # fmt: skip
from fsr.computation.printing import affine_text
from fsr.computation.types import neutral, type_of

DIMS = ("i", "j", "i2", "i3", "i4", "i5", "i6", "i7")
_COMMUTATIVE = (*ASSOCIATIVE, "eq", "ne", "and", "or", "xor")


def ordered(e: Expr, depth: int = 0) -> Expr:
    """The expression with bound dimensions named by how deep they stand (k0, k1, ...) and operands in order."""
    return _ordered(_apart(e, itertools.count()), depth)


def _apart(e: Expr, numbers: Iterator[int]) -> Expr:
    """The expression with a name of its own for every bound dimension, so that none can be taken for another."""
    return mapped(e, lambda e, parts: _with_own_names(rebuilt(e, parts), numbers))


def _with_own_names(e: Expr, numbers: Iterator[int]) -> Expr:
    bound = [n for n, _ in e.dims] if isinstance(e, Fold) else [e.dim] if isinstance(e, Recurrence) else []
    if not bound:
        return e
    names = {n: f"%{next(numbers)}" for n in bound}

    def told(part: Expr) -> Expr:
        return renamed(part, lambda n: names.get(n, n))

    if isinstance(e, Recurrence):
        return replace(e, dim=names[e.dim], step=told(e.step))
    assert isinstance(e, Fold)
    return replace(e, dims=tuple((names[n], x) for n, x in e.dims), body=told(e.body))


def _ordered(e: Expr, depth: int, known: dict[int, tuple[Expr, Expr]] | None = None) -> Expr:
    """``known``: what parts of the same depth became, by identity."""
    known = {} if known is None else known
    if id(e) not in known:
        known[id(e)] = e, _in_order(e, depth, known)
    return known[id(e)][1]


def _in_order(e: Expr, depth: int, known: dict[int, tuple[Expr, Expr]]) -> Expr:
    if isinstance(e, Fold):
        every = (_named(e, order, depth) for order in itertools.permutations(e.dims))
        return min(every, key=lambda f: (_against_memory(f), repr(f)))
    if isinstance(e, Recurrence):
        name, carried = f"t{depth}", e.dim
        step = renamed(e.step, lambda n: name if n == carried else n)
        return replace(e, dim=name, start=_ordered(e.start, depth, known), step=_ordered(step, depth + 1))
    e = rebuilt(e, tuple(_ordered(part, depth, known) for part in children(e)))
    if isinstance(e, Op) and e.name in _COMMUTATIVE:
        e = _sorted(e)
        return _told_apart(e, depth) or (e.name == "sum" and _of_sums(e, depth)) or e
    return e


def _sorted(e: Op) -> Op:
    """With operands by rank, and the order in which they were written beside that."""
    ranks = [_rank(a) for a in e.args]
    places = sorted(range(len(ranks)), key=ranks.__getitem__)
    before = e.known_order or (() if e.name == "prod" else tuple(range(len(ranks))))
    return replace(e, args=tuple(e.args[n] for n in places), order=moved(before, places.index))


def _of_sums(e: Op, depth: int) -> Expr | None:
    """With sums over the same elements as one, ``sum(x[i, k] + y[i, k])``: what is summed and what the sum is taken
    from are rounded alike then. Contractions stay apart."""
    alike: dict[object, list[Fold]] = {}
    for a in e.as_written:
        over = _elements(a)
        if isinstance(a, Fold) and over is not None:
            alike.setdefault((a.dims, over, type_of(a)), []).append(a)
    several = next((found for found in alike.values() if len(found) > 1), None)
    if several is None:
        return None
    bodies = [f.body for f in several]
    terms = [t for b in bodies for t in (b.as_written if isinstance(b, Op) and b.name == "sum" else (b,))]
    whole = replace(several[0], body=Op("sum", tuple(terms)))
    rest = [a for a in e.as_written if a not in several]
    return _ordered(Op("sum", (whole, *rest)) if rest else whole, depth)


def _elements(e: Expr) -> frozenset[str] | None:
    """The dimensions beside its own that a sum's reads all have, those along it alone aside; None where they do not
    agree, or where it is no plain sum."""
    if not isinstance(e, Fold) or e.op != "sum" or e.inside:
        return None
    bound = {n for n, _ in e.dims}
    inner = list(walk(e.body))
    over = {names_in(x) - bound for x in inner if isinstance(x, Load) and x.indices} - {frozenset()}
    return over.pop() if len(over) == 1 and not any(isinstance(x, Fold | Recurrence) for x in inner) else None


def _told_apart(e: Op, depth: int) -> Case | None:
    """A sum of which every term hangs on the same condition, some by being there or not: one sum on either side."""
    terms = [a for a in e.as_written if isinstance(a, Case)]
    apart = {(a.left, a.right) for a in terms}
    if e.name != "sum" or len(terms) < len(e.args) or len(apart) != 1:
        return None
    sides = [[x for x in side if not _is_zero(x)] for side in ([a.yes for a in terms], [a.no for a in terms])]
    if sum(map(len, sides)) == 2 * len(terms):
        return None
    zero = neutral("sum", type_of(e))
    yes, no = (
        _ordered(Op("sum", tuple(side)), depth) if len(side) > 1 else side[0] if side else zero for side in sides
    )
    return replace(terms[0], yes=yes, no=no)


def _is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _rank(e: Expr) -> tuple[int, str]:
    """Reads first, then what is made of them, constants last."""
    return (2 if isinstance(e, Const | Number) else 0 if isinstance(e, Load) else 1, repr(e))


def _named(e: Fold, dims: Sequence[tuple[str, Affine]], depth: int) -> Fold:
    names = {old: f"k{depth + n}" for n, (old, _) in enumerate(dims)}
    body = renamed(e.body, lambda n: names.get(n, n))
    return replace(e, dims=tuple((names[n], x) for n, x in dims), body=_ordered(body, depth + len(dims)))


def _against_memory(e: Fold) -> int:
    """How often a read's later index is told by an earlier dimension: loops are mostly written as memory goes, and a
    sum in the order of the source has the source's bits."""
    places = {name: n for n, (name, _) in enumerate(e.dims)}
    found = 0
    for x in walk(e.body) if len(places) > 1 else ():
        if isinstance(x, Load):
            told = [[places[n] for n in names_in(i) if n in places] for i in x.indices]
            found += sum(a > b for one, other in itertools.combinations(told, 2) for a in one for b in other)
    return found


class _Names:
    """Values that have become statements."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.buffers: list[Buffer] = []
        self._known: dict[tuple[object, ...], str] = {}

    def named(self, e: Expr, domain: Sequence[tuple[str, str]]) -> Load:
        """A read of the statement that makes a value over those of the dimensions that it depends on."""
        free = names_in(e)
        own = [(name, extent) for name, extent in domain if name in free]
        names = {old: DIMS[n] for n, (old, _) in enumerate(own)}
        value = ordered(renamed(e, lambda n: names.get(n, n)))
        shape = tuple(extent for _, extent in own)
        key = (shape, value)
        dtype = type_of(value)
        if key not in self._known:
            word = value.op if isinstance(value, Fold) else "sequence"
            count = sum(b.name.startswith(f"_{word}") for b in self.buffers)
            self._known[key] = name = f"_{word}{count + 1 if count else ''}"
            dims = tuple((DIMS[n], x) for n, x in enumerate(shape))
            self.buffers.append(Buffer(name, dtype, shape))
            place = tuple(Number(Affine(((d, 1),)), "int64") for d, _ in dims)
            self.statements.append(Statement(kind_of(value, dims), name, dims, value, place))
        return Load(self._known[key], tuple(Number(Affine(((n, 1),)), "int64") for n, _ in own), dtype)

    def taken_out(self, e: Expr, domain: Sequence[tuple[str, str]]) -> Expr:
        """The expression with the folds in it replaced by reads of statements; itself stays what it is."""
        inner = list(domain)
        if isinstance(e, Fold):
            inner += [(n, affine_text(x)) for n, x in e.dims]
        parts = []
        for part in children(e):
            found = self.taken_out(part, inner)
            free = names_in(found)
            bound = {n for n, _ in e.dims} if isinstance(e, Fold) else {e.dim} if isinstance(e, Recurrence) else set()
            if isinstance(found, Fold | Recurrence) and not (isinstance(e, Recurrence) and free & bound):
                extents = {n: x for n, x in inner if n in free}
                if not any(d in _words(x) for x in extents.values() for d, _ in inner):
                    found = self.named(found, inner)
            parts.append(found)
        return rebuilt(e, tuple(parts))


def _words(text: str) -> set[str]:
    return set(text.replace("*", " ").replace("+", " ").replace("-", " ").split())


def kind_of(value: Expr, domain: Sequence[tuple[str, str]]) -> str:
    """'fold', 'scan', 'sequence' or 'map'."""
    if isinstance(value, Recurrence):
        return "sequence"
    if isinstance(value, Fold):
        over = {n for n, _ in domain}
        grows = any(n in over for _, x in value.dims for n, _ in x.terms)
        return "scan" if grows else "fold"
    return "map"


def canonical(c: Computation) -> Computation:
    """The canonical form of a computation whose statements read contract buffers only."""
    names, last = _Names(), list[Statement]()
    for s in c.statements:
        if s.value is None:
            last.append(s)
            continue
        value = ordered(s.value)
        value = shared(ordered(names.taken_out(value, s.domain)))
        kind = s.kind if s.kind == "scatter" else kind_of(value, s.domain)
        last.append(replace(s, value=value, kind=kind, place=tuple(ordered(p) for p in s.place)))
    return replace(c, buffers=(*c.buffers, *names.buffers), statements=(*names.statements, *last))


def same(one: Computation, other: Computation, names: Mapping[str, str] | None = None) -> bool:
    """Whether two computations in canonical form are equal; ``names``: what the other calls the first's buffers and
    sizes."""
    if not names:
        return one.statements == other.statements
    called = names.get

    def told(e: Expr) -> Expr:
        e = rebuilt(e, tuple(told(p) for p in children(e)))
        return replace(e, buffer=called(e.buffer, e.buffer)) if isinstance(e, Load) else e

    def statement(s: Statement) -> Statement:
        value = None if s.value is None else ordered(told(renamed(s.value, lambda n: called(n, n))))
        domain = tuple((n, called(x, x)) for n, x in s.domain)
        return replace(s, target=called(s.target, s.target), domain=domain, value=value)

    return tuple(map(statement, one.statements)) == other.statements
