"""Flags: whole scalars of a few values, by which a kernel decides what it does (``if (mode == 0)``). In a computation
they are what sizes are: known before it begins, so that conditions may ask for them. A plan is watched with each value.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Role

_MOST_VALUES = 4  # of all flags together


def flags_of(contract: Contract) -> dict[str, tuple[int, ...]]:
    """The flags of a contract and their values; those of the first ones that are few enough together."""
    found, count = dict[str, tuple[int, ...]](), 1
    for a in contract.args:
        values = _values(a)
        if len(values) > 1 and count * len(values) <= _MOST_VALUES:
            found[a.name], count = values, count * len(values)
    return found


def _values(a: Argument) -> tuple[int, ...]:
    low, high = a.constraints.low, a.constraints.high
    whole = a.dtype.startswith(("int", "uint")) or a.dtype == "bool"
    if a.role is not Role.SCALAR or a.value is not None or not whole or low is None or high is None:
        return ()
    try:
        return tuple(range(evaluate_int(low, {}), evaluate_int(high, {}) + 1)[: _MOST_VALUES + 1])
    except ContractError:  # sizes tell how far they go
        return ()


def with_flags(sizes: Sequence[Mapping[str, int]], flags: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Each of the sizes with each choice of flags."""
    chosen = [dict(zip(flags, row, strict=True)) for row in itertools.product(*flags.values())]
    return [{**s, **one} for s in sizes for one in chosen]


def fixed_at(contract: Contract, sizes: Mapping[str, int]) -> tuple[Contract, dict[str, int]]:
    """A contract by which the flags have the values that stand beside sizes, and the sizes alone."""
    own = {s.name for s in contract.sizes}
    args = tuple(
        replace(a, value=str(sizes[a.name])) if a.role is Role.SCALAR and a.name in sizes and a.name not in own else a
        for a in contract.args
    )
    return replace(contract, args=args), {name: value for name, value in sizes.items() if name in own}


__all__ = ["fixed_at", "flags_of", "with_flags"]
