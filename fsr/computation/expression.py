"""Values of a computation: typed expression trees over reads, scalars and dimensions.

Integers are signed inside; what treats one as unsigned says so by its name (``udiv``, ``ult``, ``zext``). Widths are
those of the leaves and of the casts between, so that the source's rounding can be followed; sums and products are
associative here, whatever order the source has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

_Made = TypeVar("_Made")
ASSOCIATIVE = ("sum", "prod", "max", "min")
PLACES = ("argmax", "argmin")  # folds that tell where an extreme is


_KEPT = 4096  # characters of a tree's text: with those of all that is in it, more would take too much room


class _Tree:
    """What has places for its hash and its text: a tree is asked for them wherever it is looked up, or put in order,
    and they are those of all of it."""

    __slots__ = ("_hash", "_names", "_text")
    _hash: int
    _names: frozenset[str]
    _text: str


_T = TypeVar("_T", bound=type[_Tree])


def _told_once(cls: _T) -> _T:
    own, written = cls.__hash__, cls.__repr__

    def hashed(self: _Tree) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", own(self))
            return self._hash

    def text(self: _Tree) -> str:
        try:
            return self._text
        except AttributeError:
            found = written(self)
            if len(found) <= _KEPT:
                object.__setattr__(self, "_text", found)
            return found

    cls.__hash__, cls.__repr__ = hashed, text  # type: ignore[assignment,method-assign]
    return cls


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum of dimensions and sizes with whole coefficients: the terms sorted by name, none of them zero."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of an affine value after division by a size or a number."""

    value: Affine
    by: str | int


@dataclass(frozen=True, slots=True)
class Quotient:
    """An affine value divided by a size or a number, rounded down."""

    value: Affine
    by: str | int


Index = Affine | Remainder | Quotient


@dataclass(frozen=True, slots=True)
class Const:
    """A literal. dtype: NumPy name, bfloat16 or bool."""

    value: float | int
    dtype: str


@_told_once
@dataclass(frozen=True, slots=True)
class Number(_Tree):
    """A dimension, a size or what is computed of them, as a value of a type."""

    index: Index
    dtype: str


@_told_once
@dataclass(frozen=True, slots=True)
class Load(_Tree):
    """One element of a buffer, or (without indices) a scalar. An index is a Number, or any integer expression where
    data decides. ``dtype``: the buffer's. ``carries``: an index beyond its row reads what lies there, of the next."""

    buffer: str
    indices: tuple[Expr, ...]
    dtype: str
    carries: bool = field(default=False, repr=False)


# Places of operands as they are taken one after the other; in brackets, those that are taken before the rest.
Order = tuple["int | Order", ...]


def places_of(order: Order) -> Iterator[int]:
    """The places in an order, without its brackets."""
    for n in order:
        if isinstance(n, int):
            yield n
        else:
            yield from places_of(n)


def moved(order: Order, to: Callable[[int], int]) -> Order:
    """The order with other places."""
    return tuple(to(n) if isinstance(n, int) else moved(n, to) for n in order)


def beside(order: Order, more: Order, first: int) -> Order:
    """The order with another behind it, whose places count from ``first`` and which is taken before, if it is long."""
    more = moved(more, lambda n: n + first)
    return (*order, *more) if not order or len(more) == 1 else (*order, more)


@_told_once
@dataclass(frozen=True, slots=True)
class Op(_Tree):
    """An operation: 'sum', 'prod', 'max', 'min' (any number of operands, in canonical order), 'neg', 'div', 'select',
    a comparison ('gt', 'ge', 'eq', 'ne'), a cast ('float32' and so on), a function by its name in C ('exp').
    ``order``: the places of the operands in the order of the source, where that is known; it tells no two apart."""

    name: str
    args: tuple[Expr, ...]
    order: Order = field(default=(), compare=False, repr=False)

    @property
    def known_order(self) -> Order:
        """The order, if it is one of these operands: not where some were left out since."""
        return self.order if len(tuple(places_of(self.order))) == len(self.args) else ()

    @property
    def as_written(self) -> tuple[Expr, ...]:
        """The operands in the order of the source, as far as it is known: one that keeps its bits, and its range."""
        return tuple(self.args[n] for n in places_of(self.known_order)) or self.args


@_told_once
@dataclass(frozen=True, slots=True)
class Fold(_Tree):
    """An associative operation over a box: ``dims`` are names and extents. 'argmax' and 'argmin' give the place,
    ``body`` then is a 'pair' of value and place; of equals the first wins. ``inside``: only the points at which every
    read is within its buffer take part (zero padding)."""

    op: str
    dims: tuple[tuple[str, Affine], ...]
    body: Expr
    inside: bool = False


@_told_once
@dataclass(frozen=True, slots=True)
class Case(_Tree):
    """``yes`` where ``left`` <= ``right``, else ``no``."""

    left: Affine
    right: Affine
    yes: Expr
    no: Expr


@_told_once
@dataclass(frozen=True, slots=True)
class Recurrence(_Tree):
    """A value carried in time: begins as ``start``; for ``dim`` from 0 to ``extent`` - 1 it becomes ``step``, in which
    Carried() is what it was."""

    dim: str
    extent: Affine
    start: Expr
    step: Expr


@dataclass(frozen=True, slots=True)
class Carried:
    """What a recurrence's value was a step ago."""


Expr = Const | Number | Load | Op | Fold | Case | Recurrence | Carried


def children(e: Expr) -> tuple[Expr, ...]:
    """The expressions directly beneath one."""
    match e:
        case Op():
            return e.args
        case Load():
            return e.indices
        case Fold():
            return (e.body,)
        case Case():
            return (e.yes, e.no)
        case Recurrence():
            return (e.start, e.step)
    return ()


def rebuilt(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The same with other expressions beneath it; itself where they are no others."""
    if all(map(operator.is_, parts, children(e))):
        return e
    match e:
        case Load():
            return Load(e.buffer, parts, e.dtype, e.carries)
        case Op():
            return Op(e.name, parts, e.order)
        case Fold():
            return Fold(e.op, e.dims, parts[0], e.inside)
        case Case():
            return Case(e.left, e.right, parts[0], parts[1])
        case Recurrence():
            return Recurrence(e.dim, e.extent, parts[0], parts[1])
    return e


def walk(e: Expr) -> Iterator[Expr]:
    """An expression and all beneath it."""
    yield e
    for part in children(e):
        yield from walk(part)


def distinct(e: Expr, entered: Callable[[Expr], bool] = lambda _: True) -> Iterator[Expr]:
    """The same, what stands in several places once. ``entered``: of what those beneath it are gone through."""
    stack, seen = [e], set[int]()
    while stack:
        e = stack.pop()
        if id(e) not in seen:
            seen.add(id(e))
            yield e
            stack.extend(reversed(children(e)) if entered(e) else ())


def mapped(e: Expr, change: Callable[[Expr, tuple[_Made, ...]], _Made]) -> _Made:
    """What is made of an expression from the leaves on. ``change``: of an expression and of what was made of those
    directly beneath it. What stands in several places is made once."""
    made: dict[int, _Made] = {}

    def of(e: Expr) -> _Made:
        found = made.get(id(e))
        if found is None:
            found = made[id(e)] = change(e, tuple(map(of, children(e))))
        return found

    return of(e)


def written_length(e: Expr, held: Container[Expr] = ()) -> int:
    """How many parts an expression has when it is written out. ``held``: what counts as one."""
    return mapped(e, lambda e, parts: 1 if e in held else 1 + sum(parts))


def shared(e: Expr) -> Expr:
    """The expression in which all that is the same is one object, so that it is looked at once. Noughts of different
    signs are not the same, though they are equal."""
    known: dict[object, Expr] = {}

    def one(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        return known.setdefault((type(e), _own(e), tuple(map(id, parts))), rebuilt(e, parts))

    return mapped(e, one)


def _own(e: Expr) -> object:
    """What tells an expression from others with the same beneath it."""
    match e:
        case Const():
            return repr(e.value), e.dtype
        case Load():
            return e.buffer, e.dtype, e.carries
        case Op():
            return e.name, e.order
        case Fold():
            return e.op, e.dims, e.inside
        case Case():
            return e.left, e.right
        case Recurrence():
            return e.dim, e.extent
        case Number():
            return e.index, e.dtype
    return None


def indices_of(e: Expr) -> tuple[Affine, ...]:
    """The affine values that stand in an expression itself, not in those beneath it."""
    match e:
        case Number(Affine() as index, _):
            return (index,)
        case Number(Remainder() | Quotient() as index, _):
            return (index.value, affine(index.by))
        case Fold():
            return tuple(extent for _, extent in e.dims)
        case Case():
            return (e.left, e.right)
        case Recurrence():
            return (e.extent,)
    return ()


def names_in(e: Expr) -> frozenset[str]:
    """The dimensions and sizes that an expression mentions and does not bind itself."""
    if isinstance(e, Const | Carried):
        return frozenset()
    try:
        return e._names
    except AttributeError:
        pass
    found = {name for index in indices_of(e) for name, _ in index.terms}
    for part in children(e):
        found |= names_in(part)
    if isinstance(e, Fold):
        found -= {name for name, _ in e.dims}
    if isinstance(e, Recurrence):
        found -= {e.dim}
    object.__setattr__(e, "_names", frozenset(found))
    return e._names


def affine(value: str | int, coefficient: int = 1) -> Affine:
    """A name (times a coefficient) or a number."""
    return Affine((), value) if isinstance(value, int) else Affine(((value, coefficient),), 0)


def valued(a: Affine, of: Callable[[str], int]) -> int:
    """The number that an affine value is where every dimension and size is one."""
    return a.constant + sum(k * of(name) for name, k in a.terms)


def put_in_place(a: Affine, name: str, instead: Affine) -> Affine:
    """An affine value with another in the place of a dimension."""
    terms = dict(a.terms)
    times = terms.pop(name, 0)
    for n, k in instead.terms:
        terms[n] = terms.get(n, 0) + times * k
    return Affine(tuple(sorted((n, k) for n, k in terms.items() if k)), a.constant + times * instead.constant)


def renamed(e: Expr, names: Callable[[str], str]) -> Expr:
    """The expression with its dimensions called otherwise, bound ones too."""

    def index(a: Affine) -> Affine:
        return Affine(tuple(sorted((names(n), k) for n, k in a.terms)), a.constant)

    def called(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        return _called(rebuilt(e, parts), names, index)

    return mapped(e, called)


def _called(e: Expr, names: Callable[[str], str], index: Callable[[Affine], Affine]) -> Expr:
    match e:
        case Number(Affine() as a, _):
            return replace(e, index=index(a))
        case Number(Remainder() | Quotient() as r, _):
            by = names(r.by) if isinstance(r.by, str) else r.by
            return replace(e, index=replace(r, value=index(r.value), by=by))
        case Fold():
            return replace(e, dims=tuple((names(n), index(x)) for n, x in e.dims))
        case Case():
            return replace(e, left=index(e.left), right=index(e.right))
        case Recurrence():
            return replace(e, dim=names(e.dim), extent=index(e.extent))
    return e


def with_affine(e: Expr, change: Callable[[Affine], Affine]) -> Expr:
    """The expression with every affine value in it changed, but for divisors."""
    return mapped(e, lambda e, parts: with_own_affine(rebuilt(e, parts), change))


def fixed(e: Expr, values: Mapping[str, int]) -> Expr:
    """The expression where some dimensions are numbers; a fold over one of them stays as it is."""

    def change(a: Affine) -> Affine:
        rest = tuple((n, k) for n, k in a.terms if n not in values)
        return Affine(rest, a.constant + sum(k * values[n] for n, k in a.terms if n in values))

    def one(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        bound = isinstance(e, Fold) and any(n in values for n, _ in e.dims)
        return e if bound else with_own_affine(rebuilt(e, parts), change)

    return mapped(e, one)


def with_own_affine(e: Expr, change: Callable[[Affine], Affine]) -> Expr:
    """The same for the affine values that stand in an expression itself, not in those beneath it."""
    match e:
        case Op() | Load() | Const():
            return e
        case Number(Affine() as a, dtype):
            b = change(a)
            return e if b == a else Number(b, dtype)
        case Number(Remainder() | Quotient() as r, _):
            return replace(e, index=replace(r, value=change(r.value)))
        case Case():
            return replace(e, left=change(e.left), right=change(e.right))
        case Fold():
            return replace(e, dims=tuple((n, change(x)) for n, x in e.dims))
        case Recurrence():
            return replace(e, extent=change(e.extent))
    return e
