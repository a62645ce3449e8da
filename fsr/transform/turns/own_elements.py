"""Whether the turns of a loop touch elements of their own: no element that one of them writes is another one's.

An index ``c * j + a * k + b * l + rest`` in which each factor is more than all that stands with lesser ones comes to
(a number in mixed radix) tells j, so that two turns never meet, whichever the other loops' turns are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsr.analysis.accesses import Access, pointed
from fsr.analysis.conditions import exclusive
from fsr.analysis.polynomial import Poly
from fsr.source.form import Binary, Declare, Expr, For
from fsr.source.walk import walk_stmts
from fsr.transform.sizes import always, largest_timed
from fsr.transform.target import Target
from fsr.transform.turns.bounded import bound_of

_TURN = "$turn"


@dataclass(frozen=True)
class Place:
    """An index: ``factors`` of the turn's number and of other loops' variables, each with how many values the variable
    has at most, as size expressions; ``rest``: what is the same for all turns of a thread."""

    pointer: str
    turn: Poly
    factors: Mapping[Poly, str]
    rest: Poly


def own_elements(target: Target, found: Sequence[tuple[For, Access]]) -> bool:
    """Whether what is written among accesses to one memory, each with the loop whose turn it is part of, is touched by
    the turn of one number alone."""
    places = [(place_of(target, loop, a), a.writes) for loop, a in found]
    for one, writes in places:
        for other, _ in places if writes else ():
            if one is None or other is None or not _apart(target, one, other):
                return False
    return True


def place_of(target: Target, loop: For, access: Access) -> Place | None:
    """The place of an access within the loop; None where it cannot be told."""
    located = _located(target, access)
    if located is None:
        return None
    pointer, index = located
    whole = target.known.poly(index, target.constants)
    turn, rest = whole.coefficient(loop.var), whole.without(loop.var)
    if turn is None or turn == Poly():
        return None
    factors: dict[Poly, str] = {}
    counts = {x.var: _count(target, x) for x in access.loops if isinstance(x, For) and x is not loop}
    inside = {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)}
    counts |= {name: bound_of(target, access, name) for name in rest.symbols & inside}
    for name, count in counts.items():
        factor = rest.coefficient(name)
        if factor is None or (factor != Poly() and (count is None or factor in factors)):
            return None
        if factor != Poly():
            factors[factor], rest = count or "", rest.without(name)
    if rest.depends_on([loop.var]) or turn.depends_on([loop.var]):
        return None
    if _varies(target, access, pointer, (turn, rest, *factors)):
        return None
    return Place(pointer, turn, {**factors, turn: _count(target, loop) or ""}, rest)


def _located(target: Target, access: Access) -> tuple[str, Expr] | None:
    """The pointer that an access goes through, that of the kernel where a local one was made of it, and the index."""
    if access.array is None or access.index is None:
        return None
    name, index = access.array, access.index
    own = frozenset(p.name for p in target.kernel.params) | frozenset(target.known.values)
    while name in target.known.values:
        place = pointed(target.known.values[name], own)
        if place is None:
            return None
        name, index = place[0], index if place[1] is None else Binary("+", place[1], index)
    return name, index


def _count(target: Target, loop: For) -> str | None:
    """How many values a loop's variable may have, from 0 on, as a size expression; None where it is not known."""
    start = target.known.poly(loop.start, target.constants)
    counts = start.value is not None and start.value >= 0
    ids = start.symbols <= {f"{v}.{a}" for v in ("threadIdx", "blockIdx", "blockDim", "gridDim") for a in "xyz"}
    if not (counts or (ids and all(x > 0 for _, x in start.terms))) or loop.relation not in ("<", "<="):
        return None
    bound = exclusive(loop.bound, loop.relation)
    return target.size_text(bound)


def _varies(target: Target, access: Access, pointer: str, parts: Sequence[Poly]) -> bool:
    """Whether a pointer, or an index, depends on what is not the same for all turns of the thread."""
    named = frozenset[str]().union(*(p.names() for p in parts))
    turns = access.loops[0].body if access.loops else ()
    inside = {s.name for s in walk_stmts(turns) if isinstance(s, Declare)} | {
        s.var for s in walk_stmts(turns) if isinstance(s, For)
    }
    return pointer in inside or bool(named & (inside | target.known.changed))


def _apart(target: Target, one: Place, other: Place) -> bool:
    """Whether two turns of different numbers touch different elements there."""
    if one.pointer != other.pointer or one.turn != other.turn:
        return False
    factors = dict(one.factors)
    for factor, count in other.factors.items():
        own = factors.get(factor, count)
        factors[factor] = own if own == count or not (own and count) else f"max({own}, {count})"
    between = one.rest - other.rest
    if between == Poly():
        if len(factors) == 1:
            return _is_never_zero(target, one.turn)
    else:
        between = between if _holds(target, between, ">= 0") else -between
        if between in factors:
            return False
        factors[between] = "2"
    return _tells_turn(target, factors, one.turn)


def _is_never_zero(target: Target, factor: Poly) -> bool:
    return factor.value is not None or _holds(target, factor, "!= 0")


def _holds(target: Target, value: Poly, condition: str) -> bool:
    text = target.poly_text(value)
    return text is not None and always(target.contract, f"({text}) {condition}")


def _tells_turn(target: Target, factors: Mapping[Poly, str], turn: Poly) -> bool:
    """Whether a number in mixed radix tells the digit of ``turn``: that factor, and each greater one, is more than what
    all lesser ones come to together."""
    texts = {f: target.poly_text(f) or "" for f in factors}
    sizes = {f: largest_timed(target.contract, t) for f, t in texts.items()}
    if None in sizes.values():
        return False
    order = sorted(factors, key=lambda f: (sizes[f] or 0, f == turn))
    below = "0"
    for at, factor in enumerate(order):
        more = ">" if at >= order.index(turn) else ">= 0 *"
        if not always(target.contract, f"({texts[factor]}) {more} {below}"):
            return False
        if at + 1 < len(order):
            if not factors[factor]:
                return False
            below = f"({below} + ({texts[factor]}) * (max(({factors[factor]}), 1) - 1))"
    return True
