"""The fast way through a row: packs of neighbouring elements, kept in registers or shared memory between loops.

The kernel gets several ways, told apart at run time: the fast one where the row's addresses and length allow packs and
the row fits the cache; in some kernels the same element by element, where only packs do not fit; and the plain one
(elements dealt out one by one, read again in every loop) for every other row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.analysis.elements import element
from fsr.analysis.parallel import VAR
from fsr.hardware.c_types import BY_SPELLING
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
    Stmt,
    Unary,
    conjunction,
    number,
)  # fmt: skip
from fsr.source.mapping import rewrite, substitute
from fsr.source.walk import integer, names_mentioned
from fsr.transform.rows.cache import RowSpace, Slot, row_space
from fsr.transform.rows.row_kernel import RowKernel
from fsr.transform.rows.share import folding, guarded_by_barriers, plus, shared_out, times
from fsr.transform.rows.units import Unit, flatten


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
        single = _one_by_one(rows, space)
        early = {*space.early, *(single.early if single is not None else ())}
        head = shared_out((*units[:at], *(u for u in units[at:] if u in early)), space.group, crossing, types)
        tail = tuple(u for u in units[at:] if u not in early)
        plain = shared_out(tail, space.group, crossing, types)
        if single is not None:
            plain = tuple(_fast(rows, single, tail, crossing, plain))
        return (*head, *_fast(rows, space, tail, crossing, plain))
    found: list[Stmt] = []
    for unit in units:
        match unit.stmt:
            case If() if unit.kind == "branch":
                sides = [_replace_level(side, rows, space, crossing) for side in unit.inner]
                found.append(replace(unit.stmt, then=sides[0], orelse=sides[1]))
            case _:
                found += shared_out((unit,), space.group, crossing, types)
    return tuple(found)


def _one_by_one(rows: RowKernel, space: RowSpace) -> RowSpace | None:
    """The way for rows that registers hold but packs do not fit (an odd length, an odd address): kept all the same,
    element by element. Only where a block owned the row to begin with, whose threads read neighbouring elements: the
    plain way would be slower than that. Elsewhere the plain way wins anyway, and registers are dear."""
    if not rows.lifted or space.cache != "register" or space.width == 1:
        return None
    single = row_space(rows, space.group, 1, "register")
    return single if single is not None and single.worthwhile else None


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
    body += [Declare(space.pack_type(r.type), r.name, None, (number(space.steps),)) for r in space.reused]
    body += _loads(space)
    above: list[Stmt] = []
    crossing = crossing | _between_ways(space, units)
    for unit in units:
        if space.covers(unit):
            assert unit.loop is not None
            loop = _pack_loop(unit, space, _last_writers(space, units))
            body += guarded_by_barriers(
                unit, folding(unit.loop, [loop], above, dict(rows.scene.types), space.group), space.group, crossing
            )
        else:
            body += shared_out((unit,), space.group, crossing, dict(rows.scene.types))
        above.append(unit.stmt)
    if test is None:
        return body
    return [If(test, tuple(body), plain)]


def _between_ways(space: RowSpace, units: tuple[Unit, ...]) -> frozenset[str]:
    """The buffers that loops in packs and everything else both use, one of them writing: other threads then write an
    element than read it."""
    every = list(flatten(units))
    inside = {a.root for u in every if space.covers(u) for a in u.accesses}
    outside = {a.root for u in every if not space.covers(u) for a in u.accesses}
    written = {a.root for u in every for a in u.accesses if a.kind != "read"}
    return frozenset(inside & outside & written)


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
            tests.append(Call(Name("fsr_aligned"), (address,), (str(BY_SPELLING[slot.type].bytes * space.width),)))
    return conjunction(tests)


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
        return Declare(space.pack_type(slot.type), slot.name, None, (number(space.steps),))
    in_block = space.group.threads // space.group.size
    dims = (number(space.steps),) if in_block == 1 else (number(in_block), number(space.steps))
    return Declare(space.pack_type(slot.type), slot.name, None, dims, ("__shared__",))


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
    return Unary("*", Cast(f"{word}{space.pack_type(slot.type)} *", Unary("&", there), "reinterpret_cast"))


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
            type_ = space.pack_type(slot.type)
            const = "" if slot.root in written else "const "
            body.append(Declare(const + type_, slot.name, _memory(slot, space, constant=True)))
        elif not slot.kept:
            body.append(Declare(space.pack_type(slot.type), slot.name))
    body += _elements(loop, space, slots)
    for slot in slots:
        if slot.stored and slot.root in written and last[slot.root] is unit.stmt:
            body.append(Assign(_memory(slot, space, constant=False), "=", _place(slot, space)))
    return _over_packs(space, body)


def _elements(loop: For, space: RowSpace, slots: list[Slot]) -> list[Stmt]:
    """The loop's body for each element of the current pack."""
    u = Name(space.names["u"])
    by_pointer = {s.pointer: s for s in slots}

    def one(pack: Expr) -> Expr:
        return pack if space.width == 1 else Index(Member(pack, "v"), u)

    kept = {r.expr: one(Index(Name(r.name), Name(space.names["step"]))) for r in space.reused}
    firsts = [r for r in space.reused if r.first is loop]

    def loaded(expr: Expr) -> Expr | None:
        place = element(expr)
        return one(_place(by_pointer[place[0]], space)) if place is not None and place[0] in by_pointer else None

    def value(expr: Expr) -> Expr | None:
        if isinstance(expr, Call) and kept and (found := kept.get(substitute(expr, {loop.var: VAR}))) is not None:
            return found
        return loaded(expr)

    body = rewrite(loop.body, value)
    for reuse in firsts:
        computed = rewrite(substitute(reuse.expr, {VAR.text: Name(loop.var)}), loaded)
        body = (Assign(kept[reuse.expr], "=", computed), *body)
    if (integer(loop.start) or 0) > space.start:
        body = (If(Binary(">=", Name(loop.var), loop.start), body),)
    type_ = (loop.type or "int").removeprefix("const ")
    if loop.var not in names_mentioned(body):
        counted: tuple[Stmt, ...] = ()
    else:
        position = _first_element(space) if space.width == 1 else plus(_first_element(space), u)
        counted = (Declare(f"const {type_}", loop.var, position),)
    if space.width == 1:
        return [*counted, *body]
    return [For("int", u.text, number(0), "<", number(space.width), number(1), (*counted, *body), ("#pragma unroll",))]
