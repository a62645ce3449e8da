"""A thread's number in its block, as an expression."""

from __future__ import annotations

from fsr.source.form import Binary, Expr, Member, Name, number
from fsr.transform.rows.share import plus, times


def thread_number(block: tuple[int, int, int]) -> Expr:
    """That of a block of these extents, along x first, as warps are made of threads."""
    (x, y, z), (i, j, k) = block, (Member(Name("threadIdx"), axis) for axis in "xyz")
    rows = plus(j, times(k, number(y))) if z > 1 else j
    return plus(i, times(rows, number(x))) if y > 1 or z > 1 else i


def _dims(name: str) -> tuple[Expr, Expr, Expr]:
    x, y, z = (Member(Name(name), axis) for axis in "xyz")
    return x, y, z


def _along(x: Expr, y: Expr, z: Expr) -> Expr:
    across, down, _ = _dims("blockDim")
    return Binary("+", Binary("*", Binary("+", Binary("*", z, down), y), across), x)


# By the block's own extents: the kernel stays right in blocks of any other shape.
THREAD = _along(*_dims("threadIdx"))
THREADS = Binary("*", Binary("*", *_dims("blockDim")[:2]), _dims("blockDim")[2])
