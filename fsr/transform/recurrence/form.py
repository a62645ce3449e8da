"""Recognising a recurrence: a block owns an item and loops over time; its threads meet at barriers in each step.

What one step hands to the next is the state: registers that live across steps, and shared arrays of which a thread
writes the elements with its own number only. All that a step reads of other threads' elements must be from before the
step; where a kernel writes at a step's begin what the same step reads, the step is taken to begin behind the barrier
between the two. Then nothing passes between threads within a step, and a launch may stand in place of the barriers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.domain import plain_loads
from fsr.analysis.functions import hiding_macros, thread_aware
from fsr.hardware.c_types import BY_SPELLING
from fsr.hardware.limits import MAX_REPEATS
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    Member,
    Name,
    OpaqueExpr,
    Return,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.mapping import substitute
from fsr.source.walk import (
    BARRIER,
    Block,
    base_name,
    contains_barrier,
    contains_opaque,
    declared,
    exprs_of,
    identifiers,
    names_assigned,
    names_in,
    names_mentioned,
    subexprs,
    walk_exprs,
    walk_stmts,
    without_comments,
)  # fmt: skip
from fsr.transform.recurrence.shared_state import StateArray, arrays_of, is_own
from fsr.transform.recurrence.strided import thread_an_element
from fsr.transform.sizes import largest
from fsr.transform.target import Target

_PLACES = frozenset(["threadIdx.x", "blockIdx.x", "blockIdx.y", "blockIdx.z", "blockDim.x"])


class NotOneError(Exception):
    """It is no recurrence, or not shown to be one."""


@dataclass(frozen=True)
class Recurrence:
    """``before``, then ``body`` for every value of ``variable``, ``count`` of them (a size expression) from ``start``
    on by ``stride``, then ``after``; all without barriers. ``arrays``: shared arrays by what the kernel calls them.
    ``registers``: locals that are kept between steps; ``fixed``: those that each step works out anew; ``own``: those
    that a step alone uses."""

    target: Target
    before: Block
    body: Block
    after: Block
    variable: str
    type: str
    start: Expr
    stride: int
    count: str
    arrays: Mapping[str, StateArray]
    registers: tuple[Declare, ...]
    fixed: tuple[Declare, ...]
    own: tuple[Declare, ...]

    def at(self, step: Expr) -> Expr:
        """The loop variable at a step."""
        return Binary("+" if self.stride > 0 else "-", self.start, step)


def recurrence(target: Target) -> Recurrence | None:
    """The kernel as a recurrence; None where it is none. Its target is that of a kernel with a thread an element."""
    if not contains_barrier(target.kernel.body) or target.launch.block[1:] != ("1", "1"):
        return None
    try:
        whole = thread_an_element(target)
        return _Reader(whole).found() if whole is not None else None
    except NotOneError:
        return None


def elements(e: Expr) -> Iterator[Index]:
    """The elements that an expression reads, those in indices of others too; of ``a[i][j]`` the whole."""
    if isinstance(e, Index):
        yield e
        base: Expr = e
        while isinstance(base, Index):
            yield from elements(base.index)
            base = base.base
        yield from elements(base)
        return
    for part in subexprs(e):
        yield from elements(part)


class _Reader:
    def __init__(self, target: Target) -> None:
        self.target, self.known = target, target.known
        self.parts = without_comments(plain_loads(target.kernel.body))
        self.params = {p.name for p in target.kernel.params}

    def found(self) -> Recurrence:
        """Raises NotOneError."""
        self._plain()
        place, loop = self._loop()
        before, body, after = self.parts[:place], without_comments(loop.body), self.parts[place + 1 :]
        self.arrays = arrays_of(self.target, before, self.parts)
        if not self.arrays:
            raise NotOneError
        shared = sum(isinstance(s, Declare) and _is_shared(s) for s in before)
        if shared != sum(isinstance(s, Declare) and _is_shared(s) for s in walk_stmts(self.parts)):
            raise NotOneError
        self._global_memory(body)
        for first, step in self._orders(loop, before, body):
            if self._passes_nothing(first, step, after):
                break
        else:
            raise NotOneError
        self.arrays = {name: self._written(array, step) for name, array in self.arrays.items()}
        registers, fixed, own = self._locals(before, step, after)
        start, stride, count = self._steps(loop)
        first, step, after = (self._without_barriers(part) for part in (first, step, after))
        return Recurrence(
            self.target, first, step, after, loop.var, loop.type or "int", start, stride, count,
            self.arrays, registers, fixed, own,
        )  # fmt: skip

    def _plain(self) -> None:
        """Everything can be read, and only what is known of a thread's place decides on what it does."""
        kernel, source = self.target.kernel, self.target.source
        words = identifiers(self.parts)
        if kernel.template is not None or contains_opaque(self.parts):
            raise NotOneError
        if words & (thread_aware(source) - {kernel.name}) or words & hiding_macros(source):
            raise NotOneError
        places = {w for w in words if w.partition(".")[0] in ("threadIdx", "blockIdx", "blockDim", "gridDim")}
        if places - _PLACES or any(isinstance(s, Return | Jump) for s in walk_stmts(self.parts)):
            raise NotOneError
        locals_ = {*declared(self.parts), *self.known.loops}
        if any(not _is_ordinary(s) for s in walk_stmts(self.parts)) or names_assigned(self.parts) - locals_:
            raise NotOneError
        for e in walk_exprs(self.parts):
            match e:
                case Call(Name(text)) if text == "__syncthreads" or self.target.functions.only_computes(text):
                    continue
                case Call() | Unary("&" | "*") | Member(_, _, True):
                    raise NotOneError
                case OpaqueExpr(text) if text:
                    raise NotOneError

    def _loop(self) -> tuple[int, For]:
        """The loop over time, the only one with barriers, which stand at its top."""
        found = [(i, s) for i, s in enumerate(self.parts) if s != BARRIER and contains_barrier((s,))]
        match found:
            case [(place, For(type=str()) as loop)] if loop.var not in names_assigned(loop.body):
                inside = without_comments(loop.body)
                if any(s != BARRIER and contains_barrier((s,)) for s in inside):
                    raise NotOneError
                return place, loop
        raise NotOneError

    # ------------------------------------------------------------ memory

    def _root(self, e: Index) -> str:
        return base_name(self.known.expand(e)) or ""

    def _global_memory(self, body: Block) -> None:
        """What is written is not read, shares memory with nothing, and is written between two barriers of a step, so
        that no two threads write one element in an order that barriers alone keep."""
        pointers = {p.name for p in self.target.kernel.params if p.is_pointer}
        read = {self._root(e) for e, writes in _accesses(self.parts) if not writes}
        written = {self._root(e) for e, writes in _accesses(self.parts) if writes} & pointers
        if written & read or not written <= self.target.unaliased or not read | written <= self._storage() | pointers:
            raise NotOneError
        segments = [{self._root(e) for e, writes in _accesses(part) if writes} & pointers for part in _segments(body)]
        if sum(map(len, segments)) != len(set().union(*segments)):
            raise NotOneError
        self.written = written
        for s in walk_stmts(self.parts):
            if isinstance(s, Declare) and s.type.endswith("*") and s.name not in {*self.known.values, *self.arrays}:
                raise NotOneError

    def _storage(self) -> frozenset[str]:
        """Arrays of the block or of a thread."""
        arrays = {s.name for s in walk_stmts(self.parts) if isinstance(s, Declare) and s.dims}
        return frozenset(arrays | set(self.arrays) | {a.root for a in self.arrays.values()})

    def _array(self, e: Index) -> StateArray | None:
        """The state array that an element is of. Raises NotOneError for one of shared memory told otherwise."""
        base: Expr = e
        depth = 0
        while isinstance(base, Index):
            base, depth = base.base, depth + 1
        if isinstance(base, Name) and base.text in self.arrays:
            array = self.arrays[base.text]
            if depth == 1 + len(array.lead):
                return array
            raise NotOneError
        if self._root(e) in {a.root for a in self.arrays.values()}:
            raise NotOneError
        return None

    # ------------------------------------------------------------ order

    def _orders(self, loop: For, before: Block, body: Block) -> Iterator[tuple[Block, Block]]:
        """What is done before the steps and in each, as it stands and with the step begun behind one of its barriers;
        what stands before that barrier is then done at the end of the step before."""
        yield before, body
        for place, s in enumerate(body):
            head = body[:place]
            if s != BARRIER or not head or declared(head):
                continue
            later = Binary("+", Name(loop.var), loop.step)
            begin = If(Binary(loop.relation, loop.start, loop.bound), substitute(head, {loop.var: loop.start}))
            again = If(Binary(loop.relation, later, loop.bound), substitute(head, {loop.var: later}))
            cleared = tuple(self._without_barriers(part.then) for part in (begin, again))
            first, last = replace(begin, then=cleared[0]), replace(again, then=cleared[1])
            yield (*before, first), (*body[place + 1 :], last)

    def _passes_nothing(self, before: Block, body: Block, after: Block) -> bool:
        """Whether no step reads what other threads write in it, and each thread writes its own elements only."""
        if any(writes and self._array(e) is not None for e, writes in _accesses(after)):
            return False
        if any(self._array(e) is not None and not is_own(self.target, e) for e, _ in _accesses(before)):
            return False
        seen = set[tuple[str, int]]()
        for s in body:
            found = [(a, e, writes) for e, writes in _accesses((s,)) if (a := self._array(e)) is not None]
            now = {a.key for a, _, writes in found if writes}
            if any(writes and not is_own(self.target, e) for _, e, writes in found):
                return False
            late = seen if isinstance(s, Assign) else seen | now
            if any(a.key in late and not is_own(self.target, e) for a, e, writes in found if not writes):
                return False
            seen |= now
        return True

    def _written(self, array: StateArray, body: Block) -> StateArray:
        """The array with whether a step must hand on what it does not write."""
        for place, s in enumerate(body):
            match s:
                case Assign(Index() as target, "=", _) if self._array(target) == array and not array.lead:
                    rest = any(
                        self._array(e) == array and is_own(self.target, e) for e in _all_reads(body[place + 1 :])
                    )
                    written = [e for e, writes in _accesses(body) if writes and self._array(e) == array]
                    return replace(array, copied=rest or len(written) > 1)
        return array

    # ------------------------------------------------------------ locals

    def _locals(
        self, before: Block, body: Block, after: Block
    ) -> tuple[tuple[Declare, ...], tuple[Declare, ...], tuple[Declare, ...]]:
        """Locals of the whole kernel that steps use: those kept, those worked out anew, those of a step alone."""
        registers, fixed, own = list[Declare](), list[Declare](), list[Declare]()
        used, set_later = names_mentioned((*body, *after)), names_assigned((*before, *body, *after))
        tops = [s for s in before if isinstance(s, Declare) and s.name not in self.arrays and not _is_shared(s)]
        needed = set(used)
        for s in reversed(tops):
            if s.name in needed and s.init is not None:
                needed |= names_in(s.init)
        for s in tops:
            if s.name not in needed:
                continue
            if s.name not in self.known.types or s.dims:
                raise NotOneError
            if s.name not in set_later and s.init is not None and self._repeatable(s.init, fixed):
                fixed.append(s)
            elif s.init is None and s.name not in names_assigned(before) and self._set_first(s.name, body, after):
                own.append(s)
            elif s.type.removeprefix("const ") in BY_SPELLING and (
                s.init is not None or s.name in names_assigned(before)
            ):
                registers.append(s)
            else:
                raise NotOneError
        return tuple(registers), tuple(fixed), tuple(own)

    def _repeatable(self, e: Expr, fixed: list[Declare]) -> bool:
        """Whether an expression has the same value whenever a thread works it out."""
        locals_ = set(declared(self.parts)) - {s.name for s in fixed}
        roots = {self._root(x) for x in elements(e)}
        return not names_in(e) & locals_ and roots <= self.params - self.written

    def _set_first(self, name: str, body: Block, after: Block) -> bool:
        """Whether every step sets a local before it reads it, and nothing does after the last."""
        first = next((s for s in body if name in names_mentioned((s,))), None)
        match first:
            case Assign(Name(text), "=", value):
                return text == name and name not in names_in(value) | names_mentioned(after)
        return False

    def _steps(self, loop: For) -> tuple[Expr, int, str]:
        """Begin, direction and number of the steps."""
        start, bound = self.target.size_text(loop.start), self.target.size_text(loop.bound)
        strides = {("<", number(1)): (1, 0), ("<=", number(1)): (1, 1)}
        strides |= {(op, Unary("-", number(1))): (-1, more) for op, more in ((">", 0), (">=", 1))}
        if start is None or bound is None or (loop.relation, loop.step) not in strides:
            raise NotOneError
        stride, more = strides[loop.relation, loop.step]
        way = f"({bound}) - ({start})" if stride > 0 else f"({start}) - ({bound})"
        count = f"max({way} + {more}, 0)" if more or start != "0" else f"max({bound}, 0)"
        most = largest(self.target.contract, count)
        if most is None or most > MAX_REPEATS or names_in(loop.start) & set(declared(self.parts)):
            raise NotOneError
        return loop.start, stride, count

    def _without_barriers(self, part: Block) -> Block:
        return tuple(s for s in part if s != BARRIER)


def _is_shared(s: Declare) -> bool:
    return "__shared__" in s.qualifiers


def _is_ordinary(s: Stmt) -> bool:
    """Whether a statement neither writes a part of a value nor declares what outlives it or another name for memory."""
    match s:
        case Assign(target):
            return isinstance(target, Name | Index)
        case Declare(type=type_, qualifiers=qualifiers):
            return "&" not in type_ and not set(qualifiers) - {"extern", "__shared__", "const", "constexpr"}
    return True


def _segments(body: Block) -> Iterator[Block]:
    """The statements between barriers; those behind the last and before the first are of one step all the same."""
    part = list[Stmt]()
    for s in body:
        if s == BARRIER:
            yield tuple(part)
            part = []
        else:
            part.append(s)
    yield tuple(part)


def _accesses(part: Block) -> Iterator[tuple[Index, bool]]:
    """(element, whether it is written) of every access; what is written by ``+=`` is read too."""
    for s in walk_stmts(part):
        match s:
            case Assign(Index() as target, op, value):
                yield from ((e, False) for e in elements(target) if e is not target or op != "=")
                yield from ((e, False) for e in elements(value))
                yield target, True
            case Declare(type=type_, init=init) if type_.endswith("*") and init is not None:
                yield from ((e, False) for e in elements(init))
            case _:
                yield from ((e, False) for own in exprs_of(s) for e in elements(own))


def _all_reads(part: Block) -> list[Index]:
    return [e for e, writes in _accesses(part) if not writes]
