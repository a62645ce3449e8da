"""Overloads of atomic functions that only hand on: ``atomicAdd(unsigned long *, unsigned long)`` by CUDA's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fsr.analysis.calls import ATOMICS
from fsr.analysis.types import aliases, integer_bytes, number_type
from fsr.source.form import Binary, Call, Cast, Expr, ExprStmt, If, KernelForm, Literal, Name, OpaqueExpr, Return
from fsr.source.walk import Block, without_comments

_SIZE = re.compile(r"sizeof\s*\(([\w\s:]+)\)")


def forwards(function: KernelForm, source: str) -> bool:
    """Whether a function by the name of an atomic calls CUDA's with the same address and value, as integers of the same
    bytes; which way it goes may depend on the bytes of types."""
    if function.name not in ATOMICS or len(function.params) != 2 or function.template:
        return False
    names = aliases(source)
    match _chosen(function.body, names):
        case (Return(Call() as call) | ExprStmt(Call() as call),):
            return _is_same(call, function, names)
    return False


def _chosen(body: Block, names: Mapping[str, str]) -> Block:
    """What is left of statements where the bytes of types decide."""
    body = without_comments(body)
    match body:
        case (If(Binary("==", one, other), then, orelse),):
            sizes = _bytes(one, names), _bytes(other, names)
            if None not in sizes:
                return _chosen(then if sizes[0] == sizes[1] else orelse, names)
    return body


def _bytes(e: Expr, names: Mapping[str, str]) -> int | None:
    found = _SIZE.fullmatch(e.text.strip()) if isinstance(e, OpaqueExpr | Literal) else None
    return None if found is None else integer_bytes(number_type(found[1], names))


def _is_same(call: Call, function: KernelForm, names: Mapping[str, str]) -> bool:
    address, value = function.params
    match call:
        case Call(Name(name), (Cast(type_, Name(to)), given), ()) if (name, to) == (function.name, address.name):
            own, other = (number_type(t, names) for t in (address.type, type_))
        case _:
            return False
    if isinstance(given, Cast) and number_type(given.type, names) == other:
        given = given.operand
    signs = own.startswith("unsigned") == other.startswith("unsigned")
    sized = integer_bytes(own) is not None and integer_bytes(own) == integer_bytes(other)
    plain = type_.count("*") == address.type.count("*") == 1 and number_type(value.type, names) == own
    return given == Name(value.name) and sized and plain and (signs or not name.endswith(("Max", "Min")))
