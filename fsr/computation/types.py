"""The type of an expression's value, from its leaves up."""

from __future__ import annotations

import math
from functools import lru_cache, reduce

import numpy as np

from fsr.computation.expression import Case, Const, Expr, Fold, Load, Number, Op, Recurrence
from fsr.hardware.dtypes import numpy_dtype

CASTS = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "bool")
CONDITIONS = ("gt", "ge", "eq", "ne", "not", "isnan")


@lru_cache(maxsize=1 << 14)
def type_of(e: Expr) -> str:
    """A contract dtype."""
    match e:
        case Const() | Number() | Load():
            return e.dtype
        case Fold(op, _, body):
            return type_of(body.args[1]) if op in ("argmax", "argmin") and isinstance(body, Op) else type_of(body)
        case Case():
            return _wider(type_of(e.yes), type_of(e.no))
        case Recurrence():
            return type_of(e.start)
        case Op(name, args):
            if name in CASTS:
                return name
            if name.startswith("zext_"):
                return name[5:]
            if name in CONDITIONS:
                return "bool"
            return reduce(_wider, [type_of(a) for a in (args[1:] if name == "select" else args)])
    return "float32"


def neutral(op: str, dtype: str) -> Const:
    """What changes nothing in a sum, product, maximum or minimum ('sum', 'prod', 'max', 'min') of that type: a zero of
    another type would change the type of all."""
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return Const(op in ("prod", "min"), dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return Const({"sum": 0, "prod": 1, "max": int(info.min), "min": int(info.max)}[op], dtype)
    return Const({"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[op], dtype)


def _wider(a: str, b: str) -> str:
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    if "bfloat16" in (a, b):
        return b if a == "bfloat16" else a
    return str(np.result_type(numpy_dtype(a), numpy_dtype(b)))
