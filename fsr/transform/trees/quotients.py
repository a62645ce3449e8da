"""Rows that are told by a quotient of a thread's number over the launch, ``row = (blockIdx.x * blockDim.x +
threadIdx.x) / 64`` of blocks of 64: all threads of a block have one, and what asks it is asked alike by all."""

from __future__ import annotations

from dataclasses import replace

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.source.form import Binary, Expr, KernelForm, Literal, Member, Name
from fsr.source.mapping import map_exprs
from fsr.transform.target import Target

_THREAD, _BLOCK = Member(Name("threadIdx"), "x"), Member(Name("blockIdx"), "x")


def with_blocks_quotients(target: Target) -> KernelForm:
    """The kernel with such quotients as those of a block's number."""
    if target.block is None or target.block[1:] != (1, 1):
        return target.kernel
    width = target.block[0]
    launched = symbol("blockIdx.x") * constant(width) + symbol("threadIdx.x")

    def change(e: Expr) -> Expr:
        match e:
            case Binary("/", whole, by) if _is(target, whole, launched, width):
                many = target.poly(by).value
                if many == width:
                    return _BLOCK
                if many and many > 0 and many % width == 0:
                    return Binary("/", _BLOCK, Literal(str(many // width)))
        return e

    return replace(target.kernel, body=map_exprs(target.kernel.body, change))


def _is(target: Target, e: Expr, launched: Poly, width: int) -> bool:
    """Whether an expression is a thread's number over the launch."""
    extent = target.poly(Member(Name("blockDim"), "x"))
    found = target.poly(e)
    return (
        found == launched
        or found.replace(symbol("blockIdx.x") * extent, symbol("blockIdx.x") * constant(width)) == launched
    )
