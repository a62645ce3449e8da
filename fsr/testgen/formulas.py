"""How an argument is drawn in a case: a formula of its family within the contract's limits, and what seeds it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fsr.contract.model import Argument
from fsr.expressions import evaluate
from fsr.hardware.dtypes import float_limits, is_float, numpy_dtype
from fsr.testgen import families, value_sets
from fsr.testgen.bounds import float_bounds, has_ends, has_limits, integer_bounds, no_value
from fsr.testgen.draws import Draw, Kind, word

FLAT_ROWS = 5  # an array of one axis counts as so many rows where a family draws by rows


def generator(seed: int, name: str) -> np.random.Generator:
    """A generator of its own for each case and purpose."""
    return np.random.Generator(np.random.Philox(key=[seed % 2**64, zlib.crc32(name.encode())]))


def key_of(seed: int, name: str) -> int:
    """The key of a draw of its own for each case and purpose."""
    return word(seed % 2**64, zlib.crc32(name.encode()))


def formula_of(
    argument: Argument, shape: tuple[int, ...], sizes: Mapping[str, int], family: str, key: int
) -> Draw | None:
    """How the argument is drawn; None for arrays that are made as a whole."""
    dtype, wanted, count = numpy_dtype(argument.dtype), argument.constraints, math.prod(shape)
    family = families.for_array(family, limited=has_limits(argument))
    if value_sets.is_set(argument):
        family = value_sets.family_of(family, wanted)
    if argument.value is not None:  # a buffer that always arrives with one value, a cleared counter say
        return Draw(Kind.CHOICE, key, count, table=(evaluate(argument.value, sizes),))
    if wanted.whole:
        return None
    draw = Draw(
        Kind.NORMAL, key, count, row=max(shape[-1] if len(shape) > 1 else count // FLAT_ROWS, 1) if shape else 1
    )
    if is_float(dtype):
        made, bounds = families.floating(family)(draw, float_limits(dtype)), float_bounds(argument, sizes)
        if (end := families.end(family, argument.name, bounds)) is not None:
            made = replace(made, table=(end,))
        if all(map(math.isfinite, bounds)):
            made = _to_limits(made, family, bounds)
        return replace(made, bounds=bounds, finite=wanted.finite)
    low, high = integer_bounds(argument, sizes, family)
    if low > high:
        if count:
            raise no_value(argument, low, high, sizes)
        return Draw(Kind.CHOICE, key, 0, table=(0,))
    if has_ends(argument) and (end := families.end(family, argument.name, (low, high))) is not None:
        return Draw(Kind.CHOICE, key, count, table=(int(end),))
    return families.integer_draw("constant" if family.startswith(families.ENDS) else family, draw, low, high)


def _to_limits(made: Draw, family: str, bounds: tuple[float, float]) -> Draw:
    """A draw that goes as far as the limits: what lies farthest out, where a ramp begins and ends, mostly what
    alternates."""
    if family == "outliers":
        return replace(made, planted=tuple((place, bounds[value > 0]) for place, value in made.planted))
    if family == families.MOTLEY:
        return replace(made, table=tuple(bounds[v > 0] if abs(v) > 2.0 else v for v in made.table))
    if made.kind is Kind.RAMP:
        return replace(made, a=bounds[made.a > 0], b=bounds[made.b > 0])
    if made.kind is Kind.CYCLE and made.key % 2:
        return replace(made, table=(bounds[1], bounds[0]))
    return made
