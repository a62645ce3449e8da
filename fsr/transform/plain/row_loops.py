"""A fold over a row that begins where an array says, as text: a loop over the entries of the row alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.computation.data_rows import DataRow, data_row
from fsr.computation.expression import Expr, Fold, Load, Number, affine, children, names_in, rebuilt
from fsr.computation.printing import affine_text
from fsr.contract.model import Contract
from fsr.contract.row_starts import row_starts
from fsr.errors import ContractError
from fsr.expressions import fingerprint
from fsr.transform.plain.c_text import NotPlain, Writer, bare

_MARK = Number(affine("place in a row"), "int64")  # names no dimension


@dataclass(frozen=True, slots=True)
class RowLoop:
    """``body``: a term, in which the number of its entry among all stands for itself; None where terms ask for their
    place in the row, too."""

    row: DataRow
    body: Expr | None

    def head(self, writer: Writer) -> str:
        """What stands in the brackets of the ``for``."""
        dim, begin, end = self.row.dim, *(_as_int(e, writer) for e in (self.row.begin, self.row.end))
        more = f" + {self.row.first}" if self.row.first else ""
        if self.body is None:
            return f"int ${dim} = 0; ${dim} < {end} - {f'({begin}{more})' if more else begin}; ${dim}++"
        return f"int ${dim} = {begin}{more}; ${dim} < {end}; ${dim}++"

    def term(self, writer: Writer) -> str:
        """A term's text."""
        if self.body is None:
            return writer.text(self.row.term)
        return replace(writer, held={**writer.held, _MARK: f"${self.row.dim}"}).text(self.body)


def row_loop(fold: Fold, contract: Contract) -> RowLoop | None:
    """A fold over one row as a loop over its entries; None for others. Raises NotPlain where the contract does not say
    that a row has as many entries as the fold has terms, at most."""
    row = data_row(fold)
    if row is None:
        return None
    if not _reaches_all(row, contract):
        raise NotPlain("rows that may be longer than is told")
    body = _with_mark(row.term, row.place)
    told = row.dim not in names_in(body) and not _outside_of_reads(body)
    return RowLoop(row, body if told else None)


def _reaches_all(row: DataRow, contract: Contract) -> bool:
    """Whether the fold counts as far as there are entries, which an int counts."""
    total = next((s.total for s in row_starts(contract) if s.buffer == row.begin.buffer), None)
    known = [s.name for s in contract.sizes]
    counted = replace(row.extent, constant=row.extent.constant + row.first)
    try:
        return total is not None and fingerprint(affine_text(counted), known) == fingerprint(total, known)
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
