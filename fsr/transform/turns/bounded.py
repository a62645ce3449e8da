"""Counters that stay below a bound where they are used: ``if (found < most) { out[found] = k; ++found; }``, the same in
a loop's test, or a loop that ends as soon as they reach it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsr.analysis.accesses import Access
from fsr.source.form import Assign, Binary, Declare, Expr, For, If, Jump, Literal, Name, Stmt, Unary, While, conjuncts
from fsr.source.walk import Block, blocks_of, integer, variables, walk_exprs, walk_stmts, without_comments
from fsr.transform.sizes import always
from fsr.transform.target import Target


def bound_of(target: Target, access: Access, name: str) -> str | None:
    """What a variable that counts up from 0 or more is less than at an access, as a size expression; None where that
    does not show."""
    body, used = target.kernel.body, access.statement
    first = _first(body, name)
    if first is None or used is None:
        return None
    for test, block in _regions(body, used):
        bounds = [b for t in conjuncts(test) if (b := _less(t, name)) is not None]
        if bounds and not _changed_before(block, used, name):
            return target.size_text(bounds[0])
    ended = _ended_at(access.loops, name)
    text = None if ended is None else target.size_text(ended)
    return text if text is not None and always(target.contract, f"({text}) > {first}") else None


def _first(body: Block, name: str) -> int | None:
    """What a variable begins with, if it is a number and the variable only counts up."""
    own = [s for s in walk_stmts(body) if isinstance(s, Declare) and s.name == name]
    if variables(body).count(name) != 1 or len(own) != 1 or own[0].init is None or own[0].qualifiers:
        return None
    if any(isinstance(e, Unary) and e.op == "&" and e.operand == Name(name) for e in walk_exprs(body)):
        return None
    for s in _assigned(body, name):
        value = integer(s.value)
        if value is None or value < 0 or s.op not in ("=", "+="):
            return None
    first = integer(own[0].init)
    return first if first is not None and first >= 0 else None


def _assigned(body: Block, name: str) -> list[Assign]:
    return [s for s in walk_stmts(body) if isinstance(s, Assign) and s.target == Name(name)]


def _regions(body: Block, used: Stmt) -> Iterator[tuple[Expr, Block]]:
    """The statements that run where a test holds, with the test, of those around a statement."""
    for s in walk_stmts(body):
        if isinstance(s, If) and any(x is used for x in walk_stmts(s.then)):
            yield s.test, s.then
        if isinstance(s, While) and any(x is used for x in walk_stmts(s.body)):
            yield s.test, s.body


def _less(test: Expr, name: str) -> Expr | None:
    match test:
        case Binary("<", Name(text), bound) | Binary(">", bound, Name(text)) if text == name:
            return bound
    return None


def _changed_before(block: Block, used: Stmt, name: str) -> bool:
    """Whether a variable may have changed since the block began, when the statement runs."""
    order = list(walk_stmts(block))
    at = next(n for n, s in enumerate(order) if s is used)
    for s in order:
        inside = isinstance(s, For | While) and any(x is used for x in walk_stmts(s.body))
        if inside and isinstance(s, For | While) and _assigned(s.body, name):
            return True
    return any(s.target == Name(name) for s in order[:at] if isinstance(s, Assign))


def _ended_at(loops: Sequence[For | While], name: str) -> Expr | None:
    """What ends the loop around an access as soon as a variable of the turn around it reaches it."""
    changing = [n for n, loop in enumerate(loops) if _assigned(loop.body, name)]
    if not changing:
        return None
    inner, around = loops[changing[-1]], loops[changing[-1] - 1] if changing[-1] else None
    own = around is not None and any(isinstance(s, Declare) and s.name == name for s in around.body)
    ends = list(_ends(inner.body, name))
    if not own or around is None or len(ends) != len(_assigned(around.body, name)) or len({*ends}) != 1:
        return None
    return ends[0]


def _ends(body: Block, name: str) -> Iterator[Expr]:
    """The bounds at which a step of the variable is followed by the end of the loop."""
    body = without_comments(body)
    for s, after in zip(body, (*body[1:], None), strict=False):
        if isinstance(s, Assign) and s.target == Name(name) and s.op == "+=" and isinstance(after, If):
            match after.test, without_comments(after.then)[-1:]:
                case Binary(">=" | "==" as op, Name(text), bound), (Jump("break"),) if text == name:
                    if op == ">=" or s.value == Literal("1"):
                        yield bound
        if not isinstance(s, For | While):
            for block in blocks_of(s):
                yield from _ends(block, name)
