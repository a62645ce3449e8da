"""Sums over all but one: what a sum lacks where two indices are one, unless it is nought there anyway."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Op, renamed
from fsr.computation.simplify import simplified
from fsr.computation.types import neutral, type_of
from fsr.lifting.points import Points


def without_hole(fold: Fold, points: Points, lacking: Sequence[Collection[int]], loops: Sequence[str]) -> Fold:
    """A sum over one dimension without the terms that samples lack (one at most each): where its index is that of one
    of the dimensions ``loops``. As it is where a term is nought there, or where no dimension tells what is lacking."""
    (bound, _), *_ = fold.dims
    some = np.array([bool(missing) for missing in lacking])
    places = np.array([next(iter(missing)) for missing in lacking if missing])
    own = next((n for n in loops if some.any() and (points.columns[n][some] == places).all()), None)
    if own is None or _is_nought(simplified(renamed(fold.body, lambda n: own if n == bound else n))):
        return fold
    k, at, zero = Affine(((bound, 1),)), Affine(((own, 1),)), neutral("sum", type_of(fold.body))
    return replace(fold, body=Case(k, replace(at, constant=-1), fold.body, Case(k, at, zero, fold.body)))


def _is_nought(e: Expr) -> bool:
    """Whether an expression is nought whatever it reads (finite)."""
    match e:
        case Const(value, _):
            return value == 0
        case Op("prod", parts):
            return any(map(_is_nought, parts))
        case Op("neg", (a,)) | Op("div", (a, _)):
            return _is_nought(a)
        case Op("sum", parts):
            return all(map(_is_nought, parts))
    return False
