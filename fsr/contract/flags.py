"""Flags: whole scalars of a few values, by which a kernel decides what it does (``if (mode == 0)``). Positions: whole
scalars of which sizes tell the limits (the row of a cache that is written, the head of a ring), or an extent does (one
of four antennas). In a computation both are what sizes are: known before it begins, so that conditions and indices may
ask for them. A plan is watched with each value of a flag, and with two positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, names
from fsr.records import Role

_MOST_VALUES = 4  # of all flags together
_SHARES = (0.3, 0.8, 0.55, 0.1, 0.95, 0.45, 0.7)  # of its range, where a position is watched
_POSITIONS = 2  # for each choice of sizes and flags


def flags_of(contract: Contract) -> dict[str, tuple[int, ...]]:
    """The flags of a contract and their values; those of the first ones that are few enough together."""
    found, count, places = dict[str, tuple[int, ...]](), 1, _places(contract)
    for a in contract.args:
        values = _values(a)
        if len(values) > 1 and a.name not in places and count * len(values) <= _MOST_VALUES:
            found[a.name], count = values, count * len(values)
    return found


def positions_of(contract: Contract) -> tuple[Argument, ...]:
    """The positions of a contract."""
    places = _places(contract)
    return tuple(a for a in contract.args if _is_whole(a) and (_asks_sizes(a) or a.name in places))


def _places(contract: Contract) -> frozenset[str]:
    """Whole scalars that go from 0 over a buffer's extent of so many (one of 4 antennas, one of 2 polarisations), where
    there are too many of them for flags."""
    values = {a.name: len(found) for a in contract.args if len(found := _values(a)) > 1}
    if math.prod(values.values()) <= _MOST_VALUES:
        return frozenset()
    extents = {extent.strip() for a in contract.buffers() for extent in a.shape}
    drawn = (a for a in contract.args if a.name in values and not a.constraints.values)
    return frozenset(a.name for a in drawn if _limits(a, {})[0] == 0 and str(_limits(a, {})[1] + 1) in extents)


def asked_of(contract: Contract) -> frozenset[str]:
    """The names of the scalars that a computation may ask for as it does for sizes."""
    return frozenset(flags_of(contract)) | {a.name for a in positions_of(contract)}


def at_their_ends(contract: Contract, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes with the largest value of each position."""
    return {**sizes, **at_some_places(contract, sizes)[-1]}


def at_some_places(contract: Contract, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Values of the positions: all at their least, between, all at their largest; one without any where there are
    none."""
    found, positions = [], positions_of(contract)
    for share in (0.0, 0.5, 1.0) if positions else (1.0,):
        chosen = dict[str, int]()
        for a in positions:
            low, high = _limits(a, sizes)
            chosen[a.name] = low + int(max(0, high - low) * share)
        found.append(chosen)
    return found


def _limits(position: Argument, sizes: Mapping[str, int]) -> tuple[int, int]:
    low, high = (evaluate_int(x or "0", sizes) for x in (position.constraints.low, position.constraints.high))
    return low, high


def _is_whole(a: Argument) -> bool:
    """Whether it is a whole scalar that is drawn between limits."""
    whole = a.dtype.startswith(("int", "uint")) or a.dtype == "bool"
    limits = a.constraints.low is not None and a.constraints.high is not None
    return a.role is Role.SCALAR and a.value is None and whole and limits


def _asks_sizes(a: Argument) -> bool:
    return bool(names(a.constraints.low or "0") | names(a.constraints.high or "0"))


def _values(a: Argument) -> tuple[int, ...]:
    if a.constraints.values and _is_whole(a):
        return tuple(map(int, a.constraints.values))
    low, high = a.constraints.low, a.constraints.high
    if not _is_whole(a) or low is None or high is None:
        return ()
    try:
        return tuple(range(evaluate_int(low, {}), evaluate_int(high, {}) + 1)[: _MOST_VALUES + 1])
    except ContractError:  # sizes tell how far they go
        return ()


def with_choices(contract: Contract, sizes: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Each of the sizes with each choice of flags, and with positions of its own."""
    flags, positions = flags_of(contract), positions_of(contract)
    chosen = [dict(zip(flags, row, strict=True)) for row in itertools.product(*flags.values())]
    rows = [{**s, **one} for s in sizes for one in chosen for _ in range(_POSITIONS if positions else 1)]
    lying = [(k, a) for k, a in enumerate(positions) if _asks_sizes(a)]
    places = [a for a in positions if not _asks_sizes(a)]
    return [
        {**row, **{a.name: _within(a, row, n + k) for k, a in lying}, **_at_places(places, n)}
        for n, row in enumerate(rows)
    ]


def _at_places(places: Sequence[Argument], number: int) -> dict[str, int]:
    """Values of whole scalars that go over an extent. Those that go over the same rise: what two of them read is not
    one element then, and comes in one order, by which the terms of a sum are told apart. Not so such of two values, of
    which one would tell the other."""
    draw, found = np.random.default_rng(number), dict[str, int]()
    for high, group in itertools.groupby(sorted(places, key=_last), _last):
        own = [a.name for a in group]
        apart = 1 < high >= len(own) - 1
        values = np.sort(draw.permutation(high + 1)[: len(own)]) if apart else draw.integers(0, high + 1, len(own))
        found |= dict(zip(own, map(int, values), strict=False))
    return found


def _last(place: Argument) -> int:
    return _limits(place, {})[1]


def _within(a: Argument, sizes: Mapping[str, int], number: int) -> int:
    low, high = _limits(a, sizes)
    span = max(0, high - low)
    inside = round(span * _SHARES[number % len(_SHARES)])
    return low + max(min(1, span), inside)  # at its beginning lines have one element


def fixed_at(contract: Contract, sizes: Mapping[str, int]) -> tuple[Contract, dict[str, int]]:
    """A contract by which the flags have the values that stand beside sizes, and the sizes alone."""
    own = {s.name for s in contract.sizes}
    args = tuple(
        replace(a, value=str(sizes[a.name])) if a.role is Role.SCALAR and a.name in sizes and a.name not in own else a
        for a in contract.args
    )
    return replace(contract, args=args), {name: value for name, value in sizes.items() if name in own}


__all__ = ["asked_of", "at_their_ends", "fixed_at", "flags_of", "positions_of", "with_choices"]
