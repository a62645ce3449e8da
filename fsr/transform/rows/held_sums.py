"""Sums that a loop keeps in memory, ``y[row] = 0; for (...) y[row] += ...;``, held in a variable meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from fsr.analysis.effects import element_type
from fsr.source.form import Assign, Comment, Declare, For, Index, Name, Return, Stmt
from fsr.source.mapping import rewrite, with_blocks
from fsr.source.walk import (
    Block,
    base_name,
    declared,
    fresh,
    names_changed,
    names_in,
    names_mentioned,
    nodes,
    walk_expr,
    walk_stmts,
)
from fsr.transform.target import Target


@dataclass(frozen=True)
class _Sum:
    """An element that a loop adds to, and where in the statements before it gets its first value."""

    place: Index
    pointer: str
    first: int


def held(body: Block, target: Target) -> Block:
    """The statements with such sums in variables, stored where the loop is over."""
    return _level(body, target, set(target.names))


def _level(body: Block, target: Target, taken: set[str]) -> Block:
    found = list[Stmt]()
    for s in body:
        s = with_blocks(s, lambda block: _level(block, target, taken))
        sums = _sums(s, found, target) if isinstance(s, For) else []
        stored = list[Stmt]()
        for one in sums:
            name = fresh(f"{one.pointer}_sum", taken)
            taken.add(name)
            first = found[one.first]
            assert isinstance(first, Assign)
            type_ = next(element_type(p.type) for p in target.kernel.params if p.name == one.pointer)
            found[one.first] = Declare(type_, name, first.value)
            s = rewrite(s, lambda e, place=one.place, name=name: Name(name) if e == place else None)
            stored.append(Assign(one.place, "=", Name(name)))
        found += [s, *stored]
    return tuple(found)


def _sums(loop: For, before: list[Stmt], target: Target) -> list[_Sum]:
    """The elements that can be held over a loop: of pointers of which it does nothing else."""
    if any(isinstance(s, Return) for s in walk_stmts(loop.body)):
        return []
    found = list[_Sum]()
    updates = [s.target for s in walk_stmts(loop.body) if isinstance(s, Assign) and s.op != "="]
    places = [t for t in dict.fromkeys(updates) if isinstance(t, Index) and isinstance(t.base, Name)]
    for place in places:
        pointer = place.base.text if isinstance(place.base, Name) else ""
        own = [p for p in places if p.base == place.base]
        mentions = sum(n == Name(pointer) for n in nodes(loop))
        at = _first(place, own, before)
        alone = mentions == sum(t in own for t in updates) and _distinct(own, target)
        if at is not None and alone and _steady(place, (loop, *before[at:]), target):
            found.append(_Sum(place, pointer, at))
    # All of a pointer's or none: another's element would be read where it is not stored yet.
    wanted = {p.base for p in places} - {p.base for p in places if p not in [f.place for f in found]}
    return [f for f in found if f.place.base in wanted]


def _first(place: Index, own: list[Index], before: list[Stmt]) -> int | None:
    """Where the element gets a value, with nothing after it that may leave or look at the pointer's elements; those of
    ``own``, all different, may get theirs."""
    pointer = base_name(place) or ""
    for at in range(len(before) - 1, -1, -1):
        s = before[at]
        match s:
            case Assign(target=set_, op="=", value=value) if set_ == place:
                return None if pointer in names_in(value) else at
            case Assign(target=Index() as other, op="=", value=value) if other in own and pointer not in names_in(
                value
            ):
                continue
            case Comment() | Declare() | Assign():
                if pointer in names_mentioned([s]):
                    return None
            case _:
                return None
    return None


def _distinct(places: list[Index], target: Target) -> bool:
    """Whether the elements are surely different ones."""
    apart = [(target.poly(a.index) - target.poly(b.index)).value for a, b in combinations(places, 2)]
    return all(apart)


def _steady(place: Index, over: Iterable[Stmt], target: Target) -> bool:
    """Whether it is one element all the while, of memory that nobody else reaches."""
    names = names_in(place)
    pointer = place.base.text if isinstance(place.base, Name) else ""
    loads = any(isinstance(e, Index) for e in walk_expr(place.index))
    other = (
        names_changed(over) - {pointer} | set(declared(over)) | {s.var for s in walk_stmts(over) if isinstance(s, For)}
    )
    moved = any(isinstance(s, Assign) and s.target == Name(pointer) for s in walk_stmts(target.kernel.body))
    return pointer in target.unaliased and not (loads or moved or names & other)
