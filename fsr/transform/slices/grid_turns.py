"""Kernels whose threads go on by a whole grid (``for (i = id; i < n; i += threads)``) as what one turn of a block does.

Turn by turn, a block's threads have neighbouring points: as if another block had them, of a grid that is large enough.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from fsr.analysis.polynomial import constant, symbol
from fsr.source.form import (
    Binary,
    Declare,
    For,
    If,
    Jump,
    KernelForm,
    Member,
    Name,
    OpaqueStmt,
    Scope,
    number,
)
from fsr.source.macros import macros
from fsr.source.mapping import map_exprs
from fsr.source.walk import (
    BARRIER,
    Block,
    blocks_of,
    contains_return,
    fresh,
    names_assigned,
    names_mentioned,
    walk_exprs,
    without_comments,
)
from fsr.transform.launch.pointwise import id_expression
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import Target

_SLACK = 1024  # that may be added to a bound
_BLOCK = Member(Name("blockIdx"), "x")


def one_turn(target: Target) -> KernelForm | None:
    """The kernel in which a block has one turn, under the loop's condition; None where it is no such kernel."""
    loop = _loop(target)
    if loop is None or loop.type is None:
        return None
    lead = without_comments(target.kernel.body)[:-1]
    point = Declare(loop.type, loop.var, id_expression("x"))
    guarded = If(Binary("<", Name(loop.var), loop.bound), loop.body)
    return replace(target.kernel, body=(*lead, point, guarded))


def all_turns(target: Target, body: Block) -> Block:
    """What one turn has become, in a loop over all turns of the block. ``body``: ends with nothing that threads read
    of each other."""
    loop, threads = _loop(target), target.threads
    assert loop is not None
    assert threads is not None
    tile = fresh("tile", target.names)
    inside = map_exprs(body, lambda e: Name(tile) if e == _BLOCK else e)
    tiles = Binary("/", Binary("+", loop.bound, number(threads - 1)), number(threads))
    step = Member(Name("gridDim"), "x")
    return (For("int", tile, _BLOCK, "<", tiles, step, (*inside, BARRIER)),)


@lru_cache(maxsize=64)
def macros_that_leave(source: str) -> frozenset[str]:
    """The macros of a file that may end a function or a loop's turn."""
    leaving = re.compile(r"\b(return|goto|continue|break)\b")
    return frozenset(m.name for m in macros(source) if leaving.search(m.body))


def _loop(target: Target) -> For | None:
    """The loop over the grid that is all that the kernel does, but for variables that stay as they are."""
    body = without_comments(target.kernel.body)
    loop, threads = body[-1] if body else None, target.row_threads
    if not isinstance(loop, For) or loop.type is None or loop.relation != "<" or threads is None:
        return None
    start, step = (target.known.poly(e, target.numbers) for e in (loop.start, loop.step))
    every = symbol("blockIdx.x") * constant(threads) + symbol("threadIdx.x")
    if start != every or step != symbol("gridDim.x") * constant(threads):
        return None
    steady = all(isinstance(s, Declare) and s.name in target.known.values for s in body[:-1])
    bound, text = target.poly(loop.bound), target.size_text(loop.bound)
    most = None if text is None else largest(target.contract, text)
    leaves = contains_return(body) or _jumps(loop.body) or macros_that_leave(target.source) & names_mentioned(body)
    uneven = leaves or loop.var in names_assigned(loop.body)
    known_bound = most is not None and most <= INT_LIMIT - _SLACK and not bound.depends_on(["threadIdx"])
    return loop if steady and known_bound and not uneven and not _elsewhere(loop) else None


def _jumps(body: Block) -> bool:
    """Whether a turn may end early."""
    return any(
        isinstance(s, Jump)
        or (isinstance(s, OpaqueStmt) and "continue" in s.text)
        or (isinstance(s, If | Scope) and any(_jumps(block) for block in blocks_of(s)))
        for s in body
    )


def _elsewhere(loop: For) -> bool:
    """Whether a turn asks for its block or its grid in another way."""
    return bool({"blockIdx", "gridDim"} & {e.text for e in walk_exprs(loop.body) if isinstance(e, Name)})
