"""Loops that may end early while they sort: where the next element is in order, or where nothing was exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsr.source.form import Assign, Binary, Comment, Declare, Expr, For, If, Jump, Name, Scope, Stmt, Unary, While
from fsr.source.walk import Block

BREAK = (Jump("break"),)


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A variable that tells whether elements were exchanged: ``yes`` where one of some comparators did, ``no`` where
    all of those ``pairs``, each the one right after the one before from number ``since`` on, found them in order."""

    yes: int
    no: int
    since: int
    pairs: tuple[tuple[int, int], ...]

    def more(self, yes: int, pair: tuple[int, int], done: int) -> Exchanged | None:
        """After another comparator that sets the variable, of which ``done`` were before; None where it sets another
        value, or those between do not set it."""
        if yes != self.yes or done != self.since + len(self.pairs):
            return None
        return Exchanged(self.yes, self.no, self.since, (*self.pairs, pair))


def as_condition(s: Stmt) -> Stmt | None:
    """A loop that begins by asking whether it ends (``if (v[j] <= key) break;``, ``if (v[j] > key) ... else break;``)
    with that in its condition, as ``for`` and ``while`` may have it; None of others."""
    if not isinstance(s, For | While):
        return None
    told = [x for x in s.body if not isinstance(x, Comment)]
    if not told or not isinstance(first := told[0], If):
        return None
    holds: Expr
    then, orelse = (tuple(x for x in part if not isinstance(x, Comment)) for part in (first.then, first.orelse))
    if then == BREAK:
        holds, rest = Unary("!", first.test), (*orelse, *told[1:])
    elif orelse == BREAK:
        holds, rest = first.test, (*then, *told[1:])
    else:
        return None
    if any(_leaves(rest)):
        return None
    if isinstance(s, While):
        return While(Binary("&&", s.test, holds), rest)
    begin = Assign(Name(s.var), "=", s.start) if s.type is None else Declare(s.type, s.var, s.start)
    ahead = Binary(s.relation, Name(s.var), s.bound)
    return Scope((begin, While(Binary("&&", ahead, holds), (*rest, Assign(Name(s.var), "+=", s.step)))))


def _leaves(body: Block) -> Iterator[Stmt]:
    """The jumps in statements, those of loops within apart."""
    for s in body:
        match s:
            case Jump():
                yield s
            case If(_, then, orelse):
                yield from _leaves((*then, *orelse))
            case Scope(inner):
                yield from _leaves(inner)


def skipped(body: Block) -> tuple[Expr, Block] | None:
    """Statements that begin with ``if (test) continue;``: the test, and what follows."""
    told = tuple(s for s in body if not isinstance(s, Comment))
    match told[:1]:
        case (If(test, (Jump("continue"),), ()),):
            return test, told[1:]
    return None
