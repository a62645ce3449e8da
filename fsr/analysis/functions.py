"""Which functions and macros of a translation unit concern only the thread that calls them."""

from __future__ import annotations

import re
from functools import lru_cache

from fsr.analysis.calls import is_atomic, is_load, is_pure_name
from fsr.source.form import Call, Declare, Expr, KernelForm, Name, OpaqueExpr, OpaqueStmt
from fsr.source.parse import parse_device_functions
from fsr.source.text import skeleton
from fsr.source.walk import opaque_names, walk_exprs, walk_stmts

_GEOMETRY = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"])
_CONSTANTS = frozenset(
    ["INFINITY", "NAN", "FLT_MAX", "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "INT_MAX", "INT_MIN", "M_PI", "true", "false"]
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_COOPERATIVE = re.compile(
    r"__sync|__shfl|__ballot|__any|__all|__match|__activemask|__reduce|atomic|\basm\b|__shared__|\bgoto\b|\bstatic\b"
)


@lru_cache(maxsize=64)
def thread_local_functions(source: str) -> frozenset[str]:
    """The names of __device__ functions and function-like macros that do not speak of the thread's place, hold no
    barrier, lane exchange, atomic, shared or static variable, assembly or statement that could not be read, and call
    only pure functions and each other. They may read and write through pointers that they are given."""
    functions = parse_device_functions(source)
    found = {name for name, form in functions.items() if _is_local(form)}
    macros = {m[1]: m[3] for m in _MACRO.finditer(source) if not _COOPERATIVE.search(m[3])}
    given = {m[1]: _words(m[2]) for m in _MACRO.finditer(source)}
    found |= set(macros)
    while True:
        steady = {
            name
            for name in found
            if (name in functions and _called(functions[name], found))
            or (name in macros and all(_known(w, found) for w in _macro_words(macros[name]) - given[name]))
        }
        if steady == found:
            return frozenset(found)
        found = steady


def _is_local(form: KernelForm) -> bool:
    if any(isinstance(s, OpaqueStmt) for s in walk_stmts(form.body)):
        return False
    if any(isinstance(s, Declare) and {"__shared__", "static"} & set(s.qualifiers) for s in walk_stmts(form.body)):
        return False
    for e in walk_exprs(form.body):
        match e:
            case Name(text) if text in _GEOMETRY:
                return False
            case OpaqueExpr(text) if _COOPERATIVE.search(text) or opaque_names(text) & _GEOMETRY or "(" in text:
                return False
    return True


def _called(form: KernelForm, local: set[str]) -> bool:
    """Whether a function calls only pure functions, loads, and those named."""
    return all(only_thread(e, frozenset(local), frozenset()) for e in walk_exprs(form.body))


def only_thread(e: Expr, local: frozenset[str], types: frozenset[str]) -> bool:
    """Whether an expression, if it is a call, is one of a pure function, an atomic, a load, a thread-local function,
    or a conversion to one of the types named. Anything that is no call is fine."""
    if not isinstance(e, Call) or is_atomic(e) or is_load(e):
        return True
    return isinstance(e.callee, Name) and (is_pure_name(e.callee.text) or e.callee.text in local | types)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))


def _macro_words(body: str) -> frozenset[str]:
    """The identifiers in a macro's body, the suffixes of numbers left out."""
    code = skeleton(body.encode()).decode("utf-8", "replace")
    return frozenset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", code))


def _known(word: str, local: set[str]) -> bool:
    """Whether a word in a macro is a pure function, a type, a constant of the language, or known to be local."""
    return is_pure_name(word) or word in local or word in _CONSTANTS
