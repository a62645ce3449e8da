"""Rows that are told by a quotient of a thread's number over the launch, ``row = (blockIdx.x * blockDim.x +
threadIdx.x) / 64`` of blocks of 64: all threads of a block have one, and what asks it is asked alike by all."""

from __future__ import annotations

from dataclasses import replace

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import bare, integer_bytes, resolved
from fsr.source.form import Binary, Cast, Expr, KernelForm, Literal, Member, Name
from fsr.source.mapping import map_exprs
from fsr.source.walk import walk_expr
from fsr.transform.target import Target

_WORD = 4  # bytes of an id
_BLOCK = Member(Name("blockIdx"), "x")


def with_blocks_quotients(target: Target) -> KernelForm:
    """The kernel with such quotients as those of a block's number."""
    if target.block is None or target.block[1:] != (1, 1):
        return target.kernel
    width = target.block[0]
    launched = symbol("blockIdx.x") * constant(width) + symbol("threadIdx.x")

    def change(e: Expr) -> Expr:
        match e:
            case Binary("/", whole, by) if _is(target, whole, launched, width):
                many, block = target.poly(by).value, _typed(target, whole, by)
                if block is not None and many == width:
                    return block
                if block is not None and many and many > 0 and many % width == 0:
                    return Binary("/", block, Literal(str(many // width)))
        return e

    return replace(target.kernel, body=map_exprs(target.kernel.body, change))


def _typed(target: Target, whole: Expr, by: Expr) -> Expr | None:
    """The block's number, which has no sign, as of the quotient's type: a row before the first is less than nought
    where that has one. None where the type is not known."""
    if not isinstance(whole, Name):
        return _BLOCK if any(isinstance(e, Member) for e in walk_expr(whole)) else None
    type_ = resolved(bare(target.known.types.get(whole.text, "")), target.aliases)
    without_sign = any(
        isinstance(e, Member) or (isinstance(e, Literal) and "u" in e.text.lower()) for e in walk_expr(by)
    )
    width = integer_bytes(type_)
    if width == _WORD and (without_sign or type_.startswith("unsigned")):
        return _BLOCK
    return None if width is None or width < _WORD else Cast(type_, _BLOCK)


def _is(target: Target, e: Expr, launched: Poly, width: int) -> bool:
    """Whether an expression is a thread's number over the launch."""
    extent = target.poly(Member(Name("blockDim"), "x"))
    found = target.poly(e)
    return (
        found == launched
        or found.replace(symbol("blockIdx.x") * extent, symbol("blockIdx.x") * constant(width)) == launched
    )
