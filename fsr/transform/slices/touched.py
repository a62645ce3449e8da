"""Which elements of a buffer a loop's turn touches for sure, and in what order."""

from __future__ import annotations

from collections.abc import Mapping

from fsr.analysis.polynomial import Poly
from fsr.source.form import Assign, Binary, Expr, For, If, Jump, Scope, Stmt, Ternary, While
from fsr.source.walk import Block, exprs_of, subexprs
from fsr.transform.slices.slices import SlicedBuffer


class Touched:
    """What a turn does with a buffer. ``sure``: places that it touches in any case; ``surely_read``: those of them that
    it reads before it sets any; ``read``: places that it may read and has not surely set before."""

    def __init__(self, buffer: SlicedBuffer) -> None:
        self.buffer, self.sure, self.surely_read, self._set = buffer, set[Poly](), set[Poly](), set[Poly]()
        self.read, self.written = set[Poly](), set[Poly]()

    @property
    def kinds(self) -> Mapping[str, set[Poly]]:
        """Places by what is done with them."""
        return {"sure": self.sure, "surely read": self.surely_read, "read": self.read, "written": self.written}

    def block(self, body: Block, *, sure: bool) -> bool:
        """Note what statements touch; False where they change a part of an element."""
        return all(self._statement(s, sure) for s in body)

    def _statement(self, s: Stmt, sure: bool) -> bool:
        match s:
            case Assign(target, op, value) if self.buffer.changed(target) is not None:
                at = self.buffer.place(target)
                if at is None:
                    return False
                self._reads(value, sure)
                if op != "=":
                    self._read_at(at, sure)
                self.written.add(at)
                if sure:
                    self.sure.add(at)
                    self._set.add(at)
                return True
            case If(test, then, orelse):
                self._reads(test, sure)
                return self._either(then, orelse, sure)
            case Scope(inner):
                return self.block(inner, sure=sure)
            case For() | While():
                every = all(self._statement(x, False) for x in s.body)
                for e in exprs_of(s):
                    self._reads(e, False)
                return every
        for e in exprs_of(s):
            self._reads(e, sure)
        return not isinstance(s, Jump)

    def _either(self, then: Block, orelse: Block, sure: bool) -> bool:
        """Note what two ways touch: for sure what both do."""
        before = [set(found) for found in (self.sure, self.surely_read, self._set)]
        one = self.block(then, sure=sure)
        first = [self.sure, self.surely_read, self._set]
        self.sure, self.surely_read, self._set = (set(found) for found in before)
        other = self.block(orelse, sure=sure)
        second = [self.sure, self.surely_read, self._set]
        self.sure, self.surely_read, self._set = (a & b for a, b in zip(first, second, strict=True))
        return one and other

    def _reads(self, e: Expr, sure: bool) -> None:
        at = self.buffer.place(e)
        if at is not None:
            self._read_at(at, sure)
            return
        parts = subexprs(e)
        for number, part in enumerate(parts):
            maybe = number > 0 and (isinstance(e, Ternary) or (isinstance(e, Binary) and e.op in ("&&", "||")))
            self._reads(part, sure and not maybe)

    def _read_at(self, at: Poly, sure: bool) -> None:
        if at not in self._set:
            self.read.add(at)
            if sure:
                self.surely_read.add(at)
        if sure:
            self.sure.add(at)
