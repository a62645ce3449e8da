"""Loops that count in their body, ``while (e < end) { ...; e++; }``, as counted loops."""

from __future__ import annotations

from fsr.source.form import Assign, Binary, Call, Comment, Declare, For, Literal, Name, Scope, Stmt, Unary, While
from fsr.source.loop_heads import counted_parts, has_continue
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import (
    Block,
    contains_opaque,
    names_in,
    names_mentioned,
    names_written,
    variables,
    walk_exprs,
    without_comments,
)


def counted(body: Block) -> Block:
    """The statements with such loops as For, where the counter is set shortly before: the declaration of a counter that
    nothing after the loop looks at goes into the loop, any other counter is set by it."""
    found = list[Stmt]()
    for at, s in enumerate(body):
        s = with_blocks(s, counted)
        match s:
            case While():
                found = _with_loop(found, s, body[at + 1 :]) or [*found, s]
            case Scope(body=(Declare() | Assign() as first, While() as loop)):
                inner = _with_loop([first], loop, ())
                found += inner if inner is not None and len(inner) == 1 else [s]
            case Scope(body=(Declare() as first, While() as loop, Assign() as last)):
                down = _counted_down(first, loop, last)
                found.append(s if down is None else down)
            case _:
                found.append(s)
    return tuple(found)


def _counted_down(first: Declare, loop: While, last: Assign) -> For | None:
    """``for (T t = n; t-- > 0;)`` as a loop over one more than the counter is in a turn; None for any other."""
    counter, body = Name(first.name), loop.body
    once = Assign(counter, "-=", Literal("1"))
    if first.init is None or last != once or not body or body[0] != once:
        return None
    rest = body[1:]
    if loop.test != Binary(">", counter, Literal("0")) or contains_opaque(rest):
        return None
    if first.name in names_written(rest) or first.name in variables(rest):
        return None
    turn = substitute(rest, {first.name: Binary("-", counter, Literal("1"))})
    return For(
        first.type, first.name, first.init, ">", Literal("0"), Unary("-", Literal("1")), turn, loop.pragmas, loop.span
    )


def _with_loop(before: list[Stmt], loop: While, after: Block) -> list[Stmt] | None:
    """``before`` and the loop as a counted one; None where it is none."""
    body = without_comments(loop.body)
    if not body or not isinstance(body[-1], Assign) or not isinstance(body[-1].target, Name) or has_continue(body):
        return None
    last, counter = body[-1], body[-1].target.text
    at = _set_at(before, counter)
    if at is None or counter in names_written(loop.body[: loop.body.index(last)]):
        return None
    first = before[at]
    parts = counted_parts([first], loop.test, [last])
    if parts is None or counter in names_in(parts[2]):
        return None
    type_, var, start, relation, bound, step = parts
    if counter in names_in(bound) | names_in(step) or (type_ is not None and counter in names_mentioned(after)):
        return None
    inner = tuple(s for s in loop.body if s is not last)
    counted_loop = For(type_, var, start, relation, bound, step, inner, loop.pragmas, loop.span)
    return [*before[:at], *before[at + 1 :], counted_loop]


def _set_at(before: list[Stmt], counter: str) -> int | None:
    """Where a counter is set, with nothing after it but declarations that call nothing and do not look at it."""
    for at in range(len(before) - 1, -1, -1):
        match before[at]:
            case Declare(name=name) | Assign(target=Name(text=name)) if name == counter:
                return at
            case Comment():
                continue
            case Declare() as s:
                calls = any(isinstance(e, Call) for e in walk_exprs([s]))
                if calls or contains_opaque([s]) or counter in names_mentioned([s]):
                    return None
            case _:
                return None
    return None
