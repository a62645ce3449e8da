"""Elements that no two launches share, whichever threads touch them: a record's parts.

``grads[2 * i]`` and ``grads[2 * j + 1]`` are never the same element: the numbers that one index may be lie in steps of
two, and those of the other lie between them. Nothing need be known of the threads then.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from fsr.analysis.polynomial import Poly
from fsr.analysis.types import INT, is_integer, type_of
from fsr.source.form import Binary, Cast, Expr, Name, Unary
from fsr.transform.target import Target


@dataclass(frozen=True)
class Comb:
    """Numbers that lie ``step`` apart, ``first`` among them; one number where ``step`` is 0."""

    step: int
    first: int

    def within(self, step: int) -> int:
        """Which of the combs of a step that divides its own holds it; of step 0 all numbers are their own."""
        return self.first % step if step else self.first


def comb_of(index: Poly) -> Comb:
    """The numbers that a polynomial over whole numbers may be."""
    return Comb(gcd(*(count for monomial, count in index.terms if monomial)), index.constant)


def is_whole(index: Expr, target: Target) -> bool:
    """Whether every symbol in an index's polynomial is a whole number: that of ``(int)(2 * f)`` holds an ``f``, of
    which twice may be odd."""
    match target.known.expand(index):
        case Binary("+" | "-" | "*" | "<<", left, right):
            return is_whole(left, target) and is_whole(right, target)
        case Unary("-" | "+", operand):
            return is_whole(operand, target)
        case Cast(type_, operand) if is_integer(type_):
            return is_whole(operand, target)
        case Name(text) if text in target.constants and text not in target.known.types:
            return True
        case other:
            return type_of(other, target.known.types, target.aliases) == INT
