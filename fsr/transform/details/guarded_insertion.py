"""guard-insertion: a value that is worse than the last of a sorted list is not looked for a place in it.

The list of the k nearest: an array of a thread whose elements all begin as one number, and into which values are put
before the first element that is greater, those behind it moved on by one. That leaves it in order, so that a value that
is no less than the last element has no place in it, which is one comparison and not k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.conditions import MIRRORED
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    Literal,
    Name,
    Unary,
)
from fsr.source.mapping import replace_stmt
from fsr.source.walk import (
    Block,
    contains_opaque,
    integer,
    loop_regions,
    names_assigned,
    names_in,
    walk_expr,
    walk_stmts,
    without_comments,
)
from fsr.transform.details.thread_arrays import thread_arrays
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

_GAIN = 2.0
_ORDERS = frozenset(("<", "<=", ">", ">="))


@dataclass(frozen=True, slots=True)
class GuardInsertion:
    """The action."""

    name: str = "guard-insertion"
    aims_at: frozenset[str] = frozenset(["instructions", "latency", "compute", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The loops that put a value into a sorted list, and do not ask its last element yet."""
        for target in targets(subject):
            for region, loop in loop_regions(target.kernel).items():
                if _guard(target, loop) is not None:
                    yield Move(self.name, region_in(target, region), (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate that asks first."""
        target = target_of(subject, move)
        loop = loop_regions(target.kernel)[part_of(move)]
        guard = _guard(target, loop)
        assert guard is not None
        body = replace_stmt(target.kernel.body, loop, (If(guard, (loop,)),))
        return rewritten(target, move, replace(target.kernel, body=body))


@dataclass(frozen=True, slots=True)
class _Insertion:
    """``value`` goes into ``array`` before the first element of which ``element sign value`` holds."""

    array: str
    sign: str
    value: Name
    then: Block


def _guard(target: Target, loop: For) -> Expr | None:
    """The test under which a loop does anything; None where it is no such loop, or stands under the test already."""
    found = _insertion(loop)
    if found is None or contains_opaque(loop.body) or loop.type is None:
        return None
    last = _less_one(loop.bound)
    changed = names_assigned(target.kernel.body)
    if names_in(loop.bound) & changed or found.value.text in names_in(loop.bound):
        return None
    if not _in_order(target, loop, found) or _asked(target, loop, found, last):
        return None
    test = Binary(found.sign, Index(Name(found.array), last), found.value)
    count = integer(loop.bound)
    return test if count is not None and count > 0 else Binary("&&", Binary(">", loop.bound, Literal("0")), test)


def _insertion(loop: For) -> _Insertion | None:
    match without_comments(loop.body):
        case [If(Binary(sign, left, right), then, ())] if _counts_up(loop):
            for element, value, own in ((left, right, sign), (right, left, MIRRORED.get(sign, ""))):
                if _is_element(element, loop.var) and isinstance(value, Name) and own in _ORDERS:
                    assert isinstance(element, Index)
                    assert isinstance(element.base, Name)
                    found = _Insertion(element.base.text, own, value, tuple(without_comments(then)))
                    return found if _shifts(loop, found) or _swaps(loop, found) else None
    return None


def _counts_up(loop: For) -> bool:
    return integer(loop.start) == 0 and loop.relation == "<" and integer(loop.step) == 1


def _is_element(e: Expr, at: str) -> bool:
    return isinstance(e, Index) and isinstance(e.base, Name) and e.index == Name(at)


def _shifts(loop: For, found: _Insertion) -> bool:
    """Whether what lies behind moves on by one, from the last on, before the value takes the place, and that is all."""
    match found.then:
        case [For() as inner, *sets, Jump("break")]:
            pass
        case _:
            return False
    going = integer(inner.step) == -1 and inner.relation == ">" and inner.bound == Name(loop.var)
    if not going or inner.start != _less_one(loop.bound) or inner.type is None:
        return False
    moved, placed = set[str](), dict[str, Expr]()
    for s in without_comments(inner.body):
        match s:
            case Assign(Index(Name(to), Name(at)), "=", Index(Name(of), before)) if (
                to == of and at == inner.var and before == Binary("-", Name(inner.var), Literal("1"))
            ):
                moved.add(to)
            case _:
                return False
    for s in sets:
        match s:
            case Assign(Index(Name(to), Name(at)), "=", value) if at == loop.var and to not in placed:
                placed[to] = value
            case _:
                return False
    return found.array in moved and moved == set(placed) and placed[found.array] == found.value


def _swaps(loop: For, found: _Insertion) -> bool:
    """Whether the value and the element change places, others of other arrays with them, and that is all."""
    held, swapped, taken = dict[str, str](), dict[str, str](), dict[str, str]()
    for s in found.then:
        match s:
            case Declare(name=name, init=Index(Name(of), Name(at)), dims=()) if at == loop.var and not swapped:
                held[name] = of
            case Assign(Index(Name(to), Name(at)), "=", Name(value)) if at == loop.var and to in held.values():
                swapped[to] = value
            case Assign(Name(to), "=", Name(value)) if value in held and swapped.get(held[value]) == to:
                taken[to] = value
            case _:
                return False
    return swapped.get(found.array) == found.value.text and len(held) == len(swapped) == len(taken)


def _less_one(count: Expr) -> Expr:
    number = integer(count)
    return Literal(str(number - 1)) if number is not None else Binary("-", count, Literal("1"))


def _in_order(target: Target, loop: For, found: _Insertion) -> bool:
    """Whether the list is in order whenever the loop begins: it is a thread's own, all of it begins as one number, and
    nothing else writes to it."""
    if found.array not in {a.declared.name for a in thread_arrays(target)}:
        return False
    inside = {id(s) for s in walk_stmts(loop.body)}
    begun, known = set[int](), False
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, For) and s is not loop and _begins(s, loop, found.array):
            begun |= {id(x) for x in walk_stmts(s.body)}
            known = True
    for s in walk_stmts(target.kernel.body):
        writes = isinstance(s, Assign) and isinstance(s.target, Index) and s.target.base == Name(found.array)
        if writes and id(s) not in inside | begun:
            return False
        if isinstance(s, Declare) and s.name == found.array and s.init is not None:
            return False
    return known


def _begins(s: For, loop: For, array: str) -> bool:
    """Whether a loop gives all elements of the list one number."""
    if not _counts_up(s) or s.bound != loop.bound:
        return False
    values = [
        x.value
        for x in without_comments(s.body)
        if isinstance(x, Assign) and x.op == "=" and x.target == Index(Name(array), Name(s.var))
    ]
    jumps = any(isinstance(x, Jump | If) for x in walk_stmts(s.body))
    return len(values) == 1 and not jumps and _is_number(values[0])


def _is_number(e: Expr) -> bool:
    match e:
        case Literal() | Name("INFINITY" | "FLT_MAX" | "DBL_MAX" | "INT_MAX" | "HUGE_VALF"):
            return True
        case Unary("-" | "+", operand):
            return _is_number(operand)
    return False


def _asked(target: Target, loop: For, found: _Insertion, last: Expr) -> bool:
    """Whether some test around the loop asks the last element already."""
    return any(
        isinstance(s, If)
        and any(x is loop for x in walk_stmts((*s.then, *s.orelse)))
        and any(x == Index(Name(found.array), last) for x in walk_expr(s.test))
        for s in walk_stmts(target.kernel.body)
    )
