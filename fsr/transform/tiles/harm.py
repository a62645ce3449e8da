"""Whether a loop's turns, done for threads that do not exist and hold zeros, may do any harm: divide whole numbers by
zero, touch an array beyond its end, never end, or read what only threads that exist may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.analysis.types import FLOATING, type_of
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Expr,
    For,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Unary,
    While,
)
from fsr.source.macros import macros
from fsr.source.parse import parse_device_functions
from fsr.source.walk import Block, exprs_of, names_in, opaque_names, subexprs, walk_expr, walk_stmts
from fsr.transform.target import Target

_DEPTH = 8  # of functions that call functions


def does_harm(target: Target, body: Block, spared: Iterable[Expr]) -> bool:
    """Whether statements may. ``spared``: expressions in whose place there will be others."""
    return _in_block(target, body, set(spared), _DEPTH)


def divides_wholes(target: Target, e: Expr) -> bool:
    """Whether an expression has a quotient or a remainder of what may be whole numbers, not by a constant."""
    return any(isinstance(x, Binary) and _is_division(target, x.op, x.left, x.right) for x in walk_expr(e))


def _is_division(target: Target, op: str, left: Expr, right: Expr) -> bool:
    if op.rstrip("=") not in ("/", "%") or isinstance(right, Literal):
        return False
    kinds = [type_of(e, target.known.types, target.aliases) for e in (left, right)]
    return not set(kinds) & FLOATING


def _in_block(target: Target, body: Block, spared: set[Expr], depth: int) -> bool:
    counted = {s.var for s in walk_stmts(body) if isinstance(s, For) and _is_counted(target, s)}
    for s in walk_stmts(body):
        if isinstance(s, While) or (isinstance(s, For) and s.var not in counted):
            return True
        if isinstance(s, Assign) and _is_division(target, s.op, s.target, s.value):
            return True
        if any(_in_expr(target, e, (spared, counted, depth)) for e in exprs_of(s)):
            return True
    return False


def _in_expr(target: Target, e: Expr, around: tuple[set[Expr], set[str], int]) -> bool:
    spared, counted, depth = around
    if e in spared:
        return False
    match e:
        case OpaqueExpr(text) if "(" in text:
            return True
        case Unary("*", _) | Member(arrow=True):
            return True
        case Index(base, index):
            known = counted | target.constants.keys()
            root = base
            while isinstance(root, Index | Member):
                root = root.base
            own = isinstance(root, Name) and root.text in target.known.types
            if not own or not names_in(index) <= known or any(isinstance(x, Index) for x in walk_expr(index)):
                return True
            return _in_expr(target, base, around) if isinstance(base, Index | Member) else False
        case Binary(op, left, right) if _is_division(target, op, left, right):
            return True
        case Call(Name(name), args) if not target.functions.builtin(name) and name not in target.type_names:
            form = parse_device_functions(target.source).get(name.split("::")[-1])
            if not depth or (_in_function(target, form, depth - 1) if form else _in_macro(target, name)):
                return True
            return any(_in_expr(target, a, around) for a in args)
    return any(_in_expr(target, part, around) for part in (e.args if isinstance(e, Call) else subexprs(e)))


def _in_function(target: Target, form: KernelForm, depth: int) -> bool:
    return _in_block(replace(target, kernel=form), form.body, set(), depth)


def _in_macro(target: Target, name: str) -> bool:
    """Whether what is called is more than a macro of sums and products, and of calls of CUDA's functions."""
    found = [m for m in macros(target.source) if m.name == name and m.params is not None]
    if len(found) != 1 or set(found[0].body) & set("/%[;{"):
        return True
    words = opaque_names(found[0].body) - set(found[0].params or ())
    return any(not target.functions.builtin(word) for word in words)


def _is_counted(target: Target, loop: For) -> bool:
    return all(target.poly(e).value is not None for e in (loop.start, loop.bound, loop.step))
