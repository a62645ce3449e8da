"""A computation cut into parts that a kernel each can make: outputs over one domain with what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import (
    Affine,
    Case,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    children,
    distinct,
    mapped,
    names_in,
    rebuilt,
    renamed,
)
from fsr.computation.simplify import at_zero
from fsr.computation.types import type_of

Domain = tuple[tuple[str, str], ...]
RECORDS = f"{KEPT}records"  # buffers in which a launch puts side by side what the next one looks up together


@dataclass(frozen=True)
class Part:
    """Outputs over one domain, or over beginnings of it. ``made``: the values between statements that they read;
    ``outputs``: as in the computation; ``whole``: the same with those values put in."""

    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    domain: Domain
    made: tuple[Statement, ...]
    outputs: tuple[Statement, ...]

    @cached_property
    def whole(self) -> tuple[Statement, ...]:
        """The outputs as they are when nothing is kept between statements."""
        made = {s.target: s for s in self.made}
        return tuple(replace(s, value=put_in(value_of(s), made)) for s in self.outputs)

    @property
    def written(self) -> frozenset[str]:
        """The buffers that it writes."""
        return frozenset(s.target for s in self.outputs)

    @property
    def read(self) -> frozenset[str]:
        """The buffers that it reads."""
        statements = (*self.made, *self.outputs)
        return frozenset(e.buffer for s in statements for e in distinct(value_of(s)) if isinstance(e, Load))

    @property
    def adds(self) -> bool:
        """Whether it adds to elements where data tells which."""
        return any(s.kind == "scatter" for s in self.outputs)

    @property
    def looks_up(self) -> bool:
        """Whether it reads records that a launch before it has put together for that."""
        return any(b.startswith(RECORDS) for b in self.read)

    @cached_property
    def by_points(self) -> bool:
        """Whether what it writes is read by the very point that writes it at most, and in no fold."""
        places = {(s.target, s.place) for s in self.outputs}
        for s in self.whole:
            single = [e for e in distinct(value_of(s)) if isinstance(e, Load) and self._changes(e)]
            folded = {e for f in distinct(value_of(s)) if isinstance(f, Fold) for e in distinct(f)}
            if any(e in folded or (e.buffer, e.indices) not in places or s.domain != self.domain for e in single):
                return False
        return True

    def _changes(self, e: Load) -> bool:
        """Whether some point may write what is read: not where each is written at another number in some index, as
        records are whose last field alone changes."""
        places = _reached(e)
        return any(s.target == e.buffer and not all(apart(s.place, at) for at in places) for s in self.outputs)

    @cached_property
    def box(self) -> Mapping[str, int]:
        """Where results stand in the place of what other points read, but at none that these read: the first index of
        each dimension from which on elements change. Empty elsewhere. (A trailing update: ``m[i, j] -= sum(m[i, k] *
        m[k, j])`` below and to the right of what it reads.)"""
        if len(self.outputs) != 1 or len(self.whole[0].domain) != len(self.whole[0].place):
            return {}
        found = _changed_from(self.whole[0])
        own = Load(self.whole[0].target, self.whole[0].place, "")
        reads = {e for e in distinct(value_of(self.whole[0])) if isinstance(e, Load) and e.buffer == own.buffer}
        folds = {n: x for e in distinct(value_of(self.whole[0])) if isinstance(e, Fold) for n, x in e.dims}
        others = (e for e in reads if e.indices != own.indices)
        return found if all(_before(e, self.whole[0], found, folds) for e in others) else {}

    @cached_property
    def repeats(self) -> bool:
        """Whether every point would fold anew what is no point's own, however long that is."""
        own = {n for n, _ in self.domain}
        folds = (e for s in self.whole for e in distinct(value_of(s)) if isinstance(e, Fold))
        return bool(own) and any(not names_in(f) & own and any(x.terms for _, x in f.dims) for f in folds)

    @property
    def computation(self) -> Computation:
        """The part as a computation of its own."""
        return Computation(self.sizes, self.buffers, (*self.made, *self.outputs))


def _reached(e: Load) -> list[tuple[Expr, ...]]:
    """The indices of a read, and those at which it may be where it goes on into another row: with the first one
    higher, or one lower."""
    found = [e.indices]
    match e.indices:
        case (Number(Affine(terms, at), dtype), *rest) if e.carries:
            steps = {constant for i in rest for constant in _distances(i)}
            turns = [1] * (max(steps, default=1) > 0) + [-1] * (min(steps, default=-1) < 0)
            found += [(Number(Affine(terms, at + turn), dtype), *rest) for turn in turns]
    return found


def _distances(index: Expr) -> tuple[int, ...]:
    """How far from a dimension an index lies; before and behind it for what is told otherwise."""
    match index:
        case Number(Affine(((_, 1),) | (), constant), _):
            return (constant,)
    return -1, 1


def _changed_from(s: Statement) -> dict[str, int]:
    """For each dimension the first index at which a statement changes what its target holds, by the conditions around
    its value."""
    own, value = (s.target, s.place), value_of(s)

    def is_own(e: Expr) -> bool:
        return isinstance(e, Load) and (e.buffer, e.indices) == own

    added = isinstance(value, Op) and value.name == "sum" and len(value.args) == 2 and any(map(is_own, value.args))
    if added:
        value = next(e for e in children(value) if not is_own(e))
    names, found = {name_of(i) for i in s.place}, dict[str, int]()
    while isinstance(value, Case):
        match value:
            case Case(Affine(((name, 1),), 0), Affine((), last), yes, no) if name in names and last >= 0:
                if not (yes == Const(0.0, type_of(yes)) if added else is_own(yes)):
                    break
                found[name], value = max(found.get(name, 0), last + 1), no
            case _:
                break
    return found


def _before(e: Load, s: Statement, changed: Mapping[str, int], folds: Mapping[str, Affine]) -> bool:
    """Whether an element of a statement's target lies before those that it changes, along some dimension."""
    for index, place in zip(e.indices, s.place, strict=True):
        least = changed.get(name_of(place) or "", 0)
        match index:
            case Number(Affine(terms, constant), _) if all(n in folds and not folds[n].terms for n, _ in terms):
                highest = constant + sum(max(0, k * (folds[n].constant - 1)) for n, k in terms)
                if highest < least:
                    return True
    return False


def cuts_of(c: Computation) -> list[list[Part]]:
    """Ways to cut a computation into parts, those of fewer parts first: none where it is more than maps, folds and
    scans. What a part reads, only parts behind it write; what is kept for it (see :data:`KEPT`), parts before it."""
    if not _is_told(c):
        return []
    if not any(size == "1" for s in c.statements if s.target.startswith("_") for _, size in s.domain):
        c = replace(c, statements=tuple(map(_of_many, c.statements)))
    c = replace(c, statements=tuple(map(_at_own_place, c.statements)))
    made = {s.target: s for s in c.statements if s.target.startswith("_")}
    groups: dict[tuple[int, Domain], list[Statement]] = {}
    levels: dict[str, int] = {}
    for s in c.statements:
        if s.target not in made:
            kept = [e.buffer for e in distinct(put_in(value_of(s), made)) if isinstance(e, Load)]
            levels[s.target] = max((levels[b] + 1 for b in kept if b.startswith(KEPT)), default=0)
            groups.setdefault((levels[s.target], s.domain), []).append(s)
    ways = (_nested(groups), list(groups.values()), [some for all_ in groups.values() for some in _by_kind(all_, made)])
    found = [_ordered([_part(c, made, outputs) for outputs in way]) for way in ways]
    return [way for n, way in enumerate(found) if way and way not in found[:n]]


def _by_kind(outputs: Sequence[Statement], made: Mapping[str, Statement]) -> list[list[Statement]]:
    """Outputs that folds make, and those that none makes."""
    kinds: dict[bool, list[Statement]] = {}
    for s in outputs:
        folded = any(isinstance(e, Fold) for e in distinct(put_in(value_of(s), made)))
        kinds.setdefault(folded, []).append(s)
    return list(kinds.values())


def _of_many(s: Statement) -> Statement:
    """The statement without dimensions of one element."""
    for dim, size in s.domain:
        if size == "1":
            place = tuple(at_zero(p, dim) for p in s.place)
            s = replace(s, value=at_zero(value_of(s), dim), place=place, domain=_less(s.domain, dim))
    return s


def _at_own_place(s: Statement) -> Statement:
    """The statement with what it reads of its own target told by the dimension, in branches for that element alone."""
    (dim, size), *others = s.domain or (("", ""),)
    if others or not size.isdigit() or [name_of(p) for p in s.place] != [dim]:
        return s

    def told(e: Expr, low: int, high: int) -> Expr:
        match e:
            case Case(Affine(((name, 1),), 0), Affine((), last), yes, no) if name == dim:
                return replace(e, yes=told(yes, low, min(high, last)), no=told(no, max(low, last + 1), high))
            case Load(s.target, (Number(Affine((), at), _),)) if low == high == at:
                return replace(e, indices=s.place)
        return rebuilt(e, tuple(told(part, low, high) for part in children(e)))

    return replace(s, value=told(value_of(s), 0, int(size) - 1))


def _less(domain: Domain, dim: str) -> Domain:
    return tuple(d for d in domain if d[0] != dim)


def _nested(groups: Mapping[tuple[int, Domain], Sequence[Statement]]) -> list[list[Statement]]:
    """Outputs whose domain is the beginning of another's with those."""
    found: dict[tuple[int, Domain], list[Statement]] = {}
    for level, domain in sorted(groups, key=lambda key: len(key[1]), reverse=True):
        begun = (k for k in found if domain and k[0] == level and k[1][: len(domain)] == domain)
        found.setdefault(next(begun, (level, domain)), []).extend(groups[level, domain])
    return list(found.values())


def _ordered(parts: Sequence[Part]) -> list[Part]:
    """The parts, those that read a buffer before the one that writes it, and behind it where it is kept for them; empty
    where there is no such order."""
    left, found = list(parts), list[Part]()
    while left:
        ready = next((p for p in left if not any(_first(q, p) for q in left if q is not p)), None)
        if ready is None:
            return []
        left.remove(ready)
        found.append(ready)
    return found


def _first(one: Part, other: Part) -> bool:
    """Whether one part must run before another."""
    kept = {b for b in one.written & other.read if b.startswith(KEPT)}
    return bool(kept) or any(not b.startswith(KEPT) for b in one.read & other.written)


def _part(c: Computation, made: Mapping[str, Statement], outputs: Sequence[Statement]) -> Part:
    wanted: dict[str, None] = {}

    def want(s: Statement) -> None:
        for e in distinct(value_of(s)):
            if isinstance(e, Load) and e.buffer in made and e.buffer not in wanted:
                want(made[e.buffer])
                wanted[e.buffer] = None

    for s in outputs:
        want(s)
    own = [s for s in c.statements if s.target in wanted]
    used = {e.buffer for s in (*own, *outputs) for e in distinct(value_of(s)) if isinstance(e, Load)}
    buffers = tuple(b for b in c.buffers if b.name in used | {s.target for s in outputs})
    return Part(c.sizes, buffers, max((s.domain for s in outputs), key=len), tuple(own), tuple(outputs))


def value_of(s: Statement) -> Expr:
    """What a statement computes; it is not opaque."""
    assert s.value is not None
    return s.value


def written_out(c: Computation) -> Computation | None:
    """The computation with the values between statements put in where they are read; None where it is more than maps,
    folds and scans."""
    if not _is_told(c):
        return None
    made = {s.target: s for s in c.statements if s.target.startswith("_")}
    whole = tuple(replace(s, value=put_in(value_of(s), made)) for s in c.statements if s.target not in made)
    return replace(c, buffers=tuple(b for b in c.buffers if b.name not in made), statements=whole)


def _is_told(c: Computation) -> bool:
    return all(s.value is not None and s.kind in ("map", "fold", "scan") for s in c.statements)


def put_in(e: Expr, made: Mapping[str, Statement]) -> Expr:
    """The expression with the values between statements written out."""
    if not made:
        return e

    def one(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        e = rebuilt(e, parts)
        return _value_in(e, made) if isinstance(e, Load) and e.buffer in made else e

    return mapped(e, one)


def _value_in(e: Load, made: Mapping[str, Statement]) -> Expr:
    """What an element of a value between statements is."""
    s, called = made[e.buffer], dict[str, str]()
    for (dim, _), index in zip(s.domain, e.indices, strict=True):
        called[dim] = name_of(index) or dim
    value = put_in(value_of(s), made)
    for dim in bound_in(value):
        fresh = dim
        while fresh in called.values():
            fresh += "_"  # a dimension of that name is another one here
        called[dim] = fresh
    return renamed(value, lambda n: called.get(n, n))


def bound_in(e: Expr) -> list[str]:
    """The dimensions that folds in an expression go over."""
    return list(dict.fromkeys(n for x in distinct(e) if isinstance(x, Fold) for n, _ in x.dims))


def apart(one: Sequence[Expr], other: Sequence[Expr]) -> bool:
    """Whether two places differ by a number, whatever the dimensions are."""
    at = [(number_of(a), number_of(b)) for a, b in zip(one, other, strict=True)]
    return any(a is not None and b is not None and a != b for a, b in at)


def number_of(index: Expr) -> int | None:
    """The number that an index is; None for anything else."""
    match index:
        case Number(Affine((), number), _):
            return number
    return None


def name_of(index: Expr) -> str | None:
    """The dimension that an index is; None for anything else."""
    match index:
        case Number(Affine(((name, 1),), 0), _):
            return name
    return None
