"""What the scalars of a case are: drawn as its family says, or values that code treats apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fsr.contract.model import Argument, Contract
from fsr.expressions import evaluate
from fsr.hardware.dtypes import float_limits, is_float, numpy_dtype
from fsr.records import Case, Role, ScalarValue
from fsr.testgen import corners, families, value_sets
from fsr.testgen.bounds import float_bounds, has_limits, integer_bounds, no_value
from fsr.testgen.draws import word
from fsr.testgen.formulas import formula_of, generator, key_of

ALL_SPECIAL, SOME_SPECIAL, *ALL_DRAWN = range(4)  # see special_turn
EXACT_SCALARS = (1, 0.5, -1)  # a tie times one of these is a tie
ROUNDED = ("ties", corners.HALVES)
OFTEN_SPECIAL = ("nan", "infinite", "special rows", *ROUNDED)  # what a scalar of 0 or 1 lets through as it is
_SPIKE_SALT = 0x59173
SCALAR_FAMILIES = {"uniform": "uniform", "zeros": "zeros", "ones": "ones", "negated": "negated", "small": "small",
                   families.SPIKE: "large", families.CLOSE: "ones"}  # fmt: skip


def scalars_of(contract: Contract, case: Case) -> dict[str, ScalarValue]:
    """The value of every scalar argument."""
    sizes = case.size_map()
    every = (a for a in contract.args if a.role is Role.SCALAR)
    return {a.name: (_listed if value_sets.is_set(a) else _scalar)(a, sizes, case) for a in every}


def special_turn(case: Case) -> int:
    """Whether all scalars of a case have values that code treats apart, some of them, or none; the same for all."""
    return word(case.seed, 0x5CA1A) % 4


def _listed(argument: Argument, sizes: Mapping[str, int], case: Case) -> ScalarValue:
    """One of a list."""
    family = value_sets.family_of(case.family, argument.constraints)
    place = _scalar(value_sets.placed(argument), sizes, replace(case, family=family))
    return ScalarValue(argument.dtype, argument.constraints.values[int(place.value)])


def _scalar(argument: Argument, sizes: Mapping[str, int], case: Case) -> ScalarValue:
    dtype = numpy_dtype(argument.dtype)
    if argument.value is not None:
        value = evaluate(argument.value, sizes)
        return ScalarValue(argument.dtype, float(value) if is_float(dtype) else int(value))
    rng = generator(case.seed, argument.name)
    special = _special_scalar(argument, sizes, case, rng)
    if special is not None:
        return ScalarValue(argument.dtype, special)
    if is_float(dtype):
        low, high = float_bounds(argument, sizes)
        near = families.middle(case.family)
        family = case.family if near is not None and low <= near <= high else SCALAR_FAMILIES.get(case.family, "normal")
        formula = formula_of(argument, (), sizes, family, key_of(case.seed, argument.name))
        assert formula is not None  # a scalar is neither sorted nor unique
        return ScalarValue(argument.dtype, float(formula.values(dtype)[0]))
    least, most = integer_bounds(argument, sizes, case.family)
    if least > most:
        raise no_value(argument, least, most, sizes)
    wide: Any = np.int64 if most < 1 << 63 else np.uint64
    choice = {"zeros": least, "limits": most}.get(
        case.family, int(rng.integers(least, most, dtype=wide, endpoint=True))
    )
    return ScalarValue(argument.dtype, choice)


def _special_scalar(
    argument: Argument, sizes: Mapping[str, int], case: Case, rng: np.random.Generator
) -> float | int | None:
    """A value that code treats apart: an end of the range, 0, 1 or -1, a number that the family names; None for one
    drawn as usual. Some cases have such values alone, so that they meet, others now and then."""
    floating = is_float(numpy_dtype(argument.dtype))
    low, high = float_bounds(argument, sizes) if floating else integer_bounds(argument, sizes, case.family)
    named = families.named(case.family)
    turn = special_turn(case)
    often = case.family in OFTEN_SPECIAL or bool(named) or turn == ALL_SPECIAL
    if not floating and not has_limits(argument):
        return None  # nobody says that it may be 0: a divisor may not
    largest = max(sizes.values(), default=1)
    if case.family in (*corners.EDGES, corners.CROWD_ZERO):
        limits = float_limits(numpy_dtype(argument.dtype)) if floating else None
        return corners.edge_scalar(argument.name, case.family, (low, high), largest, limits)
    ends = (low, high) if math.isfinite(low) and math.isfinite(high) else ()
    if (end := families.end(case.family, argument.name, (low, high))) is not None:
        return float(end) if floating else int(end)
    if case.family == families.SPIKE and floating and ends:
        # The largest product with the spike overflows, if any does; the least may overflow in another order alone.
        return max(ends, key=abs) if word(case.seed, _SPIKE_SALT) % 2 else min(ends, key=lambda n: abs(n) or math.inf)
    if case.kind.timed or not (often or (turn == SOME_SPECIAL and rng.integers(2))):
        return None
    wanted = [named, EXACT_SCALARS if case.family in ROUNDED and floating else (), (0, 1, -1, *ends)]
    allowed = [[n for n in some if low <= n <= high and (floating or n == int(n))] for some in wanted]
    fitting = next((list(dict.fromkeys(some)) for some in allowed if some), None)
    if fitting is None:
        return None
    chosen = fitting[int(rng.integers(len(fitting)))]
    return float(chosen) if floating else int(chosen)
