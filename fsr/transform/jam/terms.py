"""What a run of statements for several threads computes or loads alike for all of them, done before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from fsr.analysis.calls import is_load
from fsr.analysis.common_values import CommonValues
from fsr.analysis.effects import element_type
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    If,
    Index,
    Literal,
    Member,
    Name,
    Stmt,
    Ternary,
    Unary,
)  # fmt: skip
from fsr.source.mapping import rewrite
from fsr.source.walk import Block, base_name, names_in, subexprs, variables, walk_expr

Types = Mapping[str, str]
_LOAD, _DIVISION, _FUNCTION = 6, 8, 12
_FREE = frozenset(["sizeof", "float", "double", "int", "unsigned", "long", "size_t", "bool", "char"])


def hoisted(run: Block, common: CommonValues, types: Types, name: Callable[[str], str]) -> tuple[Block, Block]:
    """Variables for what a run loads, divides or calls functions for alike in all threads, and the run with these in
    place of it. ``types``: of the kernel's variables; ``name`` gives new names. What only some conditions reach stays:
    sums and products too, so that they are still rounded with what they are added to."""
    found: dict[Expr, Name] = {}
    once: list[Stmt] = []

    def change(e: Expr) -> Expr | None:
        if e in found:
            return found[e]
        if isinstance(e, Ternary):
            return replace(e, test=rewrite(e.test, change))
        if isinstance(e, Binary) and e.op in ("&&", "||"):
            return replace(e, left=rewrite(e.left, change))
        if isinstance(e, Unary) and e.op == "&":
            return e
        if weight_of(e) and common(e):
            found[e] = Name(name(_wanted(e)))
            once.append(Declare(_type(e, types), found[e].text, e))
            return found[e]
        return None

    def known(e: Expr) -> Expr | None:
        return e if isinstance(e, Unary) and e.op == "&" else found.get(e)

    left = tuple(_changed(s, lambda e: rewrite(e, change)) for s in run)
    own = {n for e in found for n in names_in(e)}.intersection(variables(run))
    return tuple(once), left if own else rewrite(left, known)


def _changed(s: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    match s:
        case Declare(type=type_, init=init) if init is not None and not type_.endswith("&"):
            return replace(s, init=change(init))
        case Assign(target, _, value):
            return replace(s, target=_place(target, change), value=change(value))
        case ExprStmt(expr):
            return replace(s, expr=change(expr))
        case If(test):
            return replace(s, test=change(test))
    return s


def _place(target: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An lvalue with the indices in it changed."""
    match target:
        case Index(base, index):
            return Index(_place(base, change), change(index))
        case Member(base, _, False):
            return replace(target, base=_place(base, change))
    return target


def _wanted(e: Expr) -> str:
    match e:
        case Member(base, name):
            return f"{base_name(base) or 'common'}_{name}"
        case Binary():
            return "quotient"
        case Call(Name(callee), _) if not is_load(e):
            return f"{callee.split('::')[-1]}_value"
        case Call(_, (pointer,)):
            return f"{base_name(pointer) or 'common'}_value"
    return f"{base_name(e) or 'common'}_value"


def _type(e: Expr, types: Types) -> str:
    place = e.base if isinstance(e, Index) else e.operand if isinstance(e, Unary) else None
    held = types.get(place.text, "") if isinstance(place, Name) else ""
    return f"const {element_type(held)}" if held.count("*") == 1 else "const auto"


def weight_of(e: Expr) -> int:
    """About what a load, a division or a function costs, in instructions; nothing for all else."""
    match e:
        case Index() | Unary("*", _):
            return _LOAD
        case Member(base, _):
            return weight_of(base) if isinstance(base, Index | Unary | Member) else 0
        case Binary("/" | "%", _, right) if not isinstance(right, Literal):
            return _DIVISION
        case Call(Name(callee), _) if callee not in _FREE and not callee.startswith("make_"):
            return _LOAD if is_load(e) else _FUNCTION
    return 0


def weights(e: Expr, common: CommonValues) -> tuple[int, int]:
    """About what an expression costs a thread: what threads have in common, and what each does for itself."""
    if common(e):
        return sum(map(_own, walk_expr(e))), 0
    parts = [weights(part, common) for part in _operands(e)]
    return sum(a for a, _ in parts), sum(b for _, b in parts) + _own(e)


def _own(e: Expr) -> int:
    return weight_of(e) if not isinstance(e, Member) and weight_of(e) else int(isinstance(e, Binary | Ternary | Cast))


def _operands(e: Expr) -> Iterator[Expr]:
    yield from (e.args if isinstance(e, Call) else subexprs(e))
