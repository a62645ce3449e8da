"""Side effects within expressions as statements of their own: ``y = *p++`` is ``y = *p`` and ``p += 1``.

A step that every evaluation takes, of a variable that the statement does not name again, may stand before the statement
(``++i``) or behind it (``i++``): nothing in between can see it (C++17 [intro.execution], sequencing of side effects).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from fsr.source.form import Assign, Binary, Call, Expr, If, Literal, Name, OpaqueExpr, Span, Stmt, Ternary, While
from fsr.source.mapping import with_parts
from fsr.source.walk import breaks, contains_opaque, walk_expr

_AFTER = re.compile(r"([A-Za-z_]\w*)\s*(\+\+|--)")
_BEFORE = re.compile(r"(\+\+|--)\s*([A-Za-z_]\w*)")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Apart:
    """Expressions without their steps, and these: what comes before they are evaluated, and what comes after."""

    exprs: tuple[Expr, ...]
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()


def apart(*exprs: Expr, span: Span | None = None) -> Apart:
    """The expressions of one statement, all of which are evaluated, and their steps; as they are where a step may not
    be taken, or its variable is named again."""
    named = [word for e in exprs for part in walk_expr(e) for word in _words(part)]
    before, after = list[Stmt](), list[Stmt]()

    def without(e: Expr, certain: bool) -> Expr:
        if isinstance(e, OpaqueExpr):
            later, first = _AFTER.fullmatch(e.text), _BEFORE.fullmatch(e.text)
            found = (later[1], later[2]) if later else (first[2], first[1]) if first else None
            if found is None or not certain or named.count(found[0]) != 1:
                return e
            (after if later else before).append(Assign(Name(found[0]), f"{found[1][0]}=", Literal("1"), span))
            return Name(found[0])
        sure = chain((certain,), repeat(certain and not chooses(e)))
        return with_parts(e, lambda part: without(part, next(sure)))

    found = tuple(without(e, True) for e in exprs)
    return Apart(found, tuple(before), tuple(after))


def chooses(e: Expr) -> bool:
    """Whether only its first operand is evaluated for certain, and before the others."""
    return isinstance(e, Ternary) or (isinstance(e, Binary) and e.op in ("&&", "||", ","))


def _words(e: Expr) -> Sequence[str]:
    match e:
        case Name(text) | OpaqueExpr(text):
            return _WORD.findall(text)
        case Call(template_args=listed):
            return [word for text in listed for word in _WORD.findall(text)]
    return ()


def branching(whole: If) -> list[Stmt]:
    """An ``if`` whose test takes steps: each branch begins with those that come after it."""
    found = apart(whole.test, span=whole.span)
    then, orelse = (*found.after, *whole.then), (*found.after, *whole.orelse)
    return [*found.before, replace(whole, test=found.exprs[0], then=then, orelse=orelse)]


def repeating(loop: While) -> list[Stmt]:
    """A ``while`` whose test takes steps (``while (n-- > 0)``), where no ``break`` leaves it: the body begins with
    those that come after the test, and the test that fails takes them too."""
    found = apart(loop.test, span=loop.span)
    if not found.after and not found.before:
        return [loop]
    if found.before or breaks(loop.body) or contains_opaque(loop.body):
        return [loop]
    return [replace(loop, test=found.exprs[0], body=(*found.after, *loop.body)), *found.after]
