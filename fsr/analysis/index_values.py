"""The values that an integer expression takes for many threads at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsr.analysis.types import is_integer
from fsr.source.form import Binary, Call, Cast, Expr, Literal, Member, Name, Ternary, Unary
from fsr.source.walk import integer

Values = NDArray[np.int64]
Known = Mapping[str, "Values | int"]
"""By name; ids as ``threadIdx.x``."""


def index_values(e: Expr, known: Known) -> Values | None:
    """An expression's values, element by element of those that are known; None where it names something else, reads
    memory, is no integer's, or divides by zero. Words of 64 bits stand for all integers: what overflows a narrower type
    is not seen."""
    try:
        with np.errstate(all="raise"):
            return _value(e, known)
    except (_UnknownError, FloatingPointError, ValueError):
        return None


class _UnknownError(Exception):
    pass


def _value(e: Expr, known: Known) -> Values:
    match e:
        case Literal():
            number = integer(e)
            if number is None:
                raise _UnknownError
            return np.asarray(number, np.int64)
        case Name(text=name) if name in known:
            return np.asarray(known[name], np.int64)
        case Member(base=Name(text=base), name=axis) if f"{base}.{axis}" in known:
            return np.asarray(known[f"{base}.{axis}"], np.int64)
        case Unary(op=op, operand=operand) if op in _UNARY:
            return np.asarray(_UNARY[op](_value(operand, known)), np.int64)
        case Binary(op=op, left=left, right=right) if op in _BINARY:
            return np.asarray(_BINARY[op](_value(left, known), _value(right, known)), np.int64)
        case Cast(type=type_, operand=operand) if is_integer(type_):
            return _value(operand, known)
        case Ternary(test=test, yes=yes, no=no):
            return np.where(_value(test, known) != 0, _value(yes, known), _value(no, known))
        case Call(callee=Name(text="min" | "max" as name), args=(a, b)):
            return np.asarray((np.minimum if name == "min" else np.maximum)(_value(a, known), _value(b, known)))
    raise _UnknownError


def _quotient(a: Values, b: Values) -> Values:
    """Towards zero, as C divides."""
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))


def _shift(by: Callable[[Any, Any], Any]) -> Callable[[Values, Values], Values]:
    def shifted(a: Values, b: Values) -> Values:
        if np.any((b < 0) | (b > 62)):
            raise _UnknownError
        return np.asarray(by(a, b))

    return shifted


_UNARY: dict[str, Callable[[Values], Any]] = {"-": np.negative, "+": np.positive, "~": np.invert, "!": lambda a: a == 0}
_BINARY: dict[str, Callable[[Values, Values], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": _quotient, "%": lambda a, b: a - _quotient(a, b) * b,
    "<<": _shift(np.left_shift), ">>": _shift(np.right_shift), "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal, "&&": lambda a, b: (a != 0) & (b != 0), "||": lambda a, b: (a != 0) | (b != 0),
}  # fmt: skip
