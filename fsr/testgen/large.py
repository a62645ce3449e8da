"""Cases at the upper ends of the sizes: as large as a device takes whole, and beyond, for what runs in parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np

from fsr.contract.model import Argument, Contract, Size
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Case, CaseKind, Role
from fsr.testgen import families
from fsr.testgen.cases import HOST_ELEMENTS, new_case, stream
from fsr.testgen.corners import ZERO
from fsr.testgen.families import CROWNED
from fsr.testgen.fitting import clip, elements, fit, named_in
from fsr.testgen.generated import MOST_ELEMENTS
from fsr.testgen.scalars import ALL_DRAWN, special_turn

FAR_ELEMENTS = (1 << 24, 1 << 31)  # where an index leaves a float's whole numbers, and an int
BRIM = 140  # sizes that are never as long come to their most beside others
LARGEST_TILE, MANY_TILES = 1024, (9, 100)  # elements that the largest block takes at once, and how many times so many
SHORT = 3  # a size beside one that is as long as there is room
BULK, BULK_DRAWN = ("uniform", "normal"), 256
STEPS = 24  # by which one size doubles, mostly
FEW = 16  # lengths between a size's least and its most that may all be ways of their own
LESS_FULL = (0.89, 0.97)  # of what there is room for
BEYOND_ORDINARY = 1 << 16  # the same, of timed sizes: they may take too long in whole
BEYOND_WHOLE = 1 << 20  # elements of a buffer from which on what is allowed is more than what is run in whole


def large_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """Cases at the upper end: each size as large as ``max_elements`` in all buffers allow, the others small or
    middling, sizes just off powers of two from 2^13 on, and one past or short of many whole tiles, where values are in
    order, so that neighbours are close. Cheapest first."""
    rng = stream("large", contract, seed)
    chosen: list[tuple[dict[str, int], str]] = []
    for size in contract.sizes:
        for (low, high), family in zip(((1, 2), (17, 140), (1000, 1100)), (CROWNED, "normal", "repeated"), strict=True):
            others = {s.name: clip(s, int(rng.integers(low, high))) for s in contract.sizes}
            chosen.append((grown(contract, others, size, max_elements), family))
        powers = rng.permutation(range(13, max(size.maximum.bit_length(), 14)))[:3]
        for power, family in zip(powers, ("negated", "normal", CROWNED), strict=False):  # negated: one bin for all
            others = {s.name: clip(s, int(rng.integers(1, 20))) for s in contract.sizes}
            value = clip(size, (1 << int(power)) + int(rng.integers(-3, 4)))
            chosen.append((fit(contract, others | {size.name: value}, max_elements, pinned=size.name), family))
        for past, family in ((1, "reverse"), (-1, "sorted")):
            others = {s.name: clip(s, int(rng.integers(1, 20))) for s in contract.sizes}
            value = clip(size, LARGEST_TILE * int(rng.integers(*MANY_TILES)) + past)
            chosen.append((fit(contract, others | {size.name: value}, max_elements, pinned=size.name), family))
    unique = {tuple(s.items()): (s, f) for s, f in reversed(chosen) if elements(contract, s) > HOST_ELEMENTS // 2}
    cases = [new_case(f"large {i}", *drawn, rng, CaseKind.LARGE) for i, drawn in enumerate(reversed(unique.values()))]
    return sorted(cases, key=lambda case: elements(contract, case.size_map()))


def bulk_cases(
    contract: Contract, seed: int, max_elements: int, threads: Callable[[Mapping[str, int]], int]
) -> list[Case]:
    """Ordinary values at sizes at which many threads write many elements, the most of some sizes that are drawn: what
    is wrong for one element in a hundred thousand (a float in a double's place, a rounding on the other side of a half)
    needs so many. ``threads``: how many are launched at some sizes."""
    rng = stream("bulk", contract, seed)
    written = [a for a in contract.buffers() if a.role is not Role.IN]

    def work(sizes: Mapping[str, int]) -> tuple[int, int]:
        count, outputs = threads(sizes), sum(math.prod(contract.shape(a, sizes)) for a in written)
        return min(count, outputs), count

    drawn = [{s.name: _any_length(s, rng) for s in contract.sizes} for _ in range(BULK_DRAWN)]
    fitting = [sizes for sizes in drawn if HOST_ELEMENTS < elements(contract, sizes) <= max_elements]
    if not fitting:
        return []
    most, found = _climbed(contract, max(fitting, key=work), work, max_elements), list[Case]()
    while len(found) < len(BULK):
        case = new_case(f"bulk {BULK[len(found)]}", most, BULK[len(found)], rng, CaseKind.LARGE)
        found += [case] if special_turn(case) in ALL_DRAWN else []
    return found


def _climbed(
    contract: Contract, sizes: dict[str, int], work: Callable[[Mapping[str, int]], tuple[int, int]], most: int
) -> dict[str, int]:
    """The sizes with some of them longer and others shorter, as long as that is more work for no more elements."""
    for _ in range(STEPS):
        pairs = itertools.product(contract.sizes, contract.sizes)
        tried = (
            {**sizes, less.name: clip(less, sizes[less.name] // 2), more.name: clip(more, int(sizes[more.name] * by))}
            for (less, more), by in itertools.product(pairs, (2.0, 1.25))
        )
        better = max((t for t in tried if elements(contract, t) <= most), key=work, default=sizes)
        if work(better) <= work(sizes):
            break
        sizes = better
    return sizes


def _any_length(size: Size, rng: np.random.Generator) -> int:
    """Any of a few, and any magnitude of many."""
    low, high = max(size.minimum, 1), min(size.maximum, 1 << 22)
    if high - size.minimum < FEW:
        return int(rng.integers(size.minimum, max(high, size.minimum) + 1))
    return clip(size, int(low * (high / low) ** rng.uniform()))


def largest_case(contract: Contract, seed: int, max_elements: int) -> Case:
    """All sizes near their upper ends, as large as ``max_elements`` in all buffers allow: where no size alone makes
    an index overflow, their product may."""
    sizes = fit(contract, {s.name: s.maximum for s in contract.sizes}, max_elements)
    for size in sorted(contract.sizes, key=lambda s: sizes[s.name]):
        sizes = grown(contract, sizes, size, max_elements)
    return new_case("largest", sizes, "outliers", stream("largest", contract, seed), CaseKind.LARGE)


def filled_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """Where all results are whole numbers: each size as large as there is room beside short others, every argument at
    its upper end. Counters of 16 bits and sums of 32 do not hold what comes together there. Each once more somewhat
    smaller: where counters that wrapped are added up, or cut off, the sum may be right again. None for others, and
    where the contract declares sums of floating values, which stop growing when they are that long."""
    floating = {a.role for a in contract.apart().buffers() if is_float(numpy_dtype(a.dtype))}
    if floating - {Role.IN} or (floating and contract.tolerance.sum_length is not None):
        return []
    rng = stream("filled", contract, seed)
    few = {s.name: clip(s, SHORT) for s in contract.sizes}
    found = [grown(contract, few, size, max_elements) for size in contract.sizes]
    for size, most in zip(contract.sizes, tuple(found), strict=True):
        found.append(most | {size.name: clip(size, int(most[size.name] * rng.uniform(*LESS_FULL)))})
    return [
        new_case(f"filled {i}", sizes, families.ends([]), rng, CaseKind.LARGE)
        for i, sizes in enumerate(found)
        if sizes not in found[:i] and elements(contract, sizes) > HOST_ELEMENTS // 2
    ]


def brim_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """Cases at sizes exactly at their most, all of them where there is room, and each beside shorter others: of
    elements that are all alike, at an end of their limits, none like its neighbour or in order, and of scalars at 0."""
    rng = stream("brim", contract, seed)
    scalars = any(a.role is Role.SCALAR for a in contract.drawn())
    kinds = [families.ends([]), "alternating", *([ZERO] if scalars else []), "sorted"]
    found: list[tuple[dict[str, int], str]] = []
    most = {s.name: s.maximum for s in contract.sizes}
    if elements(contract, most) <= max_elements:
        found += [(most, kind) for kind in kinds]
    for size in [s for s in contract.sizes if s.maximum >= BRIM and len(contract.sizes) > 1]:
        others = {s.name: clip(s, int(rng.integers(33, 140))) for s in contract.sizes}
        sizes = fit(contract, {**others, size.name: size.maximum}, max_elements, pinned=size.name)
        if sizes[size.name] == size.maximum and elements(contract, sizes) <= max_elements:
            found += [(sizes, kinds[0]), (sizes, kinds[1 + len(found) // 2 % (len(kinds) - 1)])]
    return [
        new_case(f"brim {i}", sizes, kind, rng, CaseKind.LARGE)
        for i, (sizes, kind) in enumerate(found)
        if elements(contract, sizes) > HOST_ELEMENTS // 2
    ]


def far_cases(contract: Contract, seed: int) -> list[Case]:
    """Cases beyond what can be run in full: at the timed sizes, at the upper ends of all (integers and scalars at
    theirs too), near them, and past 2^24 and 2^31 elements of the largest buffer. None for contracts whose arrays
    cannot be drawn in parts, and fewer where a function makes some of them."""
    if made_whole(contract) is not None or not contract.sizes:
        return []
    rng = stream("far", contract, seed)
    least = {s.name: clip(s, 1 + int(rng.integers(1000, 1100))) for s in contract.sizes}
    ends = {s.name: max(s.minimum, s.maximum - int(rng.integers(1, 10))) for s in contract.sizes}
    most = {s.name: s.maximum for s in contract.sizes}
    timed = contract.timed_sizes()
    chosen = [*timed, most, ends]
    for goal in FAR_ELEMENTS:
        chosen += [_reaching(contract, least, size, goal) for size in contract.sizes]
        chosen.append(_shrunk_to(contract, ends, goal))
    least_of = [BEYOND_ORDINARY if s in timed else BEYOND_WHOLE for s in chosen]
    kept = [s for i, s in enumerate(chosen) if s not in chosen[:i] and largest_buffer(contract, s) > least_of[i]]
    kept = [s for s in kept if elements(contract, s) <= _most_made(contract, s)]
    return [new_case(f"far {i}", s, "limits" if s == most else "normal", rng) for i, s in enumerate(kept)]


def made_whole(contract: Contract) -> Argument | None:
    """The first of the arrays that grow with sizes and cannot be made in part."""
    whole = (a for a in contract.buffers() if a.constraints.whole or a.layout is not None)
    return next((a for a in whole if named_in(a.shape)), None)


def _most_made(contract: Contract, sizes: Mapping[str, int]) -> int:
    """Elements of all arrays that a case may have: few where a function makes some. Structures that grow with no size,
    as constants, are few themselves, and arrays beside them have formulas."""
    return MOST_ELEMENTS if contract.inputs is not None else elements(contract, sizes)


def why_not_far(contract: Contract, sizes: Mapping[str, int]) -> str:
    """Why :func:`far_cases` has none at these timed sizes, and what would give one; '' where it has one."""
    if not contract.sizes:
        return "the contract names no sizes, so that they are run whole or not at all"
    if (whole := made_whole(contract)) is not None:
        return f"{whole.name} is made whole, not block by block, since {_whole_by(whole)}"
    if largest_buffer(contract, sizes) <= BEYOND_ORDINARY:
        largest = max(contract.buffers(), key=lambda a: math.prod(contract.shape(a, sizes)))
        return (
            f"blocks are looked at where an array has more than {BEYOND_ORDINARY:,} elements, and the largest there, "
            f"{largest.name}, has {largest_buffer(contract, sizes):,}: larger timed sizes would be looked at"
        )
    if (count := elements(contract, sizes)) > (made := _most_made(contract, sizes)):
        return (
            f"the arrays have {count:,} elements there, and a function of inputs is asked for no more than {made:,}: "
            "choose smaller timed sizes"
        )
    return ""


def _whole_by(argument: Argument) -> str:
    """What keeps an array from being made in part, and what to say in place of it."""
    said = argument.constraints
    if argument.layout is not None:
        return "its elements are structures"
    if said.by_element:
        return "its limits are lists: one low and one high for all elements let blocks be looked at"
    return f"it is {'unique' if said.unique else 'sorted'}: no place alone tells a value"


def largest_buffer(contract: Contract, sizes: Mapping[str, int]) -> int:
    """How many elements the largest buffer has."""
    return max((math.prod(contract.shape(a, sizes)) for a in contract.buffers()), default=0)


def _reaching(contract: Contract, others: Mapping[str, int], size: Size, goal: int) -> dict[str, int]:
    """One size just so large that the largest buffer has more than ``goal`` elements, or as large as it may be."""
    low, high = size.minimum, size.maximum
    while low < high:
        middle = (low + high) // 2
        reached = largest_buffer(contract, {**others, size.name: middle}) > goal + goal // 16
        low, high = (low, middle) if reached else (middle + 1, high)
    return {**others, size.name: low}


def _shrunk_to(contract: Contract, ends: Mapping[str, int], goal: int) -> dict[str, int]:
    """All sizes from their upper ends down, the largest halved until little more than the goal is left."""
    sizes = dict(ends)
    lows = {s.name: max(s.minimum, 1) for s in contract.sizes}
    while largest_buffer(contract, sizes) > 2 * goal + goal // 4:
        name = max(sizes, key=lambda n: sizes[n] / lows[n])
        if sizes[name] // 2 < lows[name]:
            break
        sizes[name] //= 2
    return sizes


def grown(contract: Contract, others: Mapping[str, int], size: Size, max_elements: int) -> dict[str, int]:
    """The largest value of one size that fits, the others as they are."""
    low, high = size.minimum, size.maximum
    while low < high:
        middle = (low + high + 1) // 2
        fits = elements(contract, {**others, size.name: middle}) <= max_elements
        low, high = (middle, high) if fits else (low, middle - 1)
    return {**others, size.name: low}
