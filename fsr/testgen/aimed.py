"""Cases aimed at one change of a source: sizes and values at and around the numbers that the change names, and beside
them many others, drawn anew each round, of every family."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.contract.model import Contract
from fsr.records import Candidate, Case, Role
from fsr.testgen import families
from fsr.testgen.bounds import has_limits
from fsr.testgen.cases import HOST_ELEMENTS, cases_at, families_of
from fsr.testgen.draws import TABLE
from fsr.testgen.fitting import named_in
from fsr.testgen.numbers import constants, literals, numbers, products, values

MOST_NUMBERS, MOST_VALUES = 6, 4
MOST_WHOLE, MODEST, TOGETHER = 8, 1 << 16, 2  # whole numbers of either kind; larger ones are no tiles; cases of all
JUST = 9  # below a threshold, where more threads than this add their number to a scalar
SCALED = (1.0, 0.5, -0.5, 2.0, -1.0, 0.75)  # on either side of a number, and of its negative
WORD = 2.0**64  # a whole number from here on is no integer's value
KINDS = ("uniform rows", "far rows", families.ends([]), "wide", "alternating", "zeros")  # that code may treat apart
MEETINGS, MOST_NAMED = 3, 24  # cases of scalars that are numbers which the original names, and so many of these
MOST_COUNTED, COUNTED_ELEMENTS = 6, 1 << 14
MOST_LENGTHS = 6  # constants of the original that are in the sizes' ranges, each with its neighbours
WHOLE = "whole"  # the family of numbers of all bits, hardly any of which comes twice
FEW_SPELLED, SPELLINGS, LONG, MANY = 3, 12, 4096, (140, 800)
COMMON = 8  # numbers up to here stand everywhere
DRAWN = 24  # cases of a round beside those at numbers
MOST_THRESHOLDS = 6  # of the original's own floating numbers, each by itself
SCALES, SCALE = 2, (9, 65535)  # of its whole numbers, those that floating values may be multiplied by


def aimed_cases(
    contract: Contract, changed: str, seed: int, turn: int = 0, *, max_elements: int = HOST_ELEMENTS
) -> list[Case]:
    """The cases of one round. ``changed``: the text of the change and what stands around it. ``turn``: another one
    draws others; the first round is the one that goes by the numbers."""
    rng = np.random.default_rng([seed % 2**63, turn, 0xA1])
    wanted = _at_numbers(contract, changed) if turn == 0 else []
    wanted += _drawn(contract, rng)
    return cases_at(contract, f"aimed {turn}", seed, wanted, max_elements)


def value_families(text: str, most: int = MOST_VALUES) -> list[str]:
    """Families around the numbers of a text, the most unusual numbers first."""
    found = sorted(values(text), key=lambda v: (v.is_integer(), abs(v) < 3.0, abs(v)))
    return [families.near(v) for v in found[:most]]


def value_cases(contract: Contract, candidate: Candidate, baseline: Candidate, seed: int) -> list[Case]:
    """Cases of values around the floating numbers that the candidate names and the baseline does not: it may treat
    such a value apart. An array holds them all at once; a scalar is one of them, so that it takes several cases."""
    new = values(candidate.source) - values(baseline.source)
    chosen = sorted(v for v in new if not v.is_integer() or abs(v) >= WORD)[:MOST_VALUES]
    scalars = any(a.role is Role.SCALAR and _floating(a.dtype) for a in contract.drawn())
    factors = SCALED if scalars else SCALED[:1]
    timed = {s.name: s.timed[0] for s in contract.sizes if s.timed}
    wanted: list[tuple[Mapping[str, int], str]] = [({}, families.near(f * v)) for v in chosen for f in factors]
    # Again, with other draws: the place that a planted value is copied to may hold it by chance.
    wanted += [(sizes, family) for v in chosen for sizes in ({}, timed) for family in _around(v)]
    # All that it names at once, so that several conditions hold together.
    numbers_ = [*sorted(v for v in new if not v.is_integer()), *_whole(contract, candidate, baseline)]
    wanted += [({}, family) for family in families.among(numbers_)] * TOGETHER if numbers_ else []
    # Where a number is a threshold, what is just below it, with an index added, is past it.
    below = [n - JUST for n in numbers_ if isinstance(n, int) and n > MODEST]
    wanted += [(sizes, families.among(below)[1]) for sizes in ({}, timed) if below]
    return cases_at(contract, "valued", seed, wanted, HOST_ELEMENTS)


def scalar_cases(contract: Contract, baseline: Candidate, seed: int) -> list[Case]:
    """Cases of scalars that are each one of the numbers which the original names: where it compares them, they meet."""
    drawn = [a for a in contract.drawn() if a.role is Role.SCALAR]
    told: set[float] = {*values(baseline.source)} if any(_floating(a.dtype) for a in drawn) else set()
    told |= literals(baseline.source) | literals(baseline.source, floating=True)
    chosen = sorted(told - {0, 1, -1}, key=lambda v: (abs(v) > MODEST, abs(v)))[:MOST_NAMED]
    wanted: list[tuple[Mapping[str, int], str]] = [({}, families.among(chosen)[1])] * MEETINGS
    if not chosen or not drawn:
        return []
    return cases_at(contract, "scalars", seed, wanted, HOST_ELEMENTS)


def counted_cases(contract: Contract, baseline: Candidate, seed: int) -> list[Case]:
    """Cases as long as a number that the original names, and one longer, of values that are all different: what counts
    them up to a limit comes to it, and just past it. None where there are no whole numbers to be told apart."""
    if WHOLE not in families_of(contract):
        return []
    named = sorted(numbers(baseline.source))[-MOST_COUNTED:]
    wanted: list[tuple[Mapping[str, int], str]] = [
        ({size.name: n}, WHOLE)
        for number in named
        for size in contract.sizes
        for n in (number, number + 1)
        if size.minimum <= n <= size.maximum
    ]
    return cases_at(contract, "counted", seed, wanted, COUNTED_ELEMENTS)


def length_cases(contract: Contract, baseline: Candidate, seed: int) -> list[Case]:
    """Cases as long as what a constant of the original is called, one shorter and one longer: what is filled up to the
    length of a block (a hash's padding, a frame) is full there, or full but for one."""
    wanted: list[tuple[Mapping[str, int], str]] = []
    each = max(1, MOST_LENGTHS // max(len(contract.sizes), 1))
    for size in contract.sizes:
        within = sorted(n for n in constants(baseline.source) if max(size.minimum, COMMON + 1) <= n <= size.maximum)
        around = dict.fromkeys(m for n in reversed(within[-each:]) for m in (n - 1, n, n + 1))
        wanted += [({size.name: m}, "normal") for m in around if m <= size.maximum]
    return cases_at(contract, "lengths", seed, wanted, COUNTED_ELEMENTS)


def threshold_cases(contract: Contract, baseline: Candidate, seed: int) -> list[Case]:
    """Cases of floating arrays at the numbers that the original names, and at those that scalars always are (the ends
    of a box, a radius): at them and next to them, and of elements that are each 0, 1 or the number, whose products and
    sums come to it exactly; and at the levels of its scales.
    ``x > 0.3f`` and ``x >= 0.3f`` differ there alone, and so do a sum less 0.03 that is asked whether it is positive,
    and what is rounded to a byte by one function for another."""
    if not any(_floating(a.dtype) and a.role is not Role.SCALAR for a in contract.drawn()):
        return []
    spelled = literals(baseline.source, floating=True)  # 255.0f; the 16 of a shift is no value
    told = [v for v in values(baseline.source) if not v.is_integer() or int(v) in spelled]
    told.sort(key=lambda v: (v.is_integer(), abs(v) > MODEST, abs(v)))
    told = [*_always(contract), *(v for v in told if abs(v) not in (1.0, 0.5))]
    chosen = list(dict.fromkeys(told))[:MOST_THRESHOLDS]
    wanted: list[tuple[Mapping[str, int], str]] = [({}, families.near(v)) for v in chosen for _ in range(TOGETHER + 1)]
    wanted += [({}, families.among((0.0, 1.0, v))[0]) for v in chosen for _ in range(TOGETHER)]
    scales = [n for n in spelled | literals(baseline.source) if SCALE[0] <= n <= SCALE[1]]
    scales.sort(key=lambda n: ((n & (n + 1)) != 0, n not in spelled, n))  # 255 and its likes first
    wanted += [({}, families.levels(n)) for n in scales[:SCALES] for _ in range(TOGETHER)]
    return cases_at(contract, "thresholds", seed, wanted, HOST_ELEMENTS)


def _always(contract: Contract) -> list[float]:
    """What floating scalars are that are one number always, 0 left out."""
    scalars = [a for a in contract.args if a.role is Role.SCALAR and _floating(a.dtype) and a.value is not None]
    found = []
    for argument in scalars:
        try:
            found.append(float(str(argument.value)))
        except ValueError:
            continue  # made of sizes
    return [v for v in dict.fromkeys(found) if v and math.isfinite(v)]


def spelled_cases(contract: Contract, baseline: Candidate, seed: int) -> list[Case]:
    """Cases of long arrays without limits whose elements are each one of a few numbers that the original names: what
    goes by classes of numbers in a row (bytes of a text, codes, states) meets those in every order."""
    arrays = [a for a in contract.drawn() if a.role is not Role.SCALAR and not has_limits(a)]
    integers = any(not _floating(a.dtype) for a in arrays)
    told: set[float] = {*(literals(baseline.source) if integers else values(baseline.source))} - {0, 1, -1}
    pool = sorted(n for n in told if abs(n) > COMMON) or sorted(told)
    if not arrays or len(pool) < FEW_SPELLED:
        return []
    rng = np.random.default_rng([seed % 2**63, 0x5E])
    along = named_in(a.shape[-1] for a in arrays if a.shape)
    wanted: list[tuple[Mapping[str, int], str]] = []
    for _ in range(SPELLINGS):
        chosen = [pool[int(at)] for at in rng.permutation(len(pool))[:TABLE]]
        sizes = {s.name: LONG if s.name in along else int(rng.integers(*MANY)) for s in contract.sizes}
        wanted.append((sizes, families.spelled(chosen)))
    return cases_at(contract, "spelled", seed, wanted, COUNTED_ELEMENTS)


def valued_anew(cases: Sequence[Case]) -> list[Case]:
    """The cases with other values, three kinds each: a path that is taken at some sizes may be wrong for some values
    alone."""
    kinds = itertools.cycle(KINDS)
    return [
        replace(case, name=f"{case.name} {family}", family=family)
        for case in cases
        for family in ("outliers", next(kinds), next(kinds))
    ]


def _whole(contract: Contract, candidate: Candidate, baseline: Candidate) -> list[int]:
    """Whole numbers that the candidate alone names, which its values may be compared with, large ones first: where no
    value is an integer those that are spelled as floating numbers."""
    integers = any("int" in a.dtype for a in contract.drawn())
    new = literals(candidate.source, floating=not integers) - literals(baseline.source, floating=not integers)
    new -= {0, 1, -1}  # which are everywhere
    wide = [n for n in new if n > MODEST]
    return sorted(wide, reverse=True)[:MOST_WHOLE] + sorted(n for n in new if n <= MODEST)[-MOST_WHOLE:]


def _around(number: float) -> tuple[str, str]:
    return families.near(number), families.mostly(number)


def _floating(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def _at_numbers(contract: Contract, changed: str) -> list[tuple[Mapping[str, int], str]]:
    found: list[tuple[Mapping[str, int], str]] = []
    named = sorted(numbers(changed))[:MOST_NUMBERS]
    near = [v for n in named for v in (n, n + 1, n - 1, 2 * n, 2 * n + 1)]
    near += sorted(products(named, 1 << 20))[:MOST_NUMBERS]
    for size in contract.sizes:
        found += [({size.name: v}, "normal") for v in near if size.minimum <= v <= size.maximum]
    found += [({}, family) for family in value_families(changed)]
    return found


def _drawn(contract: Contract, rng: np.random.Generator) -> list[tuple[Mapping[str, int], str]]:
    """Sizes of every magnitude, one after another, with every family in turn."""
    names = families_of(contract)
    order = [str(name) for name in rng.permutation(names)] or ["normal"]
    found: list[tuple[Mapping[str, int], str]] = []
    for number in range(DRAWN):
        sizes: dict[str, int] = {}
        if contract.sizes:
            size = contract.sizes[number % len(contract.sizes)]
            top = math.log2(max(min(size.maximum, 1 << 15), size.minimum, 2))
            sizes[size.name] = int(2 ** rng.uniform(0, top))
        found.append((sizes, order[number % len(order)]))
    return found
