"""Arrays that say where rows begin in what lies row after row (CSR row pointers, offsets of segments)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Role

_DTYPES = ("int32", "int64", "uint32", "uint64")
_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RowStarts:
    """An array of row starts, which ascend from 0 on, one more than there are rows. ``extent``: the size expression of
    its length; ``total``: that of how many entries all rows have, which an int counts; ``ends``: whether the first
    start is 0 and the last one the total."""

    buffer: str
    dtype: str
    extent: str
    total: str
    ends: bool

    def rows(self, sizes: Mapping[str, int]) -> int:
        """How many rows there are."""
        return evaluate_int(self.extent, sizes) - 1

    def entries(self, sizes: Mapping[str, int]) -> int:
        """How many entries all rows have at most."""
        return evaluate_int(self.total, sizes)


def row_starts(contract: Contract) -> tuple[RowStarts, ...]:
    """The arrays of row starts that a contract tells: those that it calls offsets, and sorted ones from 0 to the extent
    of another buffer."""
    extents = {x for a in contract.buffers() for x in a.shape}
    found = []
    for a in contract.buffers():
        total = a.constraints.offsets or (a.constraints.high if a.constraints.high in extents else None)
        if total is not None and _ascends(a) and _is_counted(contract, total):
            found.append(RowStarts(a.name, a.dtype, a.shape[0], total, a.constraints.offsets is not None))
    return tuple(found)


def _ascends(a: Argument) -> bool:
    limits = a.constraints
    starts = limits.offsets is not None or (limits.sorted and limits.low == "0")
    drawn = not limits.unique and not limits.by_element and a.value is None and not a.symbol
    return starts and drawn and a.role is Role.IN and a.dtype in _DTYPES and len(a.shape) == 1


def _is_counted(contract: Contract, total: str) -> bool:
    try:
        return evaluate_int(total, {s.name: s.maximum for s in contract.sizes}) < _INT
    except ContractError:
        return False
