"""What a turn makes of a variable, where that is a multiple of what it was and something added: ``x = a * x + b``.

Two such steps are one, with the factor ``a2 * a1`` and ``a2 * b1 + b2``, so that lanes can put many together in any
grouping (Kogge and Stone, "A parallel algorithm for the efficient solution of a general class of recurrence
equations", IEEE Transactions on Computers 22, 1973; Blelloch, "Prefix sums and their applications", 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fsr.source.form import Assign, Binary, Call, Cast, Expr, Literal, Name, Stmt, Ternary, Unary
from fsr.source.walk import integer, is_zero, names_in

_FUSED = frozenset(["fma", "fmaf", "__fmaf_rn", "__fma_rn"])
_ONE, _ZERO = Literal("1"), Literal("0")
Linear = tuple[Expr, Expr]
"""The factor of what a variable was, and what is added."""


def wide(type_: str) -> str:
    """The type that factors of many turns are kept in: their product may leave the range of what each is of."""
    return "double" if type_ == "float" else type_


def linear_step(s: Stmt, types: Callable[[str], str | None]) -> tuple[str, Linear] | None:
    """The variable that a statement sets so, and how; None where it sets it otherwise, or only adds to it. ``types``:
    those of variables."""
    match s:
        case Assign(Name(name), "*=", value) if name not in names_in(value):
            return name, (value, _ZERO)
        case Assign(Name(name), "=", value) if name in names_in(value):
            type_ = types(name)
            found = None if type_ is None else _Steps(name, wide(type_)).of(value)
            return None if found is None or integer(found[0]) in (0, 1) else (name, found)
    return None


@dataclass(frozen=True)
class _Steps:
    """Reads what is made of a variable; ``type``: in which all is computed that was computed with it."""

    name: str
    type: str

    def of(self, e: Expr) -> Linear | None:
        """The factor and what is added, of an expression."""
        if self.name not in names_in(e):
            return _ZERO, e
        match e:
            case Name():
                return _ONE, _ZERO
            case Unary("-", operand):
                return self._each(self.of(operand), self._negative)
            case Binary("+" | "-" as op, left, right):
                one, other = self.of(left), self.of(right)
                return one and other and (self._sum(op, one[0], other[0]), self._sum(op, one[1], other[1]))
            case Binary("*", left, right) if self.name not in names_in(left):
                return self._each(self.of(right), partial(self._times, left))
            case Binary("*", left, right) if self.name not in names_in(right):
                return self._each(self.of(left), partial(self._times, right))
            case Call(Name(callee), (left, right, last)) if callee in _FUSED:
                return self.of(Binary("+", Binary("*", left, right), last))
            case Ternary(test, yes, no) if self.name not in names_in(test):
                one, other = self.of(yes), self.of(no)
                return one and other and (_either(test, one[0], other[0]), _either(test, one[1], other[1]))
        return None

    def _each(self, parts: Linear | None, change: Callable[[Expr], Expr]) -> Linear | None:
        return parts and (change(parts[0]), change(parts[1]))

    def _own(self, e: Expr) -> Expr:
        """A value in that type, as it was in the variable's before it was computed with."""
        return e if isinstance(e, Literal) else Cast(self.type, e, "c")

    def _negative(self, e: Expr) -> Expr:
        return e if is_zero(e) else Unary("-", self._own(e))

    def _sum(self, op: str, left: Expr, right: Expr) -> Expr:
        if is_zero(right):
            return left
        if is_zero(left):
            return right if op == "+" else self._negative(right)
        return Binary(op, self._own(left), self._own(right))

    def _times(self, by: Expr, e: Expr) -> Expr:
        if is_zero(e):
            return e
        return by if e == _ONE else Binary("*", self._own(by), self._own(e))


def _either(test: Expr, yes: Expr, no: Expr) -> Expr:
    return yes if yes == no else Ternary(test, yes, no)
