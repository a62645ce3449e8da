"""How far apart along an axis two threads of a block are that both come to a statement."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.analysis.conditions import MIRRORED, exclusive, negation
from fsr.analysis.threads import AXES
from fsr.source.form import Binary, Expr, If, Return, Stmt, conjuncts
from fsr.source.walk import Block, blocks_of, walk_stmts
from fsr.transform.target import Target


def extents(target: Target, used: Stmt) -> dict[str, str]:
    """By axis, how many neighbouring threads of a block come to a statement at most, as a size expression: no more than
    the block's extent, nor than an id of the whole launch may be on the way (``if (x < width)``)."""
    found = dict(zip(AXES, target.launch.block, strict=True))
    for test in _tests(target.kernel.body, used):
        parts = (p for named in conjuncts(test) for p in conjuncts(target.declared_as(named)))
        for part in parts:
            for axis, bound in _bounds(target, part):
                found[axis] = f"min({found[axis]}, max({bound}, 1))"
    return found


def _tests(body: Block, used: Stmt) -> Iterator[Expr]:
    """What holds where a statement is reached: tests around it, and opposites of those that others leave by."""
    for s in body:
        if s is used:
            return
        if not any(x is used for x in walk_stmts((s,))):
            if isinstance(s, If) and not s.orelse and s.then and isinstance(s.then[-1], Return):
                yield negation(s.test)
            continue
        for number, block in enumerate(blocks_of(s)):
            if any(x is used for x in walk_stmts(block)):
                if isinstance(s, If) and number == 0:
                    yield s.test
                yield from _tests(block, used)
        return


def _bounds(target: Target, test: Expr) -> Iterator[tuple[str, str]]:
    """The axis and the bound of a test that an id, from 0 on, is below a size."""
    if not isinstance(test, Binary) or test.op not in MIRRORED:
        return
    for left, op, right in ((test.left, test.op, test.right), (test.right, MIRRORED[test.op], test.left)):
        if op not in ("<", "<="):
            continue
        bound = target.size_text(exclusive(right, op))
        number = target.poly(left)
        if bound is None or any(count < 0 for _, count in number.terms):
            continue
        for axis in AXES:
            factor = number.coefficient(f"threadIdx.{axis}")
            others = {f"{i}.{axis}" for i in ("threadIdx", "blockIdx", "blockDim")}
            if factor is not None and factor.value == 1 and number.symbols <= others:
                yield axis, bound
