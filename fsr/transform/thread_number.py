"""A thread's number in its block, as an expression."""

from __future__ import annotations

from fsr.source.form import Expr, Member, Name, number
from fsr.transform.rows.share import plus, times


def thread_number(block: tuple[int, int, int]) -> Expr:
    """That of a block of these extents, along x first, as warps are made of threads."""
    (x, y, z), (i, j, k) = block, (Member(Name("threadIdx"), axis) for axis in "xyz")
    rows = plus(j, times(k, number(y))) if z > 1 else j
    return plus(i, times(rows, number(x))) if y > 1 or z > 1 else i
