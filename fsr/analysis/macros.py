"""Macros and helpers of a device unit, as far as they bear on what a kernel's indexes and threads are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fsr.source.entry import template_arguments
from fsr.source.form import Assign, Call, Expr, Index, KernelForm, Literal, Member, Name, OpaqueExpr
from fsr.source.integers import integer_of, integers
from fsr.source.macros import macros
from fsr.source.mapping import rewrite, substitute
from fsr.source.names import reached, words
from fsr.source.parse import parse_kernels
from fsr.source.tokens import close_of, tokenize
from fsr.source.walk import BUILTINS, integer, names_mentioned, nodes, variables


def constants(source: str, form: KernelForm, entry: str) -> dict[str, int]:
    """Integers known at compile time by name: object-like macros, file-level constants and enumerators, template
    arguments; none that a parameter or a variable of the kernel hides."""
    hidden = {*variables(form.body), *(p.name for p in form.params)}
    found = {name: value for name, value in integers(source).items() if name not in hidden}
    if form.template and "<" in entry:
        declared = [name for _, name in form.template_parameters]
        for name, text in zip(declared, template_arguments(entry), strict=False):
            value = integer_of(text, found)
            if value is not None:
                found[name] = value
    return found


def expanded(form: KernelForm, source: str) -> KernelForm:
    """The kernel with macros of one expression written out, so that the indexes inside them show."""
    known = _expressions(source)

    def change(expr: Expr, active: frozenset[str] = frozenset()) -> Expr | None:
        match expr:
            case Name(text=text) if text in known and text not in active and known[text][0] is None:
                return rewrite(known[text][1], lambda e: change(e, active | {text}))
            case Call(callee=Name(text=text), args=args) if text in known and text not in active:
                parameters, body = known[text]
                if parameters is not None and len(parameters) == len(args):
                    inner = [rewrite(a, lambda e: change(e, active)) for a in args]
                    body = rewrite(body, lambda e: change(e, active | {text}))
                    return substitute(body, dict(zip(parameters, inner, strict=True)))
        return None

    return replace(form, body=rewrite(form.body, change)) if known else form


def hides_names(form: KernelForm, source: str) -> bool:
    """Whether a macro that a kernel uses mentions a variable of the kernel, or the ids of a thread."""
    bodies = {m.name: words(m.body) - set(m.params or ()) for m in macros(source)}
    own = BUILTINS.union(variables(form.body), (p.name for p in form.params))
    return any(bodies[name] & own for name in reached(names_mentioned(form.body), bodies) & bodies.keys())


@lru_cache(maxsize=64)
def _expressions(source: str) -> Mapping[str, tuple[tuple[str, ...] | None, Expr]]:
    """Macros whose body is one expression that binds as tightly as an operand, each parameter in brackets."""
    found: dict[str, tuple[tuple[str, ...] | None, Expr]] = {}
    for macro in macros(source):
        name, parameters, text = macro.name, macro.params, macro.body
        if not text or "#" in text or integer(Literal(text)) is not None or not _careful(text, parameters or ()):
            continue
        declared = ", ".join(f"int {p}" for p in parameters or ())
        kernels = parse_kernels(f"__global__ void f({declared}) {{\n    x = {text};\n}}\n")
        match kernels["f"].body if "f" in kernels else ():
            case (Assign(target=Name(text="x"), op="=", value=value),) if _closed(text, value):
                if not any(isinstance(n, OpaqueExpr) for n in nodes(value)):
                    found[name] = (parameters, value)
    return found


def _careful(body: str, parameters: tuple[str, ...]) -> bool:
    """Whether every parameter stands in brackets of its own, so that the order of operations cannot change."""
    bare = body
    for parameter in parameters:
        bare = re.sub(rf"\(\s*{parameter}\s*\)|\[\s*{parameter}\s*\]|(?<=[(,])\s*{parameter}\s*(?=[,)])", " ", bare)
    return not words(bare) & set(parameters)


def _closed(body: str, value: Expr) -> bool:
    """Whether a macro's body binds as tightly as an operand, whatever stands around its use."""
    tokens = tokenize(body)
    return isinstance(value, Index | Call | Member | Name) or (
        tokens[0].text == "(" and close_of(tokens, 0) == len(tokens) - 1
    )
