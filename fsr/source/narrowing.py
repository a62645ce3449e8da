"""Declarations moved to where their variable is first given a value, as ``float dx, dy;`` at a kernel's head hides
that every turn of a loop has its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from fsr.source.form import Assign, Declare, Expr, For, Literal, Name, OpaqueStmt, Stmt, Unary
from fsr.source.mapping import with_blocks
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    names_in,
    names_mentioned,
    walk_exprs,
    walk_stmts,
)


def narrowed(body: Block) -> Block:
    """The statements with each variable that is declared without a value, or with a number that nobody reads, declared
    where it gets one, if that is before all else that may happen to it. A variable of several blocks, each of which
    sets it first, becomes one in each."""
    if any(isinstance(s, OpaqueStmt) for s in walk_stmts(body)):
        return body  # it may jump
    times = Counter([s.name for s in walk_stmts(body) if isinstance(s, Declare)])
    times.update(s.var for s in walk_stmts(body) if isinstance(s, For) and s.type is not None)
    by_address = {n for e in walk_exprs(body) if isinstance(e, Unary) and e.op == "&" for n in names_in(e)}
    return _level(body, frozenset(n for n, count in times.items() if count == 1) - by_address)


def _level(body: Block, single: frozenset[str]) -> Block:
    found = list[Stmt](body)
    for s in body:
        match s:
            case Declare(init=init, dims=(), qualifiers=()) if s.name in single and "&" not in s.type and _told(init):
                at = next(i for i, other in enumerate(found) if other is s)
                rest = _set_first(found[at + 1 :], s)
                found = found if rest is None else [*found[:at], *rest]
    return tuple(with_blocks(s, lambda block: _level(block, single)) for s in found)


def _told(init: Expr | None) -> bool:
    """Whether a variable has no value yet, or a number: nobody misses it where another is set before all else."""
    return init is None or isinstance(init, Literal) or (isinstance(init, Unary) and isinstance(init.operand, Literal))


def _set_first(body: Iterable[Stmt], own: Declare) -> list[Stmt] | None:
    """The statements with the variable declared inside; None where it may be seen before it is set. Nothing of it is
    left after them."""
    found = list[Stmt]()
    rest = list(body)
    while rest:
        s = rest.pop(0)
        if own.name not in names_mentioned([s]):
            found.append(s)
            continue
        match s:
            case Assign(target=Name(text=text), op="=", value=value) if text == own.name and not _in(value, own):
                return [*found, replace(own, init=value, span=s.span), *rest]
            case For(type=None, var=var) if var == own.name and not any(_in(e, own) for e in (s.start, s.step)):
                found.append(replace(s, type=own.type))
                continue
        if any(_in(e, own) for e in exprs_of(s)) or not blocks_of(s):
            return None
        if any(_set_first(block, own) is None for block in blocks_of(s)):
            return None
        found.append(with_blocks(s, lambda block: tuple(_set_first(block, own) or block)))
    return found


def _in(e: Expr, own: Declare) -> bool:
    return own.name in names_in(e)
