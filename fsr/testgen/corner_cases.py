"""The cases of :mod:`fsr.testgen.corners` that a contract has room for, and those at sizes that are related."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from fsr.contract.model import Argument, Contract, Size
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Case, CaseKind, Role
from fsr.testgen import corners
from fsr.testgen.cases import clip, elements, fit, new_case, stream
from fsr.testgen.echoes import ECHO, sources
from fsr.testgen.large import grown
from fsr.testgen.relations import related_sizes
from fsr.testgen.values import has_limits, integer_bounds

STRUCTURED_ELEMENTS = 1 << 17  # past what 16 bits count
EDGES_ELEMENTS = 1 << 13
MOST_ELEMENTS = 1 << 22  # where sizes are fixed: such arrays are made here, and the host device answers them first
CROWDS = 2
ECHOES = 2
ECHO_ELEMENTS = 1 << 15  # a stretch that comes again some hundred times, changed at another place each time
ROOM = 33  # a size that cannot be as large is at its upper end in every other case


def corner_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """None for contracts that have nothing of the kind; else at most a dozen, by cost and kind."""
    rng = stream("corners", contract, seed)
    found = [
        new_case(f"related sizes {i}", sizes, ("normal", "uniform")[i % 2], rng, CaseKind.HELD_OUT)
        for i, sizes in enumerate(related_sizes(contract, rng))
    ]
    for number, family in enumerate(_families(contract)):
        sizes = {s.name: _size(s, number, rng) for s in contract.sizes}
        fitted = fit(contract, sizes, min(EDGES_ELEMENTS, max_elements))
        if elements(contract, fitted) <= MOST_ELEMENTS:
            found.append(new_case(f"{family} {number}", fitted, family, rng, CaseKind.HELD_OUT))
    found += [
        new_case(f"{ECHO} {number}", sizes, ECHO, rng, CaseKind.HELD_OUT)
        for number, sizes in enumerate(_echoing(contract, rng))
    ]
    lead = _lead(contract)
    long = _long_lines(contract, lead, rng) if lead is not None else None
    if long is not None and elements(contract, long) <= MOST_ELEMENTS:
        found += [new_case(family, long, family, rng, CaseKind.LARGE) for family in corners.STRUCTURES]
    return found


def _echoing(contract: Contract, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    """Sizes for arrays that repeat another: that one of some dozens, they as long as there is room."""
    most_sizes = {s.name: s.maximum for s in contract.sizes}
    for name, first in list(sources(contract, most_sizes).items())[:1] * ECHOES:
        known = re.findall(r"[A-Za-z_]\w*", " ".join(first.shape))
        lines = re.findall(r"[A-Za-z_]\w*", contract.argument(name).shape[-1])
        shared = [s for s in contract.sizes if s.name in lines]
        own = [s for s in shared if s.name not in known]
        sizes = {s.name: clip(s, int(rng.integers(ROOM, 80)) if own or s in shared else 4) for s in contract.sizes}
        for size in own or [*shared, *contract.sizes]:
            sizes = grown(contract, fit(contract, sizes, ECHO_ELEMENTS), size, ECHO_ELEMENTS)
        yield sizes


def _families(contract: Contract) -> Iterator[str]:
    inputs = [a for a in contract.args if a.role is not Role.OUT and a.value is None]
    scalars = [a for a in inputs if not a.shape and a.role is Role.SCALAR]
    integers = any(_whole(a) for a in inputs if a.role is not Role.SCALAR)
    floating = any(is_float(numpy_dtype(a.dtype)) for a in scalars)
    if integers or scalars:
        yield corners.ZERO
    if integers or floating:
        yield corners.MINUS
    sizes = {s.name: clip(s, ROOM) for s in contract.sizes}
    limited = [a for a in scalars if _whole(a) and has_limits(a)]
    wide = max((len(corners.wide_numbers(*integer_bounds(a, sizes), ROOM)) for a in limited), default=0)
    yield from corners.WIDE[:wide]
    if any(a.role is not Role.SCALAR and may_be_nan(a) for a in inputs):
        yield from [corners.CROWD] * CROWDS


def may_be_nan(argument: Argument) -> bool:
    """Whether callers pass NaN in an argument."""
    return corners.has_patterns(numpy_dtype(argument.dtype)) and not argument.constraints.finite


def _whole(argument: Argument) -> bool:
    return numpy_dtype(argument.dtype).kind in "iu"


def _size(size: Size, number: int, rng: np.random.Generator) -> int:
    if size.maximum >= ROOM:
        return clip(size, int(rng.integers(ROOM, 140)))
    return size.maximum if number % 2 else int(rng.integers(size.minimum, size.maximum + 1))


def _lead(contract: Contract) -> Argument | None:
    """The integer input whose structure it is: the one of most axes."""
    inputs = [a for a in contract.buffers() if a.role is not Role.OUT and a.value is None and _whole(a) and a.shape]
    return max(inputs, key=lambda a: len(a.shape), default=None)


def _long_lines(contract: Contract, lead: Argument, rng: np.random.Generator) -> dict[str, int]:
    """The lines of an array as long as there is room, then whatever else its shape names; other sizes small."""
    sizes = {s.name: clip(s, int(rng.integers(2, 6))) for s in contract.sizes}
    for text in (lead.shape[-1], " ".join(lead.shape)):
        for size in contract.sizes:
            if size.name in re.findall(r"\w+", text) and elements(contract, sizes) < STRUCTURED_ELEMENTS // 2:
                sizes = grown(contract, sizes, size, STRUCTURED_ELEMENTS)
    return sizes
