"""Whether the order of evaluation shows in a result."""

from __future__ import annotations

from fsr.computation.computation import Computation
from fsr.computation.expression import Expr, Fold, Op, distinct
from fsr.computation.types import type_of

_ROUNDED = ("sum", "prod")


def order_shows(c: Computation) -> bool:
    """Whether what a computation does not say, in which order it adds and multiplies and which product is fused with
    its sum, changes bits of a result: sums and products of floating values, but for those of two."""
    return any(_in_order(e) for s in c.statements if s.value is not None for e in distinct(s.value))


def _in_order(e: Expr) -> bool:
    if isinstance(e, Fold):
        return e.op in _ROUNDED and _floating(e)
    if not isinstance(e, Op) or e.name not in _ROUNDED or not _floating(e):
        return False
    fused = e.name == "sum" and sum(isinstance(a, Op) and a.name == "prod" for a in e.args) > 1
    return len(e.args) > 2 or fused


def _floating(e: Expr) -> bool:
    return type_of(e).startswith(("float", "bfloat"))
