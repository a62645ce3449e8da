"""A padded fold seen from its coefficients: ``taps[k - i + 4] * x[k]`` for all k is ``taps[t] * x[t + i - 4]`` for the
few t there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.computation.expression import Affine, Fold, Load, Number, put_in_place, walk, with_affine
from fsr.lifting.refused import Refused

_MOST = 64


@dataclass(frozen=True, slots=True)
class Extents:
    """How long buffers are: ``watched`` in each run, ``timed`` at the first timed sizes. ``of``: an affine value in
    each run; ``told``: its inverse (raises Refused)."""

    watched: Sequence[Mapping[str, tuple[int, ...]]]
    timed: Mapping[str, tuple[int, ...]]
    of: Callable[[Affine], Sequence[int]]
    told: Callable[[Sequence[int]], Affine]

    def along(self, e: Load) -> Iterator[tuple[Affine, list[int], int]]:
        """The indices of a read, each with how long the buffer is there: in each run, and when timed."""
        for d, i in enumerate(e.indices):
            assert isinstance(i, Number)
            assert isinstance(i.index, Affine)
            own = [s[e.buffer][d] for s in self.watched]
            yield i.index, own, self.timed[e.buffer][d] if e.buffer in self.timed else max(own)


def by_taps(fold: Fold, extents: Extents) -> Fold:
    """The same fold over the indices of a buffer of few elements at all sizes, or of fewer when timed (a mask whose
    size is an argument), in place of each dimension that runs through another buffer."""
    loads = [e for e in walk(fold.body) if isinstance(e, Load) and e.indices]
    if fold.inside and all(isinstance(i, Number) and isinstance(i.index, Affine) for e in loads for i in e.indices):
        for name, extent in fold.dims:
            fold = _along(fold, name, extent, extents) if extent.terms else fold
    return fold


def _along(fold: Fold, name: str, length: Affine, known: Extents) -> Fold:
    """The fold with one of its dimensions changed, where another buffer has fewer elements along it."""
    others = {n for n, _ in fold.dims} - {name}
    reads = [x for e in walk(fold.body) if isinstance(e, Load) and e.indices for x in known.along(e)]
    whole = [timed for i, own, timed in reads if i == Affine(((name, 1),)) and own == list(known.of(length))]
    few = None
    for index, own, timed in reads if whole else ():
        terms = dict(index.terms)
        fixed = len(set(own)) == 1 and own[0] <= _MOST
        if abs(terms.get(name, 0)) == 1 and not others & set(terms) and (fixed or timed < min(whole)):
            few = few or (index, own)
    if few is None:
        return fold
    index, extents = few
    try:
        count = Affine((), extents[0]) if len(set(extents)) == 1 else known.told(extents)
    except Refused:
        return fold
    sign = dict(index.terms)[name]
    rest = tuple((n, -sign * k) for n, k in index.terms if n != name)
    instead = Affine(((name, sign), *rest), -sign * index.constant)  # what the dimension is of the index
    dims = tuple((n, count if n == name else x) for n, x in fold.dims)
    return replace(fold, dims=dims, body=with_affine(fold.body, lambda a: put_in_place(a, name, instead)))
