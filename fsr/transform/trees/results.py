"""Functions that fold over a block and return the result, written out where they are called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fsr.analysis.functions import Functions, functions_of
from fsr.analysis.macros import expanded
from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Assign, Call, Declare, Expr, Index, KernelForm, Name, OpaqueExpr, Return, Scope, Stmt, Unary
from fsr.source.mapping import map_own_exprs, replace_stmt
from fsr.source.parse import parse_device_functions
from fsr.source.walk import contains_opaque, contains_return, exprs_of, fresh, taken_names, walk_expr, walk_stmts
from fsr.transform.scratch.inlined import body_of_call, instance_of_call

_MOST = 16
_QUALIFIERS = frozenset(["inline", "__inline__", "__forceinline__", "__noinline__", "static", "const"])


def with_results_written_out(kernel: KernelForm, source: str, arrays: frozenset[str]) -> KernelForm:
    """The kernel with the bodies of functions that are given one of the arrays and return at their end, before the
    statements that declare or set a variable from what they return."""
    functions, known = parse_device_functions(source), functions_of(source)
    for _ in range(_MOST):
        found = next(((s, c) for s in walk_stmts(kernel.body) if (c := _call(s, functions, arrays, known))), None)
        if found is None:
            break
        statement, call = found
        function = _function(call, functions)
        assert function is not None
        type_ = returned_type(function.name, source)
        if type_ not in BY_SPELLING:
            break
        kernel = with_body_before(kernel, statement, call, expanded(function, source), type_)
    return kernel


def _call(s: Stmt, functions: Mapping[str, KernelForm], arrays: frozenset[str], known: Functions) -> Call | None:
    """The one call of a statement, if nothing else of it could tell when the call is made."""
    plain = (isinstance(s, Declare) and not s.dims and "&" not in s.type) or (
        isinstance(s, Assign) and isinstance(s.target, Name)
    )
    parts = [x for e in exprs_of(s) for x in walk_expr(e)] if plain else []
    calls = [
        x for x in parts
        if isinstance(x, Call) and any(isinstance(a, Name) and a.text in arrays for a in x.args)
    ]  # fmt: skip
    if len(calls) != 1 or _function(calls[0], functions) is None:
        return None
    inside = {id(x) for x in walk_expr(calls[0])}
    for x in parts:
        other = isinstance(x, Call) and not (isinstance(x.callee, Name) and known.builtin(x.callee.text))
        if id(x) not in inside and (other or isinstance(x, Index | OpaqueExpr) or _points(x)):
            return None
    return calls[0]


def _points(e: Expr) -> bool:
    return isinstance(e, Unary) and e.op in "*&"


def _function(call: Call, functions: Mapping[str, KernelForm]) -> KernelForm | None:
    """The function that is called, if it returns a value at its end and nowhere else."""
    name = call.callee.text if isinstance(call.callee, Name) else ""
    found = instance_of_call(functions[name], call) if name in functions else None
    if found is None or len(found.params) != len(call.args) or not found.body or contains_opaque(found.body):
        return None
    last = found.body[-1]
    ends = isinstance(last, Return) and last.value is not None and not contains_return(found.body[:-1])
    return found if ends else None


def with_body_before(
    kernel: KernelForm,
    statement: Stmt,
    call: Call,
    function: KernelForm,
    type_: str,
    args: tuple[Expr, ...] | None = None,
) -> KernelForm:
    """The kernel with the function's statements before the one that calls it, and a variable for its result. ``args``:
    of the function that is meant, by default the call's."""
    result = Name(fresh(f"of_{function.name}", taken_names(kernel)))
    scope = body_of_call(kernel, call if args is None else replace(call, args=args), function)
    last = scope.body[-1]
    assert isinstance(last, Return)
    assert last.value is not None
    body = Scope((*scope.body[:-1], Assign(result, "=", last.value)))
    rest = map_own_exprs(statement, lambda e: result if e == call else e)
    given = (Declare(type_, result.text), body, rest)
    return replace(kernel, body=replace_stmt(kernel.body, statement, given))


def returned_type(function: str, source: str) -> str:
    """What a function returns, as it is written; nothing where that is more than words."""
    found = re.search(rf"__device__((?:\s+\w+)+?)\s+{function}\s*\(", source)
    words = found[1].split() if found else []
    return " ".join(w for w in words if w not in _QUALIFIERS)
