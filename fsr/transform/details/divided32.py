"""Divisions of 64-bit integers that 32 bits hold: the GPU has no instruction for them, and takes some seventy to divide
by a number that only the run tells. Both operands are converted, and the result back where anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fsr.analysis.types import integer_bytes, resolved
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, Index, Literal, Member, Name, Stmt, Ternary
from fsr.source.mapping import map_own_exprs, map_stmts
from fsr.source.walk import Block
from fsr.transform.details.limits import Limits, declared_types
from fsr.transform.target import Target

_WIDE, _NARROW = 8, 4
_DIVIDE = ("/", "%")


@dataclass(frozen=True)
class Divided:
    """``types``: of parameters and variables, as declared where the divisions are."""

    limits: Limits
    types: Mapping[str, str]
    aliases: Mapping[str, str]

    def of(self, body: Block) -> Block:
        """The statements with such divisions in 32 bits."""
        return map_stmts(body, self._statement)

    def _statement(self, s: Stmt) -> Stmt:
        match s:
            case Assign(Name() as target, ("/=" | "%=") as op, by) if self._bytes(Binary("/", target, by)) == _WIDE:
                if self._fits(target, by):
                    s = replace(s, op="=", value=Binary(op[0], self._narrow(target), self._narrow(by)))
        s = map_own_exprs(s, self._expr)
        match s:
            case Declare(type=type_, init=Cast() as init) if self._width(type_) and not s.dims:
                return replace(s, init=self._bare(init))
            case Assign(Name() as target, "=", Cast() as value) if self._bytes(target):
                return replace(s, value=self._bare(value))
        return s

    def _expr(self, e: Expr) -> Expr:
        match e:
            case Binary(op, left, right) if op in _DIVIDE and self._bytes(e) == _WIDE and self._fits(left, right):
                types = sorted(self._wide(e))
                if len(types) > 1:  # neither is sure to be the result's
                    return e
                return Cast(types[0], Binary(op, self._narrow(left), self._narrow(right)))
            case Index(base, Cast() as at):
                return Index(base, self._bare(at))
        return e

    def _fits(self, left: Expr, right: Expr) -> bool:
        a, b = self.limits.of(left), self.limits.of(right)
        return a is not None and b is not None and b[0] >= 1

    def _narrow(self, e: Expr) -> Expr:
        """The value, which 32 bits hold, in 32 bits."""
        while isinstance(e, Cast) and self._bytes(e) == _WIDE:
            e = e.operand
        return e if 0 < self._bytes(e) <= _NARROW else Cast("int", e)

    # ------------------------------------------------------------ types

    def _width(self, type_: str) -> int:
        return integer_bytes(resolved(type_, self.aliases)) or 0

    def _bytes(self, e: Expr) -> int:
        """Of an integer that C computes; 0 where it is none, or cannot be told."""
        match e:
            case Literal(text):
                return _NARROW if text.isdigit() else _WIDE if text.lower().rstrip("u").endswith("l") else 0
            case Name(text):
                return self._width(self.types.get(text, ""))
            case Member(Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim"), _):
                return _NARROW
            case Cast(type_, _) | Call(Name(type_), (_,)):
                return self._width(type_)
            case Binary("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", left, right) | Ternary(_, left, right):
                a, b = self._bytes(left), self._bytes(right)
                return max(a, b, _NARROW) if a and b else 0
            case Binary("<<" | ">>", left, _):
                return self._bytes(left) and max(self._bytes(left), _NARROW)
        return 0

    def _wide(self, e: Expr) -> frozenset[str]:
        """The types of 64 bits that an integer's is made of."""
        match e:
            case Name(text):
                return self._if_wide(self.types.get(text, ""))
            case Cast(type_, _) | Call(Name(type_), (_,)):
                return self._if_wide(type_)
            case Literal(text) if self._bytes(e) == _WIDE:
                letters = text.lower().lstrip("0123456789")
                return frozenset([("unsigned " if "u" in letters else "") + " ".join(["long"] * letters.count("l"))])
            case Binary("<<" | ">>", left, _):
                return self._wide(left)
            case Binary(_, left, right) | Ternary(_, left, right):
                return self._wide(left) | self._wide(right)
        return frozenset()

    def _if_wide(self, type_: str) -> frozenset[str]:
        return frozenset([resolved(type_, self.aliases)] if self._width(type_) == _WIDE else [])

    def _bare(self, e: Cast) -> Expr:
        """A division in 32 bits without its conversion back: what holds or takes an integer converts it."""
        inner = e.operand
        ours = isinstance(inner, Binary) and inner.op in _DIVIDE and self._bytes(inner) == _NARROW
        return inner if ours and self._width(e.type) == _WIDE else e


def divided(target: Target, body: Block, limits: Limits) -> Block:
    """The statements of a target with 64-bit divisions in 32 bits, where what is divided and by what is never negative
    and not too large."""
    return Divided(limits, declared_types(target.kernel.params, body), target.aliases).of(body)
