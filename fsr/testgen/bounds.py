"""What the values of an argument lie within, by its contract, at given sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate, evaluate_int
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Role
from fsr.testgen import families

SMALLEST_POSITIVE = 1e-3  # a 'positive' argument is often divided by
AT_ENDS = frozenset(("limits", "alternating", "near-overflow", "negated", "denormals", "deep denormals", "one-hot",
                     families.MOTLEY, *families.FREE))  # fmt: skip  # of integers that stand at their limits
NO_INDEX = 8  # times as many negative numbers as others
FREE_INTEGERS = 4096  # range of an unconstrained signed integer: sums of products must not overflow


def float_bounds(argument: Argument, sizes: Mapping[str, int]) -> tuple[float, float]:
    """What floating values lie within, both included; infinite where nothing is said. Raises ContractError."""
    wanted = argument.constraints
    low = float(evaluate(wanted.low, sizes)) if wanted.low is not None else -math.inf
    high = float(evaluate(wanted.high, sizes)) if wanted.high is not None else math.inf
    if wanted.nonnegative:
        low = max(low, 0.0)
    if wanted.positive:
        low = max(low, min(SMALLEST_POSITIVE, high))
    if low > high:
        raise no_value(argument, low, high, sizes)
    return low, high


def element_bounds(argument: Argument, sizes: Mapping[str, int]) -> tuple[Any, Any]:
    """:func:`float_bounds` of each element along the last extent, as arrays that go with the argument's; numbers where
    they are the same for all."""
    rules = argument.constraints
    if not rules.by_element:
        return float_bounds(argument, sizes)
    each = range(max(len(rules.lows), len(rules.highs)))
    rows = [float_bounds(element_of(argument, n), sizes) for n in each]
    return np.array([low for low, _ in rows]), np.array([high for _, high in rows])


def element_of(argument: Argument, number: int) -> Argument:
    """What is one element along the last extent of an argument with limits for each, as an argument of its own."""
    shape = argument.shape[:-1] or ("1",)
    rules = argument.constraints.of_element(number)
    return replace(argument, name=f"{argument.name}[{number}]", shape=shape, constraints=rules)


def integer_bounds(argument: Argument, sizes: Mapping[str, int], family: str = "uniform") -> tuple[int, int]:
    """The inclusive range an integer argument is drawn from. Unconstrained signed types of 32 bits and more stay
    small, since overflow in the kernel's own arithmetic would be undefined, but in the families of whole types."""
    dtype, wanted = numpy_dtype(argument.dtype), argument.constraints
    if dtype.kind == "b":
        ends = [d if t is None else evaluate_int(t, sizes) for t, d in ((wanted.low, 0), (wanted.high, 1))]
        return max(ends[0], int(wanted.positive)), min(ends[1], 1)
    limits = np.iinfo(dtype)
    free = FREE_INTEGERS if is_free(argument) else 1 << 64
    if family in families.FREE:
        free = families.FREE[family](int(limits.max))
    low = evaluate_int(wanted.low, sizes) if wanted.low is not None else None
    high = evaluate_int(wanted.high, sizes) if wanted.high is not None else None
    anywhere = family in AT_ENDS or family.startswith(families.ENDS) or bool(wanted.values)
    if low is not None and high is not None and not anywhere:
        low = _near_indices(low, high)
    if low is None:
        low = min(-free, high) if high is not None else -free
    if wanted.nonnegative or wanted.positive:
        low = max(low, 1 if wanted.positive else 0)
    if high is None:
        high = max(low, 0) + (2 * free if low >= 0 else free - 1 if family in families.FREE else free)
    return max(low, int(limits.min)), min(high, int(limits.max))


def _near_indices(low: int, high: int) -> int:
    """The lower limit; where nearly all that the limits allow is negative, and so no index, nearer 0."""
    return -(high // 3 + 2) if high >= 0 and -low > NO_INDEX * (high + 2) else low


def is_free(argument: Argument) -> bool:
    """Whether the contract leaves an end of a wide signed integer type open."""
    return argument.dtype in ("int32", "int64") and argument.value is None and not has_limits(argument)


def has_limits(argument: Argument) -> bool:
    """Whether the contract states both."""
    return argument.constraints.low is not None and argument.constraints.high is not None


def has_ends(argument: Argument) -> bool:
    """Whether its values have ends: stated limits, or those of a type whose whole range is drawn from."""
    return has_limits(argument) or not (is_float(numpy_dtype(argument.dtype)) or is_free(argument))


def no_value(argument: Argument, low: float, high: float, sizes: Mapping[str, int], why: str = "") -> ContractError:
    """The error where constraints leave nothing to draw; ``why``: what more is wanted."""
    return ContractError(
        f"no value fits the constraints of {argument.name!r}: low {low}, high {high} {why}".rstrip(),
        expected="low <= high for every size within the ranges",
        where=f"sizes {dict(sizes)}",
        fix="correct low and high of the argument, or the minimum of the sizes they mention",
    )


def has_free_integers(contract: Contract) -> bool:
    """Whether callers choose some integer, other than a size or one of a few."""
    every = [part for a in contract.args if a.role is not Role.OUT for part in a.parts()]
    return any(not is_float(numpy_dtype(a.dtype)) and a.value is None and not a.constraints.values for a in every)
