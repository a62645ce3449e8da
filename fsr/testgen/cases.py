"""Which cases to run: sizes and value families, chosen so that few cases cover much.

Every list is a pure function of its arguments. The search's cases, the held-out cases and the timed cases draw
from three streams that never meet, so that nothing tuned on one is tuned on another.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.contract.model import Argument, Contract, Size
from fsr.hardware.dtypes import float_limits, is_float, numpy_dtype
from fsr.records import Candidate, Case, CaseKind, Plan
from fsr.testgen import families
from fsr.testgen.bounds import is_free
from fsr.testgen.fitting import clip, elements, fit, halved, named_in, room, smallest
from fsr.testgen.numbers import folded, numbers, products

GPU_ELEMENTS = 1 << 18
HOST_ELEMENTS = 1 << 14
SEARCH_CASES = 46
NAMED_ELEMENTS = 1 << 26  # a size that the candidate itself names is tested up to here, whatever it costs
HELD_OUT_CASES = 24
MOST_TAILORED = 16  # cases at and around the numbers that one candidate names
FOLDED_ELEMENTS = 1 << 18  # of a case at a size that is hidden in a comparison
LANES_ELEMENTS = 5 << 17  # of a case at a named size whose other sizes go past a warp
MOST_FOLDED = 5  # numbers, the largest of a candidate's own, that are tried two at a time
UNUSUAL = ("normal", "nan", "infinite", "special rows", "signed zeros", "uniform", "limits", "whole numbers")
ROOMY = 16  # a family such as one-hot or cancelling needs some elements to show

_LANDMARKS = (0, 1, 2, 3, 7, 13, 31, 32, 33, 61, 63, 64, 65, 97, 127, 128, 129, 251, 255, 256, 257, 509, 511, 512, 513,
              1021, 1023, 1024, 1025, 2053, 4097)  # fmt: skip
_HELD_OUT_LANDMARKS = (1, 5, 11, 29, 35, 67, 95, 131, 191, 263, 379, 521, 769, 1031, 1537, 2099, 3001)


def smoke(contract: Contract, seed: int, max_elements: int = GPU_ELEMENTS) -> Case:
    """One moderately small case of odd sizes and normal values: the cheapest test that means something."""
    rng = stream("smoke", contract, seed)
    sizes = {s.name: clip(s, int(rng.integers(33, 80)) * 2 + 1) for s in contract.sizes}
    return new_case("smoke", fit(contract, sizes, min(max_elements, 1 << 16)), "normal", rng, CaseKind.SMOKE)


def search_cases(
    contract: Contract,
    subject: Candidate | Plan,
    seed: int,
    *,
    max_elements: int = GPU_ELEMENTS,
) -> list[Case]:
    """The cases of a search: every landmark size, every family, the sizes around each tile of the candidate.

    At most 46, and a few for alignment and aliasing; each of at most ``max_elements`` elements in
    all buffers together unless the smallest legal sizes are larger. Ordered by cost, cheapest first. A plan gives
    its block sizes as tiles, a candidate also the integer literals of its source.
    """
    rng = stream("search", contract, seed)
    interesting = {s.name: _interesting(s, _tiles(subject), rng) for s in contract.sizes}
    chosen = _choose(contract, interesting, SEARCH_CASES, max_elements, rng)
    chosen += _special_memory(contract, chosen, rng)
    return sorted(chosen, key=lambda case: elements(contract, case.size_map()))


def tailored_cases(
    contract: Contract,
    candidate: Candidate,
    baseline: Candidate,
    seed: int,
    *,
    max_elements: int = GPU_ELEMENTS,
    dear: Callable[[Case], bool] = lambda _: False,
) -> list[Case]:
    """Cases for one candidate: sizes equal to and around the numbers that it names and the baseline does not, and
    then the products of two of its numbers.

    A number in the source may be a tile, or a size that is treated apart, openly or as what two of them come to. Empty
    when it names no new one. ``dear``: whether a case costs too much; its other sizes are halved then until it does
    not.
    """
    rng = stream("tailored", contract, seed)
    old = set(_tiles(baseline))
    new = [n for n in _tiles(candidate) if n not in old]
    largest = max((s.maximum for s in contract.sizes), default=0)
    multiplied = [
        int(n) for n in rng.permutation(sorted(products(_tiles(candidate), largest) - products(old, largest)))
    ]
    found: dict[tuple[tuple[str, int], ...], Case] = {}
    masks = [n for n in new if n > 2 and not n & (n + 1)]  # cut to k bits: wrong from two past it
    hidden = folded([n for n in new if n not in masks or n <= largest][-MOST_FOLDED:], largest)
    order = [*((n, 2) for n in masks), *((n, 0) for n in [*new, *(n for n in hidden if n not in new)])]
    for number, offset in [*order, *((n, o) for o in (1, -1) for n in new), *((n, 0) for n in multiplied)]:
        for size in contract.sizes:
            room = FOLDED_ELEMENTS if number in hidden and number not in new else max_elements
            modest = bool(offset) or number not in new
            case = _named_case(contract, size, number + offset, max(room, max_elements), rng, modest)
            if case is not None and not offset:
                case = _with_lanes(contract, case, size.name, rng)
            if case is not None and offset == 1 and _bounds_values(contract, size):
                case = replace(case, family="limits")  # the number itself may be an index, the last one
            while case is not None and dear(case) and (less := halved(contract, case.size_map(), size.name)):
                case = replace(case, sizes=tuple(less.items()))
            if case is not None:
                found.setdefault(case.sizes, case)
            if len(found) == MOST_TAILORED:
                return list(found.values())
    return list(found.values())


def cases_at(
    contract: Contract, purpose: str, seed: int, wanted: Sequence[tuple[Mapping[str, int], str]], max_elements: int
) -> list[Case]:
    """Cases named after their purpose, one for each of the wanted (some sizes, family): sizes that are not given are
    drawn, those that are stay where they fit ``max_elements`` in all buffers."""
    rng = stream(purpose, contract, seed)
    found: list[Case] = []
    for given, family in wanted:
        sizes = {s.name: clip(s, given.get(s.name, int(rng.integers(1, 140)))) for s in contract.sizes}
        fitted = fit(contract, sizes, max_elements, pinned=next(iter(given), ""))
        found.append(new_case(f"{purpose} {len(found)}", fitted, family, rng))
    return _distinct_cases(found)


def _bounds_values(contract: Contract, size: Size) -> bool:
    """Whether a limit of some argument's values names a size."""
    ends = [str(end) for a in contract.args for end in (a.constraints.low, a.constraints.high) if end is not None]
    return size.name in named_in(ends)


def _named_case(
    contract: Contract, size: Size, value: int, max_elements: int, rng: np.random.Generator, modest: bool
) -> Case | None:
    """The case of one size at a value; None where the contract forbids it or it is too large (``modest``: for a test
    of ordinary size)."""
    if not size.minimum <= value <= size.maximum:
        return None
    others = {s.name: clip(s, int(rng.integers(17, 140))) for s in contract.sizes}
    sizes = fit(contract, others | {size.name: value}, max_elements, pinned=size.name)
    if sizes[size.name] != value:  # too large for a test, but a number that large is hardly a tile
        sizes = smallest(contract) | {size.name: value}
        if modest or elements(contract, sizes) > NAMED_ELEMENTS:
            return None
    return new_case(f"named {size.name} {value}", sizes, "normal", rng, CaseKind.NAMED)


def _with_lanes(contract: Contract, case: Case, pinned: str, rng: np.random.Generator) -> Case:
    """The case with the other sizes past a warp where there is room: one lane may treat a size apart."""
    past = {s.name: min(s.maximum, 33 + int(rng.integers(8))) for s in contract.sizes if s.name != pinned}
    sizes = {name: max(value, past.get(name, 0)) for name, value in case.sizes}
    return replace(case, sizes=tuple(sizes.items())) if elements(contract, sizes) <= LANES_ELEMENTS else case


def held_out_cases(contract: Contract, seed: int, *, max_elements: int = GPU_ELEMENTS) -> list[Case]:
    """Cases that decide promotion: sizes and seeds from a stream of their own, and the timed sizes scaled down
    to fit ``max_elements``."""
    rng = stream("held-out", contract, seed)
    interesting = {}
    for size in contract.sizes:
        drawn = [int(10 ** rng.uniform(0, math.log10(max(size.maximum, 2)))) for _ in range(12)]
        scaled = [int(t * f) for t in size.timed for f in (0.37, 0.11, 0.021)]
        interesting[size.name] = _legal(size, [*_HELD_OUT_LANDMARKS, *drawn, *scaled])
    chosen = _choose(contract, interesting, HELD_OUT_CASES, max_elements, rng)
    chosen += _special_memory(contract, chosen, rng)
    return sorted(
        (replace(case, name=f"held-out {i}", kind=CaseKind.HELD_OUT) for i, case in enumerate(chosen)),
        key=lambda case: elements(contract, case.size_map()),
    )


def timed_cases(contract: Contract, seed: int, sets: int = 3) -> list[Case]:
    """``sets`` cases of different normal values for every timed configuration, configuration by configuration."""
    rng = stream("timed", contract, seed)
    return [
        new_case(f"timed {index} set {number}", sizes, "normal", rng, CaseKind.TIMED)
        for index, sizes in enumerate(contract.timed_sizes())
        for number in range(sets)
    ]


def held_out_timed_sizes(contract: Contract) -> list[dict[str, int]]:
    """Sizes near the timed ones but different, on which a winner must not be slower: about 0.6 and 0.8 times
    (odd) and one beside each timed configuration. Empty when the contract allows no other size."""
    timed = contract.timed_sizes()
    found: list[dict[str, int]] = []
    for configuration in timed:
        for factor, step in ((0.6, 0), (0.8, 1), (1.0, -1), (1.0, 1)):
            sizes = {s.name: clip(s, max(_near(configuration[s.name], factor, step), 1)) for s in contract.sizes}
            if sizes not in timed and sizes not in found:
                found.append(sizes)
    return found


def held_out_timed_cases(contract: Contract, seed: int, sets: int = 1) -> list[Case]:
    """Cases of normal values for :func:`held_out_timed_sizes`."""
    rng = stream("held-out timed", contract, seed)
    return [
        new_case(f"held-out timed {index} set {number}", sizes, "normal", rng, CaseKind.HELD_OUT_TIMED)
        for index, sizes in enumerate(held_out_timed_sizes(contract))
        for number in range(sets)
    ]


def timed_beside(contract: Contract, seed: int, sizes: Mapping[str, int]) -> Case:
    """A case of normal values at sizes at which a candidate is timed."""
    return new_case("beside timed", sizes, "normal", stream("beside timed", contract, seed), CaseKind.HELD_OUT_TIMED)


def smallest_alignment(contract: Contract) -> int:
    """The least alignment, in bytes, that the contract promises for some pointer: at least its element size."""
    promises = [max(a.alignment, numpy_dtype(a.dtype).itemsize) for a in contract.buffers()]
    return min(promises, default=256)


# ---------------------------------------------------------------- sizes


def _tiles(subject: Candidate | Plan) -> list[int]:
    """Integers that may be a tile, a block, a vector width or a size treated apart: of launches, entries and, if
    given, the source."""
    plan = subject.plan if isinstance(subject, Candidate) else subject
    texts = [t for launch in plan.launches for t in (*launch.grid, *launch.block, launch.repeat, launch.entry)]
    if isinstance(subject, Candidate):
        texts.append(subject.source)
    return sorted(set().union(*(numbers(text) for text in texts)))


def _interesting(size: Size, tiles: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Values to try, the most telling first: a number that the source names is one it may treat apart."""
    named = [int(v) for v in rng.permutation([t for t in tiles if t <= size.maximum])[:8]]
    around = [t for tile in tiles if tile <= 4096 for t in (tile - 1, tile + 1, 2 * tile + 1, 3 * tile - 1)]
    around = [int(v) for v in rng.permutation(around)[:20]]
    landmarks = [int(v) for v in rng.permutation(_LANDMARKS[2:])]
    drawn = [int(v) for v in rng.integers(1, 3000, 4)]
    powers = [(1 << int(k)) + int(rng.integers(-1, 2)) for k in rng.permutation(range(5, 24))[:10]]
    mixed = [v for three in itertools.zip_longest(around, landmarks, powers) for v in three if v is not None]
    return _legal(size, [size.minimum, 0, 1, *named, *mixed, *drawn, *size.timed])


def _legal(size: Size, values: Sequence[int]) -> list[int]:
    kept = list(dict.fromkeys(v for v in values if size.minimum <= v <= size.maximum))
    return kept or [size.minimum]


def _near(value: int, factor: float, step: int) -> int:
    scaled = round(factor * value)
    return scaled + step if factor == 1.0 else scaled | step


# ---------------------------------------------------------------- choosing


def _choose(
    contract: Contract, interesting: Mapping[str, list[int]], count: int, max_elements: int, rng: np.random.Generator
) -> list[Case]:
    """Greedy covering of single sizes, remainders and size classes; the families go to sizes with room to show."""
    pool = _pool(contract, interesting, max_elements, rng)
    left = [str(f) for f in rng.permutation(families_of(contract))]
    covered: set[tuple[str, object]] = set()
    cases: list[Case] = []
    for family in left:
        roomy = [s for s in pool if min(s.values(), default=0) >= ROOMY] or [_ordinary(contract, max_elements, rng)]
        best = _most_new(roomy, covered)
        if best in pool:
            pool.remove(best)
        covered |= _covers(best)
        cases.append(new_case(family, best, family, rng))
    favourites = [f for f in ("normal", "wide", "uniform", "limits", "one-hot") if f in left] or left
    for number in range(max(count - len(cases), 0)):
        if not pool:
            break
        best = _most_new(pool, covered)
        pool.remove(best)
        covered |= _covers(best)
        family = favourites[number % len(favourites)]
        cases.append(new_case("sizes", best, family, rng))
    return [replace(case, name=f"{case.name} {i}") for i, case in enumerate(_distinct_cases(cases))]


def _most_new(pool: Sequence[dict[str, int]], covered: set[tuple[str, object]]) -> dict[str, int]:
    return max(pool[:200], key=lambda sizes: len(_covers(sizes) - covered))


def _ordinary(contract: Contract, max_elements: int, rng: np.random.Generator) -> dict[str, int]:
    drawn = {s.name: clip(s, 67 + int(rng.integers(0, 90))) for s in contract.sizes}
    return fit(contract, drawn, max_elements)


def _pool(
    contract: Contract, interesting: Mapping[str, list[int]], max_elements: int, rng: np.random.Generator
) -> list[dict[str, int]]:
    if not contract.sizes:
        return []
    pool = [
        fit(contract, {n: values[0] for n, values in interesting.items()}, max_elements),
        {s.name: s.minimum for s in contract.sizes},
        smallest(contract),
    ]
    for name, values in interesting.items():
        for value in values:
            others = {n: int(rng.choice(v[2:] or v)) for n, v in interesting.items()}  # not all others empty too
            pool.append(fit(contract, others | {name: value}, max_elements, pinned=name))
    bound = max(room(contract, max_elements), min(elements(contract, s) for s in pool))
    unique = {tuple(sorted(s.items())): s for s in pool if elements(contract, s) <= bound}
    return list(unique.values())


def _covers(sizes: Mapping[str, int]) -> set[tuple[str, object]]:
    """What a size tuple covers: each value, each remainder modulo a warp and a vector, each pair of classes."""
    values = {(name, value) for name, value in sizes.items()}
    rests: set[tuple[str, object]] = {(f"{n}%4", v % 4) for n, v in sizes.items()}
    classes = {name: (0 if v <= 1 else 1 if v < 32 else 2 if v < 256 else 3) for name, v in sizes.items()}
    pairs = {(f"{a}x{b}", (classes[a], classes[b])) for a, b in itertools.combinations(sorted(classes), 2)}
    return values | rests | pairs


def families_of(contract: Contract) -> tuple[str, ...]:
    """The value families that make sense for a contract."""
    inputs = contract.drawn()
    floating = any(is_float(numpy_dtype(a.dtype)) for a in inputs)
    types = {numpy_dtype(a.dtype) for a in contract.buffers()}
    ends = {float_limits(t).largest for t in types if is_float(t)}
    least = min(ends, default=0.0)  # which a term may exceed though the sum does not
    narrow = (families.near(least), families.mostly(least)) if floating and len(ends) > 1 else ()
    return narrow + families.names(
        floating=floating,
        finite=all(a.constraints.finite for a in inputs),
        sums=contract.tolerance.sum_length is not None or _combines(contract, inputs),
        free_integers=any(is_free(a) or _unsigned(a) for a in inputs),
    )


def _unsigned(argument: Argument) -> bool:
    """Whether numbers past half of a wide type may come: what takes them for signed ones is wrong."""
    dtype = numpy_dtype(argument.dtype)
    return dtype.kind == "u" and dtype.itemsize >= 4 and argument.constraints.high is None


def _combines(contract: Contract, inputs: Sequence[Argument]) -> bool:
    """Whether floating values may be added to others: a reference may do so without overflow on the way."""
    return contract.reference is not None or sum(is_float(numpy_dtype(a.dtype)) for a in inputs) != 1


def _special_memory(contract: Contract, cases: Sequence[Case], rng: np.random.Generator) -> list[Case]:
    """Cases at the smallest alignment promised and at the odd multiples of 4 and 8 above it (an access of 16 bytes may
    rely on more), one of them at sizes that vectors divide; there also each pointer alone, since a path may be guarded
    by the address of another, with values of its own; and one for every group that may share memory."""
    if not cases or not contract.buffers():
        return []
    middling = sorted(cases, key=lambda c: elements(contract, c.size_map()))[len(cases) // 2 :]
    found = []
    least = smallest_alignment(contract)
    steps = [(least, middling[-1]), *((a, middling[0]) for a in sorted({least, 4, 8}) if a >= least)]
    whole = replace(middling[0], name=f"vectors {middling[0].name}", sizes=divisible(contract, middling[0]))
    steps.append((least, whole))
    found += [
        _replaced(case, f"alignment {step} {case.name}", rng, alignment_bytes=step)
        for step, case in steps
        if step < 256
    ]
    found += _each_apart(contract, whole, rng)
    for group in contract.aliasing:
        shapes = {contract.shape(contract.argument(n), middling[0].size_map()) for n in group}
        if len(shapes) == 1:
            found.append(_replaced(middling[0], f"aliased {'='.join(group)}", rng, aliased=tuple(group)))
    return found


def _each_apart(contract: Contract, whole: Case, rng: np.random.Generator) -> list[Case]:
    """For each pointer a case in which it alone stands at its smallest alignment, in one of special values all do."""
    unusual = [f for f in families_of(contract) if f in UNUSUAL]
    order = [str(f) for f in rng.permutation(unusual)] or [whole.family]
    names = [a.name for a in contract.buffers()] if len(contract.buffers()) > 1 else []
    found = []
    for number, name in enumerate([*names, ""]):
        step = smallest_alignment(contract) if not name else contract.argument(name).alignment
        family = "nan" if not name and "nan" in unusual else order[number % len(order)]
        case = _replaced(whole, f"{name or 'all'} apart", rng, alignment_bytes=max(step, 1))
        found.append(replace(case, family=family, apart=(name,) if name else ()))
    return found


def divisible(contract: Contract, case: Case) -> tuple[tuple[str, int], ...]:
    """The case's sizes as multiples of 8 where the contract allows it: paths for whole vectors are taken there only.
    Where that is far more elements than the case has, sizes that no line is made of become 2, then those of lines 8."""
    found = dict[str, int]()
    for size in contract.sizes:
        value = min(-(-case.size_map()[size.name] // 8), size.maximum // 8) * 8
        found[size.name] = value if value >= max(size.minimum, 1) else case.size_map()[size.name]
    lines = named_in(a.shape[-1] for a in contract.buffers() if a.shape)
    most = 4 * max(HOST_ELEMENTS, elements(contract, case.size_map()))
    for size in sorted(contract.sizes, key=lambda s: (s.name in lines, -found[s.name])):
        if elements(contract, found) <= most:
            break
        least = max(8, -(-size.minimum // 8) * 8) if size.name in lines else max(2, size.minimum)
        found[size.name] = min(found[size.name], least)
    return tuple(found.items())


def _distinct_cases(cases: Sequence[Case]) -> list[Case]:
    return list({(c.sizes, c.family): c for c in cases}.values())


# ---------------------------------------------------------------- small makers


def stream(purpose: str, contract: Contract, seed: int) -> np.random.Generator:
    """A generator of its own for each purpose: the digest keeps the streams apart."""
    digest = hashlib.sha256(f"fsr cases/{purpose}/{contract.entry}/{seed}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def new_case(
    name: str, sizes: Mapping[str, int], family: str, rng: np.random.Generator, kind: CaseKind = CaseKind.SEARCH
) -> Case:
    """A case whose values are drawn from a seed of its own."""
    return Case(name, tuple(sizes.items()), family, int(rng.integers(2**62)), kind=kind)


def _replaced(
    case: Case, name: str, rng: np.random.Generator, alignment_bytes: int = 256, aliased: tuple[str, ...] = ()
) -> Case:
    seed = int(rng.integers(2**62))
    return replace(case, name=name, seed=seed, alignment_bytes=alignment_bytes, aliased=aliased)
