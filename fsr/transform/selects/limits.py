"""How far a variable may go where it is certain that elements of arrays are touched at places made of it: an index
beyond an extent is undefined (C++17 [expr.add])."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fsr.analysis.instances import value_of
from fsr.source.arrays import indices_of
from fsr.source.form import Binary, Expr, Name
from fsr.source.walk import Block
from fsr.transform.details.constant_loops import MOST_TURNS
from fsr.transform.selects.arrays import SmallArray
from fsr.transform.selects.certain import certain

FAR = -MOST_TURNS - 1  # a first turn that is not known


def access_limits(
    body: Block, var: str, arrays: Sequence[SmallArray], known: Mapping[str, int], natural: Collection[str] = ()
) -> list[tuple[int, int]]:
    """The least and the largest value of a variable that each access allows which the statements make for certain;
    FAR: any. ``natural``: what is never negative."""
    found: list[tuple[int, int]] = []
    for e, told in certain(body, known):
        for array in arrays:
            for extent, at in zip(array.extents, indices_of(e, array.declared) or (), strict=False):
                one = _limit(linear(at, told), var, extent, natural)
                found += [] if one is None else [one]
    return found


def _limit(at: Mapping[str, int] | None, var: str, extent: int, natural: Collection[str]) -> tuple[int, int] | None:
    if at is None or not at.get(var):
        return None
    each, rest = at[var], at.get("", 0)
    others = {name: count for name, count in at.items() if name not in (var, "") and count}
    if not set(others) <= set(natural) or any((n > 0) != (each > 0) for n in others.values()):
        return None
    last = (extent - 1 - rest) // each if each > 0 else rest // -each
    if others:
        return FAR, last
    return -(rest // each) if each > 0 else -((extent - 1 - rest) // -each), last


def linear(e: Expr, known: Mapping[str, int]) -> dict[str, int] | None:
    """How often each name is in a sum, and what is added under ''; None of anything else."""
    value = value_of(e, known)
    if value is not None:
        return {"": value}
    match e:
        case Name(text):
            return {text: 1}
        case Binary("+" | "-" as op, left, right):
            a, b = linear(left, known), linear(right, known)
            if a is None or b is None:
                return None
            sign = 1 if op == "+" else -1
            return {name: a.get(name, 0) + sign * b.get(name, 0) for name in {*a, *b}}
        case Binary("*", left, right):
            for factor, other in ((left, right), (right, left)):
                times, sum_ = value_of(factor, known), linear(other, known)
                if times is not None and sum_ is not None:
                    return {name: times * count for name, count in sum_.items()}
    return None
