"""A padded fold seen from its coefficients: ``taps[k - i + 4] * x[k]`` for all k is ``taps[t] * x[t + i - 4]`` for the
few t there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fsr.computation.expression import Affine, Fold, Load, Number, walk, with_affine

_MOST = 64
Shapes = Sequence[Mapping[str, tuple[int, ...]]]


def by_taps(fold: Fold, shapes: Shapes, lengths: Callable[[Affine], Sequence[int]]) -> Fold:
    """The same fold over the indices of a buffer of few elements at all sizes, where it is over one dimension that runs
    through another buffer. ``shapes``: of each buffer in each run; ``lengths``: an extent's values there."""
    if not fold.inside or len(fold.dims) != 1 or not fold.dims[0][1].terms:
        return fold
    (name, extent) = fold.dims[0]
    loads = [e for e in walk(fold.body) if isinstance(e, Load) and e.indices]
    if any(not isinstance(i, Number) or not isinstance(i.index, Affine) for e in loads for i in e.indices):
        return fold
    whole, few = False, None
    for e in loads:
        for d, i in enumerate(e.indices):
            assert isinstance(i, Number)
            assert isinstance(i.index, Affine)
            extents = [s[e.buffer][d] for s in shapes]
            whole = whole or (i.index == Affine(((name, 1),)) and extents == list(lengths(extent)))
            if abs(dict(i.index.terms).get(name, 0)) == 1 and len(set(extents)) == 1 and extents[0] <= _MOST:
                few = few or (i.index, extents[0])
    if not whole or few is None:
        return fold
    index, count = few
    sign = dict(index.terms)[name]
    rest = Affine(tuple((n, k) for n, k in index.terms if n != name), index.constant)

    def changed(a: Affine) -> Affine:
        """With ``sign * (name - rest)`` in place of the dimension."""
        by = dict(a.terms).get(name, 0) * sign
        terms = {n: k for n, k in a.terms if n != name} | ({name: by} if by else {})
        for n, k in rest.terms:
            terms[n] = terms.get(n, 0) - by * k
        return Affine(tuple(sorted((n, k) for n, k in terms.items() if k)), a.constant - by * rest.constant)

    return replace(fold, dims=((name, Affine((), count)),), body=with_affine(fold.body, changed))
