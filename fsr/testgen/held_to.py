"""Whether an array that somebody else made is one that the contract's limits allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fsr.contract.model import Argument
from fsr.expressions import evaluate, evaluate_int
from fsr.hardware.dtypes import doubled, is_float
from fsr.testgen.bounds import element_of

Array = np.ndarray[Any, Any]


def forbidden(argument: Argument, array: Array, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """What is wrong with an array of the argument's type and shape, and what the contract says; None where nothing
    is."""
    rules = argument.constraints
    if not array.size:
        return None
    if is_float(array.dtype) and rules.finite and (at := _first(~np.isfinite(doubled(array)))) is not None:
        return f"{_element(at)} is {array[at]}", "numbers; finite = false where inf and NaN are meaningful"
    if rules.by_element:
        each = range(max(len(rules.lows), len(rules.highs)))
        found = (_outside(element_of(argument, n), array[..., n], sizes, (n,)) for n in each)
        return next((one for one in found if one is not None), None)
    return _outside(argument, array, sizes) or _misplaced(argument, array, sizes)


def _outside(
    argument: Argument, array: Array, sizes: Mapping[str, int], behind: tuple[int, ...] = ()
) -> tuple[str, str] | None:
    """The first element that is not among the values. ``behind``: its last indices, where the array is a part."""
    rules, tests = argument.constraints, []
    if rules.values:
        tests.append((~np.isin(array, rules.values), f"values = {list(rules.values)}"))
    for key, text in (("low", rules.low), ("high", rules.high)):
        if text is not None and not rules.values:
            end = _end(text, array, sizes)
            out = array < end if key == "low" else array > end
            tests.append((out, f"{key} = {text}, which is {end}" if text != str(end) else f"{key} = {text}"))
    if rules.nonnegative or rules.positive:
        tests.append((array < 0, "nonnegative") if rules.nonnegative else (array <= 0, "positive"))
    for out, said in tests:
        if (at := _first(np.asarray(out))) is not None:
            return f"{_element((*at, *behind))} is {array[at]}", said
    return None


def _end(text: str, array: Array, sizes: Mapping[str, int]) -> Any:
    """A limit as numbers of the array's type are rounded, so that one that is drawn at it lies within."""
    if not is_float(array.dtype):
        return evaluate_int(text, sizes)
    with np.errstate(over="ignore"):
        return np.asarray(float(evaluate(text, sizes))).astype(array.dtype)[()]


def _misplaced(argument: Argument, array: Array, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """The first line that is not as the contract orders it."""
    rules = argument.constraints
    if (rules.sorted or rules.offsets is not None) and array.ndim:
        down = array[..., 1:] < array[..., :-1]
        if (at := _first(down)) is not None:
            return f"{_element((*at[:-1], at[-1] + 1))} is less than the one before it", _order(argument)
    if rules.offsets is not None and array.ndim:
        total = evaluate_int(rules.offsets, sizes) if array.shape[-1] > 1 else 0
        for place, end in ((0, 0), (-1, total)):
            if (at := _first(array[..., place] != end)) is not None:
                last = (*at, place % array.shape[-1])
                return f"{_element(last)} is {array[last]}, and not {end}", _order(argument)
    if rules.unique:
        values, counts = np.unique(array, return_counts=True)
        if counts.max() > 1:
            return f"it has {values[counts.argmax()]} {counts.max()} times", "unique: no value twice"
    return None


def _order(argument: Argument) -> str:
    total = argument.constraints.offsets
    return "sorted: ascending along the last extent" if total is None else f"offsets: ascending from 0 to {total}"


def _first(wrong: Array) -> tuple[int, ...] | None:
    places = np.flatnonzero(wrong)
    return tuple(map(int, np.unravel_index(int(places[0]), wrong.shape))) if places.size else None


def _element(at: tuple[int, ...]) -> str:
    return f"element [{', '.join(map(str, at))}]" if at else "it"
