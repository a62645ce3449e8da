"""Functions of the file that do no more than return a value, written out where they are called: what a helper asks
(``inside(x + i, y + j, w, h)``) or reads is seen as if it stood in the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.functions import names_defined, own_name
from fsr.analysis.macros import expanded
from fsr.analysis.types import aliases, integer_bytes, resolved
from fsr.source.form import (
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    If,
    KernelForm,
    Literal,
    Name,
    OpaqueExpr,
    Param,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
)
from fsr.source.macros import macros
from fsr.source.mapping import map_exprs, substitute
from fsr.source.parse import parse_device_functions
from fsr.source.walk import BUILTINS, names_in, walk_expr, walk_exprs, walk_stmts

_DEEP = 6  # functions within functions
_TESTS = frozenset(["<", "<=", ">", ">=", "==", "!=", "&&", "||"])
_NO_TYPE = frozenset(
    ["inline", "__inline__", "__forceinline__", "__noinline__", "static", "const", "constexpr", "extern",
     "__device__", "__host__", "__restrict__"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Returned:
    """``value``: what a call gives, in terms of the parameters; ``free``: the names in it that are none of them."""

    params: tuple[Param, ...]
    value: Expr
    free: frozenset[str]


def written_out(kernel: KernelForm, source: str) -> KernelForm:
    """The kernel with macros of one expression and such functions written out, as far as nothing is said twice that
    may not be."""
    kernel = expanded(kernel, source)
    found, calls = _returned(source), (e.callee for e in walk_exprs(kernel.body) if isinstance(e, Call))
    if not any(isinstance(c, Name) and own_name(c.text) in found for c in calls):
        return kernel
    types = _types(kernel)
    own, names, elsewhere = frozenset(types), aliases(source), names_defined(source) - found.keys()

    def change(e: Expr) -> Expr:
        match e:
            case Call(Name(text), args, ()) if (function := found.get(own_name(text))) is not None:
                hidden = function.free & (own | elsewhere if "::" in text else own)
                if not hidden and len(args) == len(function.params) and all(map(_may_be_again, args)):
                    given = zip(function.params, args, strict=True)
                    return substitute(function.value, {p.name: _as_type(p.type, a, types, names) for p, a in given})
        return e

    for _ in range(_DEEP):
        body = map_exprs(kernel.body, change)
        if body == kernel.body:
            break
        kernel = replace(kernel, body=body)
    return kernel


def _types(kernel: KernelForm) -> Mapping[str, str]:
    """The types of a kernel's variables; '' of one that has several."""
    found = {p.name: p.type for p in kernel.params}
    for s in walk_stmts(kernel.body):
        match s:
            case Declare(type=type_, name=name) | For(type=str() as type_, var=name):
                found[name] = type_ if found.get(name, type_) == type_ else ""
    return found


def _may_be_again(e: Expr) -> bool:
    """Whether an argument may be evaluated more often than once, or not at all."""
    return not any(isinstance(x, OpaqueExpr | Call) for x in walk_expr(e))


def _as_type(type_: str, e: Expr, types: Mapping[str, str], names: Mapping[str, str]) -> Expr:
    """An expression as a value of a type: as it stands where it has that already."""
    if "*" in type_:
        return e
    wanted = resolved(type_, names)
    own = {resolved(types.get(n, ""), names) for n in names_in(e) - BUILTINS}
    plain = all(isinstance(x, Name | Literal | Unary | Binary) for x in walk_expr(e))
    numbers = [x.text for x in walk_expr(e) if isinstance(x, Literal)]
    if wanted == "int":
        same = own <= {"int"} and all(re.fullmatch(r"\d+", n) for n in numbers)
    else:
        same = own == {wanted} and not numbers and (integer_bytes(wanted) or 4) >= 4
    return e if plain and same else Cast(wanted, e)


@lru_cache(maxsize=64)
def _returned(source: str) -> Mapping[str, _Returned]:
    found = dict[str, _Returned]()
    names = aliases(source)
    for name, form in parse_device_functions(source).items():
        form = expanded(form, source)
        type_ = _result(form, source)
        plain = all(_is_plain(t, names) for t in (type_, *(p.type for p in form.params if not p.is_pointer)))
        value = _value(form.body) if plain and not form.template else None
        once = len(re.findall(rf"\b{re.escape(name)}\s*\([^;{{}}()]*\)\s*(?:const\s*)?\{{", source)) == 1
        if value is None or not once or not all(p.name and not re.search(r"[&\[]|\.\.\.", p.type) for p in form.params):
            continue
        types = {p.name: p.type for p in form.params}
        if names_in(value) & {name} or any(isinstance(x, OpaqueExpr) for x in walk_expr(value)):
            continue
        asks = isinstance(value, Binary) and value.op in _TESTS and resolved(type_, names) in ("int", "bool")
        value = value if asks else _as_type(type_, value, types, names)
        found[name] = _Returned(form.params, value, names_in(value) - set(types) - BUILTINS)
    return found


def _is_plain(type_: str, names: Mapping[str, str]) -> bool:
    """Whether a type is one of a number, however it is called in its place."""
    wanted = resolved(type_, names)
    return "*" not in type_ and (integer_bytes(wanted) is not None or wanted in ("bool", "float", "double"))


def _value(body: Sequence[Stmt]) -> Expr | None:
    """What a function returns that chooses among values at most."""
    match [s for s in body if not isinstance(s, Comment)]:
        case [Return(value=value)]:
            return value
        case [Scope(inner)]:
            return _value(inner)
        case [If(test, then, orelse), *rest] if not (orelse and rest):
            yes, no = _value(then), _value(orelse or rest)
            return None if yes is None or no is None else Ternary(test, yes, no)
    return None


def _result(form: KernelForm, source: str) -> str:
    """The type that a function returns, as written; '' where it is none of a value."""
    assert form.span is not None
    head = source.encode()[form.span[0] : form.span[1]].decode().partition("{")[0]
    found = re.fullmatch(rf"\s*((?:[\w:]+\s+)+){re.escape(form.name)}\s*\(.*", head, re.DOTALL)
    nothing = {m.name for m in macros(source) if m.params is None and _NO_TYPE.issuperset(m.body.split())}
    return " ".join(w for w in found[1].split() if w not in _NO_TYPE | nothing) if found else ""
