"""Loops over what data tells, ``for (j = first[i]; j < first[i + 1]; j++)``, with what is read there in variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.analysis.types import bare, is_integer, resolved
from fsr.records import Role
from fsr.source.form import Binary, Cast, Declare, Expr, For, Index, Literal, Member, Name, Stmt, Unary
from fsr.source.mapping import map_stmts
from fsr.source.walk import BUILTINS, fresh, integer, names_assigned, names_in, variables, walk_expr
from fsr.transform.target import Target


def with_told_heads(target: Target) -> Target:
    """The target whose loops read their first and last value before they begin: of inputs, which stay as they are."""
    taken = set(target.names)

    def told(s: Stmt) -> Iterator[Stmt]:
        if isinstance(s, For) and s.type not in (None, "auto"):
            own = names_assigned(s.body) | frozenset(variables(s.body)) | {s.var}
            for part, value, type_ in (("start", s.start, s.type), ("bound", s.bound, _read(target, s.bound))):
                reads = any(isinstance(x, Index) for x in walk_expr(value))
                if type_ is not None and reads and not names_in(value) & own and _steady(target, value):
                    name = fresh(f"{s.var}_{part}", taken)
                    taken.add(name)
                    yield Declare(f"const {type_}", name, value)
                    s = replace(s, start=Name(name)) if part == "start" else replace(s, bound=Name(name))
        yield s

    kernel = target.kernel
    return replace(target, kernel=replace(kernel, body=map_stmts(kernel.body, told)))


def _read(target: Target, e: Expr) -> str | None:
    """The type of an element that an expression is."""
    types = {p.name: bare(p.type) for p in target.kernel.params if p.is_pointer}
    return types.get(e.base.text) if isinstance(e, Index) and isinstance(e.base, Name) else None


def _steady(target: Target, e: Expr) -> bool:
    """Whether an expression is a whole number of numbers and elements of inputs."""
    match e:
        case Index(Name(base), index):
            argument = target.argument(base) if base in target.unaliased else None
            type_ = _read(target, e)
            known = argument is not None and argument.role is Role.IN and type_ is not None
            return known and is_integer(resolved(type_ or "", target.aliases)) and is_whole(target, index)
        case Binary("+" | "-" | "*", left, right):
            return _steady(target, left) and _steady(target, right)
    return is_whole(target, e)


def is_whole(target: Target, e: Expr) -> bool:
    """Whether an expression is a whole number made of such numbers, that reads no memory."""
    match e:
        case Name(text):
            type_ = target.known.types.get(text)
            return text in target.constants if type_ is None else is_integer(resolved(type_, target.aliases))
        case Literal():
            return integer(e) is not None
        case Member(Name(base), _, False):
            return base in BUILTINS
        case Cast(type_, operand):
            return is_integer(resolved(type_, target.aliases)) and is_whole(target, operand)
        case Binary(_, left, right):
            return is_whole(target, left) and is_whole(target, right)
        case Unary("-" | "+" | "~", operand):
            return is_whole(target, operand)
    return False
