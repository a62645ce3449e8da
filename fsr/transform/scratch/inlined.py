"""Device functions that a kernel hands a whole scratch buffer, written out where they are called.

What a thread has of the buffer is told inside such a function (``cp[tid * n + i]``, ``return work + tid * n``), so that
its text has to stand where the number of the thread does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.definitions import definitions
from fsr.analysis.functions import functions_of
from fsr.analysis.macros import expanded
from fsr.analysis.types import bare, is_integer
from fsr.source.form import (
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Name,
    OpaqueExpr,
    Param,
    Return,
    Scope,
    Stmt,
)  # fmt: skip
from fsr.source.mapping import map_expr, map_own_exprs, map_stmts, replace_stmt, substitute
from fsr.source.parse import parse_device_functions
from fsr.source.walk import (
    Block,
    base_name,
    contains_opaque,
    contains_return,
    fresh,
    kernel_names,
    names_assigned,
    walk_expr,
    walk_stmts,
)  # fmt: skip

_MOST = 8
# The stars of a result, behind which the parser sees no function.
_POINTER_RESULT = re.compile(r"(__device__\b[^;{}()]*[\w>])\s*\*\s*(?:(?:const|__restrict__)\s+)?(?=\w+\s*\()")


def with_functions_written_out(kernel: KernelForm, source: str, buffers: frozenset[str]) -> KernelForm:
    """The kernel with functions written out that take a buffer whole, and those that only compute an index in one or a
    pointer into one, as far as that can be done."""
    plain = _POINTER_RESULT.sub(r"\1 ", source)
    functions = {n: expanded(f, source) for n, f in parse_device_functions(plain).items()}
    written = _Written(buffers, functions_of(source).pure)
    kernel = _with_values(kernel, functions, written)
    for _ in range(_MOST):
        found = next(_calls(kernel.body, functions, buffers, last=True), None)
        if found is None:
            break
        statement, function, in_tail = found
        if contains_opaque(function.body) or (contains_return(function.body) and not in_tail):
            break
        body = replace_stmt(kernel.body, statement, (body_of_call(kernel, statement.expr, function),))
        kernel = _with_values(replace(kernel, body=body), functions, written)
    return kernel


@dataclass(frozen=True, slots=True)
class _Written:
    """``buffers``: the names of those that must not be handed on whole; ``pure``: functions that only compute."""

    buffers: frozenset[str]
    pure: frozenset[str]


def _with_values(kernel: KernelForm, functions: Mapping[str, KernelForm], written: _Written) -> KernelForm:
    """With the value of functions that do nothing but return one: a pointer into a buffer, or a part of an index."""
    types = definitions(kernel).types

    def value(e: Expr) -> Expr:
        function = functions.get(e.callee.text) if isinstance(e, Call) and isinstance(e.callee, Name) else None
        if not isinstance(e, Call) or function is None or len(e.args) != len(function.params) or function.template:
            return e
        match function.body:
            case (Return(value=returned),) if returned is not None and not any(map(_hides, (returned, *e.args))):
                if _whole(e, written.buffers) or (function.name in written.pure and _counts(function)):
                    given = zip(function.params, e.args, strict=True)
                    return substitute(returned, {p.name: _given(p, a, types) for p, a in given})
        return e

    def change(e: Expr) -> Expr:
        if isinstance(e, Index | Binary) and base_name(e) in written.buffers:
            return map_expr(e, value)
        return value(e) if isinstance(e, Call) and _whole(e, written.buffers) else e

    def index(s: Stmt) -> Stmt:
        return map_own_exprs(s, value) if isinstance(s, Declare) and is_integer(s.type) else s

    return replace(kernel, body=map_stmts(kernel.body, index, change))


def _given(param: Param, arg: Expr, types: Mapping[str, str]) -> Expr:
    """What stands for a parameter: the argument as its type."""
    alike = isinstance(arg, Name) and bare(types.get(arg.text, "")) == bare(param.type)
    return arg if alike or param.is_pointer or isinstance(arg, Literal) else Cast(bare(param.type), arg)


def _hides(e: Expr) -> bool:
    return any(isinstance(x, OpaqueExpr | Call) for x in walk_expr(e))


def _counts(function: KernelForm) -> bool:
    """Whether a function is of whole numbers alone."""
    return all(is_integer(p.type) for p in function.params)


def _whole(call: Call, buffers: frozenset[str]) -> bool:
    return any(isinstance(a, Name) and a.text in buffers for a in call.args)


def _calls(
    body: Block, functions: Mapping[str, KernelForm], buffers: frozenset[str], *, last: bool
) -> Iterator[tuple[ExprStmt, KernelForm, bool]]:
    """Statements that call a function with a whole buffer, and whether nothing is done behind them."""
    for at, s in enumerate(body):
        tail = last and at == len(body) - 1
        match s:
            case ExprStmt(Call(Name(text), args) as call) if text in functions and _whole(call, buffers):
                function = instance_of_call(functions[text], call)
                if function is not None and len(args) == len(function.params):
                    yield s, function, tail
            case If():
                yield from _calls(s.then, functions, buffers, last=tail)
                yield from _calls(s.orelse, functions, buffers, last=tail)
            case For():
                yield from _calls(s.body, functions, buffers, last=False)
            case Scope():
                yield from _calls(s.body, functions, buffers, last=tail)


def instance_of_call(function: KernelForm, call: Call) -> KernelForm | None:
    """The function that a call means: of a template over numbers alone, the one of the call's."""
    parameters = function.template_parameters
    if not parameters:
        return function
    if len(parameters) != len(call.template_args) or any(k in ("typename", "class") for k, _ in parameters):
        return None
    if not all(re.fullmatch(r"\w+", text) for text in call.template_args):
        return None
    values = (Literal(t) if t[0].isdigit() else Name(t) for t in call.template_args)
    given: dict[str, Expr] = {name: value for (_, name), value in zip(parameters, values, strict=True)}
    return replace(function, body=substitute(function.body, given), template=None)


def body_of_call(kernel: KernelForm, call: Expr, function: KernelForm) -> Scope:
    """A function's statements with the arguments of a call: names that it never changes stand as they are, all others
    are variables."""
    assert isinstance(call, Call)
    changed, taken = names_assigned(function.body), set(kernel_names(kernel)) | kernel.macro_words
    own: dict[str, Expr] = {}
    heads: list[Stmt] = []
    for param, arg in zip(function.params, call.args, strict=True):
        if isinstance(arg, Name) and param.name not in changed:
            own[param.name] = arg
            continue
        name = fresh(param.name, taken)
        taken.add(name)
        own[param.name] = Name(name)
        heads.append(Declare(param.type, name, arg))
    for s in walk_stmts(function.body):
        local = s.name if isinstance(s, Declare) else s.var if isinstance(s, For) and s.type is not None else None
        if local is not None and local in taken and local not in own:
            own[local] = Name(fresh(local, taken))
            taken.add(own[local].text)  # type: ignore[union-attr]
    return Scope((*heads, *substitute(function.body, own)))
