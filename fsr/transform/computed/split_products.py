"""Products of floats on tensor cores at the accuracy of float: each factor as two terms of tf32.

A float has 24 bits, a factor of tf32 has 11. The first term is the float rounded to those, so that what is left is
exact, has 12 bits and either sign; the second is what the tensor core reads of that: all but the last. Of ``a * b``
three products of the four are made, the small ones first; the fourth is at most 2^-22 of it, and what the second terms
lose 2^-22. (With a first term cut off in place of rounded both were four times that, and of one sign: of sums of 33
products one of a million was further off than a float's may be.) The tensor core itself adds with few digits more than
it keeps and cuts the rest off: a long sum in its registers lost sixty times what a float's does. So at most two steps
are summed there, from nought, and each such sum is added as floats are (Ootomo and Yokota, "Recovering single precision
accuracy from Tensor Cores", arXiv 2203.03341; both measured on an H100).

Names of this text are written ``$name`` (fsr.source.names).
"""

from __future__ import annotations

from collections.abc import Sequence

from fsr.source.names import unrolled

DEPTH = 8  # of one instruction, whose sums are 16 x 8
STEPS = 2  # summed before they are added as floats are

FUNCTIONS = (
    """\
// A float as two terms of tf32: rounded to 11 bits (mask 0xffffe000), and what that leaves, of which as many are read.
__device__ __forceinline__ void fsr_split(float x, unsigned mask, unsigned &high, unsigned &low)
{
    high = (__float_as_uint(x) + 0x1000u) & mask;
    low = __float_as_uint(x - __uint_as_float(high));
}

""",
    """\
// d += a * b: 16 x 8 sums of a warp, factors of tf32, 8 deep.
__device__ __forceinline__ void fsr_mma_tf32(float *d, const unsigned *a, const unsigned *b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

""",
)
"""Declarations to stand before a kernel with such products."""

MASK = "const unsigned $mask = 0u - (blockDim.y << 13);  // 0xffffe000, which the assembler must not see"
"""A declaration to stand in it, whose block has one thread along y. Of a constant the assembler knows that tensor cores
do not read what it clears: it gives them the float itself, which stands with its neighbours in memory instead of with
the other registers of a factor, and moves it there for each product anew: two moves a product, a third of the time."""


def multiplied(rows: int, columns: int, sums: str, a: str, b: str) -> list[str]:
    """Statements that add the three products of ``rows`` x ``columns`` pairs of factors: ``sums`` of ``$m``, ``$n``;
    ``a`` of ``$m`` and ``b`` of ``$n`` are arrays of the first and the second terms' registers. Neighbouring
    instructions have other sums, as each waits for those before it."""
    product = f"fsr_mma_tf32({sums}, {a}[$small == 0], {b}[$small == 1]);"
    return unrolled("$small", 3, unrolled("$n", columns, unrolled("$m", rows, [product])))


def split(value: str, terms: str, register: str) -> str:
    """The statement that makes two terms of a value, for one register of a factor."""
    return f"fsr_split({value}, $mask, {terms}[0][{register}], {terms}[1][{register}]);"


def added(counts: Sequence[tuple[str, int]], to: str, part: str) -> list[str]:
    """Statements that add sums made apart, all four of each instruction. ``counts``: loops around them."""
    lines = unrolled("$e", 4, [f"{to}[$e] += {part}[$e];"])
    for name, count in reversed(counts):
        lines = unrolled(name, count, lines)
    return lines
