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

BY_ATOMIC = {"atomicAdd": "sum", "atomicSub": "sum", "atomicMax": "max", "atomicMin": "min", "atomicAnd": "and",
             "atomicOr": "or", "atomicXor": "xor"}  # fmt: skip
"""What an atomic operation folds by; a difference is a sum, too."""

SIGNED = frozenset(["int", "long long", "int32_t"])
LIMITS = {
    "int": ("-2147483647 - 1", "2147483647"),
    "unsigned": ("0u", "4294967295u"),
    "unsigned int": ("0u", "4294967295u"),
    "long long": ("-9223372036854775807LL - 1", "9223372036854775807LL"),
    "unsigned long long": ("0ull", "18446744073709551615ull"),
    "int32_t": ("-2147483647 - 1", "2147483647"),
    "uint32_t": ("0u", "4294967295u"),
}
"""The least and the most of the whole numbers that atomics take, as literals."""
_NOUGHT = {"float": "0.0f", "double": "0.0"}


def identity(operator: str, type_: str, *, positive: bool = False) -> str:
    """The value that changes nothing when it is folded with others of a C type, as a literal of it. ``positive``: none
    of them is less than 0."""
    floating = type_ in _NOUGHT
    match operator:
        case "max" if floating and not positive:
            return "-INFINITY"
        case "min" if floating:
            return "INFINITY"
        case "max" | "min" if not floating:
            return LIMITS[type_][operator == "min"]
        case "and":
            return "-1" if type_ in SIGNED else f"~{LIMITS[type_][0]}"
    return _NOUGHT.get(type_, "0")
