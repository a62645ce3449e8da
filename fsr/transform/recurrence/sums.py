"""The sums of a step: inner loops that only add up terms which are known at the step's begin.

Such sums may be worked out first, for several items at a time and shared among warps, and be added where they stood.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.definitions import Definitions
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Name,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.walk import Block, base_name, declared, integer, names_in, walk_stmts, without_comments
from fsr.transform.details.unroll import trip_count
from fsr.transform.recurrence.form import Recurrence, elements

MOST_TURNS = 8
_SUMMED = frozenset(["float", "double", "int", "unsigned", "unsigned int"])
_FUSED = frozenset(["fmaf", "fma", "__fmaf_rn"])


@dataclass(frozen=True)
class Sum:
    """``target += term`` for every turn of a loop; ``around``: loops of constant length outside of that one, by
    variable. Names in ``term`` are parameters, built-ins, variables of these loops, and state."""

    target: Expr
    type: str
    term: Expr
    around: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        """How many sums it is."""
        return math.prod(n for _, n in self.around)


@dataclass
class Group:
    """Sums over the same turns, where all of ``guards`` hold. ``loop``: its head, locals written out."""

    loop: For
    guards: tuple[Expr, ...]
    sums: list[Sum]


@dataclass(frozen=True)
class Summed:
    """The sums of a step: ``groups``, and for each loop (by identity) which of them stand there."""

    groups: tuple[Group, ...]
    places: tuple[tuple[For, tuple[tuple[int, int], ...]], ...]

    @property
    def count(self) -> int:
        """How many there are for an element of an item."""
        return sum(s.count for g in self.groups for s in g.sums)

    def at(self, loop: For) -> tuple[tuple[int, int], ...] | None:
        """(group, place in it) of the sums that a loop makes; None where it makes none."""
        return next((found for one, found in self.places if one is loop), None)


def sums_of(rec: Recurrence) -> Summed:
    """All sums of the step that can be worked out before it."""
    return _Finder(rec).found()


class _Finder:
    def __init__(self, rec: Recurrence) -> None:
        self.rec, self.target = rec, rec.target
        values = {n: e for n, e in rec.target.known.values.items() if n not in rec.arrays}
        self.known: Definitions = replace(rec.target.known, values=values)
        self.groups: list[Group] = []
        self.places: list[tuple[For, tuple[tuple[int, int], ...]]] = []
        self.written = set[tuple[str, int]]()

    def found(self) -> Summed:
        for s in self.rec.body:
            self._block((s,), (), ())
            self.written |= set(_written(self.rec, (s,)))
        return Summed(tuple(self.groups), tuple(self.places))

    def _block(self, body: Block, around: tuple[tuple[str, int], ...], guards: tuple[Expr, ...]) -> None:
        for s in body:
            match s:
                case For(type=str()):
                    made = self._sums(s, around, guards)
                    count = trip_count(self.target, s)
                    if made is not None:
                        self._take(s, made, guards)
                    elif (
                        count
                        and count <= MOST_TURNS
                        and s.type == "int"
                        and s.start == number(0)
                        and s.step == number(1)
                    ):
                        self._block(s.body, (*around, (s.var, count)), guards)
                case If(test, then, ()) if not around:
                    test = self.known.expand(test)
                    if self._is_known(test, frozenset()) and _is_same_for_items(test):
                        self._block(then, around, (*guards, test))

    def _take(self, loop: For, made: tuple[For, list[Sum]], guards: tuple[Expr, ...]) -> None:
        head, sums = made
        group = next((i for i, g in enumerate(self.groups) if g.loop == head and g.guards == guards), None)
        if group is None:
            group = len(self.groups)
            self.groups.append(Group(head, guards, []))
        first = len(self.groups[group].sums)
        self.groups[group].sums += sums
        self.places.append((loop, tuple((group, first + i) for i in range(len(sums)))))

    def _sums(
        self, loop: For, around: tuple[tuple[str, int], ...], guards: tuple[Expr, ...]
    ) -> tuple[For, list[Sum]] | None:
        """The head of a loop without a body, and what it adds up; None where it does anything else."""
        outer = frozenset(var for var, _ in around)
        step = integer(loop.step)
        heads = [self.known.expand(e) for e in (loop.start, loop.bound, loop.step)]
        if (
            step is None
            or step < 1
            or loop.relation not in ("<", "<=")
            or loop.type not in ("int", "unsigned", "unsigned int")
        ):
            return None
        if not all(self._is_known(e, frozenset()) and _is_same_for_items(e) for e in heads) or loop.var in outer:
            return None
        made = list[Sum]()
        for s in without_comments(loop.body):
            if isinstance(s, Declare) and s.name in self.known.values:
                continue
            found = self._sum(s, outer | {loop.var}, around)
            if found is None:
                return None
            made.append(found)
        named = {base_name(one.target) for one in made}
        terms = [one.term for one in made]
        if not made or any(names_in(e) & named for e in (*terms, *heads)):
            return None
        return replace(loop, start=heads[0], bound=heads[1], step=heads[2], body=(), pragmas=(), span=None), made

    def _sum(self, s: Stmt, inside: frozenset[str], around: tuple[tuple[str, int], ...]) -> Sum | None:
        if not isinstance(s, Assign):
            return None
        term = _added(s)
        name = base_name(s.target)
        type_ = self.known.types.get(name or "", "")
        simple = isinstance(s.target, Name) or (isinstance(s.target, Index) and isinstance(s.target.base, Name))
        if term is None or not simple or type_ not in _SUMMED or (self.target.exact and type_ in ("float", "double")):
            return None
        term = self.known.expand(term)
        if (
            name in self.rec.arrays
            or name in {p.name for p in self.target.kernel.params}
            or not self._is_known(term, inside)
        ):
            return None
        return Sum(s.target, type_, term, around)

    def _is_known(self, e: Expr, inside: frozenset[str]) -> bool:
        """Whether an expression has its value at the step's begin: of parameters, loop variables around it, and state
        that was not written yet in the step."""
        locals_ = set(declared((*self.rec.before, *self.rec.body))) - set(self.rec.arrays)
        loops_ = {n for n in self.known.loops if n not in inside and n != self.rec.variable}
        if (names_in(e) - inside) & (locals_ | loops_):
            return False
        for x in elements(e):
            base: Expr = x
            while isinstance(base, Index):
                base = base.base
            if (
                isinstance(base, Name)
                and base.text in self.rec.arrays
                and self.rec.arrays[base.text].key in self.written
            ):
                return False
        return True


def _is_same_for_items(e: Expr) -> bool:
    """Whether an expression says nothing of the block and reads nothing."""
    return not any(elements(e)) and "blockIdx" not in names_in(e)


def _added(s: Assign) -> Expr | None:
    """The term of ``target += term``, however it is written."""
    match s.op, s.value:
        case "+=", value:
            return value
        case "-=", value:
            return Unary("-", value)
        case "=", Binary("+", left, right) if left == s.target:
            return right
        case "=", Binary("+", left, right) if right == s.target:
            return left
        case "=", Call(Name(text), (a, b, c)) if text in _FUSED and c == s.target:
            return Binary("*", a, b)
    return None


def _written(rec: Recurrence, part: Block) -> Iterator[tuple[str, int]]:
    """The state arrays that statements write."""
    for s in walk_stmts(part):
        if isinstance(s, Assign) and (name := base_name(s.target)) in rec.arrays:
            yield rec.arrays[name or ""].key
