"""Numbers that are each one of a list (letters, flags, spins): drawn as their places in it, then looked up.

Places are integers of 0 to k - 1, so that all families mean what they mean for limits: few values, one apart from all
others, ramps, an end. Whatever is made of places, no element is outside of the list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from fsr.contract.model import Argument, Constraints, Contract
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Case
from fsr.testgen import families
from fsr.testgen.draws import BLOCK, TABLE, Draw, Kind

Array = np.ndarray[Any, Any]

BY_SHARES = "normal"  # the family of arrays in which values come as often as their shares say
WIDER = "int16"  # of places that int8 does not hold


def by_place(contract: Contract) -> Contract:
    """The contract with places in the stead of values, of the same types; their constraints still name the values."""
    if not any(map(is_set, contract.args)):
        return contract
    return replace(contract, args=tuple(placed(a) if is_set(a) else a for a in contract.args))


def is_set(argument: Argument) -> bool:
    """Whether an argument is drawn from a list."""
    return bool(argument.constraints.values) and argument.value is None


def placed(argument: Argument) -> Argument:
    """An argument as that of its places."""
    last, dtype = len(argument.constraints.values) - 1, numpy_dtype(argument.dtype)
    fits = not is_float(dtype) and (dtype.kind == "b" or last <= np.iinfo(dtype).max)
    rules = replace(argument.constraints, low="0", high=str(last))
    return replace(argument, dtype=argument.dtype if fits else WIDER, constraints=rules)


def looked_up(made: Array | Draw, argument: Argument, shape: tuple[int, ...], *, timed: bool) -> Array | Draw:
    """What was made of places as what it is of values; a formula remains one where it can."""
    rules, dtype = argument.constraints, numpy_dtype(argument.dtype)
    if not isinstance(made, Draw):
        return values_at(made, rules, dtype)
    found = None if is_float(dtype) else formula(made, rules, timed=timed)
    if found is not None:
        return found
    return values_at(made.values(numpy_dtype(placed(argument).dtype)).reshape(shape), rules, dtype)


def values_at(places: Array, rules: Constraints, dtype: np.dtype[Any]) -> Array:
    """The values at these places, in that type."""
    return np.array(rules.values, dtype)[places.astype(np.intp)]


def places_of(numbers: Iterable[float], rules: Constraints) -> list[int]:
    """Where those of the numbers stand that are in the list."""
    at = {value: place for place, value in enumerate(rules.values)}
    return [at[n] for n in numbers if n in at]


def family_of(family: str, rules: Constraints) -> str:
    """A family of numbers (near one, each one of some) as one of places; 'uniform' where none is in the list."""
    numbers = families.told(family)
    if not numbers:
        return family
    places = places_of([n for n in numbers if math.isfinite(n)], rules)
    return family.partition(":")[0] + ":" + ",".join(map(str, places)) if places else "uniform"


def formula(draw: Draw, rules: Constraints, *, timed: bool) -> Draw | None:
    """A draw of places as one of the values, with the same elements; None where no formula says them. Long arrays that
    are not ``timed`` make do with values of the list that are as many as a formula has room for, its ends among them:
    so a device can draw any part of them."""
    match draw.kind:
        case Kind.CHOICE | Kind.CYCLE:
            kind, table = draw.kind, [int(place) for place in draw.table]
        case Kind.INTEGER if draw.span <= TABLE or (draw.count > BLOCK and not timed):
            kind, count = Kind.CHOICE, min(draw.span, TABLE)
            table = [draw.low + at * (draw.span - 1) // max(count - 1, 1) for at in range(count)]
        case _:
            return None
    planted = tuple((at, rules.values[int(place)]) for at, place in draw.planted)
    return replace(draw, kind=kind, low=0, span=0, table=tuple(rules.values[p] for p in table), planted=planted)


def goes_by_shares(argument: Argument, family: str, case: Case, shape: tuple[int, ...]) -> bool:
    """Whether values come as often as their shares say. In long arrays of what is not timed they do not, so that a
    device can draw any part of them."""
    short = case.kind.timed or math.prod(shape) <= BLOCK
    return is_set(argument) and bool(argument.constraints.shares) and family == BY_SHARES and short


def shared(rules: Constraints, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Places as often as their shares say, lines in order where they are; long arrays repeat a block."""
    weights = np.array(rules.shares) / max(rules.shares)
    drawn = rng.choice(len(weights), min(math.prod(shape), BLOCK), p=weights / weights.sum())
    found = np.resize(drawn, shape)
    return np.sort(found, axis=-1) if rules.sorted and shape else found
