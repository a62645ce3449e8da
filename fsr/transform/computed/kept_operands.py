"""Products of matrices whose factors are put together of several reads, with these in a buffer of their own: weights in
a few bits, with a scale and a zero for every group of them, or two to a byte. What is left is a contraction.

Sums within sums (of the products of a group, times its scale), and sums beside one another (of the lower and the upper
halves of bytes), are one sum over all of what is folded: the number of a term is written with digits, one a dimension,
and a line of the other factor is told by the same digits. Nothing is kept of a factor that is a plain read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.canonical import DIMS, canonical, ordered
from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import (
    Affine,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    affine,
    children,
    distinct,
    names_in,
    rebuilt,
    renamed,
)  # fmt: skip
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.transform.computed.attention_form import uncast
from fsr.transform.computed.folding import folds_in
from fsr.transform.computed.parts import name_of, value_of, written_out

_FLOAT = "float32"
_HALVES = ("float16", "bfloat16")
_TERM = "term"  # the digit that tells sums beside one another apart

Holds = Callable[[Expr, str, str], bool]
"""Whether a type holds a value as well as the result's type needs it: of the value, that type, and the result's."""

Fits = Callable[[tuple[str, ...]], bool]
"""Whether a buffer of a shape is no more than may be kept."""


def operands_kept(
    c: Computation, same: Callable[[str, str], bool], holds: Holds, fits: Fits = lambda _: True
) -> Iterator[Computation]:
    """The computation with such factors kept: in the other factor's type where that holds them, and as floats."""
    whole = written_out(c)
    if whole is None or any(s.target.startswith(KEPT) for s in whole.statements):
        return
    narrow, wide = (_Operands(whole, same, holds if which else lambda *_: False).done() for which in (True, False))
    for found in dict.fromkeys((narrow, wide)):
        if found is not None and all(fits(b.shape) for b in found.buffers if b.name.startswith(KEPT)):
            yield found


@dataclass(frozen=True)
class _Term:
    """A sum over ``dims`` of the product of ``factors``."""

    dims: tuple[tuple[str, Affine], ...]
    factors: tuple[Expr, ...]


@dataclass(frozen=True)
class _Digit:
    """A dimension of the number of a term: how far its neighbours are apart there, and what it counts to."""

    name: str
    apart: int
    extent: Affine


@dataclass(frozen=True)
class _Plain:
    """One read a term, along the index ``at``."""

    loads: tuple[Load, ...]
    at: int

    @property
    def places(self) -> list[Affine]:
        """Where in its line each term's is; none where that is no sum of dimensions and numbers."""
        found = [x.indices[self.at] for x in self.loads]
        return [i.index for i in found if isinstance(i, Number) and isinstance(i.index, Affine)]


@dataclass
class _Operands:
    c: Computation
    same: Callable[[str, str], bool]
    holds: Holds
    kept: list[Statement] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of buffers that are told by digits

    def done(self) -> Computation | None:
        """The computation; None where no sum is such a product."""
        made = [replace(s, value=self._products(value_of(s), s)) for s in self.c.statements]
        if tuple(made) == self.c.statements:
            return None
        for e in (e for s in (*self.kept, *made) for e in distinct(value_of(s)) if isinstance(e, Load)):
            if len(e.indices) != len(self.shapes.get(e.buffer, e.indices)):
                return None  # its lines are told by digits here, and otherwise there
        old = tuple(replace(b, shape=self.shapes.get(b.name, b.shape)) for b in self.c.buffers)
        if self.shapes.keys() & {s.target for s in made}:
            return None
        statements = (*self.kept, *(replace(s, kind="map") for s in made))
        told = canonical(replace(self.c, buffers=(*old, *self.buffers), statements=statements))
        in_order = sorted(told.statements, key=lambda s: not s.target.startswith(KEPT))
        return replace(told, statements=tuple(in_order))

    def _products(self, e: Expr, s: Statement) -> Expr:
        """An output's value with contractions for its sums of products."""
        if not folds_in(e):
            return e
        if isinstance(e, Fold):
            return self._product(e, s) or e
        if isinstance(e, Op) and e.name == "sum":
            sums = [x for x in e.args if folds_in(x)]
            found = self._product(Op("sum", tuple(sums)), s) if len(sums) > 1 else None
            if found is not None:
                rest = tuple(x for x in e.args if x not in sums)
                return Op("sum", (*rest, found)) if rest else found
        return rebuilt(e, tuple(self._products(x, s) for x in children(e)))

    def _product(self, e: Expr, s: Statement) -> Expr | None:
        """One sum as a contraction; None where it is none, or is one as it stands."""
        terms = _alike(_terms(e)) if len(s.domain) > 1 else None
        if not terms or type_of(e) != _FLOAT:
            return None
        if {n for _, x in terms[0].dims for n, _ in x.terms} - set(self.c.sizes):
            return None  # how long it is depends on the point
        own, first = {n for n, _ in terms[0].dims}, terms[0].factors
        outside = tuple(
            f for f in first if not own & names_in(f) and all(t.factors.count(f) == first.count(f) for t in terms)
        )
        terms = [replace(t, factors=tuple(f for f in t.factors if f not in outside)) for t in terms]
        sides = [_sides(t.factors, s) for t in terms]
        if any(not a or not b for a, b in sides):
            return None
        both = [[side[n] for side in sides] for n in (0, 1)]
        read, digits, order = _numbered([_plain(factors, own) for factors in both], terms)
        read = [None if self._becomes_half(read, n, s) else read[n] for n in (0, 1)]
        if None not in read and len(digits) == 1 and not outside:
            return None
        factors = []
        for n in (0, 1):
            mine, other = [both[n][k] for k in order], read[1 - n]
            plain = read[n]
            made = self._keep(mine, digits, other, s) if plain is None else self._told(plain, mine[0][0], digits)
            if made is None:
                return None
            factors.append(made)
        fold = Fold("sum", tuple((d.name, d.extent) for d in digits), Op("prod", tuple(factors)))
        return Op("prod", (*outside, fold)) if outside else fold

    def _told(self, plain: _Plain, factor: Expr, digits: Sequence[_Digit]) -> Expr | None:
        """A plain read by digits, with the casts around it."""
        load, at, extents = uncast(factor), plain.at, tuple(affine_text(d.extent) for d in digits)
        assert isinstance(load, Load)
        if len(digits) > 1:
            old = self.c.buffer(load.buffer).shape
            shape = (*old[:at], *extents, *old[at + 1 :])
            if not self.same(old[at], " * ".join(f"({x})" for x in extents)):
                return None
            if self.shapes.setdefault(load.buffer, shape) != shape:
                return None
        told = replace(load, indices=(*load.indices[:at], *(_number(d.name) for d in digits), *load.indices[at + 1 :]))
        return _instead(factor, load, told)

    def _becomes_half(self, read: Sequence[_Plain | None], n: int, s: Statement) -> bool:
        """Whether a plain read is kept all the same, as a half like the other one: tensor cores multiply no others."""
        mine, other = read[n], read[1 - n]
        if mine is None or other is None:
            return False
        dtype, one = other.loads[0].dtype, mine.loads[0]
        return dtype in _HALVES and one.dtype not in _HALVES and self.holds(one, dtype, self.c.buffer(s.target).dtype)

    def _keep(self, factors: Sequence[Sequence[Expr]], digits: Sequence[_Digit], other: _Plain | None,
              s: Statement) -> Expr:  # fmt: skip
        """A read of the buffer in which a factor of every term is kept."""
        values: list[Expr] = [f[0] if len(f) == 1 else Op("prod", tuple(f)) for f in factors]
        result = self.c.buffer(s.target).dtype
        dtype = result if other is None else other.loads[0].dtype
        if dtype not in _HALVES or not all(self.holds(v, dtype, result) for v in values):
            dtype = _FLOAT
        names = {n for v in values for n in names_in(v)}
        own = [d for d in s.domain if d[0] in names]
        deep = [(d.name, affine_text(d.extent)) for d in digits]
        every = [*deep, *own] if _across(values, {n for n, _ in own}) else [*own, *deep]
        name = f"{KEPT}operand{len(self.buffers) + 1}"
        self.buffers.append(Buffer(name, dtype, tuple(x for _, x in every)))
        domain = [d for d in every if d[0] != _TERM]
        called = dict(zip((n for n, _ in domain), DIMS, strict=False))
        for number, value in enumerate(values):
            value = ordered(renamed(value if dtype == _FLOAT else Op(dtype, (value,)), lambda n: called.get(n, n)))
            place = tuple(_number(number if n == _TERM else called[n]) for n, _ in every)
            self.kept.append(Statement("map", name, tuple((called[n], x) for n, x in domain), value, place))
        load = Load(name, tuple(_number(n) for n, _ in every), dtype)
        return load if dtype == _FLOAT else Op(_FLOAT, (load,))


def _terms(e: Expr) -> list[_Term]:
    """A sum as sums of products, one beside the other."""
    if not folds_in(e):
        return [_Term((), e.args if isinstance(e, Op) and e.name == "prod" else (e,))]
    match e:
        case Fold("sum", dims, body, False):
            return [_Term((*dims, *t.dims), t.factors) for t in _terms(body)]
        case Op("sum", args):
            return [t for x in args for t in _terms(x)]
        case Op("prod", args):
            within = [x for x in args if folds_in(x)]
            if len(within) == 1:
                rest = tuple(x for x in args if x not in within)
                return [replace(t, factors=(*rest, *t.factors)) for t in _terms(within[0])]
    return [_Term((), (e,))]


def _alike(terms: Sequence[_Term]) -> list[_Term] | None:
    """The terms with one name for each dimension; None where they are not over the same ones."""
    first, found = terms[0], list[_Term]()
    for t in terms:
        if not t.dims or [x for _, x in t.dims] != [x for _, x in first.dims] or any(map(folds_in, t.factors)):
            return None
        called = {n: m for (n, _), (m, _) in zip(t.dims, first.dims, strict=True)}
        factors = tuple(renamed(f, lambda n, called=called: called.get(n, n)) for f in t.factors)  # type: ignore[misc]
        found.append(_Term(first.dims, factors))
    return found if all(type_of(f) == _FLOAT for t in found for f in t.factors) else None


def _sides(factors: Sequence[Expr], s: Statement) -> tuple[list[Expr], list[Expr]]:
    """The factors that have a dimension of the output which those with its last one have not, and all others."""
    last = s.domain[-1][0]
    b = [f for f in factors if last in names_in(f)]
    known = {n for f in b for n in names_in(f)}
    rows = {n for n, _ in s.domain} - known
    a = [f for f in factors if rows & names_in(f)]
    rest = [f for f in factors if f not in a and f not in b]
    return (([*a, *rest], b) if len(a) > 1 and len(b) == 1 else (a, [*b, *rest])) if b else (a, b)


def _plain(factors: Sequence[Sequence[Expr]], own: set[str]) -> _Plain | None:
    """What each term reads, if its factor is one plain read of the same line, at a place of its own."""
    loads, shells = list[Load](), set[Expr]()
    ats = set[int]()
    for some in factors:
        load = uncast(some[0])
        if len(some) != 1 or not isinstance(load, Load) or load.carries:
            return None
        moving = [n for n, i in enumerate(load.indices) if own & names_in(i)]
        if len(moving) != 1 or not all(name_of(i) for n, i in enumerate(load.indices) if n not in moving):
            return None
        at = moving[0]
        loads.append(load)
        ats.add(at)
        shells.add(_instead(some[0], load, replace(load, indices=(*load.indices[:at], *load.indices[at + 1 :]))))
    return _Plain(tuple(loads), ats.pop()) if len(shells) == len(ats) == 1 else None


def _by_number(read: _Plain) -> list[int]:
    """The terms in the order of their digit."""
    return sorted(range(len(read.loads)), key=lambda n: read.places[n].constant)


def _instead(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuilt(e, tuple(_instead(x, old, new) for x in children(e)))


def _digits(read: _Plain, terms: Sequence[_Term]) -> list[_Digit] | None:
    """The number of a term as digits, the highest first, by where in its line a factor is read: every element of the
    line once. None where it is not so."""
    places, extents = read.places, dict(terms[0].dims)
    if len(places) != len(terms) or any(p.terms != places[0].terms for p in places):
        return None
    found = [_Digit(n, k, extents[n]) for n, k in places[0].terms if n in extents]
    steps = sorted(p.constant for p in places)
    if len(steps) > 1:
        found.append(_Digit(_TERM, steps[1], affine(len(steps))))
    if steps != [n * steps[min(1, len(steps) - 1)] for n in range(len(steps))]:
        return None
    found.sort(key=lambda d: -d.apart)
    for digit, lower in itertools.pairwise(found):
        if lower.extent.terms or digit.apart != lower.apart * lower.extent.constant:
            return None
    every = {d.name for d in found} >= extents.keys() and len(found) == len(places[0].terms) + (len(steps) > 1)
    return found if every and found[-1].apart == 1 else None


def _numbered(read: Sequence[_Plain | None], terms: Sequence[_Term]
              ) -> tuple[list[_Plain | None], list[_Digit], list[int]]:  # fmt: skip
    """The factors that stay reads, the digits, and the terms in their order: by the first factor that is read so that
    it tells them, and the other one if it tells the same."""
    told = [None if r is None else _digits(r, terms) for r in read]
    for r, digits in zip(read, told, strict=True):
        if r is not None and digits is not None:
            order = _by_number(r)
            kept = [
                x if x is not None and d == digits and _by_number(x) == order else None
                for x, d in zip(read, told, strict=True)
            ]
            return kept, digits, order
    return [None, None], _in_order(terms), list(range(len(terms)))


def _in_order(terms: Sequence[_Term]) -> list[_Digit]:
    """Digits where both factors are kept: as the dimensions come."""
    found = [_Digit(n, 0, x) for n, x in terms[0].dims]
    return [*found, _Digit(_TERM, 0, affine(len(terms)))] if len(terms) > 1 else found


def _across(values: Sequence[Expr], own: set[str]) -> bool:
    """Whether most of what a factor is made of has neighbours along a dimension of the factor's own, not of the sum."""
    reads = {e for v in values for e in distinct(v) if isinstance(e, Load) and len(e.indices) > 1}
    largest = max(reads, key=lambda e: (len([i for i in e.indices if name_of(i)]), e.buffer), default=None)
    return largest is not None and bool(own & names_in(largest.indices[-1]))


def _number(what: str | int) -> Number:
    return Number(affine(what), "int64")
