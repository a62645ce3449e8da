"""A kernel's own variables told apart: pointers as plain ones, by whatever name their type goes, and without promises
that nothing else reaches what they point to, for what is copied by tiles is reached by the parameter, too; variables
of several blocks that have one name, by names of their own, so that each is known by what it is set to."""

from __future__ import annotations

import re
from dataclasses import replace

from fsr.analysis.types import bare
from fsr.source.form import Call, Cast, Declare, Expr, For, Index, KernelForm, Name, OpaqueExpr, OpaqueStmt, Stmt, While
from fsr.source.macros import macros
from fsr.source.mapping import map_stmts, substitute, with_blocks
from fsr.source.names import reached, words
from fsr.source.pointers import pointers_named
from fsr.source.walk import Block, fresh, names_mentioned, nodes, opaque_names, taken_names, variables

_PROMISE = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")
_FIXED = re.compile(r"\*\s*const\s*$")


def with_plain_locals(kernel: KernelForm, source: str) -> KernelForm:
    """The kernel whose pointers are ``T *``, and whose variables have names of their own."""
    named = pointers_named(source)
    elements = {p.name: bare(p.type) for p in kernel.params if p.type.count("*") == 1}

    def plain(s: Stmt) -> Stmt:
        if not isinstance(s, Declare):
            return s
        if bare(s.type) == "auto" and isinstance(s.init, Index) and isinstance(s.init.base, Name):
            element = elements.get(s.init.base.text)
            return s if element is None or "&" in s.type else replace(s, type=s.type.replace("auto", element))
        words = s.type.split()
        fixed = words[0] == "const" if words else False
        meaning = named.get(words[-1]) if words and len(words) <= 1 + fixed else None
        type_ = _plain(s.type if meaning is None else meaning)
        return s if type_ is None or type_ == s.type else replace(s, type=type_)

    return _distinct(replace(kernel, body=map_stmts(kernel.body, plain)), source)


def _distinct(kernel: KernelForm, source: str) -> KernelForm:
    """The kernel in which no name is declared in two blocks, where all that mentions it is understood."""
    body, declared = kernel.body, variables(kernel.body)
    fixed = _in_macros(body, source).union(*map(_in_text, nodes(body)), (p.name for p in kernel.params))
    wanted = {n for n in declared if declared.count(n) > 1} - fixed
    taken, seen = set(taken_names(kernel)), set[str]()

    def block(stmts: Block) -> Block:
        found = tuple(with_blocks(s, block) for s in stmts)
        for at, s in enumerate(found):
            if isinstance(s, Declare) and s.name in wanted:
                if s.name in seen:
                    own = fresh(s.name, taken)
                    taken.add(own)
                    rest = substitute(found[at + 1 :], {s.name: Name(own)})
                    return (*found[:at], *block((replace(s, name=own), *rest)))
                seen.add(s.name)
        return found

    return replace(kernel, body=block(body)) if wanted else kernel


def _in_text(node: Expr | Stmt) -> frozenset[str]:
    """The names that a part of a kernel mentions in text, or in a place that is no expression."""
    match node:
        case OpaqueExpr(text) | OpaqueStmt(text):
            return opaque_names(text)
        case Declare(type=type_) | Cast(type_):
            return words(type_)
        case Call(template_args=args):
            return words(" ".join(map(str, args)))
        case For(var=var, pragmas=pragmas):
            return words(" ".join([var, *pragmas]))
        case While(pragmas=pragmas):
            return words(" ".join(pragmas))
    return frozenset()


def _in_macros(body: Block, source: str) -> frozenset[str]:
    """What macros that statements use may mention."""
    bodies = {m.name: words(m.body) for m in macros(source)}
    return frozenset().union(*(bodies[name] for name in reached(names_mentioned(body), bodies) & bodies.keys()))


def _plain(type_: str) -> str | None:
    """A pointer's type without what is said of the pointer itself; None for any other type."""
    if type_.count("*") != 1:
        return None
    bare = _FIXED.sub("*", " ".join(_PROMISE.sub(" ", type_).split()))
    base = bare.removesuffix("*").strip()
    return f"{base} *" if bare.endswith("*") else None
