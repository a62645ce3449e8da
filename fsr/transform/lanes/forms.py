"""Forms of a kernel in which more of it can be told: the same work, written as the analyses of memory know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.functions import Functions
from fsr.analysis.macros import expanded
from fsr.hardware.c_types import LANES
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    Index,
    KernelForm,
    Literal,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
)
from fsr.source.mapping import map_stmts
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.types import plain_type
from fsr.source.walk import Block, base_name, contains_opaque, is_zero, walk_exprs, walk_stmts
from fsr.transform.details.register_promotion import promoted
from fsr.transform.rows.row_kernel import in_one_form
from fsr.transform.target import Target

ANY = Name("$any")  # an index of which nothing is known


def forms(target: Target) -> Iterator[Target]:
    """The kernel with macros written out, with what it keeps in memory kept in variables, and without what different
    hands write differently."""
    kernel = expanded(target.kernel, target.source)
    plain = replace(target, kernel=replace(kernel, body=_made(kernel.body, target)))
    yield plain
    kept = replace(plain, kernel=replace(plain.kernel, body=promoted(plain)))
    if kept.kernel.body != plain.kernel.body:
        yield kept
    for form in dict.fromkeys((plain, kept)):
        other = in_one_form(form)
        if other.kernel.body != form.kernel.body:
            yield other


def _made(body: Block, target: Target) -> Block:
    """The statements with built-in vectors made by calls: ``make_float3(a, b, c)`` for ``{a, b, c}``."""

    def change(s: Stmt) -> Stmt:
        match s:
            case Declare(type=type_, init=OpaqueExpr(text), dims=()) if text.startswith("{") and text.endswith("}"):
                plain = plain_type(type_.removeprefix("const "), target.aliases)
                element = LANES.get(plain)
                value = _parsed(f"make_{plain}({text[1:-1].strip().rstrip(',')})") if element is not None else None
                if isinstance(value, Call) and element is not None and len(value.args) == element[1]:
                    return replace(s, init=value)
        return s

    return map_stmts(body, change)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Expr | None:
    kernels = parse_kernels(f"__global__ void f() {{\n    x = {text};\n}}\n")
    match kernels["f"].body if "f" in kernels else ():
        case (Assign(target=Name("x"), op="=", value=value),) as body if not contains_opaque(body):
            return value
    return None


# ---------------------------------------------------------------- what is read


def telling(e: Expr, readers: frozenset[str], pointers: frozenset[str]) -> Expr | None:
    """For analysis alone: reads of unknown elements for a call of a function that only reads through its pointers, and
    nothing for a test for NULL. None for any other expression."""
    match e:
        case Binary("!=" | "==", Name(one), other) if one in pointers and (is_zero(other) or other in _NULLS):
            return Literal("0")
        case Binary("!=" | "==", other, Name(one)) if one in pointers and (is_zero(other) or other in _NULLS):
            return Literal("0")
        case Call(Name(name), args) if name in readers and args:
            parts = [Index(a, ANY) if base_name(a) in pointers and not isinstance(a, Index) else a for a in args]
            whole: Expr = Literal("0")
            for part in parts:
                whole = Binary("+", whole, part)
            return whole
    return None


_NULLS = (Name("NULL"), Name("nullptr"), Literal("NULL"), Literal("nullptr"))


@lru_cache(maxsize=64)
def readers_of(source: str, functions: Functions) -> frozenset[str]:
    """The functions of a file that do nothing but compute and read through pointers to const."""
    defined = parse_device_functions(source)
    found = frozenset[str]()
    while True:
        more = {
            n for n, f in defined.items()
            if n in functions.local - functions.pure - found and _only_reads(f, functions, found)
        }  # fmt: skip
        if not more:
            return found
        found |= more


def _only_reads(form: KernelForm, functions: Functions, readers: frozenset[str]) -> bool:
    own = {p.name for p in form.params}
    types = [p.type for p in form.params]
    for s in walk_stmts(form.body):
        if isinstance(s, OpaqueStmt):
            return False
        if isinstance(s, Declare):
            own.add(s.name)
            types.append(s.type)
    if any("&" in t or ("*" in t and "const" not in t.split("*")[0].split()) for t in types):
        return False
    sets = [s.target for s in walk_stmts(form.body) if isinstance(s, Assign)]
    calls = [e for e in walk_exprs(form.body) if isinstance(e, Call)]
    known = all(
        is_load(c) or (not is_atomic(c) and isinstance(c.callee, Name) and _is_known(c.callee.text, functions, readers))
        for c in calls
    )
    return known and not contains_opaque(form.body) and all((base_name(t) or "") in own for t in sets)


def _is_known(name: str, functions: Functions, readers: frozenset[str]) -> bool:
    return functions.only_computes(name) or name in readers
