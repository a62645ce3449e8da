"""What of a row can be handled in packs of neighbouring elements, and kept in registers or shared memory between the
loops that use it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access
from fsr.analysis.effects import Unclear, accesses
from fsr.analysis.elements import WIDEST_BYTES, always, element
from fsr.analysis.parallel import VAR, ParallelLoop, canonical, private_names, stride
from fsr.hardware.c_types import BY_SPELLING, element_bytes
from fsr.hardware.limits import PARTIAL_SUMS_BYTES, STATIC_SHARED_BYTES
from fsr.source.form import Call, Declare, Expr, Index, Literal, Name, Return, Stmt
from fsr.source.mapping import rewrite, substitute
from fsr.source.walk import integer, names_changed, names_in, walk_expr, walk_exprs
from fsr.transform.rows.row_kernel import RowKernel, fresh
from fsr.transform.rows.share import Group
from fsr.transform.rows.units import Unit, flatten, level_of_loops

_FLOAT_FUNCTIONS = """
expf exp2f exp10f expm1f logf log2f log10f log1pf powf sqrtf rsqrtf cbrtf sinf cosf tanf asinf acosf atanf sinhf coshf
tanhf asinhf acoshf atanhf erff erfcf lgammaf tgammaf __expf __logf __powf __sinf __cosf __tanf
"""
FLOAT_FUNCTIONS = frozenset(_FLOAT_FUNCTIONS.split())
REGISTER_BYTES = 384  # a thread's cached row: 96 registers of 255, the rest is for the work
SHARED_BYTES = STATIC_SHARED_BYTES - PARTIAL_SUMS_BYTES


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer whose elements are handled in packs. ``index``: of an element, in terms of VAR. ``kept``: in the
    cache between loops; ``load`` at the start (otherwise its first loop writes every element); ``stored``: what is
    kept goes to memory too (otherwise nothing but these loops reads it there)."""

    root: str
    pointer: str
    index: Expr
    type: str
    kept: bool
    load: bool
    name: str
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Reuse:
    """A function value that two loops compute for the same element: ``expr`` names VAR. The loop ``first`` keeps it,
    the loops after it take it from there."""

    expr: Expr
    type: str
    name: str
    first: Stmt


@dataclass(frozen=True, slots=True)
class RowSpace:
    """The common index range of a row's loops and what is done in it."""

    group: Group
    width: int
    cache: str  # none, register, shared
    start: int
    bound: Expr
    level: tuple[Unit, ...]
    slots: tuple[Slot, ...]
    steps: int  # packs a thread (register), or packs a row (shared); 0 without a cache
    names: dict[str, str]
    reused: tuple[Reuse, ...] = ()
    early: tuple[Unit, ...] = ()  # declarations between the loops that addresses need: they go ahead of them

    @property
    def helpers(self) -> frozenset[str]:
        """The device functions that the fast way uses."""
        return frozenset(["fsr_pack", "fsr_aligned"]) if self.width > 1 else frozenset()

    @property
    def worthwhile(self) -> bool:
        """Whether there is anything to keep (with a cache) or to read in packs (with a width)."""
        return any(s.kept for s in self.slots) if self.cache != "none" else bool(self.slots) and self.width > 1

    def pack_type(self, type_: str) -> str:
        """The type of a pack of elements of a type."""
        return type_ if self.width == 1 else f"fsr_pack<{type_}, {self.width}>"

    def covers(self, unit: Unit) -> bool:
        """Whether a unit is a loop over this range."""
        return unit.loop is not None and _in_range(unit.loop, self.bound)


def _in_range(split: ParallelLoop, bound: Expr) -> bool:
    loop = split.loop
    return loop.bound == bound and loop.relation == "<" and integer(loop.step) == 1 and integer(loop.start) is not None


def row_space(rows: RowKernel, group: Group, width: int, cache: str) -> RowSpace | None:
    """The fast way for a row kernel, or None where its loops, buffers or sizes give none."""
    level = level_of_loops(rows.units)
    if level is None:
        return None
    first = next(u for u in level if u.kind == "loop")
    assert first.loop is not None
    bound = first.loop.loop.bound
    loops = [u.loop for u in level if u.loop is not None and _in_range(u.loop, bound)]
    tail = level[level.index(first) :]
    if not loops or names_in(bound) & rows.scene.changing or any(isinstance(u.stmt, Return) for u in flatten(tail)):
        return None
    start = min(integer(p.loop.start) or 0 for p in loops)
    if start < 0:
        return None
    slots = _slots(rows, loops, start, cache)
    slots = tuple(s for s in slots if BY_SPELLING[s.type].bytes * width <= WIDEST_BYTES)
    slots = tuple(replace(s, stored=not (s.kept and _seen_here_alone(s, slots, loops, rows))) for s in slots)
    slots, early = _declared_before(slots, tail, rows)
    kernel = rows.target.kernel
    names = {n: fresh(n, kernel) for n in ("packs", "pack", "step", "u", "fast")}
    space = RowSpace(group, width, cache, start, bound, level, slots, 0, names, early=early)
    longest = rows.target.timed(bound)
    if cache == "none" or longest is None:
        return space if cache == "none" else None
    return _sized(space, rows, longest - start)


def _seen_here_alone(slot: Slot, slots: tuple[Slot, ...], loops: list[ParallelLoop], rows: RowKernel) -> bool:
    """Whether a slot is of scratch memory that nothing but the loops sees: no other launch, and nothing else here."""
    plan = rows.target.candidate.plan
    uses = sum(one.args.count(slot.root) for one in plan.launches)
    if slot.root not in {one.name for one in plan.scratch} or uses != 1 or [s.root for s in slots].count(slot.root) > 1:
        return False
    users = [u for u in flatten(rows.units) if any(a.root == slot.root for a in u.accesses)]
    return all(u.loop in loops for u in users)


def _sized(space: RowSpace, rows: RowKernel, length: int) -> RowSpace | None:
    """The space with a cache that holds rows of ``length`` elements; None when that is too large."""
    kept = sum(BY_SPELLING[s.type].bytes for s in space.slots if s.kept)
    packs = -(-max(length, 1) // space.width)
    if space.cache == "register":
        steps = -(-packs // space.group.size)
        if steps * space.width * kept > REGISTER_BYTES:
            return None
        room = REGISTER_BYTES - steps * space.width * kept
        reused = tuple(r for r in reuses(space, rows) if steps * space.width * BY_SPELLING[r.type].bytes <= room)[:1]
        return replace(space, steps=steps, reused=reused)
    rows_in_block = space.group.threads // space.group.size
    if packs * space.width * kept * rows_in_block > SHARED_BYTES:
        return None
    return replace(space, steps=packs)


def _declared_before(
    slots: tuple[Slot, ...], tail: tuple[Unit, ...], rows: RowKernel
) -> tuple[tuple[Slot, ...], tuple[Unit, ...]]:
    """The slots whose address can be known before the first loop, and the declarations that must move there for it:
    those that only compute, from what does not change."""
    inside = {u.stmt.name: u for u in tail if isinstance(u.stmt, Declare)}
    unsteady = (rows.scene.changing - frozenset(rows.scene.pointers.roots)) | rows.scene.moving
    early: dict[str, Unit] = {}
    for name, unit in inside.items():
        assert isinstance(unit.stmt, Declare)
        used = frozenset[str]() if unit.stmt.init is None else names_in(unit.stmt.init)
        steady = not unit.accesses and unit.kind == "all" and not ({name} | used) & unsteady
        if steady and unit.stmt.init is not None and not used & (set(inside) - set(early)):
            early[name] = unit
    ready = tuple(s for s in slots if not (names_in(s.index) | {s.pointer}) & (set(inside) - set(early)))
    needed = {n for s in ready for n in names_in(s.index) | {s.pointer}}
    for name, unit in reversed(early.items()):
        if name in needed and isinstance(unit.stmt, Declare) and unit.stmt.init is not None:
            needed |= names_in(unit.stmt.init)
    return ready, tuple(unit for name, unit in early.items() if name in needed)


def _slots(rows: RowKernel, loops: list[ParallelLoop], start: int, cache: str) -> tuple[Slot, ...]:
    every = [a for u in flatten(rows.units) for a in u.accesses]
    roots = dict.fromkeys(a.root for p in loops for a in p.accesses)
    found = (_slot(rows, root, loops, every, start, cache) for root in roots)
    return tuple(s for s in found if s is not None)


def _slot(
    rows: RowKernel, root: str, loops: list[ParallelLoop], every: list[Access], start: int, cache: str
) -> Slot | None:
    """How one buffer can be handled in packs, if it can."""
    using = [p for p in loops if any(a.root == root for a in p.accesses)]
    places = {canonical(a, p.loop.var) for p in using for a in p.accesses if a.root == root}
    inside = sum(a.root == root for p in using for a in p.accesses)
    written = any(a.root == root and a.kind != "read" for a in every)
    if len(places) != 1 or any(a.root == root and a.kind == "atomic" for a in every):
        return None
    if written and inside != sum(a.root == root for a in every):
        return None  # somebody else looks at it between the loops
    pointer, index = places.pop()
    type_ = rows.scene.pointers.elements[pointer]
    unit_stride = stride(index, VAR.text, rows.scene.changing - {pointer})
    if unit_stride != Literal("1") or pointer in rows.scene.moving or element_bytes(type_) is None:
        return None
    if not all(_only_elements(p, root, pointer, rows) for p in using):
        return None
    firsts = [_first(p, pointer, start) for p in using]
    if not any(firsts):
        return None
    kept = cache != "none" and len(using) > 1
    if not kept and written and len(using) > 1:
        return None  # packs in memory only: leave the order of reads and writes as it is
    if not kept and firsts[0] is None:
        return None
    load = firsts[0] != "write" or _may_be_read_first(using[0], root)
    name = fresh(f"{pointer}_row" if kept else f"{pointer}_pack", rows.target.kernel)
    return Slot(root, pointer, index, type_, kept, load, name)


def _first(split: ParallelLoop, pointer: str, start: int) -> str | None:
    """What the loop does first with every element of the range: 'read', 'write', or None when it may do nothing."""
    if integer(split.loop.start) != start:
        return None
    return next((kind for kind, place in always(split.loop.body) if place[0] == pointer), None)


def _may_be_read_first(split: ParallelLoop, root: str) -> bool:
    """Whether the loop may read an element, under a condition, before it surely writes it."""
    for access in split.accesses:
        if access.root == root:
            if access.kind != "write":
                return True
            if not access.tests:
                return False
    return False


def _only_elements(split: ParallelLoop, root: str, pointer: str, rows: RowKernel) -> bool:
    """Whether every access of the buffer in the loop is one that a pack can stand for."""
    body = rewrite(split.loop.body, lambda e: VAR if _names(e, pointer) else None)
    try:
        left = accesses(body, rows.scene.pointers)
    except Unclear:
        return False
    return not any(a.root == root for a in left)


def _names(expr: Expr, pointer: str) -> bool:
    place = element(expr)
    return place is not None and place[0] == pointer


# ---------------------------------------------------------------- values computed twice


def reuses(space: RowSpace, rows: RowKernel) -> list[Reuse]:
    """The calls of floating-point functions, largest first, that more than one loop makes for each element with the
    same arguments. They depend on kept elements and on values that no longer change, so that computing them once,
    ahead of the first loop's own work, gives the same."""
    units = list(space.level)
    found: list[tuple[int, Reuse]] = []
    seen: dict[Expr, int] = {}
    for at, unit in enumerate(units):
        if not space.covers(unit) or unit.loop is None or integer(unit.loop.loop.start) != space.start:
            continue
        for call in dict.fromkeys(_calls(unit.loop, space, rows)):
            first = seen.setdefault(call, at)
            later = frozenset(n for u in units[first:] for n in names_changed([u.stmt]))
            declared_again = frozenset(u.stmt.name for u in units[first:] if isinstance(u.stmt, Declare))
            if first == at or names_in(call) & (later | declared_again) - {s.pointer for s in space.slots}:
                continue
            reuse = Reuse(call, "float", fresh("kept_row", rows.target.kernel), units[first].stmt)
            found.append((-sum(1 for _ in walk_expr(call)), reuse))
    return [reuse for _, reuse in sorted(found, key=lambda pair: pair[0])]


def _calls(split: ParallelLoop, space: RowSpace, rows: RowKernel) -> list[Expr]:
    """The candidates in one loop, the loop variable anonymous."""
    private = private_names(split.loop) - {split.loop.var}
    kept = {s.pointer: s for s in space.slots if s.kept}
    found = []
    for expr in walk_exprs(split.loop.body):
        if not isinstance(expr, Call) or not isinstance(expr.callee, Name) or names_in(expr) & private:
            continue
        if expr.callee.text not in FLOAT_FUNCTIONS:
            continue
        loads = [e for e in walk_expr(expr) if element(e) is not None or isinstance(e, Index)]
        general = substitute(expr, {split.loop.var: VAR})
        if loads and all(_kept_element(e, split.loop.var, kept) for e in loads) and not _written(kept, rows, loads):
            found.append(general)
    return found


def _kept_element(expr: Expr, var: str, kept: dict[str, Slot]) -> bool:
    place = element(expr)
    return place is not None and place[0] in kept and substitute(place[1], {var: VAR}) == kept[place[0]].index


def _written(kept: dict[str, Slot], rows: RowKernel, loads: list[Expr]) -> bool:
    """Whether the kernel writes a buffer that the loads read."""
    written = {a.root for u in flatten(rows.units) for a in u.accesses if a.kind != "read"}
    return any(place is not None and kept[place[0]].root in written for place in map(element, loads))
