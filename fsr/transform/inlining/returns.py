"""Functions whose returns are ends, as a call of one is written out: what comes behind a branch that returns stands in
its other branch, and a loop that returns is left by ``break``, with a flag that says so."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.source.form import Assign, Comment, Declare, Expr, For, If, Jump, Literal, Name, Return, Scope, Stmt, While
from fsr.source.mapping import with_blocks
from fsr.source.walk import Block, contains_return, fresh, walk_stmts


def with_ends(body: Block) -> Block | None:
    """The statements with all that follows a branch which returns in its other branch, so that a ``return`` is the last
    of what is done wherever one stands; None where one stands in a loop."""
    found = list[Stmt]()
    for at, s in enumerate(body):
        match s:
            case Return():
                return (*found, s)
            case If(_, then, orelse) if contains_return((s,)):
                rest, ends = body[at + 1 :], (_returns(then), _returns(orelse))
                yes = with_ends((*then, *(() if ends[0] else rest)))
                no = with_ends((*orelse, *(() if ends[1] else rest)))
                if yes is None or no is None or (rest and not any(ends)):
                    return None
                return (*found, replace(s, then=yes, orelse=no))
            case Scope(inner) if contains_return((s,)):
                ended = with_ends(inner)
                if ended is None or body[at + 1 :]:
                    return None
                return (*found, replace(s, body=ended))
        if contains_return((s,)):
            return None
        found.append(s)
    return tuple(found)


def _returns(body: Block) -> bool:
    """Whether what stands here ends with a return, whatever happens."""
    said = [s for s in body if not isinstance(s, Comment)]
    match said[-1:]:
        case [Return()]:
            return True
        case [If(_, then, orelse)]:
            return _returns(then) and _returns(orelse)
        case [Scope(inner)]:
            return _returns(inner)
    return False


def with_left_loops(body: Block, result: str, taken: set[str]) -> Block:
    """The statements with ``break`` for ``return`` in every loop, and the return behind it. ``result``: the type of
    what is returned, '' of nothing; ``taken``: names, with those that are added."""
    found = list[Stmt]()
    for at, s in enumerate(body):
        if isinstance(s, For | While) and contains_return((s,)):
            rest = with_left_loops(body[at + 1 :], result, taken)
            return (*found, *_left(s, result, taken, rest))
        found.append(with_blocks(s, lambda block: with_left_loops(block, result, taken)))
    return tuple(found)


def _left(loop: For | While, result: str, taken: set[str], rest: Block) -> Block:
    """A loop that is left, and what is done behind it, where it was and where it was not."""
    values = [s.value for s in walk_stmts((loop,)) if isinstance(s, Return)]
    plain = all(v == values[0] for v in values) and (values[0] is None or isinstance(values[0], Literal))
    left = fresh("left", taken)
    taken.add(left)
    value = "" if plain else fresh("returned", taken)
    taken.add(value)
    heads = [Declare("bool", left, Literal("false")), *([Declare(result, value)] if value else [])]
    end: Expr | None = Name(value) if value else values[0]
    leaving = replace(loop, body=_Leaving(left, value).block(loop.body))
    return (*heads, leaving, If(Name(left), (Return(end),), rest))


@dataclass(frozen=True, slots=True)
class _Leaving:
    """``left``: the flag; ``value``: the variable of what is returned, '' where that is known."""

    left: str
    value: str

    def block(self, body: Block) -> Block:
        """Statements of a loop, in which a return leaves it and those around."""
        found = list[Stmt]()
        for s in body:
            if isinstance(s, Return):
                given = [Assign(Name(self.value), "=", s.value)] if self.value and s.value is not None else []
                return (*found, *given, Assign(Name(self.left), "=", Literal("true")), Jump("break"))
            found.append(with_blocks(s, self.block))
            if isinstance(s, For | While) and contains_return((s,)):
                found.append(If(Name(self.left), (Jump("break"),)))
        return tuple(found)
