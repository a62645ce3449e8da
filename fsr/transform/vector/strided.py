"""Packs in loops that the threads of a block share: ``for (j = threadIdx.x; j < n; j += blockDim.x)``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access, accesses_in, declared_arrays
from fsr.analysis.dependence import Parallel, parallel
from fsr.analysis.operators import OPERATORS
from fsr.analysis.types import INT, aliases, type_of
from fsr.analysis.uniform import Uniformity
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Jump,
    Literal,
    Member,
    Name,
    Return,
    Scope,
    Stmt,
    While,
    number,
)  # fmt: skip
from fsr.source.mapping import replace_stmt, substitute
from fsr.source.walk import BARRIER, contains_return, fresh, loop_regions, loops, names_in, names_mentioned, walk_stmts
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.block_values import Combiners, Partial, start_number
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import Target, part_of, region_in, target_of, targets
from fsr.transform.vector.code import Streams, origin_of, packed, streams

WIDTHS = (2, 4, 8)
SLACK = 1 << 16
GAIN = 1.2
_THREAD = Member(Name("threadIdx"), "x")


@dataclass(frozen=True, slots=True)
class Shared:
    """A loop whose iterations a one-dimensional block shares evenly, each of them alike in whatever thread it runs;
    ``streams``: what it walks; ``waits``: whether threads wait for each other before it, and behind it, as one of them
    then has elements that another had there."""

    loop: For
    threads: int
    streams: Streams
    waits: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class VectorizeStrided:
    """Each thread takes ``width`` neighbouring elements a step; sums over the block keep their terms."""

    name: str = "vectorize-strided"
    aims_at: frozenset[str] = frozenset(["bandwidth", "instructions", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The loops over neighbouring elements that a block shares."""
        for target in targets(subject):
            for region, loop in loop_regions(target.kernel).items():
                found = shared_loop(target, loop)
                for width in WIDTHS:
                    if found is not None and found.streams.width_fits(width):
                        yield Move(self.name, region_in(target, region), (("width", width),), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with packs where pointers allow, and the original loop where they do not."""
        target = target_of(subject, move)
        found = shared_loop(target, loop_regions(target.kernel)[part_of(move)])
        assert found is not None
        new = _in_packs(target, found, int(move.param("width")))
        body = replace_stmt(target.kernel.body, found.loop, (new,))
        helpers = missing_helpers(target.source, ("fsr_aligned", "fsr_pack"))
        return rewritten(target, move, replace(target.kernel, body=body), helpers=helpers)


def shared_loop(target: Target, loop: For) -> Shared | None:
    """The loop as one whose iterations may be dealt out to the block's threads in another way; None when that
    cannot be shown."""
    threads = target.threads
    if threads is None or target.block is None or target.block[1:] != (1, 1) or not _covers(target, loop, threads):
        return None
    if loop.pragmas or any(isinstance(s, Jump | While | For) for s in walk_stmts(loop.body)):
        return None
    if not _may_move(target, loop, threads):
        return None
    found = streams(target, loop.body, loop.var, loop.body)
    return None if found is None else Shared(loop, threads, found, _waits(target, loop))


def _may_move(target: Target, loop: For, threads: int) -> bool:
    """Whether an iteration does the same in whatever thread of the block it runs, and no one can tell where it did."""
    functions, combiners = target.functions, Combiners.of(target, threads)
    agreed = _agreed(combiners)
    at = next(i for i, one in enumerate(loops(target.kernel.body)) if one is loop)
    target = replace(target, kernel=replace(target.kernel, body=_settled(target, agreed)))
    loop = loops(target.kernel.body)[at]
    independent = parallel(target.kernel, loop, aliasing=target.aliasing, known=target.known, functions=functions)
    if independent is None:
        return False
    uniform = Uniformity(target.kernel, agreed, functions, target.known.shared)
    together = _reached_together(target.kernel.body, loop, uniform)
    return together and _alike(target, independent, uniform) and _folded(target, independent, combiners)


def _settled(target: Target, agreed: frozenset[str]) -> tuple[Stmt, ...]:
    """The body in which a variable that a block-wide function gave its value goes by another name from there on: it
    is the same in all threads then, whatever it was before."""
    body, done = target.kernel.body, list[Stmt]()
    while body:
        s, body = body[0], body[1:]
        done.append(s)
        match s:
            case Assign(Name(text), "=", Call(Name(function), (Name(),))) if (
                function in agreed and text in target.names
            ):
                settled = fresh(f"{text}_settled", target.names | names_mentioned(done))
                done[-1] = Declare(target.known.types.get(text, "float"), settled, s.value)
                body = substitute(body, {text: Name(settled)})
    return tuple(done)


def _covers(target: Target, loop: For, threads: int) -> bool:
    """Whether the loop starts at the thread's number and steps by the number of threads, within 32 bits."""
    start, step = (target.poly(e) for e in (loop.start, loop.step))
    strided = step.single == "blockDim.x" or step.value == threads
    bound = target.size_text(loop.bound)
    most = None if bound is None else largest(target.contract, bound)
    if loop.type is None or loop.relation != "<" or most is None or most > INT_LIMIT - SLACK:
        return False
    return start.single == "threadIdx.x" and strided


def _waits(target: Target, loop: For) -> tuple[bool, bool]:
    """Whether something before the loop, and behind it, touches what the loop writes, or writes what it touches, no
    barrier of the body standing between."""
    body, arrays = target.kernel.body, frozenset(p.name for p in target.kernel.params if p.is_pointer)
    arrays |= declared_arrays(body)
    own = accesses_in(loop.body, arrays)

    def memory(access: Access) -> str | None:
        return None if access.array is None else origin_of(target, access.array)

    written, touched = {memory(a) for a in own if a.writes}, {memory(a) for a in own}

    def meets(part: tuple[Stmt, ...]) -> bool:
        part = part[: part.index(BARRIER)] if BARRIER in part else part
        told = [(memory(a), a.writes) for a in accesses_in(part, arrays)]
        return any(m is None or m in written or (writes and m in touched) for m, writes in told)

    at = next(i for i, s in enumerate(body) if s is loop)
    return meets(body[:at][::-1]), meets(body[at + 1 :])


def _agreed(combiners: Combiners) -> frozenset[str]:
    """The functions that combine a value over the whole block for every thread."""
    found = {name: combiners.combined(name) for name in combiners.functions}
    return frozenset(name for name, one in found.items() if one is not None and one.everywhere)


def _reached_together(body: tuple[Stmt, ...], loop: For, uniform: Uniformity) -> bool:
    """Whether every thread of the block runs the loop: it stands at the top level, after no divergent return."""
    for s in body:
        if s is loop:
            return True
        if contains_return((s,)) and not (isinstance(s, If) and uniform(s.test)) and not isinstance(s, Return):
            return False
    return False


def _alike(target: Target, independent: Parallel, uniform: Uniformity) -> bool:
    """Whether an iteration does the same in whatever thread it runs."""
    loop = independent.loop
    own = {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)} | {loop.var} | set(independent.folds)
    arrays = {p.name for p in target.kernel.params if p.is_pointer}
    steady = target.known.changed & uniform.divergent & arrays
    mentioned = names_mentioned(loop.body) | names_in(loop.bound)
    return not (mentioned & uniform.divergent - own - (arrays - steady))


def _folded(target: Target, independent: Parallel, combiners: Combiners) -> bool:
    """Whether every accumulator goes, right after the loop, into a function that combines it over the block by the
    same operator, and nowhere else; sums of floats only where the contract is not exact."""
    waiting = dict(independent.folds)
    body = target.kernel.body
    at = next((i for i, s in enumerate(body) if s is independent.loop), len(body))
    for place, s in enumerate(body[at + 1 :], at + 2):
        if not waiting:
            break
        if isinstance(s, Comment) or s == BARRIER:
            continue
        name, value = _settling(s)
        match name, value:
            case str(), Call(Name(), (Name(argument),)) if argument in waiting:
                start = start_number(argument, body[:at], target.known.types)
                fits = combiners.combines(value, Partial(waiting[argument], start=start)) is True
                seen = argument in names_mentioned(body[place:])  # a thread's own part
                if seen or not fits or (target.exact and not _is_exact(target, independent, argument)):
                    return False
                del waiting[argument]
            case _:
                return False
    return not waiting


def _settling(s: Stmt) -> tuple[str | None, Expr | None]:
    """The name and value of a declaration, also one made by :func:`_settled`."""
    return (s.name, s.init) if isinstance(s, Declare) and not s.dims else (None, None)


def _is_exact(target: Target, independent: Parallel, name: str) -> bool:
    reorders = OPERATORS[independent.folds[name]].reorders
    return not reorders or type_of(Name(name), target.known.types, aliases(target.source)) == INT


def _in_packs(target: Target, found: Shared, width: int) -> Stmt:
    loop, at = found.loop, fresh(f"{found.loop.var}_next", target.names)
    assert loop.type is not None
    type_ = loop.type.removeprefix("const ")
    code = packed(target, found.streams, loop.body, width, Name(at), at)
    step: Expr = loop.step if loop.step != Literal("1") else number(found.threads)
    forward = Assign(Name(at), "+=", Binary("*", step, number(width)))
    main = While(Binary("<=", Binary("+", Name(at), number(width)), loop.bound),
                 (*code.before, code.body, *code.after, forward))  # fmt: skip
    whole = Binary("-", loop.bound, Binary("%", loop.bound, number(width)))
    rest = replace(loop, start=Binary("+", whole, loop.start))
    start = Declare(type_, at, Binary("*", loop.start, number(width)))
    before, behind = ((BARRIER,) if waits else () for waits in found.waits)
    vector = (*before, Scope((start, main)), rest, *behind)
    test = packed(target, found.streams, loop.body, width, Literal("0")).aligned
    return Scope(vector) if test is None else If(test, vector, (loop,))
