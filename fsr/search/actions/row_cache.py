"""The fast way through a row: packs of neighbouring elements, kept in registers or shared memory between loops.

The kernel gets two ways: the fast one where the row's addresses and length allow packs and the row fits the
cache, told apart at run time, and the plain one (elements dealt out one by one) for every other row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fsr.search.actions.row_share import Group, folding, guarded_by_barriers, number, plus, shared_out, times
from fsr.search.idioms.effects import Access, Unclear, accesses
from fsr.search.idioms.elements import SIZES, WIDEST_BYTES, always, element
from fsr.search.idioms.parallel import VAR, ParallelLoop, canonical, stride
from fsr.search.idioms.rows import RowKernel, fresh
from fsr.search.idioms.tree import names_of, rewrite_body, substitute
from fsr.search.idioms.units import Unit, flatten, level_of_loops
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Return,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.walk import integer

REGISTER_BYTES = 384  # a thread's cached row: 96 registers of 255, the rest is for the work
SHARED_BYTES = 46 * 1024  # static shared memory is 48 KiB; partial sums take the rest


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer whose elements are handled in packs. ``index``: of an element, in terms of VAR. ``kept``: in the
    cache between loops; ``load`` at the start (otherwise its first loop writes every element)."""

    root: str
    pointer: str
    index: Expr
    type: str
    kept: bool
    load: bool
    name: str


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

    @property
    def helpers(self) -> frozenset[str]:
        """The device functions that the fast way uses."""
        return frozenset(["fsr_pack", "fsr_aligned"]) if self.width > 1 else frozenset()

    @property
    def worthwhile(self) -> bool:
        """Whether there is anything to keep (with a cache) or to read in packs (with a width)."""
        return any(s.kept for s in self.slots) if self.cache != "none" else bool(self.slots) and self.width > 1

    def element_type(self, slot: Slot) -> str:
        """The type of one pack."""
        return slot.type if self.width == 1 else f"fsr_pack<{slot.type}, {self.width}>"

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
    if not loops or names_of(bound) & rows.scene.changing or any(isinstance(u.stmt, Return) for u in flatten(tail)):
        return None
    start = min(integer(p.loop.start) or 0 for p in loops)
    if start < 0:
        return None
    slots = _slots(rows, loops, start, cache)
    slots = tuple(s for s in slots if SIZES[s.type] * width <= WIDEST_BYTES)
    kernel = rows.launched.kernel
    names = {n: fresh(n, kernel) for n in ("packs", "pack", "step", "u", "fast")}
    space = RowSpace(group, width, cache, start, bound, level, slots, 0, names)
    longest = rows.launched.timed(bound)
    if cache == "none" or longest is None:
        return space if cache == "none" else None
    return _sized(space, longest - start)


def _sized(space: RowSpace, length: int) -> RowSpace | None:
    """The space with a cache that holds rows of ``length`` elements; None when that is too large."""
    kept = sum(SIZES[s.type] for s in space.slots if s.kept)
    packs = -(-max(length, 1) // space.width)
    if space.cache == "register":
        steps = -(-packs // space.group.size)
        return replace(space, steps=steps) if steps * space.width * kept <= REGISTER_BYTES else None
    rows_in_block = space.group.threads // space.group.size
    if packs * space.width * kept * rows_in_block > SHARED_BYTES:
        return None
    return replace(space, steps=packs)


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
    if unit_stride != Literal("1") or pointer in rows.scene.changing - _stored(every) or type_ not in SIZES:
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
    load = firsts[0] != "write"
    name = fresh(f"{pointer}_row" if kept else f"{pointer}_pack", rows.launched.kernel)
    return Slot(root, pointer, index, type_, kept, load, name)


def _stored(every: list[Access]) -> frozenset[str]:
    """Pointers through which values are stored: they count as assigned to, though they do not move."""
    return frozenset(a.pointer for a in every if a.kind != "read")


def _first(split: ParallelLoop, pointer: str, start: int) -> str | None:
    """What the loop does first with every element of the range: 'read', 'write', or None when it may do nothing."""
    if integer(split.loop.start) != start:
        return None
    return next((kind for kind, place in always(split.loop.body) if place[0] == pointer), None)


def _only_elements(split: ParallelLoop, root: str, pointer: str, rows: RowKernel) -> bool:
    """Whether every access of the buffer in the loop is one that a pack can stand for."""
    body = rewrite_body(split.loop.body, lambda e: VAR if _names(e, pointer) else None)
    try:
        left = accesses(body, rows.scene.pointers)
    except Unclear:
        return False
    return not any(a.root == root for a in left)


def _names(expr: Expr, pointer: str) -> bool:
    place = element(expr)
    return place is not None and place[0] == pointer


# ---------------------------------------------------------------- emitting


def cached(rows: RowKernel, space: RowSpace, crossing: frozenset[str]) -> tuple[Stmt, ...]:
    """The statements of the row: those before its loops, then the fast way or else the plain one."""
    return _replace_level(rows.units, rows, space, crossing)


def _replace_level(
    units: tuple[Unit, ...], rows: RowKernel, space: RowSpace, crossing: frozenset[str]
) -> tuple[Stmt, ...]:
    types = dict(rows.scene.types)
    if units is space.level or units == space.level:
        at = next(i for i, u in enumerate(units) if u.kind == "loop")
        at = _zeroed_before(units, at)
        head = shared_out(units[:at], space.group, crossing, types)
        plain = shared_out(units[at:], space.group, crossing, types)
        return (*head, *_fast(rows, space, units[at:], crossing, plain))
    found: list[Stmt] = []
    for unit in units:
        match unit.stmt:
            case If() if unit.kind == "branch":
                sides = [_replace_level(side, rows, space, crossing) for side in unit.inner]
                found.append(replace(unit.stmt, then=sides[0], orelse=sides[1]))
            case _:
                found += shared_out((unit,), space.group, crossing, types)
    return tuple(found)


def _zeroed_before(units: tuple[Unit, ...], at: int) -> int:
    """The first loop's own accumulator declarations go into both ways, so that zeros need not be kept."""
    assert units[at].loop is not None
    folds = units[at].loop.folds  # type: ignore[union-attr]
    while at and isinstance(units[at - 1].stmt, Declare | Assign) and units[at - 1].kind == "all":
        stmt = units[at - 1].stmt
        name = stmt.name if isinstance(stmt, Declare) else stmt.target.text if isinstance(stmt.target, Name) else ""  # type: ignore[union-attr]
        if name not in folds:
            break
        at -= 1
    return at


def _fast(
    rows: RowKernel, space: RowSpace, units: tuple[Unit, ...], crossing: frozenset[str], plain: tuple[Stmt, ...]
) -> list[Stmt]:
    test = _condition(space)
    length = plus(space.bound, number(-space.start)) if space.start else space.bound
    packs = length if space.width == 1 else Binary("/", length, number(space.width))
    body: list[Stmt] = [Declare("const int", space.names["packs"], packs)]
    body += [_storage(s, space) for s in space.slots if s.kept]
    body += _loads(space)
    previous: Stmt | None = None
    for unit in units:
        if space.covers(unit):
            assert unit.loop is not None
            loop = _pack_loop(unit, space, _last_writers(space, units))
            body += guarded_by_barriers(
                unit, folding(unit.loop, [loop], previous, dict(rows.scene.types), space.group), space.group, crossing
            )
        else:
            body += shared_out((unit,), space.group, crossing, dict(rows.scene.types))
        previous = unit.stmt
    if test is None:
        return body
    return [If(test, tuple(body), plain)]


def _condition(space: RowSpace) -> Expr | None:
    """When the fast way may be taken; None for always."""
    length = plus(space.bound, number(-space.start)) if space.start else space.bound
    tests: list[Expr] = []
    if space.cache == "register":
        tests.append(Binary("<=", length, number(space.steps * space.group.size * space.width)))
    elif space.cache == "shared":
        tests.append(Binary("<=", length, number(space.steps * space.width)))
    if space.width > 1:
        tests.append(Binary("==", Binary("%", length, number(space.width)), Literal("0")))
        for slot in space.slots:
            address = Unary("&", Index(Name(slot.pointer), _at(slot, number(space.start))))
            tests.append(Call(Name("fsr_aligned"), (address,), (str(SIZES[slot.type] * space.width),)))
    joined: Expr | None = None
    for test in tests:
        joined = test if joined is None else Binary("&&", joined, test)
    return joined


def _at(slot: Slot, position: Expr) -> Expr:
    if integer(position) == 0:
        return _without_zero(substitute(slot.index, {VAR.text: Literal("0")}))
    return substitute(slot.index, {VAR.text: position})


def _without_zero(expr: Expr) -> Expr:
    match expr:
        case Binary(op="+", left=left, right=right):
            return plus(_without_zero(left), _without_zero(right))
    return expr


def _storage(slot: Slot, space: RowSpace) -> Stmt:
    if space.cache == "register":
        return Declare(space.element_type(slot), slot.name, None, (number(space.steps),))
    in_block = space.group.threads // space.group.size
    dims = (number(space.steps),) if in_block == 1 else (number(in_block), number(space.steps))
    return Declare(space.element_type(slot), slot.name, None, dims, ("__shared__",))


def _place(slot: Slot, space: RowSpace) -> Expr:
    """The pack of a slot that the current step of a loop is about."""
    if not slot.kept:
        return Name(slot.name)
    if space.cache == "register":
        return Index(Name(slot.name), Name(space.names["step"]))
    base: Expr = Name(slot.name)
    if space.group.threads > space.group.size:
        base = Index(base, Binary("/", Member(Name("threadIdx"), "x"), number(32)))
    return Index(base, Name(space.names["pack"]))


def _first_element(space: RowSpace) -> Expr:
    return plus(number(space.start), times(Name(space.names["pack"]), number(space.width)))


def _memory(slot: Slot, space: RowSpace, *, constant: bool) -> Expr:
    """The pack in global memory."""
    there = Index(Name(slot.pointer), _at(slot, _first_element(space)))
    if space.width == 1:
        return there
    word = "const " if constant else ""
    return Unary("*", Cast(f"{word}{space.element_type(slot)} *", Unary("&", there), "reinterpret_cast"))


def _over_packs(space: RowSpace, body: Iterable[Stmt]) -> Stmt:
    pack, lane = space.names["pack"], Name(space.group.lane)
    if space.cache != "register":
        return For("int", pack, lane, "<", Name(space.names["packs"]), number(space.group.size), tuple(body))
    step = space.names["step"]
    at = Declare("const int", pack, plus(lane, Binary("*", Name(step), number(space.group.size))))
    inside = If(Binary("<", Name(pack), Name(space.names["packs"])), tuple(body))
    return For("int", step, number(0), "<", number(space.steps), number(1), (at, inside), ("#pragma unroll",))


def _loads(space: RowSpace) -> list[Stmt]:
    wanted = [s for s in space.slots if s.kept and s.load]
    if not wanted:
        return []
    return [_over_packs(space, [Assign(_place(s, space), "=", _memory(s, space, constant=True)) for s in wanted])]


def _last_writers(space: RowSpace, units: tuple[Unit, ...]) -> dict[str, Stmt]:
    """The last loop that writes each buffer: what is kept goes to memory there."""
    found: dict[str, Stmt] = {}
    for unit in units:
        if space.covers(unit):
            assert unit.loop is not None
            found.update({a.root: unit.stmt for a in unit.loop.accesses if a.kind == "write"})
    return found


def _pack_loop(unit: Unit, space: RowSpace, last: dict[str, Stmt]) -> Stmt:
    """One loop over the row, a pack a step."""
    assert unit.loop is not None
    loop = unit.loop.loop
    used = {a.root for a in unit.loop.accesses}
    slots = [s for s in space.slots if s.root in used]
    written = {a.root for a in unit.loop.accesses if a.kind == "write"}
    body: list[Stmt] = []
    for slot in slots:
        if not slot.kept and slot.load:
            type_ = space.element_type(slot)
            const = "" if slot.root in written else "const "
            body.append(Declare(const + type_, slot.name, _memory(slot, space, constant=True)))
        elif not slot.kept:
            body.append(Declare(space.element_type(slot), slot.name))
    body += _elements(loop, space, slots)
    for slot in slots:
        if slot.root in written and last[slot.root] is unit.stmt:
            body.append(Assign(_memory(slot, space, constant=False), "=", _place(slot, space)))
    return _over_packs(space, body)


def _elements(loop: For, space: RowSpace, slots: list[Slot]) -> list[Stmt]:
    """The loop's body for each element of the current pack."""
    u = Name(space.names["u"])
    by_pointer = {s.pointer: s for s in slots}

    def value(expr: Expr) -> Expr | None:
        place = element(expr)
        if place is None or place[0] not in by_pointer:
            return None
        pack = _place(by_pointer[place[0]], space)
        return pack if space.width == 1 else Index(Member(pack, "v"), u)

    body = rewrite_body(loop.body, value)
    if (integer(loop.start) or 0) > space.start:
        body = (If(Binary(">=", Name(loop.var), loop.start), body),)
    type_ = (loop.type or "int").removeprefix("const ")
    if space.width == 1:
        return [Declare(f"const {type_}", loop.var, _first_element(space)), *body]
    number_ = Declare(f"const {type_}", loop.var, plus(_first_element(space), u))
    return [For("int", u.text, number(0), "<", number(space.width), number(1), (number_, *body), ("#pragma unroll",))]
