"""batch-loads: what several turns of a loop read is read before the first of them, so that its loads overlap.

A loop that ends early, stores, or adds atomically keeps each turn's load behind the turn before: no compiler may move a
load over a branch that leaves the loop, or over a store that might be to the same memory. A thread then waits for
memory once a turn. (The number of loads in flight is what bandwidth is made of: V. Volkov, "Understanding latency
hiding on GPUs", UC Berkeley, 2016.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from fsr.analysis.accesses import accesses, declared_arrays
from fsr.analysis.calls import is_atomic
from fsr.analysis.definitions import shadowing
from fsr.analysis.effects import Pointers, Unclear, element_type, pointers
from fsr.records import Candidate
from fsr.source.counted import counted
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    Return,
    Scope,
    Stmt,
    Unary,
    number,
)
from fsr.source.mapping import map_expr, map_jumps, replace_stmt, rewrite, substitute
from fsr.source.shadows import unshadowed
from fsr.source.walk import (
    Block,
    breaks,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    fresh,
    loop_regions,
    names_assigned,
    names_in,
    names_written,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.details.thread_arrays import bytes_of
from fsr.transform.details.unroll import trip_count
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest_timed
from fsr.transform.target import Target, part_of, region_in, target_of, targets

FACTORS = (8, 4, 16)
_STORES, _ENDS = 1.3, 1.8  # gains where turns write, which restrict may do as well for, and where they may be the last
_FEW = 2.0  # times that where threads are few, and each one's waiting is all there is
_MOST_BYTES = 256  # of a thread's registers
_SHORT = 8  # turns that are not worth it


@dataclass(frozen=True)
class _Batch:
    """``loop``: of which ``reads``, in the order in which one may need another, are done ahead; ``types``: of them;
    ``bytes_``: of one turn's."""

    target: Target
    loop: For
    reads: tuple[Index, ...]
    types: tuple[str, ...]
    bytes_: int


class BatchLoads:
    """``factor``: turns whose loads are done together."""

    name = "batch-loads"
    aims_at = frozenset({"latency", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Loops in whose every turn something is read from memory that nobody writes, where a turn may be the last, or
        writes."""
        for target in map(_as_counted, targets(subject)):
            for region, loop in loop_regions(target.kernel).items():
                found = self._batch(subject, target, loop)
                if found is None:
                    continue
                gain = _gain(subject, found)
                for rank, factor in enumerate(FACTORS):
                    if found.bytes_ * factor <= _MOST_BYTES:
                        yield Move(self.name, region_in(target, region), (("factor", factor),), gain - 0.05 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with its loads in batches."""
        target = _as_counted(target_of(subject, move))
        loop = loop_regions(target.kernel)[part_of(move)]
        found = self._batch(subject, target, loop)
        assert found is not None
        body = replace_stmt(target.kernel.body, loop, _written(found, int(move.param("factor"))))
        return rewritten(target, move, replace(target.kernel, body=body))

    def _batch(self, subject: Subject, target: Target, loop: For) -> _Batch | None:
        if not _may_be_ahead(target, loop):
            return None
        memory = subject.once((self.name, target.region), partial(_memory, target))
        return None if memory is None else _batch(target, loop, memory)


@dataclass(frozen=True)
class _Memory:
    """``scene``: where pointers lead; ``written``: what the kernel writes."""

    scene: Pointers
    written: frozenset[str]


def _gain(subject: Subject, found: _Batch) -> float:
    launch, gpu = found.target.launch, subject.gpu
    counts = [largest_timed(found.target.contract, text) or 1 for text in (*launch.grid, *launch.block)]
    few = prod(counts) < gpu.sm_count * gpu.max_threads_per_sm / 4
    ends = breaks(found.loop.body) or contains_return(found.loop.body)
    return (_ENDS if ends else _STORES) * (_FEW if few else 1.0)


def _as_counted(target: Target) -> Target:
    """With loops that ask for more than their count as loops that turns end, and no name that hides another."""
    kernel = target.kernel
    body = counted(unshadowed(kernel.body, (p.name for p in kernel.params)), ending=True)
    return replace(target, kernel=replace(kernel, body=body))


def _may_be_ahead(target: Target, loop: For) -> bool:
    """Whether the loop counts up to what no turn changes, and keeps its loads behind."""
    if loop.type is None or loop.relation != "<" or not _keeps_loads_behind(loop) or _is_short(target, loop):
        return False
    if shadowing(loop.body, frozenset(p.name for p in target.kernel.params) | {loop.var}):
        return False
    changing = _changing(loop)
    return loop.var not in changing and all(_plain(e) and not names_in(e) & changing for e in (loop.bound, loop.step))


def _changing(loop: For) -> frozenset[str]:
    """What a turn sets or declares."""
    return names_written(loop.body) | {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)}


def _batch(target: Target, loop: For, memory: _Memory) -> _Batch | None:
    reads = _reads(target, loop, memory)
    types = tuple(element_type(memory.scene.elements[r.base.text]) for r in reads if isinstance(r.base, Name))
    sizes = [bytes_of(target, t) for t in types]
    if not reads or len(types) != len(reads) or None in sizes:
        return None
    return _Batch(target, loop, tuple(reads), types, sum(s or 0 for s in sizes))


def _keeps_loads_behind(loop: For) -> bool:
    """Whether a turn may be the last one, or writes to memory, and nothing in it needs other threads."""
    body = loop.body
    if contains_opaque(body) or contains_barrier(body) or contains_warp_wide(body):
        return False
    own = {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
    stores = any(isinstance(s, Assign) and not isinstance(s.target, Name) and not names_in(s.target) <= own
                 for s in walk_stmts(body))  # fmt: skip
    return stores or breaks(body) or contains_return(body) or any(is_atomic(e) for e in walk_exprs(body))


def _is_short(target: Target, loop: For) -> bool:
    length = trip_count(target, loop)
    if length is not None and length < _SHORT:
        return True
    timed, most = target.timed(Binary("-", loop.bound, loop.start)), target.largest(loop.bound)
    return (timed is not None and timed < _SHORT) or (most is not None and most > INT_LIMIT - 2**16)


def _plain(e: Expr) -> bool:
    return all(isinstance(x, Name | Literal | Binary | Cast | Member) for x in walk_expr(e))


def _memory(target: Target) -> _Memory | None:
    """The kernel's memory; None where it does not show what is written."""
    try:
        scene = pointers(target.kernel, target.passed, target.contract.aliasing, target.functions)
    except Unclear:
        return None
    own, found = declared_arrays(target.kernel.body), set[str]()
    for a in accesses(target.kernel):
        if a.writes:
            root = scene.roots.get(a.array or "")
            if root is None and a.array not in own:
                return None
            found |= {root} if root is not None else set()
    return _Memory(scene, frozenset(found))


def _reads(target: Target, loop: For, memory: _Memory) -> list[Index]:
    """The elements that every turn reads before anything else, at places that the turn's number tells, or what was
    read ahead itself."""
    told = dict[str, Expr]()  # variables of the turn, as expressions of its number
    found, changing, again = list[Index](), _changing(loop), names_assigned(loop.body)
    roots = {name: root for name, root in memory.scene.roots.items() if root not in memory.written
             and "volatile" not in target.known.types.get(name, "").split()}  # fmt: skip

    def look(e: Expr) -> None:
        for part in _always(e):
            if isinstance(part, Index) and isinstance(part.base, Name) and part.base.text in roots:
                at = substitute(part, told)
                assert isinstance(at, Index)
                rest = map_expr(at.index, lambda x: Literal("0") if x in found else x)  # what is not read ahead
                varies = loop.var in names_in(at.index) and at not in found
                if varies and _plain(rest) and not names_in(rest) & changing:
                    found.append(at)

    for s in loop.body:
        match s:
            case Declare(name=name, init=init, dims=()) if init is not None:
                look(init)
                if name not in again:
                    told[name] = substitute(init, told)
                continue
            case Assign(Name(), _, value):
                look(value)
                continue
            case If(test, (Jump("break") | Return(),), ()):
                look(test)  # the turns behind the last are few: what they would have read is read for nothing
                continue
            case If(e, _, _) | Assign(_, _, e) | ExprStmt(e):
                look(e)
        break
    return found


def _always(e: Expr) -> Iterator[Expr]:
    """The parts of an expression that are evaluated whenever it is, inner ones first."""
    match e:
        case Binary("&&" | "||", left, _):
            yield from _always(left)
            return
        case Binary(_, left, right):
            yield from _always(left)
            yield from _always(right)
        case Index(_, index):
            yield from _always(index)
        case Cast(_, operand) | Member(operand, _, _):
            yield from _always(operand)
        case Call(_, args):
            for arg in args:
                yield from _always(arg)
    yield e


# ---------------------------------------------------------------- text


def _written(found: _Batch, factor: int) -> Block:
    loop, target = found.loop, found.target
    taken = set(target.names)

    def name(base: str) -> str:
        one = fresh(base, taken)
        taken.add(one)
        return one

    first, u, done = name(f"{loop.var}_first"), name("u"), name("done")
    values = [name(f"{r.base.text}_read") for r in found.reads if isinstance(r.base, Name)]
    step: Expr = Name(u) if loop.step == Literal("1") else Binary("*", Name(u), loop.step)
    here: Expr = Binary("+", Name(first), step)
    told = {r: Index(Name(v), Name(u)) for r, v in zip(found.reads, values, strict=True)}

    loads = list[Stmt]()
    for read, value in told.items():
        index = map_expr(read.index, lambda x: told.get(x, x) if isinstance(x, Index) else x)
        loads.append(Assign(value, "=", Index(read.base, substitute(index, {loop.var: here}))))
    within = Binary("<", here, loop.bound)
    ends = breaks(loop.body)
    noted = Assign(Name(done), "=", Literal("true"))
    turn = map_jumps(loop.body, lambda jump: [noted, jump] if jump.keyword == "break" else [jump])
    body = _in_place(found, turn, told)
    heads: tuple[Stmt, ...] = tuple(
        Declare(t, v, None, (number(factor),)) for t, v in zip(found.types, values, strict=True)
    )
    each = For("int", u, number(0), "<", number(factor), number(1), (If(within, tuple(loads)),), ("#pragma unroll",))
    own = Declare(loop.type or "int", loop.var, here)
    turns = For("int", u, number(0), "<", number(factor), number(1),
                (If(Binary(">=", here, loop.bound), (Jump("break"),)), own, *body), ("#pragma unroll",))  # fmt: skip
    leave: Block = (If(Name(done), (Jump("break"),)),) if ends else ()
    every: Expr = number(factor) if loop.step == Literal("1") else Binary("*", number(factor), loop.step)
    whole = For(loop.type, first, loop.start, "<", loop.bound, every, (*heads, each, turns, *leave))
    return (Scope((Declare("bool", done, Literal("false")), whole)),) if ends else (whole,)


def _in_place(found: _Batch, body: Block, told: dict[Index, Index]) -> Block:
    """The turn's statements with what was read ahead: by the places as they are written, variables told or not."""
    again = names_assigned(found.loop.body)
    own = {s.name: s.init for s in found.loop.body
           if isinstance(s, Declare) and s.init is not None and s.name not in again}  # fmt: skip

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Unary) and e.op == "&":
            return e  # a place is no value
        if isinstance(e, Index) and isinstance(e.base, Name):
            for read, value in told.items():
                if read.base == e.base and _spelled(e, own, read):
                    return value
        return None

    return rewrite(body, change)


def _spelled(e: Index, own: dict[str, Expr], read: Index) -> bool:
    at: Expr = e
    for _ in range(4):
        if at == read:
            return True
        at = substitute(at, own)
    return at == read
