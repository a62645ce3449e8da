"""The helpers of a translation unit that only compute: device functions and macros without effects.

Also the macros that hide something: a name in a kernel that stands for more than a constant is not what it seems.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from fsr.analysis.effects import BUILTINS, PURE_CALLS
from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.parse import parse_device_functions
from fsr.source.tokens import tokenize
from fsr.source.walk import kernel_names, walk_exprs, walk_stmts

_NUMBERS = "INFINITY NAN FLT_MAX FLT_MIN FLT_EPSILON INT_MAX INT_MIN UINT_MAX CUDART_INF_F true false"
_CONSTANTS = frozenset(_NUMBERS.split())
_TYPES = "float double int unsigned long size_t sizeof const"
_WORDS = _CONSTANTS | frozenset(_TYPES.split())


@lru_cache(maxsize=64)
def pure_functions(source: str) -> frozenset[str]:
    """Names of device functions and function-like macros whose value depends on their arguments alone."""
    functions = {**parse_device_functions(source), **_macro_functions(source)}
    hiding = hiding_macros(source)
    functions = {n: f for n, f in functions.items() if not kernel_names(f) & hiding}
    pure: set[str] = set()
    while True:
        more = {n for n, f in functions.items() if n not in pure and _is_pure(f, frozenset(pure) | PURE_CALLS)}
        if not more:
            return frozenset(pure)
        pure |= more


@lru_cache(maxsize=64)
def hiding_macros(source: str) -> frozenset[str]:
    """Object-like macros that stand for more than a constant; those that name only other constants are none."""
    bodies = {name: words for name, parameters, _, words in _macros(source) if parameters is None}
    hiding = {n for n, words in bodies.items() if words - _WORDS - set(bodies)}
    while True:
        more = {n for n, words in bodies.items() if n not in hiding and words & hiding}
        if not more:
            return frozenset(hiding)
        hiding |= more


def _macros(source: str) -> list[tuple[str, str | None, str, frozenset[str]]]:
    """Name, parameters (None for an object-like macro), body and the identifiers in the body."""
    found = []
    for token in tokenize(source):
        if token.kind != "directive" or not token.text.lstrip("# \t").startswith("define"):
            continue
        text = token.text.lstrip("# \t").removeprefix("define").strip().replace("\\\n", " ")
        parts = tokenize(text)
        if not parts:
            continue
        name, rest, parameters = parts[0].text, text[parts[0].end :], None
        if rest.startswith("(") and ")" in rest:
            parameters, rest = rest[1 : rest.index(")")], rest[rest.index(")") + 1 :]
        words = frozenset(t.text for t in tokenize(rest) if t.kind == "name")
        found.append((name, parameters, rest.strip(), words))
    return found


def _macro_functions(source: str) -> Mapping[str, KernelForm]:
    """Function-like macros that are one expression, as functions."""
    lines = []
    for name, parameters, body, _ in _macros(source):
        if parameters is None or not body or any(c in body for c in ";{}#"):
            continue
        typed = ", ".join(f"float {p.strip()}" for p in parameters.split(",") if p.strip())
        lines.append(f"__device__ float {name}({typed}) {{ return {body}; }}")
    return parse_device_functions("\n".join(lines))


def _is_pure(function: KernelForm, pure: frozenset[str]) -> bool:
    if any("*" in p.type or "&" in p.type or not p.name for p in function.params):
        return False
    local = {p.name for p in function.params}
    for stmt in walk_stmts(function.body):
        if not isinstance(stmt, Declare | Assign | ExprStmt | If | For | While | Scope | Return | Comment):
            return False
        if isinstance(stmt, Declare):
            if "*" in stmt.type or "&" in stmt.type or set(stmt.qualifiers) - {"constexpr"}:
                return False
            local.add(stmt.name)
        if isinstance(stmt, For) and stmt.type is not None:
            local.add(stmt.var)
    return all(_is_plain(e, local, pure) for e in walk_exprs(function.body)) and _stays_local(function.body, local)


def _is_plain(expr: Expr, local: set[str], pure: frozenset[str]) -> bool:
    match expr:
        case OpaqueExpr():
            return False
        case Unary(op="*" | "&"):
            return False
        case Member(arrow=True):
            return False
        case Call(callee=callee):
            return isinstance(callee, Name) and callee.text.removeprefix("std::") in pure
        case Index(base=base):
            return isinstance(base, Name | Index)
        case Name(text=text):
            return text in local or text in pure or text in _CONSTANTS or (text.isupper() and text not in BUILTINS)
    return True


def _stays_local(body: tuple[Stmt, ...], local: set[str]) -> bool:
    for stmt in walk_stmts(body):
        if isinstance(stmt, Assign):
            target = stmt.target
            while isinstance(target, Index | Member):
                target = target.base
            if not isinstance(target, Name) or target.text not in local:
                return False
    return True
