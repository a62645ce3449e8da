"""batch-loads: what several turns of a loop read is read before the first of them, so that its loads overlap.

A loop that ends early, stores, or adds atomically keeps each turn's load behind the turn before: no compiler may move a
load over a branch that leaves the loop, or over a store that might be to the same memory. A thread then waits for
memory once a turn. (The number of loads in flight is what bandwidth is made of: V. Volkov, "Understanding latency
hiding on GPUs", UC Berkeley, 2016.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from fsr.source.mapping import map_expr, replace_stmt, rewrite, substitute
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
                found = _batch(target, loop)
                for rank, factor in enumerate(FACTORS if found is not None else ()):
                    if found is not None and found.bytes_ * factor <= _MOST_BYTES:
                        gain = _gain(subject, found) - 0.05 * rank
                        yield Move(self.name, region_in(target, region), (("factor", factor),), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with its loads in batches."""
        target = _as_counted(target_of(subject, move))
        loop = loop_regions(target.kernel)[part_of(move)]
        found = _batch(target, loop)
        assert found is not None
        body = replace_stmt(target.kernel.body, loop, _written(found, int(move.param("factor"))))
        return rewritten(target, move, replace(target.kernel, body=body))


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


def _batch(target: Target, loop: For) -> _Batch | None:
    if loop.type is None or loop.relation != "<" or not _keeps_loads_behind(loop) or _is_short(target, loop):
        return None
    if shadowing(loop.body, frozenset(p.name for p in target.kernel.params) | {loop.var}):
        return None
    changing = names_written(loop.body) | {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)}
    heads = (loop.bound, loop.step)
    if loop.var in names_written(loop.body) or any(names_in(e) & changing or not _plain(e) for e in heads):
        return None
    try:
        scene = pointers(target.kernel, target.passed, target.contract.aliasing, target.functions)
    except Unclear:
        return None
    written = _written_roots(target, scene)
    if written is None:
        return None
    reads = list(_reads(target, loop, scene, written, frozenset(changing)))
    types = tuple(element_type(scene.elements[r.base.text]) for r in reads if isinstance(r.base, Name))
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


def _written_roots(target: Target, scene: Pointers) -> frozenset[str] | None:
    """The memory that the kernel writes; None where that does not show."""
    own = declared_arrays(target.kernel.body)
    found = set[str]()
    for a in accesses(target.kernel):
        if a.writes:
            root = scene.roots.get(a.array or "")
            if root is None and a.array not in own:
                return None
            found |= {root} if root is not None else set()
    return frozenset(found)


def _reads(
    target: Target, loop: For, scene: Pointers, written: frozenset[str], changing: frozenset[str]
) -> Iterator[Index]:
    """The elements that every turn reads before anything else, at places that the turn's number tells, or what was
    read ahead itself."""
    told = dict[str, Expr]()  # variables of the turn, as expressions of its number
    found = list[Index]()
    steady = changing - {loop.var}

    def look(e: Expr) -> None:
        for part in _always(e):
            if isinstance(part, Index) and isinstance(part.base, Name) and part.base.text in scene.roots:
                at = substitute(part, told)
                assert isinstance(at, Index)
                free = _free(at.index, found)
                may = scene.roots[part.base.text] not in written and not free & steady
                may = may and "volatile" not in target.known.types.get(part.base.text, "").split()
                varies = loop.var in names_in(at.index)
                if may and varies and at not in found and _computes(at.index, found):
                    found.append(at)

    for s in loop.body:
        match s:
            case Declare(name=name, init=init, dims=()) if init is not None:
                look(init)
                if not _is_set_again(loop, name):
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
    yield from found


def _is_set_again(loop: For, name: str) -> bool:
    return any(isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text == name
               for s in walk_stmts(loop.body))  # fmt: skip


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


def _free(e: Expr, found: list[Index]) -> frozenset[str]:
    """The names in an index but for those within what is read ahead."""
    return names_in(map_expr(e, lambda x: Literal("0") if x in found else x))


def _computes(e: Expr, found: list[Index]) -> bool:
    """Whether an index is arithmetic on what is known before the turn."""
    return _plain(map_expr(e, lambda x: Literal("0") if x in found else x))


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
    for read, value in zip(found.reads, values, strict=True):
        index = _by_reads(read.index, told)
        loads.append(Assign(Index(Name(value), Name(u)), "=", Index(read.base, substitute(index, {loop.var: here}))))
    within = Binary("<", here, loop.bound)
    ends = breaks(loop.body)
    turn = _leaving(loop.body, done) if ends else loop.body
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


def _by_reads(index: Expr, told: dict[Index, Index]) -> Expr:
    return map_expr(index, lambda x: told.get(x, x) if isinstance(x, Index) else x)


def _in_place(found: _Batch, body: Block, told: dict[Index, Index]) -> Block:
    """The turn's statements with what was read ahead: by the places as they are written, variables told or not."""
    own = {s.name: s.init for s in found.loop.body
           if isinstance(s, Declare) and s.init is not None and not _is_set_again(found.loop, s.name)}  # fmt: skip

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


def _leaving(body: Block, done: str) -> Block:
    """The statements with a note whenever they end the loop."""
    found = list[Stmt]()
    for s in body:
        match s:
            case Jump("break"):
                found.append(Assign(Name(done), "=", Literal("true")))
            case If(_, then, orelse):
                s = replace(s, then=_leaving(then, done), orelse=_leaving(orelse, done))
            case Scope(inner):
                s = replace(s, body=_leaving(inner, done))
        found.append(s)
    return tuple(found)
