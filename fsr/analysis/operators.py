"""How partial results combine: the operators of reductions and accumulators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """How two partial results combine. ``identity`` is the neutral element as a literal that converts to every
    arithmetic type; None where the initial value itself is neutral (the operator is idempotent).
    ``reorders``: whether another order of floating-point operands changes the rounding."""

    name: str
    combine: str  # of ``a`` and ``b``
    words: str
    identity: str | None
    reorders: bool


# ``greatest`` and ``least`` are the comparisons people write (``if (v > best) best = v``): they differ from max
# and min in what they do with NaN.
OPERATORS = {
    op.name: op
    for op in (
        Operator("sum", "a + b", "Sum", "0", True),
        Operator("product", "a * b", "Product", "1", True),
        Operator("max", "max(a, b)", "Maximum", None, False),
        Operator("min", "min(a, b)", "Minimum", None, False),
        Operator("greatest", "b > a ? b : a", "Greatest value", None, False),
        Operator("least", "b < a ? b : a", "Least value", None, False),
        Operator("and", "a & b", "Bitwise and", None, False),
        Operator("or", "a | b", "Bitwise or", None, False),
        Operator("xor", "a ^ b", "Bitwise exclusive or", "0", False),
    )
}
