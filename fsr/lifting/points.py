"""Samples to generalise from: terms, each with its run, the sizes of that run and the indices it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fsr.lifting.refused import Refused

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
_MOST_ROWS = 160  # that coefficients are solved with; they are held against all samples
_CLOSE = 1e-6  # to a whole number


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """columns: sizes and dimensions by name, an entry a sample. run: which run each is of. terms: a graph's numbers.
    distances: the sizes that are no buffer's extent. positions: scalars of the contract that lie within sizes. turns:
    the periods that dimensions may have."""

    columns: Mapping[str, Ints]
    run: Ints
    terms: tuple[int, ...]
    distances: frozenset[str] = frozenset()
    positions: frozenset[str] = frozenset()
    turns: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.terms)

    def where(self, mask: Mask) -> Points:
        """The samples that a mask holds for."""
        kept = [int(n) for n in np.flatnonzero(mask)]
        return self.take(kept, [self.terms[n] for n in kept])

    def take(self, rows: Sequence[int], terms: Sequence[int]) -> Points:
        """Samples at the indices of these rows (a row may come several times), of other terms."""
        at = np.array(rows, np.int64)
        columns = {name: c[at] for name, c in self.columns.items()}
        return replace(self, columns=columns, run=self.run[at], terms=tuple(terms))

    def of(self, terms: Sequence[int]) -> Points:
        """The same samples of other terms."""
        return replace(self, terms=tuple(terms))

    def along(self, more: Mapping[str, Sequence[int]]) -> Points:
        """With further dimensions."""
        added = {name: np.array(values, np.int64) for name, values in more.items()}
        return replace(self, columns={**self.columns, **added})

    def without(self, name: str) -> Points:
        """Without a dimension; samples that are then the same come once."""
        columns = {n: c for n, c in self.columns.items() if n != name}
        seen: dict[tuple[int, ...], int] = {}
        for n, row in enumerate(self._rows(columns)):
            seen.setdefault((*row, self.terms[n]), n)
        kept = list(seen.values())
        return replace(self, columns=columns).take(kept, [self.terms[n] for n in kept])

    def _rows(self, columns: Mapping[str, Ints]) -> list[tuple[int, ...]]:
        return list(zip(self.run.tolist(), *(c.tolist() for c in columns.values()), strict=True))

    def decided_without(self, name: str) -> bool:
        """Whether the other indices decide on the term, as far as samples that share them show."""
        rows = self._rows({n: c for n, c in self.columns.items() if n != name})
        first: dict[tuple[int, ...], int] = {}
        for row, term in zip(rows, self.terms, strict=True):
            if first.setdefault(row, term) != term:
                return False
        return 2 * len(first) <= len(rows) or len(set(self.columns[name].tolist())) == 1

    def key(self) -> tuple[object, ...]:
        """Equal for equal samples."""
        return (*((name, c.tobytes()) for name, c in self.columns.items()), self.run.tobytes(), self.terms)


def affine_fit(points: Points, values: Ints, sizes: Sequence[str], most: int = 3) -> tuple[dict[str, int], int] | None:
    """Whole coefficients and a constant that give the values of all samples: of the fewest names, dimensions before
    sizes, a quotient of sizes where nothing else does. None where there are none."""
    if (values == values[0]).all():
        return {}, int(values[0])
    moving = [n for n, c in points.columns.items() if (c != c[0]).any()]
    names = sorted(moving, key=lambda n: n in sizes)
    if not spanned([points.columns[n] for n in names], values):
        return None
    few = _some_rows(len(values))
    wanted = values[few].astype(float)
    rows = {n: points.columns[n][few] for n in names}
    for chosen in _subsets(names, most, sizes):
        found = _solved([rows[n] for n in chosen], wanted)
        if found is not None and _holds([points.columns[n] for n in chosen], found, values):
            return dict(zip(chosen, found[:-1], strict=True)), found[-1]
    return None


def _subsets(names: Sequence[str], most: int, sizes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    plain = [n for n in names if n.isidentifier()]
    for count in range(1, most + 1):
        yield from sorted(combinations(plain, count), key=lambda chosen: sum(n in sizes for n in chosen))
    for quotient in (n for n in names if n not in plain):
        yield from ((*rest, quotient) for count in range(most) for rest in combinations(plain, count))


@lru_cache(256)
def _some_rows(count: int) -> Ints:
    """Samples to solve with; of many, some at random."""
    if count <= _MOST_ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, _MOST_ROWS, replace=False))


@dataclass(frozen=True, slots=True)
class _Factors:
    """Of a matrix of columns and ones: its rank, its pseudo-inverse, an orthonormal basis of what it reaches."""

    rank: int
    inverse: Floats
    basis: Floats


def _factors(columns: Sequence[Ints], count: int) -> _Factors:
    matrix = np.ones((count, len(columns) + 1), np.int64)
    for n, c in enumerate(columns):
        matrix[:, n] = c
    return _factored(matrix.tobytes(), len(columns) + 1)


@lru_cache(1024)
def _factored(matrix: bytes, width: int) -> _Factors:
    """Kept, as the same columns are asked for one index after the other."""
    wide = np.frombuffer(matrix, np.int64).reshape(-1, width).astype(float)
    left, scales, right = np.linalg.svd(wide, full_matrices=False)
    rank = int((scales > scales[0] * max(wide.shape) * np.finfo(float).eps).sum())
    basis = left[:, :rank]
    return _Factors(rank, (right[:rank].T / scales[:rank]) @ basis.T, basis)


def spanned(columns: Sequence[Ints], values: Ints) -> bool:
    """Whether any numbers, whole or not, of all columns at once may give the values: else no few of them do."""
    few = _some_rows(len(values))
    wanted = values[few].astype(float)
    basis = _factors([c[few] for c in columns], len(few)).basis
    return bool(np.abs(basis @ (wanted @ basis) - wanted).max() <= _CLOSE * max(1.0, np.abs(wanted).max()))


def _solved(columns: Sequence[Ints], wanted: Floats) -> list[int] | None:
    """Whole coefficients and a constant that give the values as nearly as any do; None where there are none."""
    factors = _factors(columns, len(wanted))
    if factors.rank <= len(columns):
        return None
    solution = factors.inverse @ wanted
    whole = np.round(solution)
    if np.abs(solution - whole).max() > _CLOSE or not whole[:-1].all():
        return None
    return [int(k) for k in whole]


def _holds(columns: Sequence[Ints], found: Sequence[int], values: Ints) -> bool:
    total = sum((c * k for c, k in zip(columns, found, strict=False)), np.full(len(values), found[-1]))
    return bool((total == values).all())


def basis(vectors: Sequence[Sequence[int]], first: int = 0) -> list[int]:
    """The fewest entries that tell vectors apart, the first ones from ``first`` on. Raises Refused."""
    chosen, apart = list[int](), 1
    if len({len(v) for v in vectors}) > 1:
        raise Refused("terms of a fold have not the same indices")
    width = len(vectors[0]) if vectors else 0
    for c in (*range(first, width), *range(first)):
        found = len({tuple(v[b] for b in (*chosen, c)) for v in vectors})
        if found > apart:
            chosen.append(c)
            apart = found
        if apart == len(vectors):
            break
    if apart < len(vectors):
        raise Refused("terms of a fold are not told apart by their indices")
    return chosen
