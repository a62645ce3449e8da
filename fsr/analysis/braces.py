"""Structures and vectors that are set by values in braces, set member by member: ``v = {a, b}`` as ``v.x = a;`` and
``v.y = b;``. Text in braces tells no analysis what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fsr.analysis.records import members_of
from fsr.hardware.c_types import LANES
from fsr.source.form import (
    Assign,
    Call,
    Declare,
    Expr,
    ExprStmt,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    Return,
    Stmt,
)
from fsr.source.mapping import map_stmts
from fsr.source.parse import parse_kernels
from fsr.source.tokens import spelt, split_commas, tokenize
from fsr.source.types import aliases, plain_type
from fsr.source.walk import Block, base_name, contains_opaque, names_in, walk_expr, walk_stmts


def with_members_set(kernel: KernelForm, source: str, *, vectors: bool = False) -> KernelForm:
    """The kernel with such assignments taken apart, where the file tells the members, as many as there are values, and
    no value reads what is set. ``vectors``: those that are declared, too."""
    types = {p.name: p.type for p in kernel.params}
    for s in walk_stmts(kernel.body):
        if isinstance(s, Declare):
            types[s.name] = "" if types.get(s.name, s.type) != s.type else f"{s.type}{'*' if s.dims else ''}"
    names = aliases(source)

    def change(s: Stmt) -> Stmt | Block:
        match s:
            case Assign(target, "=", OpaqueExpr(text)) if text.startswith("{") and text.endswith("}"):
                return _apart(target, text[1:-1], _type_of(target, types, names), source) or s
            case Declare(init=OpaqueExpr(text), dims=(), qualifiers=()) if text.startswith("{") and text.endswith("}"):
                type_ = _type_of(Name(s.name), types, names)
                return s if type_ in LANES and not vectors else _declared(s, text[1:-1], type_, source) or s
        return s

    body = map_stmts(kernel.body, change)
    return replace(kernel, body=body)


def with_results_shown(function: KernelForm, source: str) -> KernelForm:
    """A function that returns a structure of numbers as values in braces, as one that finds these values; for analysis
    only."""
    returned = [s for s in walk_stmts(function.body) if isinstance(s, Return) and isinstance(s.value, OpaqueExpr)]
    most = len(_members(_returned(function.name, source), source)) if returned else 0

    def change(s: Stmt) -> Stmt | Block:
        match s:
            case Return(OpaqueExpr(text)) if text.startswith("{") and text.endswith("}"):
                values = _values(text[1:-1])
                return (*map(ExprStmt, values), Return(None)) if 0 < len(values) <= most else s
        return s

    shown = with_members_set(function, source)
    return replace(shown, body=map_stmts(shown.body, change)) if returned else shown


def _returned(function: str, source: str) -> str:
    """The type that a function of the file returns, where that is one word and the same for all of that name."""
    found = {m[1] for m in re.finditer(rf"\b(\w+)\s+{re.escape(function)}\s*\([^;{{}}]*\)\s*\{{", source)}
    return plain_type(found.pop(), aliases(source)) if len(found) == 1 else ""


def _declared(s: Declare, inner: str, type_: str, source: str) -> Block:
    """A structure that is declared, and set member by member; one of a single member may be a copy of another."""
    members = _members(type_, source)
    own = () if len(members) < 2 else _apart(Name(s.name), inner, type_, source)
    return (replace(s, type=s.type.removeprefix("const "), init=None), *own) if own else ()


def _type_of(target: Expr, types: Mapping[str, str], names: Mapping[str, str]) -> str:
    """The type of a variable, or of what an array has or a pointer points to; "" where it is not told."""
    match target:
        case Name(text):
            found = types.get(text, "")
        case Index(Name(text), _) if types.get(text, "").count("*") == 1:
            found = types[text].replace("*", " ")
        case _:
            return ""
    return "" if {"*", "&"} & set(found) else plain_type(found, names)


def _apart(target: Expr, inner: str, type_: str, source: str) -> Block:
    values, members = _values(inner), _members(type_, source)
    calls = any(isinstance(e, Call | OpaqueExpr) for e in walk_expr(target))
    reads = any(base_name(target) in names_in(value) for value in values)
    if not members or len(values) != len(members) or calls or reads:
        return ()
    return tuple(Assign(Member(target, name), "=", value) for name, value in zip(members, values, strict=True))


def _members(type_: str, source: str) -> tuple[str, ...]:
    """The members of a type, all of them numbers."""
    if type_ in LANES or type_ == "dim3":
        return tuple("xyzw"[: LANES[type_][1] if type_ in LANES else 3])
    found = members_of(source, type_) if type_ else None
    return () if found is None or any(kept.dims for kept in found.values()) else tuple(found)


def _values(inner: str) -> list[Expr]:
    """The values between braces; none where one is no expression."""
    parts = [spelt(part) for part in split_commas(tokenize(inner))]
    found = [expression_of(part) for part in parts]
    return [e for e in found if e is not None] if all(e is not None for e in found) else []


@lru_cache(maxsize=256)
def expression_of(text: str) -> Expr | None:
    """The expression that a text is; None where it is none that is known."""
    kernels = parse_kernels(f"__global__ void f() {{\n    x = {text};\n}}\n") if text and "{" not in text else {}
    match kernels["f"].body if "f" in kernels else ():
        case (Assign(target=Name("x"), op="=", value=value),) as body if not contains_opaque(body):
            return value
    return None
