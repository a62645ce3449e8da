"""Recognising a kernel in which one thread owns one row: ``row = blockIdx.x * blockDim.x + threadIdx.x``, loops over
the row's elements, and nothing else that depends on which thread runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.effects import Unclear, pointers
from fsr.analysis.functions import functions_of, hiding_macros
from fsr.analysis.parallel import Scene, private_names, stride
from fsr.analysis.types import aliases, is_integer
from fsr.source.counting import counted
from fsr.source.form import (
    Assign,
    Binary,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    KernelForm,
    Member,
    Name,
    Return,
    Stmt,
)
from fsr.source.mapping import map_stmts, substitute
from fsr.source.narrowing import narrowed
from fsr.source.walk import (
    BUILTINS,
    blocks_of,
    exprs_of,
    integer,
    kernel_names,
    names_changed,
    names_in,
    names_mentioned,
    opaque_names,
    taken_names,
    walk_expr,
    walk_stmts,
)
from fsr.source.walk import fresh as fresh_among
from fsr.transform.components import apart
from fsr.transform.protocol import Subject
from fsr.transform.rows.ends import up_to_ends
from fsr.transform.rows.firsts import plainly
from fsr.transform.rows.held_sums import held
from fsr.transform.rows.nests import along_memory
from fsr.transform.rows.thread_numbers import grid_stride, is_row, uses_threads
from fsr.transform.rows.units import Unit, flatten, units_of
from fsr.transform.sizes import always, one_thread_each
from fsr.transform.target import Target, target_for


@dataclass(frozen=True, slots=True)
class RowKernel:
    """``kernel.body`` is ``before``, the declaration ``row``, and ``units``. ``threads``: of a block as launched;
    ``rows``: how many rows there are at most, as a size expression. ``lifted``: a block owns a row in the user's
    text; ``guarded``: rows beyond that number do nothing, or
    there are none in a block of up to 32 rows."""

    target: Target
    before: tuple[Stmt, ...]
    row: Declare
    units: tuple[Unit, ...]
    scene: Scene
    threads: int
    rows: str
    lifted: bool = False
    guarded: bool = True


def row_kernel(subject: Subject, kernel: KernelForm) -> RowKernel | None:
    """The kernel as one row a thread with at least one loop to share; None where that cannot be shown."""
    found = target_for(subject, kernel)
    if found is None or mentions_template(kernel):
        return None
    if any(isinstance(s, Declare) and s.qualifiers for s in walk_stmts(kernel.body)):  # Unclear below, but that is late
        return None
    found = in_one_form(found)
    kernel, threads = found.kernel, found.row_threads
    strided = None if threads is None or subject.keep_launch else _single_turns(replace(found, kernel=kernel), threads)
    kernel = strided or kernel
    found = replace(found, kernel=kernel)
    position = next((i for i, s in enumerate(kernel.body) if isinstance(s, Declare) and is_row(s, threads)), None)
    if threads is None or position is None:
        return None
    before, row, after = kernel.body[:position], kernel.body[position], kernel.body[position + 1 :]
    assert isinstance(row, Declare)
    if row.name in names_changed(after) or uses_threads((*before, *after)):
        return None
    try:
        scene = scene_of(found, exact=subject.contract.tolerance.exact)
        heads = units_of(before, scene)
        units = units_of(after, scene)
    except Unclear:
        return None
    if any(u.kind != "all" or u.accesses for u in heads) or not any(u.kind == "loop" for u in flatten(units)):
        return None
    count = _rows(found, row.name, after, None if strided else threads)
    guarded = threads % 32 == 0 or guard_of(row.name, after) is not None
    return RowKernel(found, before, row, units, scene, threads, count, guarded=guarded)


def plain_types(kernel: KernelForm, names: Mapping[str, str]) -> KernelForm:
    """The kernel with the file's own names for types looked up."""

    def plain(type_: str) -> str:
        return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), type_)

    def change(s: Stmt) -> Stmt:
        match s:
            case Declare(type=type_):
                return replace(s, type=plain(type_))
            case For(type=str(type_)):
                return replace(s, type=plain(type_))
        return s

    params = tuple(replace(p, type=plain(p.type)) for p in kernel.params)
    return replace(kernel, params=params, body=map_stmts(kernel.body, change))


def in_one_form(found: Target) -> Target:
    """The kernel without what different hands write differently: what types are called, where variables are declared,
    how loops count, what is told element by element, and which loop of several is outside."""
    found = replace(found, kernel=plain_types(found.kernel, aliases(found.source)))
    body = apart(narrowed(counted(found.kernel.body)), found.names, found.constants)
    found = replace(found, kernel=replace(found.kernel, body=narrowed(body)))
    body = held(up_to_ends(found.kernel.body, found), found)
    found = replace(found, kernel=replace(found.kernel, body=body))
    return replace(found, kernel=replace(found.kernel, body=along_memory(plainly(body, found), found)))


def _single_turns(found: Target, threads: int) -> KernelForm | None:
    """A kernel whose threads take rows a whole grid apart as one with a thread for every row; None for any other."""
    split = grid_stride(found.kernel, threads)
    if split is None:
        return None
    before, name, type_, bound, body = split
    count = found.size_text(bound)
    if count is None or not always(found.contract, f"({found.launch.grid[0]}) >= min(1, {count})"):
        return None
    ends = any(isinstance(s, Return | Jump) for s in walk_stmts(body))  # which may end more than one row
    if ends or names_changed(body) & {s.name for s in before if isinstance(s, Declare)}:
        return None
    first = Binary("*", Member(Name("blockIdx"), "x"), Member(Name("blockDim"), "x"))
    row = Declare(f"const {type_}", name, Binary("+", first, Member(Name("threadIdx"), "x")))
    return replace(found.kernel, body=(*before, row, If(Binary("<", Name(name), bound), body, ())))


def mentions_template(kernel: KernelForm) -> bool:
    """Whether a kernel's text depends on what its template is given."""
    names = {name for _, name in kernel.template_parameters}
    return bool(
        names and names & (names_mentioned(kernel.body) | {w for p in kernel.params for w in opaque_names(p.type)})
    )


def scene_of(found: Target, *, exact: bool) -> Scene:
    """What is known about the kernel around its loops. Raises Unclear, also when one name has two types, or when a
    macro that is no constant stands in the kernel."""
    kernel = found.kernel
    if kernel_names(kernel) & hiding_macros(found.source):
        raise Unclear
    types: dict[str, str] = {p.name: p.type.removeprefix("const ") for p in kernel.params if not p.is_pointer}
    sizes = frozenset(n for n, t in types.items() if is_integer(t))
    for stmt in walk_stmts(kernel.body):
        match stmt:
            case Declare(qualifiers=qualifiers) if set(qualifiers) - {"constexpr"}:
                raise Unclear
            case For(type=None, var=name) if outlives(name, kernel.body):
                raise Unclear
            case Declare(type=type_, name=name, dims=()) if "*" not in type_:
                new = (name, type_.removeprefix("const ").strip())
            case For(type=str(type_), var=name):
                new = (name, type_)
            case _:
                continue
        if types.setdefault(*new) != new[1]:
            raise Unclear
    changing = names_changed(kernel.body)
    moving = frozenset(
        s.target.text for s in walk_stmts(kernel.body) if isinstance(s, Assign) and isinstance(s.target, Name)
    )
    known = pointers(kernel, found.passed, found.contract.aliasing, functions_of(found.source))
    return Scene(known, types, changing, moving & frozenset(known.roots), sizes, exact)


def walks_along(rows: RowKernel) -> bool:
    """Whether neighbouring iterations of a loop touch neighbouring elements of the row's own part of a buffer: then
    threads that walk different rows touch memory far apart, and threads that share a row do not."""
    own, told = {rows.row.name}, set[str]()  # of the row; as an array says
    for stmt in walk_stmts(rows.target.kernel.body):
        match stmt:
            case Declare(name=name, init=value) | Assign(target=Name(text=name), value=value) if value is not None:
                if names_in(value) & own:
                    own.add(name)
                    told |= {name} if _is_told(value, told) else set()
            case For(var=name, start=start) if names_in(start) & own and _is_told(start, told):
                own.add(name)  # a row begins where an array says
    for unit in flatten(rows.units):
        if unit.loop is None:
            continue
        counters = {s.var for s in walk_stmts((unit.loop.loop,)) if isinstance(s, For)}
        unknown = private_names(unit.loop.loop) - counters
        for access in unit.loop.accesses:
            offset = _written_out(access.offset, unit.loop.loop)
            step = stride(offset, unit.loop.loop.var, unknown)
            if step is not None and integer(step) == 1 and (names_in(offset) | {access.pointer}) & own:
                return True
    return False


def _written_out(offset: Expr, loop: For) -> Expr:
    """An offset with what a turn calls its parts written out."""
    named = [s for s in walk_stmts(loop.body) if isinstance(s, Declare) and s.name not in names_changed(loop.body)]
    for s in reversed(named):
        offset = offset if s.init is None else substitute(offset, {s.name: s.init})
    return offset


def _is_told(e: Expr, told: set[str]) -> bool:
    return bool(names_in(e) & told) or any(isinstance(x, Index) for x in walk_expr(e))


def outlives(name: str, body: Iterable[Stmt]) -> bool:
    """Whether a variable is looked at outside the loops that count with it."""
    for stmt in body:
        if isinstance(stmt, For) and stmt.var == name:
            continue
        if any(name in names_in(e) for e in exprs_of(stmt)):
            return True
        if any(outlives(name, block) for block in blocks_of(stmt)):
            return True
    return False


def _rows(found: Target, row: str, after: tuple[Stmt, ...], threads: int | None) -> str:
    """The number of rows: what the guard says, where it says so, and never more than there were threads, so many a
    block; None: threads that had several rows."""
    grid = found.launch.grid[0]
    guard = guard_of(row, after)
    text = None if guard is None else found.size_text(guard)
    if threads is None:
        assert text is not None
        return text
    if text is None:
        return f"({grid}) * {threads}"
    if one_thread_each(grid, text, threads):
        return text
    return f"min(({grid}) * {threads}, {text})"


def guard_of(row: str, after: tuple[Stmt, ...]) -> Expr | None:
    """The bound of ``if (row >= bound) return;`` or of ``if (row < bound) { everything }``."""
    body = [s for s in after if not isinstance(s, Comment)]
    match body:
        case [If(test=Binary(op=">=", left=Name(text=left), right=bound), then=(Return(value=None),), orelse=()), *_]:
            return bound if left == row else None
        case [If(test=Binary(op="<", left=Name(text=left), right=bound), orelse=())]:
            return bound if left == row else None
    return None


def fresh(base: str, kernel: KernelForm) -> str:
    """``base``, or ``base2`` and so on: a name that the kernel does not use."""
    return fresh_among(base, taken_names(kernel) | BUILTINS)
