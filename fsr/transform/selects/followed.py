"""The element at the place of an extreme, carried along with that place.

``if (a[j] > a[worst]) worst = j;`` asks for the element at ``worst`` in each turn, which would be a select for every
element each time. Where nothing is written to the array meanwhile, the element is known when the place is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from fsr.analysis.types import is_integer, resolved
from fsr.source.form import Assign, Declare, Expr, For, If, Index, Name, Stmt
from fsr.source.mapping import rewrite, with_blocks, with_exprs
from fsr.source.walk import (
    Block,
    base_name,
    blocks_of,
    fresh,
    integer,
    taken_names,
    variables,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.details.constant_loops import turns_of
from fsr.transform.selects.arrays import Place, SmallArray, own_names
from fsr.transform.selects.certain import certain


def with_followed(place: Place, arrays: Sequence[SmallArray]) -> Block:
    """A kernel's statements with a variable for each such element."""
    flat = [a for a in arrays if len(a.extents) == 1 and resolved(a.declared.type, place.types) != "bool"]
    return _Followed(place, flat).block(place.form.body, ())


@dataclass
class _Followed:
    place: Place
    arrays: Sequence[SmallArray]

    def __post_init__(self) -> None:
        form = self.place.form
        self._taken, self._own, self._names = set(taken_names(form)), own_names(form), variables(form.body)

    def block(self, body: Block, around: tuple[For, ...]) -> Block:
        """Statements that stand within these loops."""
        found, rest = list[Stmt](), list(body)
        while rest:
            s = rest.pop(0)
            found.append(s := self._within(s, around))
            for array in self.arrays if isinstance(s, Declare) and self._is_place(s) else ():
                assert isinstance(s, Declare)
                end = self._end(s, array, rest, around)
                if end and s.init is not None and self._fits(s.init, array, around) and _asks(rest[:end], array, s):
                    name = fresh(f"{s.name}_{array.name}", self._taken)
                    self._taken.add(name)
                    found.append(Declare(array.declared.type, name, Index(Name(array.name), s.init)))
                    rest[:end] = _carried(rest[:end], array, s.name, name)
        return tuple(found)

    def _within(self, s: Stmt, around: tuple[For, ...]) -> Stmt:
        inner = (*around, s) if isinstance(s, For) else around
        return with_blocks(s, lambda b: self.block(b, inner))

    def _is_place(self, s: Declare) -> bool:
        alone = self._names.count(s.name) == 1 and s.name in self._own
        return alone and not s.dims and is_integer(resolved(s.type, self.place.types))

    def _end(self, own: Declare, array: SmallArray, rest: Sequence[Stmt], around: tuple[For, ...]) -> int:
        """How many statements there are up to one that writes to the array, included where its value is asked for
        first, or sets the place to anything else."""
        if any(isinstance(s, Declare) and s.name == array.name for s in walk_stmts(rest)):
            return 0  # there is no array yet
        for at, s in enumerate(rest):
            if isinstance(s, Assign) and base_name(s.target) == array.name:
                return at + (own.name not in _changed_by(s, self.place))
            if any(base_name(x.target) == array.name for x in walk_stmts((s,)) if isinstance(x, Assign)):
                return at
            if not self._sets(s, own.name, array, around):
                return at
        return len(rest)

    def _sets(self, s: Stmt, name: str, array: SmallArray, around: tuple[For, ...]) -> bool:
        """Whether a statement sets the place to known ones alone."""
        for x, loops in _with_loops(s, around):
            if isinstance(x, Assign) and base_name(x.target) == name:
                if x.op != "=" or not isinstance(x.target, Name) or not self._fits(x.value, array, loops):
                    return False
            elif name in _changed_by(x, self.place):
                return False
        return True

    def _fits(self, e: Expr, array: SmallArray, around: tuple[For, ...]) -> bool:
        """Whether an index is one of the array's for certain: a number, or the turn of a loop that is at that element,
        or never leaves the array."""
        value = integer(e)
        if value is not None:
            return 0 <= value < array.elements
        loop = next((loop for loop in reversed(around) if isinstance(e, Name) and loop.var == e.text), None)
        if loop is None or self._names.count(loop.var) != sum(
            isinstance(s, For) and s.var == loop.var and s.type is not None for s in walk_stmts(self.place.form.body)
        ):
            return False
        if loop.type is None or loop.var in self.place.changed(loop.body):
            return False
        turns = turns_of(loop, self.place.known)
        if turns and all(0 <= turn < array.elements for turn in turns):
            return True
        return any(x == Index(Name(array.name), e) for x, _ in certain(loop.body, self.place.known))


def _asks(body: Sequence[Stmt], array: SmallArray, own: Declare) -> bool:
    """Whether the element at the place is read, and the place set under a condition."""
    wanted, asked = Index(Name(array.name), Name(own.name)), False
    for s in body:
        written = isinstance(s, Assign) and s.target == wanted
        asked |= any(x == wanted for x in walk_exprs((replace(s, target=Name("")) if written else s,)))  # type: ignore
    tests = (x for x in walk_stmts(body) if isinstance(x, If))
    sets = (s for x in tests for s in walk_stmts((x,)) if isinstance(s, Assign))
    return asked and any(s.target == Name(own.name) for s in sets)


def _carried(body: Sequence[Stmt], array: SmallArray, place: str, name: str) -> list[Stmt]:
    """The statements with the variable for the element, which is set wherever the place is."""
    wanted = Index(Name(array.name), Name(place))
    found = list[Stmt]()

    def read(e: Expr) -> Expr | None:
        return Name(name) if e == wanted else None

    for s in body:
        written = isinstance(s, Assign) and s.target == wanted
        changed = with_exprs(s, lambda e, kept=written: e if kept and e == wanted else rewrite(e, read))  # type: ignore[misc]
        found.append(with_blocks(changed, lambda b: tuple(_carried(b, array, place, name))))
        if isinstance(s, Assign) and s.target == Name(place):
            found.append(Assign(Name(name), "=", Index(Name(array.name), s.value)))
    return found


def _changed_by(s: Stmt, place: Place) -> frozenset[str]:
    """The variables that a statement itself changes, not those within it."""
    return place.changed((with_blocks(s, lambda _: ()),))


def _with_loops(s: Stmt, around: tuple[For, ...]) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """A statement and all within it, each with the loops around it."""
    yield s, around
    inner = (*around, s) if isinstance(s, For) else around
    for x in chain(*blocks_of(s)):
        yield from _with_loops(x, inner)
