"""Functions that go through a loop and return what they found, written out before the statements that call them.

``y[v] = c + sum_of(x, columns + first, count)``: the loop that lanes can share stands in the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fsr.analysis.calls import is_load
from fsr.analysis.definitions import definitions
from fsr.analysis.functions import Functions
from fsr.analysis.macros import expanded
from fsr.analysis.types import bare
from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import (
    Assign,
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
    Return,
    Scope,
    Stmt,
    Ternary,
    While,
)  # fmt: skip
from fsr.source.mapping import map_stmts, rewrite, substitute, with_parts
from fsr.source.parse import parse_device_functions
from fsr.source.walk import (
    contains_return,
    exprs_of,
    names_assigned,
    names_mentioned,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.trees.results import returned_type, with_body_before

_MOST = 8
_PLAIN = Assign | Comment | Declare | For | If | Return | Scope | While


def with_returned_written_out(kernel: KernelForm, source: str, known: Functions) -> KernelForm:
    """The kernel with the bodies of such functions of the file before the statements that declare or set something
    with what they return; as it is where there are none. They write nothing, and are called in any case."""
    functions = {n: expanded(f, source) for n, f in parse_device_functions(source).items() if _is_one(n, source)}
    for _ in range(_MOST):
        types = definitions(kernel).types
        found = next(_calls(kernel, functions, known, types, source), None)
        if found is None:
            break
        statement, call, function, type_ = found
        kernel = _with_body(kernel, statement, call, function, type_)
    return kernel


def _is_one(name: str, source: str) -> bool:
    """Whether the file defines one function of a name."""
    return len(re.findall(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*\{{", source)) == 1


def _calls(
    kernel: KernelForm, functions: Mapping[str, KernelForm], known: Functions, types: Mapping[str, str], source: str
) -> Iterator[tuple[Stmt, Call, KernelForm, str]]:
    """Calls to write out, with the statement, the function that is meant and the type of what it returns."""
    for s in walk_stmts(kernel.body):
        for call in _in_any_case(s, known, functions):
            function = _instance(functions[_callee(call)], call, types)
            if function is None or not _only_finds(function, kernel, known):
                continue
            made = returned_type(function.name, source)
            type_ = _given(functions[_callee(call)], call, types).get(made, made)
            if type_ in BY_SPELLING and _passes_on(function, call, types):
                yield s, call, function, type_


def _callee(call: Call) -> str:
    return call.callee.text if isinstance(call.callee, Name) else ""


def _in_any_case(s: Stmt, known: Functions, functions: Mapping[str, KernelForm]) -> list[Call]:
    """The calls of the file's functions in a statement that can be made before it: whatever conditions say, and with
    nothing else in it that does more than compute."""
    if not isinstance(s, Assign) and not (isinstance(s, Declare) and not s.dims and "&" not in s.type):
        return []
    found, parts = list[Call](), [x for e in exprs_of(s) for x in walk_expr(e)]
    for x in parts:
        if isinstance(x, OpaqueExpr):
            return []
        if isinstance(x, Call) and _callee(x) in functions and not known.only_computes(_callee(x)):
            found.append(x)
        elif isinstance(x, Call) and not (known.only_computes(_callee(x)) or is_load(x)):
            return []
    left = {id(x) for e in exprs_of(s) for x in walk_expr(e) if isinstance(x, Ternary) or _is_short(x)}
    inside = {id(y) for x in parts if id(x) in left for y in walk_expr(x)}
    return [
        x for x in found if id(x) not in inside and not any(isinstance(y, Call) for a in x.args for y in walk_expr(a))
    ]


def _is_short(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op in ("&&", "||")


# ---------------------------------------------------------------- the function


def _given(function: KernelForm, call: Call, types: Mapping[str, str]) -> dict[str, str]:
    """The types that a call gives a template's parameters, told or deduced from arguments that are names."""
    named = [name for kind, name in function.template_parameters if kind in ("typename", "class")]
    told = dict(zip((n for _, n in function.template_parameters), call.template_args, strict=False))
    found = {name: told[name] for name in named if name in told}
    for param, arg in zip(function.params, call.args, strict=False):
        if bare(param.type) in named and isinstance(arg, Name) and arg.text in types:
            type_ = bare(types[arg.text])
            if found.setdefault(bare(param.type), type_) != type_:
                return {}
    return found


def _instance(function: KernelForm, call: Call, types: Mapping[str, str]) -> KernelForm | None:
    """The function that a call means, without what its template stands for; None where that is not told."""
    if len(function.params) != len(call.args):
        return None
    if not function.template_parameters:
        return function
    given = _given(function, call, types)
    if {n for _, n in function.template_parameters} != set(given) or not set(given.values()) <= set(BY_SPELLING):
        return None

    def put(text: str) -> str:
        return re.sub(r"\b\w+\b", lambda m: given.get(m[0], m[0]), text)

    def typed(s: Stmt) -> Stmt:
        retyped = isinstance(s, Declare | For) and s.type is not None
        return replace(s, type=put(s.type or "")) if isinstance(s, Declare | For) and retyped else s

    def value(e: Expr) -> Expr | None:
        match e:
            case Call(Name(text), ()) if text in given:
                return Literal("0")
            case Call(Name(text), (arg,)) if text in given:
                return Cast(given[text], rewrite(arg, value))
            case Cast(type_) if put(type_) != type_:
                return with_parts(replace(e, type=put(type_)), lambda x: rewrite(x, value))
        return None

    params = tuple(replace(p, type=put(p.type)) for p in function.params)
    return replace(function, params=params, body=map_stmts(rewrite(function.body, value), typed), template=None)


def _only_finds(function: KernelForm, kernel: KernelForm, known: Functions) -> bool:
    """Whether a function has a loop, sets nothing but its own variables, and returns at its end alone; nothing that it
    mentions means something else in the kernel."""
    body, every = function.body, list(walk_stmts(function.body))
    if not body or not isinstance(body[-1], Return) or body[-1].value is None or contains_return(body[:-1]):
        return False
    if not all(isinstance(s, _PLAIN) for s in every) or not any(isinstance(s, For | While) for s in every):
        return False
    if any(isinstance(s, Assign) and not isinstance(s.target, Name) for s in every):
        return False
    if any(isinstance(s, Declare) and (s.qualifiers or "&" in s.type) for s in every):
        return False
    parts = list(walk_exprs(body))
    calls = [x for x in parts if isinstance(x, Call)]
    own = {p.name for p in function.params} | set(variables(body))
    if any(isinstance(x, OpaqueExpr) for x in parts) or any("&" in p.type for p in function.params):
        return False
    if not all(known.only_computes(_callee(x)) or is_load(x) for x in calls):
        return False
    return not (names_mentioned(body) - own) & ({p.name for p in kernel.params} | set(variables(kernel.body)))


def _passes_on(function: KernelForm, call: Call, types: Mapping[str, str]) -> bool:
    """Whether pointers that a call hands on are of the types that the function takes them for."""
    pairs = ((p, a) for p, a in zip(function.params, call.args, strict=True) if p.is_pointer)
    return all(not isinstance(a, Name) or bare(types.get(a.text, "")) == bare(p.type) for p, a in pairs)


def _with_body(kernel: KernelForm, statement: Stmt, call: Call, function: KernelForm, type_: str) -> KernelForm:
    """The kernel with the function's statements before the one that calls it, and a variable for its result."""
    types, changed = definitions(kernel).types, names_assigned(function.body)
    args = tuple(
        Cast(p.type, a) if isinstance(a, Name) and not p.is_pointer and types.get(a.text) != p.type else a
        for p, a in zip(function.params, call.args, strict=True)
    )
    steady = {
        p.name: a for p, a in zip(function.params, args, strict=True)
        if isinstance(a, Literal) and a.text.isdigit() and bare(p.type) == "int" and p.name not in changed
    }  # fmt: skip
    kept = [n for n, p in enumerate(function.params) if p.name not in steady]
    function = replace(function, params=tuple(function.params[n] for n in kept), body=substitute(function.body, steady))
    return with_body_before(kernel, statement, call, function, type_, tuple(args[n] for n in kept))
