"""Whether blocks may write their slices back whole: no other block touches them, and what is written back is what the
original leaves there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fsr.analysis.conditions import MIRRORED, negation
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import bare
from fsr.hardware.c_types import LANES, dtype_bytes
from fsr.source.form import Assign, Binary, Expr, For, If, Jump, OpaqueStmt, Scope, While, conjuncts
from fsr.source.walk import Block, walk_stmts
from fsr.transform.placement import size_text
from fsr.transform.sizes import always
from fsr.transform.slices.slices import SlicedBuffer, Slices, samples, valued

_MOST_STEPS = 20000


def owned_by_block(found: Slices) -> bool:
    """Whether the slices of different blocks lie side by side, so that each block's are its own."""
    launch, threads = found.of.target.launch, found.of.target.threads or 0
    wide = [axis for axis, blocks in zip("xyz", launch.grid, strict=True) if blocks.strip() != "1"]
    block, each = constant(0), constant(1)
    for axis in wide:
        block, each = block + symbol(f"blockIdx.{axis}") * each, each * symbol(f"gridDim.{axis}")
    rest = found.start - found.length * constant(threads) * block
    return not rest.depends_on(["blockIdx", "gridDim"])


def wholly_written(found: Slices, body: Block) -> bool:
    """Whether every element of every slice that lies within the buffer is written, whatever the data. ``body``: the
    kernel's, without return statements."""
    target = found.of.target
    length = _text(found, found.length)
    whole = f"({found.of.count}) % max(({length}) * {found.cells}, 1) == 0"
    if length is None or not always(target.contract, whole):
        return False
    if found.high is not None and found.low == 0 and found.length.value:
        return _Writes(found, {}).all_of(body)
    return all(_Writes(found, values).all_of(body) for values in samples(found))


def _text(found: Slices, value: Poly) -> str | None:
    target = found.of.target
    return size_text(value, target.kernel, target.launch, target.contract)


def _may_end_early(body: Block) -> bool:
    return any(isinstance(s, Jump | OpaqueStmt) for s in walk_stmts(body))


class _Writes:
    """What is written for sure, where arguments have these values."""

    def __init__(self, found: Slices, values: Mapping[str, int]) -> None:
        self.found, self.buffer = found, SlicedBuffer(found.of.target, found.param, values)
        self.buffer.pointed()
        self.length, self.start = valued(found.length, values), valued(found.start, values)
        self._steps = 0
        self._heads: dict[int, list[Poly]] = {}  # of loops, by which they are
        self._places: dict[int, tuple[Poly, str] | None] = {}  # of assignments

    def all_of(self, body: Block) -> bool:
        """Whether that is a whole slice."""
        found, members = set(self._sure(body, {})), self._members()
        every = range(self.length.value or 0)
        return all((at, "") in found or 0 < members == self._told(found, at) for at in every)

    def _told(self, found: set[tuple[int, str]], at: int) -> int:
        """How many members of an element are written."""
        return sum(place == at and member != "?" for place, member in found)

    def _members(self) -> int:
        """How many members of one number each an element has."""
        argument = self.found.of.target.argument(self.found.name)
        if argument is not None and argument.layout is not None:
            fields = argument.layout.fields
            plain = len(fields) == self.found.cells and all(dtype_bytes(f.dtype) == self.found.bytes for f in fields)
            return self.found.cells if plain else -1  # what lies between members is no one's
        type_ = bare(self.found.param.type)
        return LANES[type_][1] if type_ in LANES else self.found.cells if self.found.cells > 1 else 0

    def _sure(self, body: Block, turns: Mapping[str, int]) -> Iterator[tuple[int, str]]:
        for s in body:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return
            match s:
                case Assign(_, "=", _) if (place := self._place(s)) is not None:
                    offset = valued(place[0], turns).value
                    yield from () if offset is None else ((offset, place[1]),)
                case If(test, then, orelse):
                    ways = [set(self._sure(block, turns)) for block in self._ways(test, then, orelse)]
                    yield from set.intersection(*ways)
                case For() if not _may_end_early(s.body):
                    for turn in self._turns(s, turns):
                        yield from self._sure(s.body, {**turns, s.var: turn})
                case Scope(inner):
                    yield from self._sure(inner, turns)
            if not isinstance(s, For | While) and _may_end_early((s,)):
                return  # what follows may be left out

    def _place(self, s: Assign) -> tuple[Poly, str] | None:
        """Where in the slice a statement writes, and which member."""
        if id(s) not in self._places:
            found = self.buffer.changed(s.target)
            at = None if found is None else found[0] - self.buffer.thread * self.length - self.start
            self._places[id(s)] = None if found is None or at is None else (at, found[1])
        return self._places[id(s)]

    def _turns(self, loop: For, turns: Mapping[str, int]) -> range:
        if id(loop) not in self._heads:
            self._heads[id(loop)] = [self.buffer.poly(e) for e in (loop.start, loop.bound, loop.step)]
        start, bound, step = (valued(part, turns).value for part in self._heads[id(loop)])
        if start is None or bound is None or not step or loop.relation not in ("<", "<=", ">", ">="):
            return range(0)
        if (step > 0) != loop.relation.startswith("<"):
            return range(0)
        return range(start, bound + (0 if loop.relation in "<>" else 1 if step > 0 else -1), step)

    def _ways(self, test: Expr, then: Block, orelse: Block) -> list[Block]:
        """The blocks of which one is executed in threads whose slices lie within the buffer."""
        if all(self._holds(part) for part in conjuncts(test)):
            return [then]
        if all(self._holds(part) for part in conjuncts(negation(test))):
            return [orelse]
        return [then, orelse]

    def _holds(self, test: Expr) -> bool:
        """Whether a test is one of the slice's number, below how many the buffer holds."""
        if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
            return False
        low, high, op = test.left, test.right, test.op
        if op.startswith(">"):
            low, high, op = high, low, MIRRORED[op]
        of, length = self.found.of, self.found.length
        if of.poly(low) * length != of.thread * length + self.found.start:
            return False
        many, each = _text(self.found, of.poly(high)), _text(self.found, length)
        more = 1 if op == "<=" else 0
        cells = f"(({many}) + {more}) * ({each}) * {self.found.cells}"
        return many is not None and always(of.target.contract, f"{cells} >= {of.count}")
