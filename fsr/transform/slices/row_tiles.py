"""Rows of which every thread goes through one of its own, step by step: ``out[thread * n + t]`` in a loop over ``t``.

How long a row is only the launch tells, so that no block has room for its rows whole. In each turn a thread touches the
next elements, ``base + width * turn + k`` for all ``k`` below the width, which polynomials show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import is_integer
from fsr.hardware.c_types import LANES
from fsr.records import Role
from fsr.source.form import Assign, Binary, Expr, For, If, Jump, Param, Scope, Stmt, Ternary, While
from fsr.source.walk import (
    Block,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    exprs_of,
    jumps,
    names_assigned,
    subexprs,
    walk_exprs,
)
from fsr.transform.slices.slices import OfBuffer, SlicedBuffer
from fsr.transform.target import Target

_WIDEST = 8  # elements a turn
_FEWEST_TURNS = 16  # as timed: a tile of fewer is not worth its barriers
_APART = 32  # bytes from lane to lane from which on each touches a sector of its own


@dataclass(frozen=True)
class RowTile(OfBuffer):
    """A buffer of which a loop's turn touches the next elements of the thread's row. ``first``: the place of the first
    turn's first; ``way``: 1 where places go up, -1 where they go down; ``width``: elements a turn; ``origin``: what
    the place of a turn's first element is without the loop's variable; ``factor``: what that is multiplied with."""

    first: Poly
    way: int
    width: int
    origin: Poly
    factor: Poly
    read: bool
    written: bool

    def column(self, at: Poly, var: str) -> int:
        """Which of a turn's elements a place is."""
        rest = at - self.origin - self.factor * symbol(var)
        return (rest.value or 0) * self.way

    def stride(self, turns: int) -> int:
        """Elements from one thread's row to the next one's in shared memory: a word more, so that lanes at the same
        column are at different banks."""
        return turns * self.width + max(4 // self.bytes, 1)


class RowBuffers:
    """The buffers of a kernel that may be gone through in rows. What the whole kernel does with each is looked at once,
    whatever loops there are."""

    def __init__(self, target: Target) -> None:
        self.target = target

    @cached_property
    def _found(self) -> list[SlicedBuffer]:
        usable = (SlicedBuffer(self.target, param) for param in _buffers(self.target))
        return [b for b in usable if not _is_record(b) and b.cell[1] and b.found()]

    def tiles(self, loop: For, outer: Mapping[str, Poly], uniform: frozenset[str]) -> list[RowTile]:
        """The buffers that a loop goes through in rows. ``outer``: the first values of the variables of loops around
        it; ``uniform``: those variables that are one number for all threads of a block."""
        own = names_assigned(loop.body)
        if loop.var in own or jumps(loop.body) or not _is_alone(self.target, loop.body):
            return []
        found = (_tile(buffer.afresh(), loop, outer, uniform) for buffer in self._found)
        return [one for one in found if one is not None]


def _is_record(buffer: SlicedBuffer) -> bool:
    """Whether elements may not be made without their constructor."""
    return buffer.cell[2] > 1 and buffer.declared.type not in LANES


def _buffers(target: Target) -> Iterator[Param]:
    for param in target.kernel.params:
        usable = param.name in target.unaliased and param.type.count("*") == 1 and "volatile" not in param.type
        if usable and target.elements(param.name) is not None:
            yield param


def _is_alone(target: Target, body: Block) -> bool:
    """Whether no other thread can tell when in a loop something is written: nothing waits or is verbatim in it."""
    if contains_opaque(body) or contains_barrier(body) or contains_warp_wide(body):
        return False
    return all(target.functions.stays_in_thread(e, target.type_names) for e in walk_exprs(body))


def _tile(buffer: SlicedBuffer, loop: For, outer: Mapping[str, Poly], uniform: frozenset[str]) -> RowTile | None:
    target = buffer.target
    if not _same_turns(buffer, loop, uniform):
        return None
    if not buffer.collect(loop.body, {}, frozenset()) or buffer.given or not buffer.places:
        return None
    steady = {f"threadIdx.{axis}" for axis in "xyz"} | same_for_block(target) | outer.keys()
    found = _stepped(buffer, loop)
    # Symbols alone: the text of what is no polynomial may mean something else where names are written out.
    if found is None or not found.origin.symbols | found.first.symbols <= steady:
        return None
    return found if _apart(buffer, found.origin, outer) else None


def same_for_block(target: Target) -> frozenset[str]:
    """What is one integer for all threads of a block, by name."""
    numbers = {p.name for p in target.kernel.params if is_integer(p.type)} - target.known.changed
    return frozenset(numbers | {f"{of}.{axis}" for of in ("blockIdx", "blockDim", "gridDim") for axis in "xyz"})


def _same_turns(buffer: SlicedBuffer, loop: For, uniform: frozenset[str]) -> bool:
    """Whether all threads of a block have the same turns, and enough of them as timed."""
    start, bound, step = (buffer.poly(e) for e in (loop.start, loop.bound, loop.step))
    if not start.names() | bound.names() <= same_for_block(buffer.target) | uniform or not step.value:
        return False
    turns = [buffer.timed(bound - start), buffer.timed(start - bound)]
    return max((n for n in turns if n is not None), default=0) >= _FEWEST_TURNS * abs(step.value)


def _stepped(buffer: SlicedBuffer, loop: For) -> RowTile | None:
    """The tile of a loop whose turns touch each of the next elements for sure, and nothing else of the buffer."""
    step = buffer.poly(loop.step).value or 0
    factors = [p.at.coefficient(loop.var) for p in buffer.places]
    factor = factors[0]
    each = 0 if factor is None else (factor.value or 0) * step
    if factor is None or any(f != factor for f in factors) or not 0 < abs(each) <= _WIDEST:
        return None
    way, rests = (1 if each > 0 else -1), [p.at.without(loop.var) for p in buffer.places]
    offsets = [(rest - rests[0]).value if rest != rests[0] else 0 for rest in rests]
    if None in offsets:
        return None
    origin = rests[0] + constant((min if way > 0 else max)(n for n in offsets if n is not None))
    first = origin + factor * buffer.poly(loop.start)
    touched = _Touched(buffer)
    if not touched.block(loop.body, sure=True) or touched.written != buffer.written:
        return None
    argument = buffer.target.argument(buffer.param.name)
    if touched.read and (abs(step) != 1 or argument is None or argument.role is Role.OUT):
        return None  # how many turns are left would have to be divided; not all of a result may be set already
    found = RowTile(buffer, first, way, abs(each), origin, factor, touched.read, touched.written)
    sure = {found.column(at, loop.var) for at in touched.sure}
    every = {found.column(p.at, loop.var) for p in buffer.places}
    return found if sure == every == set(range(found.width)) else None


def _apart(buffer: SlicedBuffer, origin: Poly, outer: Mapping[str, Poly]) -> bool:
    """Whether neighbouring threads are at places of different sectors, in the first turns of the loops around."""
    for var, first in reversed(list(outer.items())):
        each = origin.coefficient(var)
        if each is None:
            return False
        origin = origin.without(var) + each * first
    axis = next((a for a, n in buffer.extents.items() if n > 1), "x")
    apart = origin.coefficient(f"threadIdx.{axis}")
    if apart is None or not apart.terms or apart.depends_on(["threadIdx"]):
        return False
    return apart.value is None or abs(apart.value) * buffer.cell[1] * buffer.cell[2] >= _APART


class _Touched:
    """What a turn does with a buffer. ``sure``: places that it touches in any case; ``read``: whether it reads any that
    it has not set before."""

    def __init__(self, buffer: SlicedBuffer) -> None:
        self.buffer, self.sure, self._set = buffer, set[Poly](), set[Poly]()
        self.read = self.written = False

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
                self.read |= op != "=" and at not in self._set
                self.written = True
                if sure:
                    self.sure.add(at)
                    self._set.add(at)
                return True
            case If(test, then, orelse):
                self._reads(test, sure)
                return self.block(then, sure=False) and self.block(orelse, sure=False)
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

    def _reads(self, e: Expr, sure: bool) -> None:
        at = self.buffer.place(e)
        if at is not None:
            self.read |= at not in self._set
            self.sure |= {at} if sure else set()
            return
        parts = subexprs(e)
        for number, part in enumerate(parts):
            maybe = number > 0 and (isinstance(e, Ternary) or (isinstance(e, Binary) and e.op in ("&&", "||")))
            self._reads(part, sure and not maybe)
