"""Sums over several dimensions of a row, of which the last lies along memory (all pixels of a channel in every image):
the loop along memory comes first, so that it is the one that threads share."""

from __future__ import annotations

import re

from fsr.analysis.parallel import stride
from fsr.source.form import Assign, Call, Expr, For, Index, Name, Stmt
from fsr.source.mapping import with_blocks
from fsr.source.walk import Block, contains_opaque, integer, names_in, walk_expr
from fsr.transform.target import Target

_LANES = 32  # elements along memory, for which as many threads have work
_PURE = re.compile(r"(__)?(f?abs|f?max|f?min|fma|sqrt|rsqrt|exp|log|pow|tanh|__ldg|ldg)f?")


def along_memory(body: Block, target: Target) -> Block:
    """The statements with such nests turned round; as they are where results must stay bit for bit."""
    if target.exact or contains_opaque(body):
        return body
    found = tuple(_turned(with_blocks(s, lambda block: along_memory(block, target)), target) for s in body)
    return found if found != body else body


def _turned(s: Stmt, target: Target) -> Stmt:
    match s:
        case For(body=(For(body=(Assign(target=Name(total), op="+=", value=value),)) as inner,)) as outer if _apart(
            outer, inner, total, value
        ) and _lies_along(value, outer.var, inner.var):
            length = target.timed(inner.bound)
            if length is not None and length >= _LANES and inner.type and outer.type:
                turned = For(outer.type, outer.var, outer.start, outer.relation, outer.bound, outer.step, inner.body)
                return For(inner.type, inner.var, inner.start, inner.relation, inner.bound, inner.step, (turned,))
    return s


def _apart(outer: For, inner: For, total: str, value: Expr) -> bool:
    """Whether the loops may stand either way round: neither tells how far the other goes, and every turn adds what
    no other turn changes."""
    own = {outer.var, inner.var, total}
    ends = [e for loop in (outer, inner) for e in (loop.start, loop.bound, loop.step)]
    calls = [e for e in walk_expr(value) if isinstance(e, Call)]
    pure = all(isinstance(c.callee, Name) and _PURE.fullmatch(c.callee.text) for c in calls)
    return pure and total not in names_in(value) and not any(names_in(e) & own for e in ends)


def _lies_along(value: Expr, outer: str, inner: str) -> bool:
    """Whether what is read lies along memory in the inner loop's direction, somewhere, and nowhere in the outer's."""

    def steps(var: str) -> list[bool]:
        reads = [e for e in walk_expr(value) if isinstance(e, Index)]
        found = [stride(e.index, var, frozenset()) for e in reads]
        return [s is not None and integer(s) == 1 for s in found]

    return any(steps(inner)) and not any(steps(outer))
