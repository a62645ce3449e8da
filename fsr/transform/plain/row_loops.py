"""A fold over a row that begins where an array says: as a computation has it, over as many terms as there are entries,
of which those that the row has count; as text, a loop over these alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.computation.expression import Affine, Const, Expr, Fold, Load, Number, Op, affine, children, names_in, rebuilt
from fsr.computation.printing import affine_text
from fsr.computation.types import neutral, type_of
from fsr.contract.model import Contract
from fsr.contract.row_starts import RowStarts, row_starts
from fsr.errors import ContractError
from fsr.expressions import fingerprint
from fsr.transform.plain.c_text import Writer, bare

_PLACE = "place in a row"  # names no dimension


@dataclass(frozen=True, slots=True)
class RowLoop:
    """``begin``, ``end``: the elements that say where the row begins, and where it ends; ``first``: how many of its
    entries come before the first term's; ``dim``: what the fold counts by; ``body``: a term, in which the number of its
    entry among all stands for itself."""

    begin: Load
    end: Load
    first: int
    dim: str
    body: Expr

    def head(self, writer: Writer) -> str:
        """What stands in the brackets of the ``for``."""
        begin, end = (_as_int(e, writer) for e in (self.begin, self.end))
        more = f" + {self.first}" if self.first else ""
        return f"int ${self.dim} = {begin}{more}; ${self.dim} < {end}; ${self.dim}++"

    def term(self, writer: Writer) -> str:
        """A term's text."""
        return replace(writer, held={**writer.held, _MARK: f"${self.dim}"}).text(self.body)


_MARK = Number(affine(_PLACE), "int64")


def row_loop(fold: Fold, contract: Contract) -> RowLoop | None:
    """A fold over one row as a loop over its entries; None for others, and where the contract does not say that a row
    has as many entries as the fold has terms, at most, or where a term asks for more than the number of its entry."""
    if len(fold.dims) != 1 or fold.inside:
        return None
    ((dim, extent),) = fold.dims
    match fold.body:
        case Op("select", (Op("gt", (end, Op("sum", _) as place)), term, Const() as nothing)):
            pass
        case _:
            return None
    found = _start_of(place, dim)
    last = _bare(end)
    if found is None or last is None or nothing != neutral(fold.op, type_of(term)):
        return None
    begin, first = found
    if not _is_row(begin, last) or dim in names_in(begin) | names_in(last) or first < 0:
        return None
    own = next((s for s in row_starts(contract) if s.buffer == begin.buffer), None)
    body = _with_mark(term, place)
    told = dim not in names_in(body) and not _outside_of_reads(body)
    return RowLoop(begin, last, first, dim, body) if own and told and _is_total(extent, own, contract) else None


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


def _is_total(extent: Affine, own: RowStarts, contract: Contract) -> bool:
    known = [s.name for s in contract.sizes]
    try:
        return fingerprint(affine_text(extent), known) == fingerprint(own.total, known)
    except (ContractError, ZeroDivisionError):
        return False


def _with_mark(e: Expr, place: Expr) -> Expr:
    return _MARK if e == place else rebuilt(e, tuple(_with_mark(part, place) for part in children(e)))


def _outside_of_reads(e: Expr) -> bool:
    """Whether the number of an entry is more than an index: what is made of it may want more bits than an int has."""
    return e == _MARK or (not isinstance(e, Load) and any(map(_outside_of_reads, children(e))))


def _as_int(e: Load, writer: Writer) -> str:
    text = bare(writer.text(e))
    return text if e.dtype == "int32" else f"(int){text}"
