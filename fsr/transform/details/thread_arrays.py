"""A thread's arrays in local memory of which only elements are used, so that these may lie elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fsr.analysis.calls import ATOMICS
from fsr.analysis.local_arrays import in_local_memory
from fsr.analysis.types import resolved
from fsr.hardware.c_types import BY_SPELLING, LANES, element_bytes
from fsr.source.arrays import indices_of, is_only_one
from fsr.source.form import Call, Declare, Expr, Name, OpaqueExpr, OpaqueStmt, Unary
from fsr.source.mapping import map_expr
from fsr.source.parse import parse_device_functions
from fsr.source.tokens import spelt, split_commas, tokenize
from fsr.source.walk import base_name, exprs_of, names_in, opaque_names, walk_exprs, walk_stmts
from fsr.transform.fewer.called import forwarded_atomics
from fsr.transform.target import Target

_MOST_VALUES = 16  # of an initialiser, each an assignment


@dataclass(frozen=True, slots=True)
class ThreadArray:
    """``extents`` of the array, bytes an element, and the values that its initialiser tells; None without one."""

    declared: Declare
    extents: tuple[int, ...]
    bytes: int
    values: tuple[str, ...] | None

    @property
    def thread_bytes(self) -> int:
        """Of one thread."""
        return math.prod(self.extents) * self.bytes


def thread_arrays(target: Target) -> list[ThreadArray]:
    """A kernel's arrays in local memory that may lie elsewhere, in the order of the text."""
    kernel = target.kernel
    arrays = in_local_memory(kernel)
    if not arrays or any(isinstance(s, OpaqueStmt) and "goto" in opaque_names(s.text) for s in walk_stmts(kernel.body)):
        return []
    return [found for a in arrays if (found := _one(target, a)) is not None]


def _one(target: Target, array: Declare) -> ThreadArray | None:
    """The array, if it holds plain values, has constant extents, and only its elements are used."""
    extents, bytes_ = [target.poly(d).value for d in array.dims], bytes_of(target, array.type)
    values = None if array.init is None else _values(array.init)
    if bytes_ is None or not all(extents):
        return None
    if array.init is not None and (values is None or not _takes_numbers(target, array.type)):
        return None
    found = ThreadArray(array, tuple(n for n in extents if n), bytes_, values)
    told = len(values or ())
    if told > min(_MOST_VALUES, math.prod(found.extents)) or (told and len(found.extents) > 1):
        return None
    unique = is_only_one(target.kernel, array) and array.name not in target.kernel.macro_words
    return found if unique and _elements_only(target, array) else None


def bytes_of(target: Target, type_: str) -> int | None:
    """Bytes of a number, a flag or a built-in vector that may change; None for anything else."""
    if {"const", "volatile"} & set(type_.split()) or "*" in type_ or "&" in type_:
        return None
    if type_ in LANES:
        element, count = LANES[type_]
        return element.bytes * count
    return 1 if type_ == "bool" else element_bytes(resolved(type_, target.aliases))


def _takes_numbers(target: Target, type_: str) -> bool:
    known = BY_SPELLING.get(resolved(type_, target.aliases))
    return known is not None and not known.header


def _values(init: Expr) -> tuple[str, ...] | None:
    """The values in the brackets of an initialiser, ``{0}`` as none at all; None where there is something else."""
    tokens = tokenize(init.text.strip()) if isinstance(init, OpaqueExpr) else []
    if len(tokens) < 2 or tokens[0].text != "{" or tokens[-1].text != "}":
        return None
    parts = [spelt(p) for p in split_commas(tokens[1:-1]) if p]
    if any(t.text in ("{", ".", "=") for t in tokens[1:-1]):
        return None
    return () if all(p in ("0", "0.0f", "0.f", "0.0", "false") for p in parts) else tuple(parts)


def _elements_only(target: Target, array: Declare) -> bool:
    """Whether every mention of the array is a whole element, whose address nobody takes."""
    for x in walk_exprs(target.kernel.body):
        if isinstance(x, Unary) and x.op == "&" and base_name(x) == array.name:
            return False
        handed = isinstance(x, Call) and any(indices_of(a, array) is not None for a in x.args)
        if handed and isinstance(x, Call) and not _only_uses(target, x):
            return False
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, OpaqueStmt) and array.name in opaque_names(s.text):
            return False
        if isinstance(s, Declare) and "&" in s.type and s.init is not None and array.name in names_in(s.init):
            return False
        for e in exprs_of(s):
            left = map_expr(e, lambda x: Name("0") if indices_of(x, array) is not None else x)
            if array.name in names_in(left):
                return False
    return True


def _only_uses(target: Target, call: Call) -> bool:
    """Whether a call that gets an element, maybe by reference, goes no further from there."""
    if not isinstance(call.callee, Name):
        return False
    name = call.callee.text
    if target.functions.only_computes(name) or name in target.type_names or element_bytes(name):
        return True
    if name in ATOMICS and (name not in target.functions.own or name in forwarded_atomics(target.source)):
        return True  # it gets a value
    form = parse_device_functions(target.source).get(name)
    return form is not None and not any(
        isinstance(x, OpaqueStmt)
        or (isinstance(x, OpaqueExpr) and "&" in x.text)
        or (isinstance(x, Unary) and x.op == "&")
        or (isinstance(x, Call) and not (isinstance(x.callee, Name) and target.functions.builtin(x.callee.text)))
        for x in (*walk_stmts(form.body), *walk_exprs(form.body))
    )
