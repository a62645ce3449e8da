"""Loops whose iterations may run in any order, on any thread: parallel loops, and reductions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fsr.analysis.accesses import Access
from fsr.analysis.accumulators import accumulators
from fsr.analysis.effects import Pointers, Unclear, accesses
from fsr.analysis.extremes import Place, foldable, places, without_places
from fsr.analysis.operators import OPERATORS
from fsr.analysis.types import FLOATING, is_integer
from fsr.source.form import (
    Assign,
    Binary,
    Cast,
    Expr,
    For,
    If,
    Index,
    Jump,
    Literal,
    Name,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)
from fsr.source.mapping import substitute
from fsr.source.walk import declared, integer, names_changed, names_in, walk_expr, walk_stmts

VAR = Name("$")  # stands for the loop variable where accesses of two loops are compared


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known about a kernel around the loops: its pointers, the types of its local scalars, the names that
    change after their declaration (stores through a pointer count as a change of its name), pointers that move,
    integer scalar parameters, and whether results must be exact."""

    pointers: Pointers
    types: Mapping[str, str]
    changing: frozenset[str]
    moving: frozenset[str]
    sizes: frozenset[str]
    exact: bool


@dataclass(frozen=True, slots=True)
class ParallelLoop:
    """A loop whose iterations are independent but for ``folds``, accumulator name to operator name, and ``places``,
    extremes with where they were found."""

    loop: For
    folds: Mapping[str, str] = field(hash=False)
    accesses: tuple[Access, ...]
    places: tuple[Place, ...] = ()


def parallel_loop(loop: For, scene: Scene) -> ParallelLoop | None:
    """The loop as a parallel one, or None where that cannot be shown."""
    if loop.relation not in ("<", "<=") or (integer(loop.step) or 0) <= 0:
        return None
    if not is_integer(loop.type or scene.types.get(loop.var, "")) or _leaves(loop.body):
        return None
    private = private_names(loop)
    changed = names_changed(loop.body)
    if loop.var in changed or names_in(loop.start) & private or names_in(loop.bound) & (private | changed):
        return None
    try:
        found = accesses(loop.body, scene.pointers)
        found_ends = [a.root for e in (loop.start, loop.bound) for a in accesses([_as_stmt(e)], scene.pointers)]
    except Unclear:
        return None
    written = {a.root for a in found if a.kind != "read"}
    if written & set(found_ends) or not _independent(found, loop.var, private, changed, scene):
        return None
    outer = changed - private - frozenset(scene.pointers.roots)
    if changed & frozenset(scene.pointers.roots) - {a.pointer for a in found if a.kind == "write"}:
        return None  # a pointer is moved along
    if _moves_pointer(loop.body, scene.pointers):
        return None
    noted = places(loop, outer)
    outer -= {name for place in noted for name in (place.value, place.at)}
    folds = accumulators(without_places(loop, noted))
    if not outer <= folds.keys() or not all(_foldable(n, op, scene) for n, op in folds.items()):
        return None
    if not all(foldable(place, dict(scene.types)) for place in noted):
        return None
    return ParallelLoop(loop, folds, tuple(found), noted)


def private_names(loop: For) -> frozenset[str]:
    """The loop variable and what is declared inside the loop, nested loop variables included."""
    inner = {s.var for s in walk_stmts(loop.body) if isinstance(s, For) and s.type is not None}
    return frozenset(declared(loop.body)) | inner | {loop.var}


def _as_stmt(expr: Expr) -> Stmt:
    return Return(expr)


def _leaves(body: Iterable[Stmt], *, inside: bool = False) -> bool:
    """Whether the statements may end the loop around them early."""
    for stmt in body:
        match stmt:
            case Return():
                return True
            case Jump(keyword="break") if not inside:
                return True
            case If(then=then, orelse=orelse):
                if _leaves(then, inside=inside) or _leaves(orelse, inside=inside):
                    return True
            case Scope(body=inner):
                if _leaves(inner, inside=inside):
                    return True
            case For(body=inner) | While(body=inner):
                if _leaves(inner, inside=True):
                    return True
    return False


def _moves_pointer(body: Iterable[Stmt], known: Pointers) -> bool:
    return any(
        isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in known.roots for s in walk_stmts(body)
    )


def _foldable(name: str, operator: str, scene: Scene) -> bool:
    type_ = scene.types.get(name, "")
    if is_integer(type_):
        return True
    if type_ not in FLOATING or operator in ("and", "or", "xor"):
        return False
    return not (scene.exact and OPERATORS[operator].reorders)


def _independent(found: list[Access], var: str, private: frozenset[str], changed: frozenset[str], scene: Scene) -> bool:
    """Whether no iteration touches what another one writes."""
    for root in {a.root for a in found if a.kind == "write"}:
        mine = [a for a in found if a.root == root]
        if any(a.kind == "atomic" for a in mine) or len({(a.pointer, a.offset) for a in mine}) != 1:
            return False
        factor = stride(mine[0].offset, var, (private | changed) - {var})
        if factor is None or not (integer(factor) or names_in(factor) <= scene.sizes - scene.changing):
            return False
    for root in {a.root for a in found if a.kind == "atomic"}:
        if any(a.root == root and a.kind != "atomic" for a in found):
            return False
        if scene.exact and not all(is_integer(scene.pointers.elements[a.pointer]) for a in found if a.root == root):
            return False
    return True


def stride(index: Expr, var: str, unknown: frozenset[str]) -> Expr | None:
    """``s`` where ``index`` is ``s * var + rest``, neither s nor the rest naming ``var`` or any of ``unknown``;
    None when it has no such form or does not depend on ``var``."""
    total: Expr | None = None
    for term, sign in terms(index):
        mentioned = names_in(term)
        if mentioned & unknown or _loads(term):
            return None
        if var not in mentioned:
            continue
        if total is not None or sign < 0:
            return None
        total = _factor(term, var)
        if total is None:
            return None
    return total


def _loads(expr: Expr) -> bool:
    return any(isinstance(e, Index) or (isinstance(e, Unary) and e.op == "*") for e in walk_expr(expr))


def _factor(term: Expr, var: str) -> Expr | None:
    match term:
        case Name(text=text) if text == var:
            return Literal("1")
        case Cast(operand=inner):
            return _factor(inner, var)
        case Binary(op="*", left=left, right=right):
            side, other = (left, right) if var in names_in(left) else (right, left)
            if var in names_in(other):
                return None
            factor = _factor(side, var)
            if factor is None:
                return None
            return other if factor == Literal("1") else Binary("*", factor, other)
    return None


def terms(expr: Expr, sign: int = 1) -> list[tuple[Expr, int]]:
    """The operands of a sum, each with +1 or -1."""
    match expr:
        case Binary(op="+", left=left, right=right):
            return terms(left, sign) + terms(right, sign)
        case Binary(op="-", left=left, right=right):
            return terms(left, sign) + terms(right, -sign)
    return [(expr, sign)]


def canonical(access: Access, var: str) -> tuple[str, Expr]:
    """The address of an access with the loop variable anonymous, to compare accesses of different loops."""
    return access.pointer, substitute(access.offset, {var: VAR})
