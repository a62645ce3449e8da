"""Shared arrays of which trees are made: declared ones, and what pointers cut out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fsr.analysis.types import bare
from fsr.hardware.c_types import LANES
from fsr.source.arrays import is_only_one
from fsr.source.form import Binary, Cast, Declare, Expr, Index, Name, Unary
from fsr.source.parse import parse_device_functions
from fsr.source.types import plain_type, type_bytes
from fsr.source.walk import names_assigned, walk_stmts
from fsr.transform.trees.threads import Threads

SHUFFLED = frozenset(["int", "unsigned int", "float", "double", "long long", "unsigned long long", "__half",
                      "__nv_bfloat16"])  # as number_type spells them  # fmt: skip


def vector_of(type_: str, aliases: Mapping[str, str]) -> tuple[str, int] | None:
    """The built-in vector type that a type is, and how many numbers it has, where shuffles hand these on one by one."""
    plain = plain_type(type_, aliases)
    element, count = LANES.get(plain, (None, 0))
    return (plain, count) if element is not None and element.spelling in SHUFFLED and plain[-1].isdigit() else None


@dataclass(frozen=True)
class Shared:
    """``declared``: the array, or a pointer to its first element; ``root``: the array whose memory that is, from byte
    ``offset`` on; ``bytes`` of an element."""

    declared: Declare
    root: str
    offset: int
    bytes: int

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer."""
        return "*" in self.declared.type


def shared_arrays(threads: Threads) -> dict[str, Shared]:
    """By name, those whose elements can be told from all others: without roots into which something points that is
    not known."""
    kernel = threads.target.kernel
    stmts = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare)]
    roots = [s for s in stmts if "__shared__" in s.qualifiers]
    functions = parse_device_functions(threads.target.source).values()
    others = [s for f in functions for s in walk_stmts(f.body) if isinstance(s, Declare)]
    # A function may have a name of its own for the launch's shared memory.
    dynamic = [s.name for s in (*roots, *others) if {"extern", "__shared__"} <= set(s.qualifiers)]
    found: dict[str, Shared] = {}
    for s in roots:
        size = _size(s.type, threads)
        plain = len(s.dims) == 1 and s.init is None and is_only_one(kernel, s) and "*" not in s.type
        if plain and size and (len(dynamic) == 1 or s.name not in dynamic):
            found[s.name] = Shared(s, s.name, 0, size)
    for pointer in _pointers(stmts, found, threads):
        found[pointer.declared.name] = pointer
    return found


def _pointers(stmts: list[Declare], found: dict[str, Shared], threads: Threads) -> Iterator[Shared]:
    kernel = threads.target.kernel
    changed = names_assigned(kernel.body)
    for s in stmts:
        if "*" not in s.type or s.type.count("*") > 1 or s.dims or s.init is None or s.name in changed:
            continue
        size, at = _size(s.type, threads), _pointed(s.init, found, threads)
        if at is not None and size and at[1] % size == 0 and is_only_one(kernel, s):
            yield Shared(s, at[0], at[1], size)


def _size(type_: str, threads: Threads) -> int:
    return type_bytes(bare(type_), threads.target.aliases)


def _pointed(e: Expr, found: dict[str, Shared], threads: Threads) -> tuple[str, int] | None:
    """The root into which a pointer points, and how many bytes from its start."""
    match e:
        case Name(text) if text in found:
            return found[text].root, found[text].offset
        case Cast(type_, operand) if "*" in type_:
            return _pointed(operand, found, threads)
        case Unary("&", Index(base, index)) | Binary("+", base, index):
            at, each, values = _pointed(base, found, threads), _step(base, found, threads), threads.values(index, {})
            if at is None or not each or values is None or not np.all(values == values[0]):
                return None
            return at[0], at[1] + each * int(values[0])
    return None


def _step(base: Expr, found: dict[str, Shared], threads: Threads) -> int:
    """Bytes from one element to the next of what a pointer points to."""
    match base:
        case Name(text) if text in found:
            return found[text].bytes
        case Cast(type_, _):
            return _size(type_, threads)
        case Binary("+", left, _):
            return _step(left, found, threads)
    return 0


def same_array(found: dict[str, Shared]) -> dict[str, Name]:
    """Pointers that are but another name of an array, or of an earlier pointer, with that."""
    first: dict[tuple[str, int, str], str] = {}
    others: dict[str, Name] = {}
    for name, one in found.items():
        key = (one.root, one.offset, bare(one.declared.type))
        if key in first and one.is_pointer:
            others[name] = Name(first[key])
        first.setdefault(key, name)
    return others
