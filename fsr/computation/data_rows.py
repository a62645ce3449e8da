"""Folds over a row that an array begins, ``sum(x[starts[i] + k] if starts[i + 1] > starts[i] + k else 0)``: a
computation has them over as many terms as all rows have entries, of which those of the row count."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.computation.computation import Computation
from fsr.computation.expression import Affine, Const, Expr, Fold, Load, Number, Op, distinct, names_in
from fsr.computation.types import neutral, type_of


@dataclass(frozen=True, slots=True)
class DataRow:
    """``begin``, ``end``: the elements that say where the row begins, and where it ends; ``first``: how many of its
    entries come before the first term's; ``dim``, ``extent``: what the fold counts by, and how far; ``term``: what is
    folded, in which ``place`` is the number of its entry among all."""

    begin: Load
    end: Load
    first: int
    dim: str
    extent: Affine
    term: Expr
    place: Expr


def data_row(fold: Fold) -> DataRow | None:
    """A fold as one over a row of data; None for others."""
    if len(fold.dims) != 1 or fold.inside:
        return None
    ((dim, extent),) = fold.dims
    match fold.body:
        case Op("select", (Op("gt", (end, Op("sum") as place)), term, Const() as nothing)):
            found, last = _start_of(place, dim), _bare(end)
            if found is None or last is None or nothing != neutral(fold.op, type_of(term)):
                return None
            begin, first = found
            own = first >= 0 and _is_row(begin, last) and dim not in names_in(begin) | names_in(last)
            return DataRow(begin, last, first, dim, extent, term, place) if own else None
    return None


def has_data_rows(c: Computation) -> bool:
    """Whether some of what is computed is folded over rows that an array begins."""
    values = (e for s in c.statements if s.value is not None for e in distinct(s.value))
    return any(isinstance(e, Fold) and data_row(e) is not None for e in values)


def _start_of(place: Op, dim: str) -> tuple[Load, int] | None:
    """Of a place in a row, what says where that begins, and how far from there the first term's is."""
    begins = [load for a in place.args if (load := _bare(a)) is not None]
    counted = [a.index for a in place.args if isinstance(a, Number)]
    if len(place.args) != 2 or len(begins) != 1 or len(counted) != 1:
        return None
    index = counted[0]
    return (begins[0], index.constant) if isinstance(index, Affine) and index.terms == ((dim, 1),) else None


def _bare(e: Expr) -> Load | None:
    """What is read beneath a cast to another whole type."""
    while isinstance(e, Op) and e.name in ("int32", "int64"):
        e = e.args[0]
    return e if isinstance(e, Load) else None


def _is_row(begin: Load, end: Load) -> bool:
    """Whether two reads are of an element and of the one behind it."""
    match begin.indices, end.indices:
        case (Number(Affine(one, low)),), (Number(Affine(other, high)),):
            return begin.buffer == end.buffer and one == other and high == low + 1
    return False
