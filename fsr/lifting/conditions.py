"""Which condition on indices tells samples of several forms apart: a decision tree over comparisons."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from fsr.computation.expression import Affine, Remainder, affine
from fsr.lifting.points import Mask, Points
from fsr.lifting.refused import Refused
from fsr.lifting.turns import turns

Condition = tuple[
    Affine | Remainder, Affine, Mask
]  # where the left is at most the right, and which samples that holds for
Compared = tuple[Affine, Affine, Mask]
Pair = tuple[str, Affine]
Way = Callable[[Points], Iterator[Condition]]
_WINDOW = 16
_DEEPEST = 6
_SEGMENTS = 8  # of a dimension, at most
_FEW = 2  # branches, than which fewer are hardly found
_RADIUS = 64  # how far from its end an edge may lie that only samples tell


@dataclass(frozen=True, slots=True)
class Branch:
    """``yes`` where left <= right, else ``no``: each another branch or a label."""

    left: Affine | Remainder
    right: Affine
    yes: object
    no: object


def shifted(a: Affine, by: int) -> Affine:
    """An affine value plus a number."""
    return Affine(a.terms, a.constant + by)


def value_of(a: Affine, points: Points) -> npt.NDArray[np.int64]:
    """The values of an affine expression at the samples."""
    start = np.full(len(points), a.constant, np.int64)
    return sum((points.columns[n] * k for n, k in a.terms), start)


def comparisons(
    points: Points, sizes: Sequence[str], *, numbers: bool = True, fixed: bool | None = None
) -> Iterator[Compared]:
    """Conditions that some samples meet and some do not, the simplest first: k <= c of a place k in a window (or of a
    component), i <= j + c, i <= c, i <= n - c, i < 2 n, n <= c, i + k <= c, i + k <= n + c; then, with ``numbers``, at
    any number. Of distances: i <= d + c, i <= j + d, i + d <= n. ``fixed``: whether sizes have one value each, where
    these are not all samples."""
    loops = [n for n in points.columns if n not in sizes]
    windows = _windows(points, loops)
    pairs = [(affine(s), Affine((), 0)) for s in sizes if s in points.columns]  # a flag; no size is nought here
    pairs += [(affine(a), Affine((), c)) for a in windows for c in range(min(3, int(points.columns[a].max())))]
    for a in loops:
        pairs += [(affine(a), shifted(affine(b), c)) for b in loops if a != b for c in (-1, 0)]
    for a in loops:
        pairs += [(affine(a), Affine((), c)) for c in (0, 1, 2)]
        pairs += [(affine(a), shifted(affine(s), -1 - c)) for s in sizes if s in points.columns for c in (0, 1, 2)]
    for a in loops:
        last = _last(points, a, sizes)
        pairs += [(affine(a), shifted(last, -c)) for c in (1, 2, 3)] if last is not None else []
        pairs += [(affine(a), end) for end in _segments(last)] if last is not None else []
    pairs += [(affine(s), Affine((), c)) for s in sizes if s in points.columns for c in (1, 2)]
    for a in loops:
        pairs += [(affine(a), shifted(affine(b), c)) for b in loops if a != b for c in (1, 2, -2)]
    pairs += _distances(points, loops, sizes)
    for a, b in itertools.product(loops, windows):  # beside an edge that a window reaches over
        both = Affine(tuple(sorted(((a, 1), (b, 1)))), 0)
        if a != b:
            pairs += [(both, Affine((), c)) for c in (0, 1, 2)]
            pairs += [(both, shifted(affine(s), c)) for s in sizes if s in points.columns for c in (-1, 0, 1)]
    fixed = len(np.unique(points.run)) == 1 if fixed is None else fixed
    for a in loops:  # a number of the source's own, known to the unit only between neighbours
        seen = np.unique(points.columns[a])
        if fixed:  # the last ones may be an edge
            pairs += [(affine(a), Affine((), int(seen[-1]) - c)) for c in (1, 2)]
        if numbers:
            pairs += [(affine(a), Affine((), int(c))) for c in seen[:-1][np.diff(seen) == 1] if c > 2]
            pairs += [
                (affine(a), shifted(end, -c)) for end in _ends(points, a, sizes) for c in _from_end(points, a, end)
            ]
    yield from _parting(points, pairs)


def _parting(points: Points, pairs: Iterable[tuple[Affine, Affine]]) -> Iterator[Compared]:
    """Those comparisons that some samples meet and some do not."""
    for left, right in pairs:
        hit = value_of(left, points) <= value_of(right, points)
        if hit.any() and not hit.all():
            yield left, right, hit


def _distances(points: Points, loops: Sequence[str], sizes: Sequence[str]) -> Iterator[tuple[Affine, Affine]]:
    """Whether an index is a distance from an end of its dimension, or from another index."""
    known = [s for s in sizes if s in points.columns and s in points.distances]
    for a in loops if known else ():
        for end, s in itertools.product(_ends(points, a, sizes), known):
            if s not in dict(end.terms):
                yield from ((affine(a), shifted(affine(s), c)) for c in (0, 1))
                yield from ((Affine(tuple(sorted(((a, 1), (s, 1)))), 0), shifted(end, c)) for c in (0, -1, 1))
    for a, b, s in itertools.product(loops, loops, known):
        if a != b:
            yield from ((affine(a), Affine(tuple(sorted(((b, 1), (s, 1)))), c)) for c in (0, -1))


def _ends(points: Points, name: str, sizes: Sequence[str]) -> list[Affine]:
    """The last index of a dimension in every run, where it is told by a size."""
    last = _last(points, name, sizes)
    ends = [shifted(affine(s), -1) for s in sizes if s in points.columns] + ([] if last is None else [last])
    return [end for end in ends if (value_of(end, points) >= points.columns[name]).all()]


def _from_end(points: Points, name: str, end: Affine) -> list[int]:
    """Distances from the end of a radius of the source's own: samples lie on both sides of the edge."""
    seen = np.unique(value_of(end, points) - points.columns[name])
    return [int(c) for c in seen[1:][np.diff(seen) == 1] if 2 < c <= _RADIUS]


def _last(points: Points, name: str, sizes: Sequence[str]) -> Affine | None:
    """The last index of a dimension whose length another than a size tells, ``16 * tiles`` or ``cols + 2``; None for
    others."""
    first, inverse = np.unique(points.run, return_index=True, return_inverse=True)[1:]
    most = np.zeros(len(first), np.int64)
    np.maximum.at(most, inverse, points.columns[name])
    known = [s for s in sizes if s in points.columns]
    if len(first) < 3 or not most.any():
        return None
    return _multiple(tuple(most.tolist()), tuple((s, tuple(points.columns[s][first].tolist())) for s in known))


def _segments(last: Affine) -> list[Affine]:
    """The last indices of segments that stand one behind the other, as long as a size each, but for the first and the
    last one's: results of several kinds in one array (a mean, what is made of it, and a maximum of each channel)."""
    (name, count), *others = last.terms
    whole = not others and last.constant == -1 and count <= _SEGMENTS
    return [Affine(((name, n),), -1) for n in range(2, count)] if whole else []


@lru_cache(4096)
def _multiple(most: tuple[int, ...], sizes: tuple[tuple[str, tuple[int, ...]], ...]) -> Affine | None:
    for name, values in sizes:
        low, high = min(values), max(values)
        if low == high:
            continue
        factor, rest = divmod(most[values.index(high)] - most[values.index(low)], high - low)
        more = most[values.index(low)] - factor * low
        whole = not rest and factor > 0 and all(m == factor * v + more for m, v in zip(most, values, strict=True))
        if whole and (factor, more) != (1, -1):
            return Affine(((name, factor),), more)
    return None


def _windows(points: Points, loops: Sequence[str]) -> list[str]:
    """Dimensions as short at any sizes: places in a window."""
    if len(np.unique(points.run)) < 2:
        return []
    runs = [points.run == r for r in np.unique(points.run)]
    most = {a: {int(points.columns[a][r].max()) for r in runs} for a in loops}
    return [a for a in loops if len(most[a]) == 1 and 0 < max(most[a]) < _WINDOW]


def decision(points: Points, labels: Sequence[Hashable], sizes: Sequence[str]) -> object:
    """A label, or the Branch that tells which: by positions alone, if they do; by a box's edges where these are fewer,
    by numbers of the source's own where nothing else tells. Raises Refused."""
    loops = [n for n in points.columns if n not in sizes]
    fixed, own = len(np.unique(points.run)) == 1, _own_ends(points, loops, sizes)
    most, sides = 2**_DEEPEST, 2 * len(loops)
    box = sides + len(set(labels))
    ways: tuple[tuple[tuple[Way, int, int], ...], ...] = (
        (
            (lambda p: comparisons(p, sizes, numbers=False, fixed=fixed), most, _DEEPEST),
            (lambda p: _box(p, loops, own), box, box),
            (lambda p: _between(p, loops, sizes), 1, 1),
        ),
        ((lambda p: _edges(p, loops, sizes, fixed), sides, _DEEPEST),),  # more are no box's
        ((lambda p: comparisons(p, sizes, fixed=fixed), most, _DEEPEST),),
    )
    if points.turns:
        ways = (((partial(_by_turns, loops=loops, sizes=sizes, fixed=fixed), box, _DEEPEST),), *ways)
    if points.positions:
        ways = (((partial(_positions, loops=loops), sides, _DEEPEST),), *ways)
    for some in ways:
        trees = list[object]()
        for way in some:
            tree = _told(points, labels, *way)
            if tree is not None and _branches(tree) <= _FEW:
                return tree
            trees += [tree] if tree is not None else []
        if trees:
            return min(trees, key=_branches)
    raise Refused("no condition on indices tells the cases apart")


def _told(points: Points, labels: Sequence[Hashable], way: Way, most: int, deep: int) -> object | None:
    """A decision of at most so many branches, so many deep; None where there is none."""
    try:
        found = _decision(points, labels, way, deep)
    except Refused:
        return None
    return found if _branches(found) <= most else None


def _own_ends(points: Points, loops: Sequence[str], sizes: Sequence[str]) -> list[Pair]:
    """Dimensions, each with a last index that is its last one in every run."""
    return [(a, end) for a in loops for end in _ends(points, a, sizes) if _reached(points, a, end)]


def _reached(points: Points, name: str, end: Affine) -> bool:
    left = value_of(end, points) - points.columns[name]
    return all((left[points.run == run] == 0).any() for run in np.unique(points.run))


def _positions(points: Points, loops: Sequence[str]) -> Iterator[Condition]:
    """Comparisons of a dimension with a position: before, at, and behind it."""
    for a, p, by in itertools.product(loops, sorted(points.positions & points.columns.keys()), (0, -1)):
        yield from _parting(points, [(affine(a), shifted(affine(p), by))])


def _by_turns(points: Points, loops: Sequence[str], sizes: Sequence[str], fixed: bool) -> Iterator[Condition]:
    """Comparisons with sizes, and of what is left of a dimension after its periods."""
    yield from comparisons(points, sizes, numbers=False, fixed=fixed)
    yield from turns(points, loops)


def _edges(points: Points, loops: Sequence[str], sizes: Sequence[str], fixed: bool) -> Iterator[Condition]:
    """Comparisons of one dimension with numbers and sizes."""
    for left, right, hit in comparisons(points, sizes, fixed=fixed):
        own = [n for n, _ in left.terms if n in loops]
        if len(own) == 1 and not any(n in loops for n, _ in right.terms):
            yield left, right, hit


def _box(points: Points, loops: Sequence[str], own: Sequence[Pair]) -> Iterator[Condition]:
    """Comparisons of one dimension with numbers and with its own last index, known to the unit."""
    for a in loops:
        seen = np.unique(points.columns[a])
        ends = [Affine((), int(c)) for c in seen[:-1][np.diff(seen) == 1] if c <= _RADIUS]
        for end in (end for name, end in own if name == a):
            left = np.unique(value_of(end, points) - points.columns[a])
            ends += [shifted(end, -int(c)) for c in left[1:][np.diff(left) == 1] if c <= _RADIUS]
        yield from _parting(points, [(affine(a), right) for right in ends])


def _between(points: Points, loops: Sequence[str], sizes: Sequence[str]) -> Iterator[Condition]:
    """Comparisons with what one size is longer than another: where one row ends of two, one behind the other, of which
    as many elements are dropped in front."""
    known = [s for s in sizes if s in points.columns]
    for a, (s, t), c in itertools.product(loops, itertools.permutations(known, 2), (-1, 0)):
        yield from _parting(points, [(Affine(tuple(sorted(((a, 1), (s, 1)))), 0), shifted(affine(t), c))])


def _branches(tree: object) -> int:
    return 1 + _branches(tree.yes) + _branches(tree.no) if isinstance(tree, Branch) else 0


def _decision(points: Points, labels: Sequence[Hashable], way: Way, depth: int) -> object:
    if len(set(labels)) == 1:
        return labels[0]
    places = {label: n for n, label in enumerate(dict.fromkeys(labels))}
    array = np.array([places[label] for label in labels])
    best = None
    for left, right, hit in way(points):
        mixed = _mixture(array[hit]) + _mixture(array[~hit])
        if best is None or mixed < best[0] - 1e-9:
            best = mixed, left, right, hit
    if best is None or not depth or best[0] > _mixture(array) - 1e-9:
        raise Refused("no condition on indices tells the cases apart")
    _, left, right, hit = best
    sides = [
        _decision(points.where(side), [x for x, h in zip(labels, side, strict=True) if h], way, depth - 1)
        for side in (hit, ~hit)
    ]
    return Branch(left, right, *sides)


def _mixture(labels: npt.NDArray[np.int64]) -> float:
    if not len(labels):
        return 0.0
    counts = np.bincount(labels)
    return float(len(labels) - (counts**2).sum() / len(labels))
