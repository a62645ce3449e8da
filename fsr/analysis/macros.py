"""Macros and helpers of a device unit, as far as they bear on what a kernel's indexes and threads are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fsr.analysis.domain import COOPERATES
from fsr.analysis.polynomial import integer_literal
from fsr.analysis.rewrite import BUILT_IN, nodes, rewrite, substitute
from fsr.errors import FsrError
from fsr.source.form import Assign, Call, Expr, Index, KernelForm, Member, Name, OpaqueExpr
from fsr.source.items import parse_items
from fsr.source.names import words
from fsr.source.parse import parse_kernels
from fsr.source.text import close_of

Macro = tuple[tuple[str, ...] | None, Expr]  # parameters (None: object-like) and body
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\(([\w, \t]*)\))?[ \t]+(.+)$", re.MULTILINE)


def constants(source: str, form: KernelForm, entry: str) -> dict[str, int]:
    """Integers known at compile time by name: object-like macros, file-level constants, template arguments."""
    found: dict[str, int] = {}
    macro = r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?[ \t]*(\w+)[ \t]*\)?[ \t]*(?://.*|/\*.*)?$"
    words_before = r"^(?:(?:static|inline|__device__|__constant__)\s+)*(?:constexpr|const)\s+(?:static\s+)?"
    constant = words_before + r"(?:int|unsigned|size_t|unsigned int)\s+(\w+)\s*=\s*(\w+)\s*;"
    for pattern in (macro, constant):
        for name, text in re.findall(pattern, source, re.MULTILINE):
            value = integer_literal(text)
            if value is not None:
                found[name] = value
    if form.template and "<" in entry:
        declared = [name for _, name in form.template_parameters]
        given = entry[entry.index("<") + 1 : entry.rindex(">")].split(",")
        for name, text in zip(declared, given, strict=False):
            value = integer_literal(text.strip())
            if value is not None:
                found[name] = value
    return found


def expanded(form: KernelForm, source: str) -> KernelForm:
    """The kernel with macros of one expression written out, so that the indexes inside them show."""
    macros = _macros(source)

    def change(expr: Expr, active: frozenset[str] = frozenset()) -> Expr | None:
        match expr:
            case Name(text=text) if text in macros and text not in active and macros[text][0] is None:
                return rewrite(macros[text][1], lambda e: change(e, active | {text}))
            case Call(callee=Name(text=text), args=args) if text in macros and text not in active:
                parameters, body = macros[text]
                if parameters is not None and len(parameters) == len(args):
                    inner = [rewrite(a, lambda e: change(e, active)) for a in args]
                    body = rewrite(body, lambda e: change(e, active | {text}))
                    return substitute(body, dict(zip(parameters, inner, strict=True)))
        return None

    return replace(form, body=rewrite(form.body, change)) if macros else form


@lru_cache(maxsize=64)
def _macros(source: str) -> Mapping[str, Macro]:
    """Macros whose body is one expression that binds as tightly as an operand, each parameter in brackets."""
    found: dict[str, Macro] = {}
    for name, brackets, listed, body in _DEFINE.findall(re.sub(r"\\\r?\n", " ", source)):
        text = re.sub(r"//.*|/\*.*?\*/", "", body).strip()
        parameters = tuple(p.strip() for p in listed.split(",") if p.strip()) if brackets else None
        if not text or "#" in text or integer_literal(text) is not None or not _careful(text, parameters or ()):
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
    whole = body.encode()
    return isinstance(value, Index | Call | Member | Name) or (
        whole[:1] == b"(" and close_of(whole, 0) == len(whole) - 1
    )


@lru_cache(maxsize=64)
def thread_aware(source: str) -> frozenset[str]:
    """Names of macros, functions and types whose use depends on which thread runs it, directly or through others: code
    that calls them cannot be moved to another thread. Raises nothing: text that does not scan gives every name."""
    try:
        items = [i for item in parse_items(source) for i in item.walk() if i.names]
    except FsrError:
        return words(source)
    aware: set[str] = set()
    uses = [(i.names, words(source[i.start : i.end]) - set(i.names)) for i in items if not i.children]
    while True:
        fresh = {n for own, used in uses if used & (BUILT_IN | aware) or any(map(COOPERATES.search, used)) for n in own}
        if fresh <= aware:
            break
        aware |= fresh
    return frozenset(aware)
