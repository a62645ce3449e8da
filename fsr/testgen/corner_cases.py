"""The cases of :mod:`fsr.testgen.corners` that a contract has room for, and those at sizes that are related."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from fsr.contract.model import Argument, Contract, Size
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Case, CaseKind, Role
from fsr.testgen import corners, families
from fsr.testgen.bounds import has_ends, has_limits, integer_bounds
from fsr.testgen.cases import new_case, stream
from fsr.testgen.echoes import ECHO, KNOWN, sources
from fsr.testgen.families import CLOSE, MOTLEY
from fsr.testgen.fitting import clip, elements, fit, named_in
from fsr.testgen.large import brim_cases, grown
from fsr.testgen.relations import related_sizes
from fsr.testgen.spread import sizes_together, spread_sizes

STRUCTURED_ELEMENTS = 1 << 17  # past what 16 bits count
EDGES_ELEMENTS = 1 << 13
MOST_ELEMENTS = 1 << 22  # where sizes are fixed: such arrays are made here, and the host device answers them first
HALVES = 2
MOTLEYS = 2
BRIM_ELEMENTS = 3 << 20
MOST_ENDS = 12
MOST_EMPTY = 4
MOST_LISTED = 32
ALIKE = ("uniform rows", "constant")  # of long lines of floating values
TWINS, LONG_TWINS = 2, 4  # which of equals parts meet is chance
ECHO_ELEMENTS = 1 << 15  # a stretch that comes again some hundred times, changed at another place each time
PAIRS_ELEMENTS = 1 << 11  # so many that two numbers of a family meet side by side
ROOM = 33  # a size that cannot be as large is at its upper end in every other case


def corner_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """Some dozens of cases, those of ordinary size first."""
    rng = stream("corners", contract, seed)
    ordinary = min(EDGES_ELEMENTS, max_elements)
    found = _related(contract, rng)
    for label, families_ in (("", _families(contract)), ("ends", _ends(contract, rng)), ("listed", _listed(contract))):
        for number, family in enumerate(families_):
            fitted = fit(contract, {s.name: _size(s, number, rng) for s in contract.sizes}, ordinary)
            sizes = fitted if label else _roomy(contract, fitted)
            if family in corners.LEVELS:
                sizes = _free(contract, sizes, rng)
            if family == corners.LAST_NAN:  # behind all that packs of any width take
                sizes = {s.name: clip(s, sizes[s.name] | 1) for s in contract.sizes}
            if elements(contract, sizes) <= MOST_ELEMENTS:
                found.append(new_case(f"{label or family} {number}", sizes, family, rng, CaseKind.HELD_OUT))
    return [*found, *_apart(contract, rng, ordinary), *_large(contract, seed, rng)]


def _related(contract: Contract, rng: np.random.Generator) -> list[Case]:
    return [
        new_case(f"related sizes {i}", sizes, ("normal", "uniform")[i % 2], rng, CaseKind.HELD_OUT)
        for i, sizes in enumerate(related_sizes(contract, rng))
    ]


def _apart(contract: Contract, rng: np.random.Generator, max_elements: int) -> Iterator[Case]:
    """Sizes that few draws reach, and arrays that echo others."""
    spread, together = spread_sizes(contract, rng, max_elements), sizes_together(contract, rng, 4 * max_elements)
    for label, family, made in (("spread", "normal", spread), ("together", "normal", together),
                                ("empty", "normal", _empty(contract, rng, max_elements)),
                                (ECHO, ECHO, _echoing(contract, rng)), (KNOWN, KNOWN, _echoing(contract, rng)),
                                ("beginnings", ECHO, beginnings(contract, rng))):  # fmt: skip
        for number, sizes in enumerate(made):
            yield new_case(f"{label} {number}", sizes, family, rng, CaseKind.HELD_OUT)


def _large(contract: Contract, seed: int, rng: np.random.Generator) -> list[Case]:
    """Structures of long lines and sizes at their most, in turns: where time is short some of both run."""
    lines = []
    for whole, structures in ((True, corners.STRUCTURES), (False, ALIKE)):
        lead = _lead(contract, whole=whole)
        long = _long_lines(contract, lead, rng) if lead is not None else None
        if long is not None and elements(contract, long) <= MOST_ELEMENTS:
            structures = (*[corners.TWINS] * LONG_TWINS, corners.CLIFF, *structures)
            lines += [new_case(f"{family} lines", long, family, rng, CaseKind.LARGE) for family in structures]
    both = itertools.zip_longest(brim_cases(contract, seed, BRIM_ELEMENTS), lines)
    return [case for pair in both for case in pair if case is not None]


def _ends(contract: Contract, rng: np.random.Generator) -> list[str]:
    """Families of arguments at the ends of their limits: all at the upper, all at the lower, and each on its own."""
    names = [a.name for a in contract.drawn() if has_ends(a)]
    if not names:
        return []
    alone = [families.ends(low) for n in names for low in ([n], [m for m in names if m != n])]
    chosen = [alone[i] for i in rng.permutation(len(alone))[: MOST_ENDS - 2]]
    return list(dict.fromkeys([families.ends([]), families.ends(names), *chosen]))


def _listed(contract: Contract) -> list[str]:
    """Families of scalars that are each one of a list: each of its values, which draws may never come to."""
    values = [v for a in contract.drawn() if a.role is Role.SCALAR for v in a.constraints.values]
    return [families.among([v])[1] for v in dict.fromkeys(values)][:MOST_LISTED]


def _echoing(contract: Contract, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    """Sizes for arrays that repeat another: that one of some dozens, they as long as there is room."""
    for name, first in list(sources(contract).items())[:1]:
        known = named_in(first.shape)
        shared = [s for s in contract.sizes if s.name in named_in(contract.argument(name).shape[-1:])]
        own = [s for s in shared if s.name not in known]
        sizes = {s.name: clip(s, int(rng.integers(ROOM, 80)) if own or s in shared else 4) for s in contract.sizes}
        for size in own or [*shared, *contract.sizes]:
            sizes = grown(contract, fit(contract, sizes, ECHO_ELEMENTS), size, ECHO_ELEMENTS)
        yield sizes


def beginnings(contract: Contract, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    """Sizes for arrays that are no more than the beginning of what they are compared with: whoever goes on reading has
    met nothing that differs."""
    for name, first in list(sources(contract).items())[:1]:
        known = named_in(first.shape)
        own = named_in(contract.argument(name).shape) - known
        sizes = {s.name: clip(s, int(rng.integers(3, 9)) if s.name in own else ROOM) for s in contract.sizes}
        if own and math.prod(contract.shape(contract.argument(name), sizes)) < contract.shape(first, sizes)[-1]:
            yield sizes


def _empty(contract: Contract, rng: np.random.Generator, max_elements: int) -> Iterator[dict[str, int]]:
    """Sizes of which one is nought and all others are not: nothing is to be done, but what was there before may have to
    stay."""
    for size in [s for s in contract.sizes if s.minimum == 0][: MOST_EMPTY if len(contract.sizes) > 1 else 0]:
        drawn = {s.name: clip(s, int(rng.integers(17, 140))) for s in contract.sizes}
        yield fit(contract, drawn | {size.name: 0}, max_elements, pinned=size.name)


def _families(contract: Contract) -> Iterator[str]:
    inputs = contract.drawn()
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
    if floating and any(corners.has_patterns(numpy_dtype(a.dtype)) for a in scalars):
        yield corners.TINY
    if any(a.role is not Role.SCALAR and may_be_nan(a) for a in inputs):
        yield from corners.CROWDS
    if any(a.role is not Role.SCALAR and is_float(numpy_dtype(a.dtype)) for a in inputs):
        yield from [corners.HALVES] * HALVES
    if any(a.role is not Role.SCALAR and numpy_dtype(a.dtype).itemsize >= 4 for a in inputs):
        yield CLOSE
    if any(a.role is not Role.SCALAR and a.value is None for a in inputs):
        yield from [MOTLEY] * MOTLEYS
        yield from [*[corners.TWINS] * TWINS, *corners.LEVELS, *corners.LEVELS]


def may_be_nan(argument: Argument) -> bool:
    """Whether callers pass NaN in an argument."""
    return corners.has_patterns(numpy_dtype(argument.dtype)) and not argument.constraints.finite


def _whole(argument: Argument) -> bool:
    return numpy_dtype(argument.dtype).kind in "iu"


def _roomy(contract: Contract, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes with the largest grown where there are few elements."""
    for size in sorted(contract.sizes, key=lambda s: -sizes[s.name]):
        if elements(contract, sizes) < PAIRS_ELEMENTS // 2:
            sizes = grown(contract, sizes, size, PAIRS_ELEMENTS)
    return sizes


def _free(contract: Contract, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, int]:
    """The sizes with those that no element depends on (of windows, of steps) from a half of their maximum on, up to
    ordinary ones: the longer sums are, the more they lose."""
    for size in contract.sizes:
        most = clip(size, ROOM)
        larger = sizes | {size.name: clip(size, int(rng.integers((most + 1) // 2, most + 1)))}
        if elements(contract, larger) == elements(contract, sizes):
            sizes = larger
    return sizes


def _size(size: Size, number: int, rng: np.random.Generator) -> int:
    if size.maximum >= ROOM:
        return clip(size, int(rng.integers(ROOM, 140)))
    return size.maximum if number % 2 else int(rng.integers(size.minimum, size.maximum + 1))


def _lead(contract: Contract, *, whole: bool) -> Argument | None:
    """The input of whole numbers, or of others, whose structure it is: the one of most axes."""
    inputs = [a for a in contract.drawn() if a.role is not Role.SCALAR and a.shape and _whole(a) == whole]
    return max(inputs, key=lambda a: len(a.shape), default=None)


def _long_lines(contract: Contract, lead: Argument, rng: np.random.Generator) -> dict[str, int]:
    """The lines of an array as long as there is room, but not as long as can be, which is where :func:`brim_cases` have
    them; then whatever else its shape names; other sizes small."""
    sizes = {s.name: clip(s, int(rng.integers(2, 6))) for s in contract.sizes}
    for axes in (lead.shape[-1:], lead.shape):
        for size in contract.sizes:
            if size.name in named_in(axes) and elements(contract, sizes) < STRUCTURED_ELEMENTS // 2:
                sizes = grown(contract, sizes, size, STRUCTURED_ELEMENTS)
                if sizes[size.name] == size.maximum:
                    sizes[size.name] = clip(size, size.maximum - int(rng.integers(1, max(size.maximum // 4, 2))))
    return sizes
