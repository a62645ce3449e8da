"""Rows of which every thread goes through one of its own, step by step: ``out[thread * n + t]`` in a loop over ``t``.

How long a row is only the launch tells, so that no block has room for its rows whole. In each turn a thread touches the
next elements, ``base + width * turn + k`` for all ``k`` below the width, which polynomials show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import is_integer, resolved
from fsr.hardware.c_types import LANES
from fsr.records import Role
from fsr.source.form import Call, Declare, Expr, For, Index, Name, OpaqueExpr, Param, Unary
from fsr.source.walk import (
    Block,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    jumps,
    names_assigned,
    names_in,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.sizes import largest_timed
from fsr.transform.slices.slices import OfBuffer, SlicedBuffer
from fsr.transform.slices.told_heads import is_whole
from fsr.transform.slices.touched import Touched
from fsr.transform.target import Target

_WIDEST = 8  # elements a turn
_FEWEST_TURNS = 16  # as timed: a tile of fewer is not worth its barriers
_BACK = 2  # turns before one of which it may read
_APART = 32  # bytes from lane to lane from which on each touches a sector of its own


@dataclass(frozen=True)
class RowTile(OfBuffer):
    """A buffer of which a loop's turn touches the next elements of the thread's row. ``first``: the place of the first
    turn's first, as far as it is told; ``way``: 1 where places go up, -1 where they go down; ``width``: elements a
    turn; ``origin``: what the place of a turn's first element is without the loop's variable; ``factor``: what that is
    multiplied with; ``behind``: how many elements of the turns before a turn reads at most."""

    first: Poly
    way: int
    width: int
    origin: Poly
    factor: Poly
    read: bool
    written: bool
    behind: int

    def column(self, at: Poly, var: str) -> int:
        """Which of a turn's elements a place is; below 0 for one of a turn before."""
        rest = at - self.origin - self.factor * symbol(var)
        return (rest.value or 0) * self.way

    def stride(self, turns: int) -> int:
        """Elements from one thread's row to the next one's in shared memory: a word more where that is needed, so that
        lanes at the same column are at different banks."""
        unit = max(4 // self.bytes, 1)
        whole = turns * self.width + -(-self.behind // unit) * unit
        return whole + unit if whole // unit % 2 == 0 else whole


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
        even = same_turns(self.target, loop, uniform)
        if not self._found or not (_many(self._found[0], loop) if even else own_turns(self.target, loop)):
            return []
        found = (_tile(buffer.afresh(), loop, outer) for buffer in self._found if even or _long(buffer))
        return [one for one in found if one is not None]


def same_turns(target: Target, loop: For, uniform: frozenset[str]) -> bool:
    """Whether all threads of a block have the same turns."""
    start, bound, step = (target.poly(e) for e in (loop.start, loop.bound, loop.step))
    return start.names() | bound.names() <= same_for_block(target) | uniform and bool(step.value)


def _many(buffer: SlicedBuffer, loop: For) -> bool:
    """Whether a loop has enough turns as timed."""
    start, bound, step = (buffer.poly(e) for e in (loop.start, loop.bound, loop.step))
    turns = [buffer.timed(bound - start), buffer.timed(start - bound)]
    return max((n for n in turns if n is not None), default=0) >= _FEWEST_TURNS * abs(step.value or 0)


def own_turns(target: Target, loop: For) -> bool:
    """Whether a loop has as many turns as a thread's own numbers tell: those may be counted ahead."""
    step, head = target.poly(loop.step).value, (loop.start, loop.bound)
    moved = names_assigned(loop.body) | frozenset(variables(loop.body)) | {loop.var}
    type_ = loop.type or target.known.types.get(loop.var)
    whole = all(is_whole(target, e) for e in head) and is_integer(resolved(type_ or "", target.aliases))
    counts = whole and not moved & names_in(loop.bound)
    up, down = step == 1 and loop.relation in ("<", "<="), step == -1 and loop.relation in (">", ">=")
    return counts and (up or down)


def may_repeat(e: Expr) -> bool:
    """Whether an expression may be evaluated once more."""
    return not any(
        isinstance(x, Index | Call | OpaqueExpr) or (isinstance(x, Unary) and x.op == "*") for x in walk_expr(e)
    )


def _is_record(buffer: SlicedBuffer) -> bool:
    """Whether elements may not be made without their constructor."""
    return buffer.cell[2] > 1 and buffer.declared.type not in LANES


def _buffers(target: Target) -> Iterator[Param]:
    for param in target.kernel.params:
        usable = param.name in target.unaliased and param.type.count("*") == 1 and "volatile" not in param.type
        if usable and _elements(target, param.name) is not None:
            yield param


def _elements(target: Target, name: str) -> str | None:
    """How many elements the buffer behind a parameter has, one of the plan's own too, as a size expression."""
    own = {s.name: s.count for s in target.candidate.plan.scratch}
    return target.elements(name) or own.get(target.passed.get(name, ""))


def _is_alone(target: Target, body: Block) -> bool:
    """Whether no other thread can tell when in a loop something is written: nothing waits or is verbatim in it."""
    if contains_opaque(body) or contains_barrier(body) or contains_warp_wide(body):
        return False
    return all(target.functions.stays_in_thread(e, target.type_names) for e in walk_exprs(body))


def _tile(buffer: SlicedBuffer, loop: For, outer: Mapping[str, Poly]) -> RowTile | None:
    target = buffer.target
    if not buffer.collect(loop.body, {}, frozenset()) or buffer.given or not buffer.places:
        return None
    found = _stepped(buffer, loop)
    if found is None or not may_repeat(loop.start):
        return None
    # Symbols alone: the text of what is no polynomial may mean something else where names are written out.
    known = {f"threadIdx.{axis}" for axis in "xyz"} | same_for_block(target) | outer.keys()
    inside = frozenset(variables(loop.body))
    if any(not steady_local(target, name) or name in inside for name in found.origin.symbols - known):
        return None
    if _apart(buffer, found.origin, outer) or _apart(buffer, found.first, outer):
        return found
    led = any(own_value(target, name) for name in found.first.symbols - known)
    return found if led and _long(buffer) else None


def same_for_block(target: Target) -> frozenset[str]:
    """What is one integer for all threads of a block, by name."""
    numbers = {p.name for p in target.kernel.params if is_integer(resolved(p.type, target.aliases))}
    numbers -= target.known.changed
    return frozenset(numbers | {f"{of}.{axis}" for of in ("blockIdx", "blockDim", "gridDim") for axis in "xyz"})


def _stepped(buffer: SlicedBuffer, loop: For) -> RowTile | None:
    """The tile of a loop whose turns touch each of the next elements for sure, and besides of the buffer only elements
    of turns before, which they read."""
    step = buffer.poly(loop.step).value or 0
    factors = [p.at.coefficient(loop.var) for p in buffer.places]
    factor = factors[0]
    each = 0 if factor is None else (factor.value or 0) * step
    if factor is None or any(f != factor for f in factors) or not 0 < abs(each) <= _WIDEST:
        return None
    way, width, rests = (1 if each > 0 else -1), abs(each), [p.at.without(loop.var) for p in buffer.places]
    offsets = [(rest - rests[0]).value if rest != rests[0] else 0 for rest in rests]
    if None in offsets:
        return None
    ahead = max((n or 0) * way for n in offsets)
    origin = rests[0] + constant((ahead - width + 1) * way)
    touched = Touched(buffer)
    if not touched.block(loop.body, sure=True) or bool(touched.written) != buffer.written:
        return None
    found = RowTile(buffer, origin + factor * buffer.poly(loop.start), way, width, origin, factor, False, False, 0)
    columns = {kind: {found.column(at, loop.var) for at in places} for kind, places in touched.kinds.items()}
    own = set(range(width))
    behind = -min(0, *(columns["read"] | columns["written"]), 0)
    if not own <= columns["sure"] or not columns["written"] <= own or behind > _BACK * width:
        return None
    if behind and not _may_be_told_first(buffer.target, loop):
        return None
    read = bool(columns["read"] & own)
    argument = buffer.target.argument(buffer.param.name)
    given = argument is not None and argument.role is not Role.OUT
    if read and (abs(step) != 1 or not (given or own <= columns["surely read"])):
        return None  # how many turns are left would have to be divided; not all of a result may be set already
    return replace(found, read=read, written=bool(touched.written), behind=behind)


def _may_be_told_first(target: Target, loop: For) -> bool:
    """Whether turns may be compared with the first one."""
    own = names_assigned(loop.body) | frozenset(variables(loop.body)) | {loop.var}
    return loop.type != "auto" and may_repeat(loop.start) and not names_in(loop.start) & own


def steady_local(target: Target, name: str) -> bool:
    """Whether a name is that of an integer that is set once."""
    body, known = target.kernel.body, target.known
    declared = [s for s in walk_stmts(body) if isinstance(s, Declare) and s.name == name]
    alone = len(declared) == 1 and variables(body).count(name) == 1 and name not in known.changed
    return alone and is_integer(resolved(declared[0].type, target.aliases)) and not declared[0].dims


def own_value(target: Target, name: str, depth: int = 8) -> bool:
    """Whether a variable that is set once gets another value in each thread: from what its id leads to."""
    value = target.declared_as(Name(name))
    names = names_in(value) - {name}
    return "threadIdx" in names or (depth > 0 and any(own_value(target, n, depth - 1) for n in names))


def _long(buffer: SlicedBuffer) -> bool:
    """Whether rows whose beginnings only data tells are long enough on average, as timed."""
    target = buffer.target
    every, grid = _elements(target, buffer.param.name), " * ".join(f"({n})" for n in target.launch.grid)
    if every is None or target.threads is None:
        return False
    mean = largest_timed(target.contract, f"({every}) // max({grid} * {target.threads}, 1)")
    return mean is not None and mean >= _FEWEST_TURNS


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
