"""Rows that begin where an array says (compressed sparse rows, lists of neighbours, ragged batches), as they are
watched: ``for (e = starts[r]; e < starts[r + 1]; e++)``, by however many lanes.

Followed as data, an array of row starts hides what it says: every row has other branches on it. A contract that tells
that an array ascends to how many entries there are tells enough to choose it: such arrays are taken as what they hold,
rows of lengths unlike each other and never shorter than two, so that a row's sum is one; where a row begins and how
long it is are then two more numbers beside its index, which whatever is read of it is affine in. Empty rows are watched
where the check shows that they are something else than sums of nothing; long ones and others are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsr.contract.model import Contract
from fsr.contract.row_starts import RowStarts
from fsr.expressions import names
from fsr.lifting.sampling import watched_sizes

Array = np.ndarray[Any, Any]
_SHORTEST = 2  # entries of a row
_LONGER = (6, 5, 7, 4)  # times as many entries as rows, by choice of sizes
_MORE = (5, 9, 2, 7)  # entries beside these, so that they are no multiple
_MOST_ROWS = 1 << 10  # at which it is watched
_FEW = 4  # rows, of which one is empty
_APART = 3  # entries before the first row, where that need not begin at 0


def begin_of(starts: RowStarts) -> str:
    """What the place where a row begins is called among sizes and dimensions."""
    return f"{starts.buffer}__begin"


def length_of(starts: RowStarts) -> str:
    """What a row's length is called there."""
    return f"{starts.buffer}__length"


def chosen_starts(starts: RowStarts, sizes: Mapping[str, int], *, empty: bool = False) -> Array:
    """What the array holds where it is watched at these sizes: the same for the same sizes. ``empty``: some of many
    rows have no entries."""
    rows, total = starts.rows(sizes), starts.entries(sizes)
    draw = np.random.default_rng([rows, total])
    apart = 0 if starts.ends else min(_APART, max(0, total - _SHORTEST * rows) // 4)
    least = min(_SHORTEST, (total - 2 * apart) // max(rows, 1))
    shared = total - 2 * apart - least * rows  # as much is left behind the last row
    lengths = least + draw.multinomial(shared, draw.dirichlet(np.ones(rows)))
    if empty and rows >= _FEW:
        others, none = np.split(draw.permutation(rows), [-max(1, rows // _FEW)])
        lengths[others[0]] += lengths[none].sum()
        lengths[none] = 0
    return np.concatenate([[apart], apart + np.cumsum(lengths)]).astype(starts.dtype)


def row_sizes(contract: Contract, starts: Sequence[RowStarts]) -> list[dict[str, int]]:
    """The small sizes of :func:`watched_sizes`, with entries enough for every row to have some. None where sizes say
    both how many rows and how many entries there are, so that rows have one length."""
    found = []
    for n, sizes in enumerate(next(iter(watched_sizes(contract)), ())):
        for one in starts:
            rows = one.rows(sizes)
            most = {s.name: s.maximum for s in contract.sizes if s.name in names(one.total) - names(one.extent)}
            if not most or not 1 < rows <= _MOST_ROWS:
                return []
            wanted = _LONGER[n % len(_LONGER)] * rows + _MORE[n % len(_MORE)]
            sizes = {**sizes, **{name: min(wanted, high) for name, high in most.items()}}
        if all(s.entries(sizes) > _SHORTEST * s.rows(sizes) for s in starts):
            found.append(sizes)
    return found
