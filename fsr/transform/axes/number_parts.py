"""Numbers that are taken apart by division and remainder: ``x = i % w; i /= w; y = i % h``.

A part of a number ``i`` is ``(i / low) % (high / low)``, of which ``low`` and ``high`` are products of extents. In
these terms quotients and remainders of parts are parts again, whatever order people take a number apart in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from fsr.source.form import Assign, Binary, Cast, Declare, Expr, For, Name, Stmt, While, number
from fsr.source.mapping import rewrite, with_blocks, with_exprs
from fsr.source.walk import Block, names_written

_WHOLE = frozenset(("const", "int", "unsigned", "long", "size_t", "int32_t", "uint32_t", "int64_t"))


@dataclass(frozen=True)
class Extent:
    """A product: a number, and variables, sorted."""

    number: int = 1
    names: tuple[str, ...] = ()

    def __mul__(self, other: Extent) -> Extent:
        return Extent(self.number * other.number, tuple(sorted(self.names + other.names)))

    def over(self, other: Extent) -> Extent | None:
        """The quotient; None where it is not a product of the factors that are known."""
        left = Counter(self.names)
        left.subtract(other.names)
        if self.number % other.number or any(count < 0 for count in left.values()):
            return None
        return Extent(self.number // other.number, tuple(sorted(left.elements())))

    @property
    def expr(self) -> Expr:
        """As the kernel says it."""
        factors: list[Expr] = [Name(n) for n in self.names]
        if self.number != 1 or not factors:
            factors.append(number(self.number))
        whole = factors[0]
        for factor in factors[1:]:
            whole = Binary("*", whole, factor)
        return whole


ONE = Extent()


@dataclass(frozen=True)
class Part:
    """``(i / low) % (high / low)``; ``high`` None: ``i / low``."""

    low: Extent = ONE
    high: Extent | None = None

    def divided(self, by: Extent) -> Part | None:
        """The quotient; None where it is no part."""
        low = self.low * by
        return Part(low, self.high) if self.high is None or self.high.over(low) is not None else None

    def remainder(self, by: Extent) -> Part | None:
        """The remainder; None where it is no part."""
        high = self.low * by
        return Part(self.low, high) if self.high is None or self.high.over(high) is not None else None


@dataclass(frozen=True)
class TakenApart:
    """How statements take a number apart. ``name``: its variable; ``extent``: what a divisor is, None where it may
    change or is no product; ``types``: of variables; ``told``: what a part is to be written as, None where it stays;
    ``parts``: all that are met are put there."""

    name: str
    extent: Callable[[Expr], Extent | None]
    types: Mapping[str, str]
    told: Callable[[Part], Expr | None]
    parts: set[Part]

    def rewritten(self, body: Block) -> Block:
        """The kernel's statements with parts written as they are told."""
        return self._block(body, {self.name: Part()})

    def _block(self, body: Block, known: dict[str, Part]) -> Block:
        """``known``: the variables that are parts where the statements begin; changed to those behind them."""
        return tuple(self._statement(s, known) for s in body)

    def _statement(self, s: Stmt, known: dict[str, Part]) -> Stmt:
        match s:
            case Declare(name=name) if name == self.name:
                return s
            case Declare(name=name, init=value, dims=()) if value is not None:
                return self._set(s, name, value, known)
            case Assign(Name(name), "=", value):
                return self._set(s, name, value, known)
            case Assign(Name(name), "/=" | "%=" as op, value):
                whole = Binary(op[0], Name(name), value)
                if self._part(whole, known) is not None:
                    return self._set(replace(s, op="=", value=whole), name, whole, known)
        written = names_written((s,))
        if isinstance(s, For | While):
            _forget(known, written)
        new = with_blocks(self._own(s, known), lambda block: self._block(block, dict(known)))
        _forget(known, written)
        return new

    def _set(self, s: Stmt, name: str, value: Expr, known: dict[str, Part]) -> Stmt:
        part, new = self._part(value, known), self._own(s, known)
        _forget(known, [name])
        if part is not None and set(self.types.get(name, "?").split()) <= _WHOLE:
            known[name] = part
        return new

    def _own(self, s: Stmt, known: Mapping[str, Part]) -> Stmt:
        """A statement with the parts in its own expressions written as they are told."""

        def change(e: Expr) -> Expr | None:
            part = self._part(e, known) if isinstance(e, Binary) else None
            if part is None:
                return None
            self.parts.add(part)
            return self.told(part)

        return with_exprs(s, lambda e: rewrite(e, change))

    def _part(self, e: Expr, known: Mapping[str, Part]) -> Part | None:
        """The part that an expression is; None where it is none."""
        match e:
            case Name(text):
                return known.get(text)
            case Cast(type_, operand) if set(type_.split()) <= _WHOLE:
                return self._part(operand, known)
            case Binary("/" | "%" as op, left, right):
                whole, by = self._part(left, known), self.extent(right)
                if whole is None or by is None:
                    return None
                return whole.divided(by) if op == "/" else whole.remainder(by)
        return None


def _forget(known: dict[str, Part], names: Iterable[str]) -> None:
    for name in names:
        known.pop(name, None)
