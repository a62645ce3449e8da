"""Extremes noted as soon as there is a first, ``if (left && (at < 0 || v > best))``, told as comparisons alone.

A search that begins with -INFINITY finds every finite value greater, so that asking for a first adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.analysis.extremes import place_of
from fsr.records import Role
from fsr.source.form import Assign, Binary, Declare, Expr, For, If, Index, Literal, Name, Stmt, Unary
from fsr.source.mapping import map_stmts, with_blocks
from fsr.source.walk import Block, base_name, integer, names_assigned, walk_stmts
from fsr.transform.target import Target

_BEFORE = {"greatest": Unary("-", Name("INFINITY")), "least": Name("INFINITY")}


def plainly(body: Block, target: Target) -> Block:
    """The statements with the loops' tests for a first left out."""
    found = list[Stmt]()
    for s in body:
        s = with_blocks(s, lambda block: plainly(block, target))
        found.append(_loop(s, _held(found), target) if isinstance(s, For) else s)
    return tuple(found) if tuple(found) != body else body


def _loop(loop: For, held: dict[str, Expr], target: Target) -> For:
    def told(s: Stmt) -> Stmt:
        match s:
            case If(test=Binary("&&", left, right), orelse=()):
                inner = told(replace(s, test=right))
                return replace(s, test=left, then=(inner,)) if inner != replace(s, test=right) else s
            case If(test=Binary("||", Binary("<", Name(at), Literal("0")), Binary() as test), orelse=()):
                plain = replace(s, test=test)
                place = place_of(plain, loop.var)
                if place is None or place.at != at or held.get(place.value) != _BEFORE[place.operator]:
                    return s
                set_ = [x.target for x in walk_stmts(loop.body) if isinstance(x, Assign)]
                alone = set_.count(Name(place.value)) == 1 == set_.count(Name(at))
                new = test.left if test.right == Name(place.value) else test.right
                return plain if alone and _is_finite(new, loop, target) else s
        return s

    first = integer(loop.start)
    return loop if first is None or first < 0 else replace(loop, body=map_stmts(loop.body, told))


def _held(before: Iterable[Stmt]) -> dict[str, Expr]:
    """What variables hold after statements, as far as one assigns it."""
    held = dict[str, Expr]()
    for s in before:
        for name in names_assigned(s):
            held.pop(name, None)
        match s:
            case Declare(name=name, init=value) | Assign(Name(name), "=", value) if value is not None:
                held[name] = value
    return held


def _is_finite(e: Expr, loop: For, target: Target) -> bool:
    """Whether a value is read from an input that holds finite values by the contract."""
    if isinstance(e, Name):
        inits = [s.init for s in walk_stmts(loop.body) if isinstance(s, Declare) and s.name == e.text]
        if len(inits) != 1 or inits[0] is None or e.text in names_assigned(loop.body):
            return False
        e = inits[0]
    root = base_name(target.known.expand(e.base)) if isinstance(e, Index) else None
    found = target.argument(root or "")
    return found is not None and found.role is Role.IN and found.constraints.finite
