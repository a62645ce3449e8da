"""Extremes of values rounded to 16 bits: rounding keeps the order, so that the extreme may be rounded alone."""

from __future__ import annotations

from dataclasses import replace

from fsr.computation.expression import Expr, Fold, Op
from fsr.computation.types import type_of

_NARROW = ("float16", "bfloat16")
_WIDE = ("float32", "float64")


def rounded_once(e: Expr) -> Expr:
    """A maximum or minimum over values of 16 bits as that of the wider values which they are rounded from, or are,
    rounded once: the same to the bit, and a fold of a type that loops and shuffles have. Else the expression."""
    if not isinstance(e, Fold) or e.op not in ("max", "min") or type_of(e) not in _NARROW:
        return e
    body, dtype = e.body, type_of(e)
    cast = isinstance(body, Op) and body.name == dtype and type_of(body.args[0]) in _WIDE
    return Op(dtype, (replace(e, body=body.args[0] if cast else Op("float32", (body,))),))  # type: ignore[union-attr]
