"""Row per thread becomes row per warp or row per block: neighbouring threads then read neighbouring elements.

One thread walking a row reads one element of a 32-byte sector at a time, and rows lie far apart, so a warp
touches 32 sectors a load. With a group of threads a row, loads are whole sectors, a row's elements can stay in
registers or shared memory between the loops that use them, and there are 32 to 1024 times as many threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.elements import WIDEST_BYTES
from fsr.hardware.c_types import element_bytes
from fsr.records import Candidate, Launch
from fsr.source.form import (
    Binary,
    Declare,
    Expr,
    For,
    If,
    Jump,
    KernelForm,
    Literal,
    Member,
    Name,
    Return,
    Scope,
    Stmt,
    number,
)
from fsr.source.rewrite import replace_kernel
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import with_launch
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.block_rows import block_row_kernel
from fsr.transform.rows.cache import row_space
from fsr.transform.rows.fast import cached
from fsr.transform.rows.row_kernel import RowKernel, fresh, row_kernel, walks_along
from fsr.transform.rows.share import Group, helpers_of, plus, shared_out, times
from fsr.transform.rows.units import Unit, crossing, flatten
from fsr.transform.sizes import INT_LIMIT, largest

WARP = 32
WARP_BLOCKS = (128, 256)
FEW_LANES = (4, 8)  # of a warp: a sector of 32 bytes holds eight floats
BLOCKS = (128, 256, 512, 1024)
FIRST_GAIN = {"none": 6.0, "shared": 9.0, "register": 12.0}
LIFTED_GAIN = {"none": 1.05, "shared": 1.2, "register": 1.4}  # its loads are whole sectors already
SHORTEST = 16  # iterations: half a warp has nothing to do below
IDLE = 4  # a block may be so many times as large as its longest loop: the other threads have nothing to do
SCATTERED_GAIN = 1.1  # nothing lies side by side in a row: more threads may help all the same
AIMS = frozenset(["uncoalesced", "latency", "occupancy", "bandwidth"])


@dataclass(frozen=True, slots=True)
class RowsToGroups:
    """One of the two actions: ``warp`` groups or whole blocks."""

    name: str
    warp: bool
    aims_at: frozenset[str] = AIMS

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Group sizes times ways to cache a row; caching only where the row is read twice and fits."""
        for kernel in subject.kernels.values():
            rows = _rows(subject, kernel)
            if rows is None or not _fits(rows, subject):
                continue
            longest = _longest(rows)
            for threads in () if _all_short(rows) else self._blocks(rows, subject.keep_launch):
                if longest is not None and not self.warp and threads > IDLE * longest:
                    continue
                yield from self._of_threads(rows, threads, subject.keep_launch)
            if self.warp and not subject.keep_launch:
                yield from _of_few_lanes(self.name, rows)

    def _blocks(self, rows: RowKernel, keep_launch: bool) -> tuple[int, ...]:
        """Threads a block to offer."""
        if keep_launch:
            return () if self.warp and rows.lifted else (rows.threads,)
        if self.warp:
            return WARP_BLOCKS if rows.guarded else (32,)  # without a guard, a block may have no row to spare
        return BLOCKS

    def _of_threads(self, rows: RowKernel, threads: int, keep_launch: bool) -> Iterator[Move]:
        group = _group(rows, threads, self.warp)
        if threads % 32 or not 32 <= threads <= 1024 or (self.warp is False and threads == 32):
            return
        if keep_launch and not rows.lifted and _returns_inside(rows.units):
            return
        region = rows.target.kernel.name
        along, lifted = walks_along(rows), rows.lifted
        for width, cache in _ways(rows):
            if (width, cache) != (1, "none"):
                space = row_space(rows, group, width, cache)
                if space is None or not space.worthwhile:
                    continue
            gain = (
                ((LIFTED_GAIN if lifted else FIRST_GAIN)[cache] if along else SCATTERED_GAIN)
                * (1.2 if width > 1 else 1.0)
                * (1.0 if threads <= 256 else 0.9)
            )
            yield Move(self.name, region, (("threads", threads), ("cache", cache), ("width", width)), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the kernel's rows shared out to groups."""
        rows = _rows(subject, subject.kernels[move.region])
        assert rows is not None
        threads, width, cache = int(move.param("threads")), int(move.param("width")), str(move.param("cache"))
        group = _group(rows, threads, self.warp, int(dict(move.params).get("lanes", WARP)))
        helpers = set(helpers_of(rows.units, group))
        types = dict(rows.scene.types)
        cross = crossing(rows.units, rows.scene)
        if (width, cache) == (1, "none"):
            body = shared_out(rows.units, group, cross, types, rows.before)
        else:
            space = row_space(rows, group, width, cache)
            assert space is not None
            body = cached(rows, space, cross)
            helpers |= space.helpers
        kernel = _kernel(rows, group, body, subject)
        candidate = subject.candidate
        if not subject.keep_launch:
            blocks = rows.rows if not self.warp or threads == 32 else f"ceil_div({rows.rows}, {threads // group.size})"
            shared_bytes = "0" if rows.lifted else rows.target.launch.shared_bytes
            candidate = replace(
                candidate,
                plan=with_launch(
                    candidate.plan, rows.target.position, lambda one: _regrid(one, blocks, threads, shared_bytes)
                ),
            )
        source = replace_kernel(
            candidate.source, rows.target.kernel, kernel, missing_helpers(candidate.source, helpers)
        )
        return replace(candidate, source=source, actions=(*candidate.actions, move.name))


def _rows(subject: Subject, kernel: KernelForm) -> RowKernel | None:
    """The kernel as one row a thread: as written, or lifted from one row a block."""
    return subject.once(("rows", kernel.name), lambda: row_kernel(subject, kernel) or block_row_kernel(subject, kernel))


def _of_few_lanes(name: str, rows: RowKernel) -> Iterator[Move]:
    """A few lanes of a warp a row, where rows are short, or of lengths that data tells: a whole warp would wait for
    few elements. Only sums and the like: lanes that other lanes have left cannot meet at barriers."""
    if rows.lifted or not rows.guarded or crossing(rows.units, rows.scene):
        return
    if any(u.loop is not None and u.loop.places for u in flatten(rows.units)):
        return
    longest = _longest(rows)
    for lanes in FEW_LANES:
        if longest is None or lanes <= longest <= 2 * WARP:
            gain = (FIRST_GAIN["none"] if walks_along(rows) else SCATTERED_GAIN) * (
                lanes / 8 if longest is None else 1.0
            )
            params = (("threads", WARP_BLOCKS[0]), ("lanes", lanes))
            yield Move(name, rows.target.kernel.name, (*params, ("cache", "none"), ("width", 1)), gain)


def _ways(rows: RowKernel) -> list[tuple[int, str]]:
    """Elements a load and cache, for the element types that the kernel has: 16 bytes a load where that is wide."""
    sizes = {size for t in rows.scene.pointers.elements.values() if (size := element_bytes(t))}
    wide = sorted({WIDEST_BYTES // s for s in sizes if s < WIDEST_BYTES}, reverse=True)
    packed = [(w, c) for c in ("register", "shared", "none") for w in wide]
    return [*packed, (1, "register"), (1, "none")]


def _regrid(launch: Launch, blocks: str, threads: int, shared_bytes: str) -> Launch:
    _, y, z = launch.grid
    return replace(launch, grid=(blocks, y, z), block=(str(threads), "1", "1"), shared_bytes=shared_bytes)


def _group(rows: RowKernel, threads: int, warp: bool, lanes: int = WARP) -> Group:
    return Group(lanes if warp else threads, threads, fresh("lane", rows.target.kernel))


def _fits(rows: RowKernel, subject: Subject) -> bool:
    """Whether row numbers and strided loop variables stay within 32 bits, and the grid within its limit."""
    blocks = largest(subject.contract, rows.rows)
    if blocks is None or blocks > INT_LIMIT - 1024:
        return False
    for unit in flatten(rows.units):
        if unit.loop is None:
            continue
        loop = unit.loop.loop
        bound = rows.target.largest(loop.bound)
        if bound is None or bound > INT_LIMIT - 65536:
            return False
    return True


def _longest(rows: RowKernel) -> int | None:
    """Iterations of the longest loop at the sizes that are timed; None where one is not known."""
    lengths = [rows.target.timed(u.loop.loop.bound) for u in flatten(rows.units) if u.loop is not None]
    return max((n for n in lengths if n is not None), default=None) if None not in lengths else None


def _all_short(rows: RowKernel) -> bool:
    """Whether no loop is long enough to share at the sizes that are timed."""
    lengths = [rows.target.timed(u.loop.loop.bound) for u in flatten(rows.units) if u.loop is not None]
    return all(length is not None and length < SHORTEST for length in lengths)


def _returns_inside(units: tuple[Unit, ...]) -> bool:
    """Whether a ``return`` stands inside a loop, where ``continue`` could not take its place."""
    return any(
        isinstance(inner.stmt, Return) for u in flatten(units) if u.kind == "repeat" for inner in flatten(u.inner[0])
    )


def _kernel(rows: RowKernel, group: Group, body: tuple[Stmt, ...], subject: Subject) -> KernelForm:
    kernel, row = rows.target.kernel, rows.row
    thread, block = Member(Name("threadIdx"), "x"), Member(Name("blockIdx"), "x")
    in_warp: Expr = Binary("%", thread, number(group.size))
    lane = Declare("const int", group.lane, in_warp if group.is_warp else thread)
    warps = group.threads // group.size
    number_in_block: Expr = Binary("/", thread, number(group.size)) if group.is_warp else Literal("0")
    if subject.keep_launch and not rows.lifted:
        type_ = row.type.removeprefix("const ")
        first = times(block, number(rows.threads))
        over_rows = For(
            type_,
            row.name,
            plus(first, number_in_block),
            "<",
            Binary("*", Binary("+", block, number(1)), number(rows.threads)),
            number(warps if group.is_warp else 1),
            tuple(_continuing(s) for s in body),
        )
        new_body: tuple[Stmt, ...] = (*rows.before, lane, over_rows)
    else:
        own = plus(times(block, number(warps)), number_in_block) if group.is_warp else block
        new_body = (*rows.before, lane, replace(row, init=own), *body)
    restrict = not rows.target.aliasing
    params = tuple(replace(p, restrict=p.restrict or (restrict and p.is_pointer)) for p in kernel.params)
    bounds = kernel.launch_bounds if subject.keep_launch else (str(group.threads),)
    return replace(kernel, params=params, body=new_body, launch_bounds=bounds)


def _continuing(stmt: Stmt) -> Stmt:
    """A statement of the row with ``return`` meaning: on to the next row."""
    match stmt:
        case Return():
            return Jump("continue")
        case If(then=then, orelse=orelse):
            return replace(stmt, then=tuple(map(_continuing, then)), orelse=tuple(map(_continuing, orelse)))
        case Scope(body=body):
            return replace(stmt, body=tuple(map(_continuing, body)))
    return stmt


ROW_PER_WARP = RowsToGroups("row-per-warp", warp=True)
ROW_PER_BLOCK = RowsToGroups("row-per-block", warp=False)
