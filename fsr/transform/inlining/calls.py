"""Device functions written out where a kernel calls them: a loop over memory that stands in a helper is a loop of the
kernel to whoever rewrites it.

Only what reads and writes memory, or waits, is written out: what merely computes a value stays a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.calls import is_load
from fsr.analysis.definitions import definitions
from fsr.analysis.functions import Functions, functions_of, own_name
from fsr.analysis.macros import expanded
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    If,
    KernelForm,
    Literal,
    Name,
    OpaqueExpr,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_expr, map_stmts, replace_stmt, with_exprs
from fsr.source.parse import parse_device_functions
from fsr.source.sequenced import chooses
from fsr.source.walk import (
    BUILTINS,
    Block,
    base_name,
    blocks_of,
    contains_opaque,
    declared,
    exprs_of,
    fresh,
    kernel_names,
    subexprs,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.inlining.bodies import Told, body_of_call, instance, retyped_text
from fsr.transform.inlining.returns import with_ends, with_left_loops

_MOST = 24  # calls, those of functions that are called by others among them
_NAMED = re.compile(r"(?<![\w.])[A-Za-z_]")
_OURS = "fsr_"  # helpers that candidates are given: reductions of a warp and the like
_OVERLOADED = ("atomic", "__")  # of CUDA's names a file may add versions, and a call may mean either
_LONGEST = 400  # statements of what comes out
_QUALIFIERS = frozenset(["inline", "__inline__", "__forceinline__", "__noinline__", "static", "const", "constexpr",
                         "__device__", "__host__"])  # fmt: skip


def inlined(
    kernel: KernelForm, source: str, wanted: Callable[[Call], bool] = lambda _: True, *, pure: bool = False
) -> KernelForm:
    """The kernel with calls of the file's functions written out, as far as they stand where all of a statement is
    evaluated and their returns are ends; as it is where it would become too long. ``wanted``: which calls; ``pure``:
    those of functions that merely compute are among them."""
    functions = _functions(source, pure)
    if not functions:
        return kernel
    whole = kernel
    for _ in range(_MOST):
        found = next((f for f in _calls(whole.body, functions) if wanted(f[1])), None)
        if found is None:
            break
        written = _written(whole, *found, functions, source)
        if written is None:
            functions = {n: f for n, f in functions.items() if n != own_name(_named(found[1]))}
            continue
        whole = replace(whole, body=replace_stmt(whole.body, found[0], written))
        if sum(1 for _ in walk_stmts(whole.body)) > _LONGEST:
            return kernel
    return whole


@dataclass(frozen=True, slots=True)
class _Function:
    """``result``: the type that it returns, as written, '' of none; ``once``: it has memory of its own."""

    form: KernelForm
    result: str
    once: bool


@lru_cache(maxsize=64)
def _functions(source: str, pure: bool) -> Mapping[str, _Function]:
    """Those that may be written out, by name."""
    known, found = functions_of(source), dict[str, _Function]()
    for name, form in parse_device_functions(source).items():
        result = result_type(name, source)
        if (name in known.pure and not pure) or name.startswith(_OURS) or result is None or contains_opaque(form.body):
            continue
        if "..." in str(form.template) or name.startswith(_OVERLOADED) or _calls_itself(form):
            continue
        form = expanded(form, source)
        keeps = [s for s in walk_stmts(form.body) if isinstance(s, Declare) and set(s.qualifiers) - {"constexpr"}]
        if any("extern" in s.qualifiers or "__shared__" not in s.qualifiers for s in keeps):
            continue
        if any(isinstance(e, OpaqueExpr) and _NAMED.search(e.text) for e in walk_exprs(form.body)):
            continue
        own = set(kernel_names(form)) | form.macro_words
        body = with_ends(with_left_loops(form.body, "" if result == "void" else result, own))
        if body is not None:
            found[name] = _Function(replace(form, body=body), "" if result == "void" else result, bool(keeps))
    return found


def _calls_itself(form: KernelForm) -> bool:
    return any(isinstance(e, Call) and own_name(_named(e)) == form.name for e in walk_exprs(form.body))


@lru_cache(maxsize=1024)
def result_type(name: str, source: str) -> str | None:
    """What a function returns, as written; None where it has several definitions, or its head tells no type."""
    heads = re.findall(rf"([^;{{}}()>]*)\b{re.escape(name)}\s*\([^;{{}}]*\)\s*(?:const\s*)?\{{", source)
    heads = [head for head in heads if re.search(r"\w", head)]  # others test what a call returns: ``if (f(x)) {``
    if len(heads) != 1:
        return None
    words = re.sub(r"//[^\n]*|/\*.*?\*/|#[^\n]*", " ", heads[0], flags=re.DOTALL).split()
    kept = [w for w in words if w not in _QUALIFIERS and w != "template"]
    plain = kept and "auto" not in kept and all(re.fullmatch(r"[A-Za-z_][\w:]*", w) for w in kept)
    return " ".join(kept) if plain else None


# ---------------------------------------------------------------- calls


def _named(call: Call) -> str:
    return call.callee.text if isinstance(call.callee, Name) else ""


def _calls(body: Block, functions: Mapping[str, _Function]) -> Iterator[tuple[Stmt, Call]]:
    """Statements with a call that may be written out before them, inner ones first."""
    for s in body:
        if isinstance(s, Declare | Assign | ExprStmt | If):
            direct = exprs_of(s)
            for e in direct if isinstance(s, Assign) else direct[-1:]:
                for call in _certain(e):
                    if own_name(_named(call)) in functions:
                        yield s, call
        for block in blocks_of(s):
            yield from _calls(block, functions)


def _certain(e: Expr) -> Iterator[Call]:
    """The calls in an expression that are evaluated whenever it is, inner ones first."""
    parts = subexprs(e)
    for part in parts[:1] if chooses(e) else parts:
        yield from _certain(part)
    if isinstance(e, Call):
        yield e


def _written(kernel: KernelForm, s: Stmt, call: Call, functions: Mapping[str, _Function], source: str) -> Block | None:
    """What stands for a statement with the call written out; None where that may not be done."""
    function, known = functions[own_name(_named(call))], definitions(kernel)
    given = instance(function.form, call, Told(known.types, declared(kernel.body)))
    if given is None:
        return None
    form, words = given
    own = {p.name for p in kernel.params} | set(variables(kernel.body))
    free = kernel_names(form) - set(variables(form.body)) - {p.name for p in form.params} - BUILTINS
    times = sum(isinstance(e, Call) and own_name(_named(e)) == form.name for e in walk_exprs(kernel.body))
    if free & own or (function.once and times > 1):
        return None
    inner = body_of_call(kernel, call, form, known.types)
    if inner is None:
        return None
    if isinstance(s, ExprStmt) and s.expr == call:
        return (replace(inner, body=_without_returns(inner.body)),)
    if not function.result or not _alone(s, call, form, functions_of(source)):
        return None
    result = fresh(f"{form.name}_result", set(kernel_names(kernel)) | kernel.macro_words)

    def ended(x: Stmt) -> Stmt:
        return Assign(Name(result), "=", x.value) if isinstance(x, Return) and x.value is not None else x

    inner = replace(inner, body=map_stmts(inner.body, ended))
    rest = with_exprs(s, lambda top: map_expr(top, lambda e: Name(result) if e == call else e))
    return Declare(retyped_text(function.result, words), result), inner, rest


def _writes(form: KernelForm, functions: Functions) -> bool:
    """Whether a function may change what others see, or waits for others."""
    own = {p.name for p in form.params if "&" not in p.type} | set(declared(form.body))
    led = {p.name for p in form.params if p.is_pointer}
    led |= {s.name for s in walk_stmts(form.body) if isinstance(s, Declare) and "*" in s.type}
    for s in walk_stmts(form.body):
        target = s.target if isinstance(s, Assign) else None
        if target is not None and base_name(target) not in (own if isinstance(target, Name) else own - led):
            return True
        if any(isinstance(e, Call) and not functions.only_computes(_named(e)) and not is_load(e) for e in _direct(s)):
            return True
    return False


def _direct(s: Stmt) -> Iterator[Expr]:
    return (e for top in exprs_of(s) for e in walk_expr(top))


def _alone(s: Stmt, call: Call, form: KernelForm, functions: Functions) -> bool:
    """Whether a call may come before the rest of its statement: its value is all there is, or it only reads, as all
    others do, or all others only compute."""
    everything = list(_direct(s))
    if sum(e == call for e in everything) != 1:
        return False
    match s:
        case Declare(init=value) | Assign(Name(), "=", value) if value == call:
            return True
    within = {id(e) for e in walk_expr(call)}
    others = [e for e in everything if id(e) not in within]
    if not _writes(form, functions):
        return all(functions.only_computes(_named(e)) for e in others if isinstance(e, Call))
    by_name = any("&" in p.type for p in form.params)
    return not by_name and not isinstance(s, Assign) and all(_computes(e, functions) for e in others)


def _computes(e: Expr, functions: Functions) -> bool:
    match e:
        case Name() | Literal() | Binary() | Ternary() | Cast():
            return True
        case Unary(op):
            return op not in "*&"
        case Call():
            return functions.only_computes(_named(e))
    return False


def _without_returns(body: Block) -> Block:
    found = list[Stmt]()
    for s in body:
        match s:
            case Return(value):
                if value is not None and any(isinstance(e, Call) for e in walk_expr(value)):
                    found.append(ExprStmt(value))
            case If(_, then, orelse):
                found.append(replace(s, then=_without_returns(then), orelse=_without_returns(orelse)))
            case Scope(inner):
                found.append(replace(s, body=_without_returns(inner)))
            case _:
                found.append(s)
    return tuple(found)
