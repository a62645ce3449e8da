"""A kernel in the plainest words that say what it touches: for analysis alone, its text stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fsr.analysis.accesses import declared_arrays, element
from fsr.analysis.macros import expanded
from fsr.analysis.types import is_integer
from fsr.source.form import Assign, Call, Expr, ExprStmt, Index, KernelForm, Name, Return, Stmt, Unary
from fsr.source.mapping import map_exprs, map_stmts, substitute
from fsr.source.parse import parse_device_functions
from fsr.source.walk import names_in, walk_expr

_DEPTH = 4  # functions that call one another
_FLOATS = frozenset({"float", "double", "const float", "const double"})


def plain(kernel: KernelForm, source: str) -> KernelForm:
    """The kernel with macros and functions of one expression or assignment written out, and ``p[i]`` for ``*(p + i)``,
    so that a write to it is none to ``i``."""
    kernel = expanded(kernel, source)
    functions = _short(source)
    body = kernel.body
    for _ in range(_DEPTH if functions else 0):
        before, body = body, map_stmts(body, lambda s: _stmt(s, functions), lambda e: _called(e, functions))
        if body == before:
            break
    arrays = frozenset(p.name for p in kernel.params if p.is_pointer) | declared_arrays(body)

    def change(e: Expr) -> Expr:
        place = element(e, arrays) if isinstance(e, Unary) and e.op == "*" else None
        return e if place is None or len(place[1]) != 1 else Index(Name(place[0]), place[1][0])

    return replace(kernel, body=map_exprs(body, change))


def _stmt(s: Stmt, functions: Mapping[str, KernelForm]) -> Stmt:
    """A statement that calls a function of one assignment as that assignment."""
    match s:
        case ExprStmt(Call(Name(name), args)) if name in functions:
            (own,), values = functions[name].body, _values(functions[name], args)
            if isinstance(own, Assign) and values is not None:
                return substitute(own, values)
    return s


def _called(e: Expr, functions: Mapping[str, KernelForm]) -> Expr:
    match e:
        case Call(Name(name), args) if name in functions:
            (own,), values = functions[name].body, _values(functions[name], args)
            if isinstance(own, Return) and own.value is not None and values is not None:
                return substitute(own.value, values)
    return e


def _values(function: KernelForm, args: tuple[Expr, ...]) -> dict[str, Expr] | None:
    names = [p.name for p in function.params]
    return dict(zip(names, args, strict=True)) if len(names) == len(args) else None


@lru_cache(maxsize=64)
def _short(source: str) -> Mapping[str, KernelForm]:
    """The functions of a file that are one expression or assignment of what they are passed."""
    return {name: form for name, form in parse_device_functions(source).items() if _is_short(form)}


def _is_short(form: KernelForm) -> bool:
    if len(form.body) != 1 or form.template is not None or any("&" in p.type or not p.name for p in form.params):
        return False
    if not all(p.is_pointer or is_integer(p.type) or p.type in _FLOATS for p in form.params):
        return False  # a narrower one may hold another number
    params = {p.name for p in form.params}
    match form.body[0]:
        case Return(value=value) if value is not None:
            return names_in(value) - _calls(value) <= params
        case Assign(target=Index(Name(array)) as target, value=value):
            used = names_in(target) | names_in(value)
            return array in params and used - _calls(target) - _calls(value) <= params
    return False


def _calls(e: Expr) -> frozenset[str]:
    return frozenset(x.callee.text for x in walk_expr(e) if isinstance(x, Call) and isinstance(x.callee, Name))
