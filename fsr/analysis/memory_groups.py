"""Which pointers, references and shared arrays of a kernel may lead to the same memory.

What is unlike in the text is kept apart only where nothing joins it: a pointer is one with everything that it is ever
made from. What parameters are passed is not asked here (:mod:`fsr.analysis.aliasing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import reduce

from fsr.analysis.accesses import declared_arrays, element
from fsr.source.form import Assign, Declare, Expr, Index, KernelForm, Literal, Name, OpaqueExpr, OpaqueStmt, Unary
from fsr.source.mapping import rewrite
from fsr.source.types import resolve_dtype
from fsr.source.walk import BUILTINS, base_name, loops, names_in, opaque_names, walk_exprs, walk_stmts

_SETS = re.compile(r"(?<![=!<>])=(?!=)")
_UNTOLD = frozenset([""])  # stands for what cannot be followed


def memory_groups(kernel: KernelForm, types: Mapping[str, str], plain: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """For every name that leads to memory, all names that may lead to the same. Names that the kernel does not declare
    are among them where a pointer is made from one, '' where verbatim statements name one. ``types``: the file's own
    names for types; ``plain``: further names that stand for numbers (constants, template parameters)."""
    declared = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare)]
    numbers = {s.name for s in declared if is_number(s.type, types) and not s.dims}
    numbers |= {p.name for p in kernel.params if not p.is_pointer} | {loop.var for loop in loops(kernel.body)}
    numbers |= BUILTINS | plain
    arrays = declared_arrays(kernel.body) | {p.name for p in kernel.params if p.is_pointer}
    memory = arrays | {s.name for s in declared if s.name not in numbers}
    numbers -= arrays  # a name declared twice leads to memory
    pairs = [{n} | (_led_to(e, arrays) - numbers) for n, e in _made(kernel, memory)]
    pairs.append({s.name for s in declared if {"extern", "__shared__"} <= set(s.qualifiers)})
    pairs.extend({n} | _UNTOLD for text in _verbatim(kernel) for n in opaque_names(text) & memory)
    groups = reduce(_joined, pairs, [frozenset([n]) for n in memory])
    return {name: group for group in groups for name in group}


def is_number(type_: str, types: Mapping[str, str]) -> bool:
    """Whether a type is a number or a built-in vector of numbers."""
    return not {"*", "&"} & set(type_) and resolve_dtype(type_, types)[0] is not None


def _verbatim(kernel: KernelForm) -> Iterator[str]:
    """The texts that may set a pointer in a way that does not show."""
    yield from (s.text for s in walk_stmts(kernel.body) if isinstance(s, OpaqueStmt))
    yield from (e.text for e in walk_exprs(kernel.body) if isinstance(e, OpaqueExpr) and _SETS.search(e.text))


def _made(kernel: KernelForm, memory: frozenset[str]) -> Iterator[tuple[str, Expr]]:
    """Every variable that may hold an address, and what it is set to. (An element that is set holds a number.)"""
    held = {s.name for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.dims and "*" in s.type}
    for s in walk_stmts(kernel.body):
        match s:
            case Declare(type=type_, name=name, init=init) if name in memory and init is not None:
                yield name, Unary("&", init) if "&" in type_ else init
            case Assign(target, _, value):
                name = base_name(target) or ""
                if name in memory and (name in held or not isinstance(target, Index | Unary)):
                    yield name, value


def _led_to(e: Expr, arrays: frozenset[str]) -> frozenset[str]:
    """The names that a value may hold an address of: not those of which it reads an element."""

    def hidden(x: Expr) -> Expr | None:
        match x:
            case Unary("&"):
                return Name(base_name(x) or "")
            case _ if element(x, arrays) is not None:
                return Literal("0")
        return None

    return names_in(rewrite(e, hidden))


def _joined(groups: list[frozenset[str]], names: set[str] | frozenset[str]) -> list[frozenset[str]]:
    one = frozenset(names).union(*(g for g in groups if g & names))
    return [g for g in groups if not g & names] + ([one] if one else [])
