"""Recognising kernels that do one thing for every global id below a bound, each thread on its own.

Such a kernel may be given another block size, several ids a thread, or a loop over the grid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fsr.analysis.definitions import stored
from fsr.analysis.functions import thread_aware
from fsr.analysis.threads import AXES, GlobalId, global_ids, guard_of
from fsr.source.form import (
    Binary,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    Return,
    Stmt,
    Unary,
    While,
    conjunction,
)  # fmt: skip
from fsr.source.mapping import substitute
from fsr.source.references import given_by_reference
from fsr.source.walk import (
    BUILTINS,
    Block,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    fresh,
    names_assigned,
    names_in,
    names_mentioned,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.protocol import Subject
from fsr.transform.sizes import always
from fsr.transform.target import Target, targets

_WHOLE = frozenset(("const", "int", "unsigned", "long", "size_t"))


@dataclass(frozen=True)
class Pointwise:
    """``ids`` by axis; ``bounds``: for each id the exclusive bound as written and as a size expression;
    ``lead``: what stands before the guard other than the ids; ``core``: what runs under the guard, without the
    guard, in which a return has become ``continue`` of a loop put around all of it. Both together may run for one id
    after another: of parameters that they change (``x += i``) they have copies of their own."""

    target: Target
    ids: dict[str, GlobalId]
    bounds: dict[str, tuple[Expr, str]]
    lead: tuple[Stmt, ...]
    core: tuple[Stmt, ...]

    def guard(self, skip: str = "") -> Expr:
        """The test for all ids (but that of axis ``skip``); true when none is left."""
        tests = [
            Binary("<", Name(g.name), self.bounds[axis][0]) for axis, g in sorted(self.ids.items()) if axis != skip
        ]
        return conjunction(tests) or Literal("true")

    def guarded(self, skip: str = "") -> tuple[Stmt, ...]:
        """Lead and core, the core under the guard."""
        test = self.guard(skip)
        return (*self.lead, *(self.core if test == Literal("true") else (If(test, self.core),)))

    def type_of(self, axis: str) -> str:
        """The integer type of the id of an axis, without const."""
        return self.ids[axis].declaration.type.removeprefix("const ").removesuffix(" const")


def pointwise_targets(subject: Subject) -> Iterator[tuple[Target, Pointwise | None]]:
    """All kernels whose launch may change, as pointwise ones where they are."""
    return ((target, pointwise(target)) for target in targets(subject) if not subject.keep_launch)


def pointwise(target: Target) -> Pointwise | None:
    """The kernel as a pointwise one; None when that cannot be shown, or the grid does not cover all ids."""
    body, block = target.kernel.body, target.block
    if block is None or contains_barrier(body) or contains_warp_wide(body) or contains_opaque(body):
        return None
    if any(
        isinstance(s, Declare) and ("__shared__" in s.qualifiers or "static" in s.qualifiers) for s in walk_stmts(body)
    ):
        return None
    if not all(target.functions.stays_in_thread(e, target.type_names) for e in walk_exprs(body)):
        return None
    found = global_ids(target.kernel, target.known, target.constants)
    ids = {g.axis: g for g in reversed(found.values())}  # the first of an axis; others are numbers like any
    if not ids or not _widths_fit(ids, block):
        return None
    if any(a not in ids and (target.launch.grid[AXES.index(a)], block[AXES.index(a)]) != ("1", 1) for a in AXES):
        return None
    split = _split(target, ids)
    if split is None:
        return None
    lead, bounds, core = split
    sized = {axis: (bound, text) for axis, bound in bounds.items() if (text := target.size_text(bound)) is not None}
    of_threads = BUILTINS | thread_aware(target.source) - {target.kernel.name}
    if set(sized) != set(ids) or names_mentioned((*lead, *core)) & of_threads:
        return None
    if not all(_covered(target, axis, text) for axis, (_, text) in sized.items()):
        return None
    parts = _with_own_parameters(target, lead, core)
    return None if parts is None else Pointwise(target, ids, sized, *parts)


def _with_own_parameters(target: Target, lead: Block, core: Block) -> tuple[Block, Block] | None:
    """Lead and core with a copy, declared before all else, of each parameter that they change; None where uses of one
    cannot be told: it is declared anew, or macros name it."""
    body, kernel = (*lead, *core), target.kernel
    referred = [s.init for s in walk_stmts(body) if isinstance(s, Declare) and "&" in s.type and s.init is not None]
    pointers = {p.name for p in kernel.params if p.is_pointer}
    changed = names_assigned(body) | given_by_reference(body, kernel.by_reference)
    changed |= {name for init in referred for name in stored(init, pointers)}
    own = {p.name: fresh(f"{p.name}_own", target.names) for p in kernel.params if p.name in changed}
    if own.keys() & (kernel.macro_words | set(variables(body))):
        return None
    copies = [Declare(p.type, own[p.name], Name(p.name)) for p in kernel.params if p.name in own]
    renaming: dict[str, Expr] = {name: Name(new) for name, new in own.items()}
    return (*copies, *substitute(lead, renaming)), substitute(core, renaming)


def _widths_fit(ids: dict[str, GlobalId], block: tuple[int, int, int]) -> bool:
    """Whether a width written into the code is the block's."""
    return all(g.block_dim is None or g.block_dim.value == block[AXES.index(a)] for a, g in ids.items())


def _covered(target: Target, axis: str, bound: str) -> bool:
    at = AXES.index(axis)
    return always(target.contract, f"({target.launch.grid[at]}) * ({target.launch.block[at]}) >= ({bound})")


Split = tuple[tuple[Stmt, ...], dict[str, Expr], tuple[Stmt, ...]]


def _split(target: Target, ids: dict[str, GlobalId]) -> Split | None:
    axis_of = {g.name: axis for axis, g in ids.items()}
    declarations = {id(g.declaration) for g in ids.values()}
    lead: list[Stmt] = []
    bounds: dict[str, Expr] = {}
    rest = list(target.kernel.body)
    while rest and set(bounds) != set(ids):
        s, rest = rest[0], rest[1:]
        if id(s) in declarations:
            continue
        if isinstance(s, Declare | Comment):
            if isinstance(s, Declare) and not _quiet(s, target):
                return None
            lead.append(s)
            continue
        guard = guard_of(s, frozenset(axis_of))
        if guard is None or not guard.exact:
            return None
        bounds |= {axis_of[name]: bound for name, bound in guard.bounds.items()}
        if not guard.returns:
            if any(not isinstance(r, Comment | Return) for r in rest):
                return None
            rest = list(guard.statement.then)
    if set(bounds) != set(ids) or any(names_in(b) & set(axis_of) for b in bounds.values()):
        return None
    core = continuing(tuple(rest))
    told = _told_outside(bounds, lead)
    return None if core is None or told is None else (tuple(lead), told, core)


def _told_outside(bounds: dict[str, Expr], lead: Sequence[Stmt]) -> dict[str, Expr] | None:
    """The bounds without what is declared beside the ids: a loop over ids tests its bound before it. None where such a
    variable is not a whole number that its initial value says."""
    own = {s.name: s for s in lead if isinstance(s, Declare)}
    values: dict[str, Expr] = {}
    for name, s in own.items():  # in the order of declaration: each says the next
        if s.init is not None and set(s.type.split()) <= _WHOLE:
            values[name] = substitute(s.init, values)
    told = {axis: substitute(bound, values) for axis, bound in bounds.items()}
    return None if any(names_in(bound) & set(own) for bound in told.values()) else told


def _quiet(s: Declare, target: Target) -> bool:
    """Whether a declaration in front of the guard reads no memory, so that its place does not matter."""
    if s.init is None:
        return True
    reads = any(isinstance(x, Index) or (isinstance(x, Unary) and x.op == "*") for x in walk_expr(s.init))
    return not reads and target.functions.calls_builtins(s.init)


def continuing(stmts: tuple[Stmt, ...], last: bool = True) -> tuple[Stmt, ...] | None:
    """The statements with ``return`` turned into ``continue`` of a loop around them, a final one dropped; None when
    one stands inside a loop of its own."""
    found: list[Stmt] = []
    for at, s in enumerate(stmts):
        final = last and all(isinstance(r, Comment) for r in stmts[at + 1 :])
        match s:
            case Return(None):
                if not final:
                    found.append(Jump("continue"))
            case Return():
                return None
            case For() | While():
                if contains_return(s.body):
                    return None
                found.append(s)
            case If(_, then, orelse):
                yes, no = continuing(then, final), continuing(orelse, final)
                if yes is None or no is None:
                    return None
                found.append(dataclasses.replace(s, then=yes, orelse=no))
            case _:
                if contains_return((s,)):
                    return None
                found.append(s)
    return tuple(found)


def id_expression(axis: str, factor: int = 1) -> Expr:
    """``blockIdx.a * blockDim.a + threadIdx.a``, or with ``blockIdx.a * (blockDim.a * factor)``."""
    block, dim, thread = (Member(Name(n), axis) for n in ("blockIdx", "blockDim", "threadIdx"))
    width: Expr = dim if factor == 1 else Binary("*", dim, Literal(str(factor)))
    return Binary("+", Binary("*", block, width), thread)


def id_declarations(point: Pointwise, skip: Iterable[str] = ()) -> tuple[Stmt, ...]:
    """The declarations of the ids, of their own types, but those of the axes in ``skip``."""
    left = [g for axis, g in point.ids.items() if axis not in set(skip)]
    return tuple(dataclasses.replace(g.declaration, init=id_expression(g.axis)) for g in left)
