"""Loops that count in a ``while``, as counted loops: ``int i = tid; while (i < n) { ...; i += stride; }``."""

from __future__ import annotations

from collections import Counter

from fsr.source.form import (
    Assign,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    Stmt,
    Unary,
    While,
    conjunction,
    conjuncts,
)
from fsr.source.loop_heads import counted_parts, has_continue
from fsr.source.mapping import with_blocks
from fsr.source.walk import (
    Block,
    contains_opaque,
    names_in,
    names_mentioned,
    names_written,
    variables,
    walk_expr,
)


def counted(body: Block, *, ending: bool = False) -> Block:
    """The statements with each ``while`` whose variable is declared before it, steps at its end, and is used nowhere
    else, as the ``for`` that it is. ``ending``: also of one that asks for more (``k < n && found < most``), as one that
    such a turn ends."""
    if contains_opaque(body):
        return body
    return _level(body, frozenset(name for name, count in Counter(variables(body)).items() if count == 1), ending)


def _level(body: Block, single: frozenset[str], ending: bool) -> Block:
    found = list[Stmt](body)
    for s in body:
        if isinstance(s, Declare) and s.name in single and s.init is not None and not (s.dims or s.qualifiers):
            at = next(n for n, other in enumerate(found) if other is s)
            found = _joined(found, at, s, s.init, ending) or found
    return tuple(with_blocks(s, lambda block: _level(block, single, ending)) for s in found)


def _joined(body: list[Stmt], at: int, own: Declare, start: Expr, ending: bool) -> list[Stmt] | None:
    """The statements with the variable declared at ``at`` as that of the loop behind it; None where it is none."""
    place = next((n for n in range(at + 1, len(body)) if own.name in names_mentioned(body[n : n + 1])), None)
    loop = body[place] if place is not None else None
    if place is None or not isinstance(loop, While) or not loop.body or has_continue(loop.body):
        return None
    before, behind = tuple(body[at + 1 : place]), tuple(body[place + 1 :])
    tests = conjuncts(loop.test) if ending else (loop.test,)
    counting = [(parts, n) for n, test in enumerate(tests) if (parts := counted_parts([own], test, [loop.body[-1]]))]
    turn = loop.body[:-1]
    if len(counting) != 1:
        return None
    parts, place_of_test = counting[0]
    rest = conjunction(t for n, t in enumerate(tests) if n != place_of_test)
    if rest is not None:
        turn = (If(Unary("!", rest), (Jump("break"),)), *turn)
    if own.name in names_written(turn) | names_mentioned(behind):
        return None
    if names_in(start) & names_written(before) or _reads_memory(start) or not isinstance(loop.body[-1], Assign):
        return None
    type_, var, first, relation, bound, step = parts
    made = For(type_, var, first, relation, bound, step, turn, loop.pragmas, loop.span)
    return [*body[:at], *before, made, *behind]


def _reads_memory(e: Expr) -> bool:
    """Whether a value may be another one some statements later."""
    return any(isinstance(x, Index) or (isinstance(x, Unary) and x.op == "*") for x in walk_expr(e))
