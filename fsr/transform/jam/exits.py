"""Early ``return`` and ``continue`` taken out: what they would skip stands under the opposite condition instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fsr.analysis.conditions import negation
from fsr.source.form import Binary, Comment, Declare, Expr, For, If, Jump, Return, Scope, Stmt, Unary, While
from fsr.source.mapping import with_blocks
from fsr.source.walk import Block, blocks_of, contains_return

Whole = Callable[[Expr], bool]
"""Whether an expression is a whole number."""


def without_exits(body: Block, whole: Whole) -> Block | None:
    """A function's statements without returns; None where one stands in a loop, or may or may not be reached before
    what follows. A ``continue`` goes where it can."""
    found = _nested(body, lambda s: isinstance(s, Return), whole)
    return None if found is None or contains_return(found) else tuple(_inner(s, whole) for s in found)


def _inner(s: Stmt, whole: Whole) -> Stmt:
    """The statement with no ``continue`` in the loops within, where that can be."""
    s = with_blocks(s, lambda block: tuple(_inner(inner, whole) for inner in block))
    if isinstance(s, For | While):
        body = _nested(s.body, lambda x: isinstance(x, Jump) and x.keyword == "continue", whole)
        return s if body is None or body == s.body else replace(s, body=body)
    return s


def _nested(stmts: Block, leaves: Callable[[Stmt], bool], whole: Whole) -> Block | None:
    found: list[Stmt] = []
    for at, s in enumerate(stmts):
        rest = stmts[at + 1 :]
        if leaves(s):
            return tuple(found)
        if not _holds(s, leaves):
            found.append(s)
            continue
        if not isinstance(s, If) or s.constexpr:
            return None
        then, orelse = s.then, s.orelse
        if not _empty(rest):
            if _always(then, leaves) and not any(isinstance(x, Declare) for x in orelse):
                orelse = (*orelse, *rest)
            elif _always(orelse, leaves) and not any(isinstance(x, Declare) for x in then):
                then = (*then, *rest)
            else:
                return None
        yes, no = _nested(then, leaves, whole), _nested(orelse, leaves, whole)
        if yes is None or no is None:
            return None
        found.append(replace(s, test=_opposite(s.test, whole), then=no, orelse=()) if _empty(yes) else
                     replace(s, then=yes, orelse=no))  # fmt: skip
        return tuple(found)
    return tuple(found)


def _holds(s: Stmt, leaves: Callable[[Stmt], bool]) -> bool:
    """Whether a statement that leaves stands in it; a loop's own do not leave the loop around it."""
    if leaves(s):
        return True
    if isinstance(s, For | While) and not leaves(Return()):
        return False
    return any(_holds(inner, leaves) for block in blocks_of(s) for inner in block)


def _always(block: Block, leaves: Callable[[Stmt], bool]) -> bool:
    """Whether what stands behind the block is never reached from it."""
    for s in block:
        if leaves(s) or (isinstance(s, If) and all(_always(b, leaves) for b in blocks_of(s))):
            return True
        if isinstance(s, Scope) and _always(s.body, leaves):
            return True
    return False


def _empty(block: Block) -> bool:
    return all(isinstance(s, Comment) for s in block)


def _opposite(test: Expr, whole: Whole) -> Expr:
    """The opposite, with turned comparisons only of whole numbers: of NaN neither holds."""
    match test:
        case Binary("&&" | "||" as op, left, right):
            return Binary("||" if op == "&&" else "&&", _opposite(left, whole), _opposite(right, whole))
        case Binary("<" | ">" | "<=" | ">=", left, right) if not (whole(left) and whole(right)):
            return Unary("!", test)
    return negation(test)
