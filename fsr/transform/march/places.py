"""Whether each turn of a march touches elements of its own of what the march writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fsr.analysis.accesses import Access, pointed
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.source.form import Binary, Expr, For
from fsr.source.walk import Block, walk_stmts
from fsr.transform.march.beginning import beginning
from fsr.transform.march.guards import extents
from fsr.transform.march.steps import Step
from fsr.transform.sizes import always
from fsr.transform.target import Target
from fsr.transform.turns.own_elements import own_elements

IDS = ("threadIdx.", "blockIdx.", "blockDim.", "gridDim.")


@dataclass(frozen=True)
class Touched:
    """A loop, what its variable moves by, the other variables that move, all that a turn changes, whether turns have
    barriers, and the statement lists around the loop."""

    loop: For
    by: int
    steps: tuple[Step, ...]
    changing: frozenset[str]
    barrier: bool
    levels: tuple[tuple[Block, int], ...]


@dataclass(frozen=True)
class _Place:
    """Where an access is in a turn: ``at``, of the variables as the turn finds them; ``turn``: how much further the
    next turn's is."""

    at: Poly
    turn: Poly


def own_places(target: Target, found: Sequence[Access], touched: Touched) -> bool:
    """Whether the accesses, to one buffer, touch in no two turns the same element. Where turns have barriers, whichever
    threads of a block have them: of two blocks, none would know which comes first anyway."""
    places = [_place(target, a, touched) for a in found]
    told = [p for p in places if p is not None]
    if len(told) == len(places) and all(_moves(target, p.turn) for p in told):
        if all(p == told[0] for p in told):
            return not touched.barrier or all(_apart_in_block(target, told[0], a, touched) for a in found)
        if not touched.barrier and all(_between_turns(p, other) for p in told for other in told):
            return True
    if touched.barrier or touched.steps:
        return False
    return own_elements(target, [(touched.loop, a) for a in found])


def _between_turns(one: _Place, other: _Place) -> bool:
    """Whether a place is a part of a turn's way beside another one, not where any other turn has that."""
    if one.turn != other.turn:
        return False
    apart = other.at - one.at
    if not apart.terms:
        return True
    share = Fraction(apart.terms[0][1], one.turn.terms[0][1])
    exact = apart * constant(share.denominator) == one.turn * constant(share.numerator)
    return exact and share.denominator != 1


def _moves(target: Target, turn: Poly) -> bool:
    return turn.value not in (None, 0) or _always(target, turn, "!= 0")


def _always(target: Target, value: Poly, condition: str) -> bool:
    text = target.poly_text(value)
    return text is not None and always(target.contract, f"({text}) {condition}")


def _place(target: Target, access: Access, touched: Touched) -> _Place | None:
    """The place; None where it depends on more than the turn's number and what is the same in all turns."""
    if not access.indices or access.array is None:
        return None
    index: Expr = access.indices[0]
    if len(access.indices) > 1:
        return None
    name, own = access.array, frozenset(p.name for p in target.kernel.params) | frozenset(target.known.values)
    while name in target.known.values:
        place = pointed(target.known.values[name], own)
        if place is None:
            return None
        name, index = place[0], index if place[1] is None else Binary("+", place[1], index)
    at = target.poly(index) + symbol(name)
    turn = constant(0)
    moving = {touched.loop.var: [constant(touched.by)]}
    for step in touched.steps:
        moving.setdefault(step.name, []).append(target.poly(step.signed))
    for step in touched.steps:
        if step.at < _position(touched.loop, access):  # it has moved already
            factor = at.coefficient(step.name)
            if factor is None:
                return None
            at = at + factor * target.poly(step.signed)
    for moved, amounts in moving.items():
        factor = at.coefficient(moved)
        if factor is None or factor.depends_on(moving):
            return None
        for amount in amounts:
            turn = turn + factor * amount
    return None if at.depends_on(touched.changing - set(moving)) else _Place(at, turn)


def _position(loop: For, access: Access) -> int:
    """Which statement of the loop's body an access is in."""
    return next(n for n, s in enumerate(loop.body) if any(x is access.statement for x in walk_stmts((s,))))


def _apart_in_block(target: Target, place: _Place, access: Access, touched: Touched) -> bool:
    """Whether a turn moves further than threads of a block are apart, so that none comes where another one was."""
    values = beginning(target, touched.levels)
    at = place.at
    for name in sorted(at.symbols & values.keys()):
        factor = at.coefficient(name)
        value = values[name]
        if factor is None or value is None:
            return False
        at = at.without(name) + factor * value
    across: list[str] = []
    assert access.statement is not None
    for axis, extent in extents(target, access.statement).items():
        factor = at.coefficient(f"threadIdx.{axis}")
        text = None if factor is None else target.poly_text(factor)
        if text is None:
            return False
        across.append(f"max({text}, 0 - ({text})) * (({extent}) - 1)")
    turn = target.poly_text(place.turn)
    known = {p.name for p in target.kernel.params} | {touched.loop.var}
    if turn is None or any(not (x in known or x.startswith(("turns$", *IDS))) for x in at.symbols):
        return False
    return always(target.contract, f"max({turn}, 0 - ({turn})) > {' + '.join(across)}")
