"""Vector loads and stores: 8 or 16 bytes an access where a kernel or a loop walks neighbouring elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch
from fsr.source.form import (
    Assign,
    Binary,
    Declare,
    Expr,
    For,
    If,
    Jump,
    Literal,
    Name,
    Scope,
    Stmt,
    While,
    conjuncts,
    number,
)
from fsr.source.mapping import replace_stmt
from fsr.source.walk import (
    contains_barrier,
    contains_return,
    contains_warp_wide,
    fresh,
    loop_regions,
    loops,
    names_assigned,
    names_in,
    names_written,
    walk_stmts,
)  # fmt: skip
from fsr.transform.collectives import missing_helpers
from fsr.transform.launch.block_size import regrid
from fsr.transform.launch.pointwise import Pointwise, id_declarations, id_expression, pointwise
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import Target, part_of, region_in, target_of, targets
from fsr.transform.vector.code import Streams, packed, streams

WIDTHS = (2, 4, 8)
THREADS = (128, 256, 512)
GAIN = 1.3
LOOP_GAIN = 1.2
SLACK = 1 << 16


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Kernels over one global id: each thread takes ``width`` neighbouring elements."""

    name: str = "vectorize"
    aims_at: frozenset[str] = frozenset(["bandwidth", "instructions", "latency", "launch"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Widths whose packs are at most 16 bytes, and block sizes to go with them."""
        for target in targets(subject):
            point, found = _elementwise(target)
            if point is None or found is None:
                continue
            most = largest(target.contract, point.bounds["x"][1])
            free = set(point.ids) == {"x"} and not subject.keep_launch
            for width in WIDTHS:
                room = most is not None and (most + SLACK) * (width if subject.keep_launch else 1) <= INT_LIMIT
                if room and found.width_fits(width):
                    for threads in THREADS if free else (target.threads,):
                        yield Move(self.name, target.region, (("width", width), ("threads", threads or 0)), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate on packs, with scalar code for the tail and for unaligned pointers."""
        target = target_of(subject, move)
        point, found = _elementwise(target)
        assert point is not None
        assert found is not None
        assert target.block is not None
        width, threads = int(move.param("width")), int(move.param("threads"))
        body = _vector_body(target, point, found, width)
        bounds = (str(threads),) if target.kernel.launch_bounds else ()
        kernel = replace(target.kernel, body=body, launch_bounds=bounds)
        block = (
            {"x": threads, "y": 1, "z": 1} if set(point.ids) == {"x"} else dict(zip(AXES, target.block, strict=True))
        )

        def relaunch(one: Launch) -> Launch:
            return one if subject.keep_launch else regrid(one, point, block, {"x": width})

        helpers = missing_helpers(target.source, ("fsr_aligned", "fsr_pack"))
        return rewritten(target, move, kernel, launch=relaunch, helpers=helpers)


def _elementwise(target: Target) -> tuple[Pointwise | None, Streams | None]:
    point = pointwise(target)
    if point is None or "x" not in point.ids or _jumps(point.core):
        return None, None
    body = (*point.lead, *point.core)
    return point, streams(target, body, point.ids["x"].name, body, point.bounds["x"][0])


def _jumps(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(s, Jump) and s.keyword == "continue" for s in walk_stmts(body)) or contains_return(body)


def _vector_body(target: Target, point: Pointwise, found: Streams, width: int) -> tuple[Stmt, ...]:
    name, type_, bound = point.ids["x"].name, point.type_of("x"), point.bounds["x"][0]
    first, every = fresh(f"first_{name}", target.names), (*point.lead, *point.core)
    pointers = _pointers_to_parameters(target, every)
    body = tuple(s for s in every if s not in pointers)
    start = Declare(f"const {type_}", first, Binary("*", id_expression("x"), number(width)))
    code = packed(target, found, body, width, Name(first), first)
    end = Binary("+", Name(first), number(width))
    inside: Expr = Binary("<=", end, bound)
    for test in () if code.aligned is None else conjuncts(code.aligned):
        inside = Binary("&&", inside, test)
    step = Assign(Name(name), "+=", Literal("1"))
    test = Binary("&&", Binary("<", Name(name), end), Binary("<", Name(name), bound))
    tail = Scope((Declare(type_, name, Name(first)), While(test, (*body, step))))
    work: Stmt = If(inside, (*code.before, code.body, *code.after), (tail,))
    if len(point.ids) > 1:
        work = If(point.guard(skip="x"), (work,))
    return (*id_declarations(point, skip=("x",)), *pointers, start, work)


def _pointers_to_parameters(target: Target, body: tuple[Stmt, ...]) -> tuple[Declare, ...]:
    """Pointers that every point declares alike (parameters taken for others), which tests of alignment name too."""
    params = {p.name for p in target.kernel.params}
    changed = names_assigned(body)
    return tuple(
        s
        for s in body
        if isinstance(s, Declare) and "*" in s.type and s.init is not None and not s.dims
        if names_in(s.init) <= params and not {s.name, *names_in(s.init)} & changed
    )


@dataclass(frozen=True, slots=True)
class VectorizeLoop:
    """Loops that a thread runs one element at a time: ``for (j = a; j < n; ++j)`` in packs, in the same order."""

    name: str = "vectorize-loop"
    aims_at: frozenset[str] = frozenset(["bandwidth", "instructions", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Innermost loops with step 1 over neighbouring elements."""
        for target in targets(subject):
            for region, loop in loop_regions(target.kernel).items():
                found = _walked(target, loop)
                for width in WIDTHS:
                    if found is not None and found.width_fits(width):
                        yield Move(self.name, region_in(target, region), (("width", width),), LOOP_GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the loop in packs, and a scalar loop for the rest."""
        target = target_of(subject, move)
        loop = loop_regions(target.kernel)[part_of(move)]
        found, width = _walked(target, loop), int(move.param("width"))
        assert found is not None
        new = _vector_loop(target, loop, found, width)
        kernel = replace(target.kernel, body=replace_stmt(target.kernel.body, loop, (new,)))
        helpers = missing_helpers(target.source, ("fsr_aligned", "fsr_pack"))
        return rewritten(target, move, kernel, helpers=helpers)


def _walked(target: Target, loop: For) -> Streams | None:
    if loop.step != Literal("1") or loop.relation != "<" or loop.type is None or loops(loop.body):
        return None
    if any(isinstance(s, Jump) for s in walk_stmts(loop.body)) or contains_return(loop.body) or loop.pragmas:
        return None
    if contains_barrier(loop.body) or contains_warp_wide(loop.body):  # threads that are aligned, and others, would part
        return None
    bound = target.size_text(loop.bound)
    most = None if bound is None else largest(target.contract, bound)
    if most is None or most > INT_LIMIT - SLACK or loop.var in names_written(loop.body):
        return None
    if names_in(loop.bound) & names_written(loop.body):
        return None
    return streams(target, loop.body, loop.var, loop.body)


def _vector_loop(target: Target, loop: For, found: Streams, width: int) -> Stmt:
    assert loop.type is not None
    at = fresh(f"{loop.var}_next", target.names)
    code = packed(target, found, loop.body, width, Name(at))
    end = Binary("+", Name(at), number(width))
    body = (*code.before, code.body, *code.after, Assign(Name(at), "+=", number(width)))
    main: Stmt = While(Binary("<=", end, loop.bound), body)
    aligned = packed(target, found, loop.body, width, loop.start).aligned
    if aligned is not None:
        main = If(aligned, (main,))
    rest = For(loop.type, loop.var, Name(at), "<", loop.bound, Literal("1"), loop.body)
    return Scope((Declare(loop.type.removeprefix("const "), at, loop.start), main, rest))
