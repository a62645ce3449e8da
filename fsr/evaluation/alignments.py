"""What a kernel needs of its pointers beyond their elements: ``reinterpret_cast<const float4 *>(x)`` of a ``float *x``.

Cases put buffers at addresses that are no more aligned than the contract promises, so that such a kernel fails them:
what is amiss is mostly the promise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fsr.contract.model import Contract
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Candidate, Role
from fsr.source.entry import function_name
from fsr.source.form import Cast, Declare, KernelForm
from fsr.source.parse import parse_kernels
from fsr.source.types import aliases, resolve_dtype
from fsr.source.walk import base_name, walk_exprs, walk_stmts

WIDEST = 16  # bytes that one instruction loads or stores


def lacking(candidate: Candidate, contract: Contract) -> dict[str, int]:
    """Buffers that kernels read or write by wider types than the contract promises an alignment for, by name, and the
    bytes that these need. What functions do with pointers that they are given is left out."""
    kernels, found = parse_kernels(candidate.source), dict[str, int]()
    promised = {a.name: a.alignment or _bytes(a.dtype) for a in contract.args if a.role not in (Role.SCALAR, Role.NULL)}
    for launch in candidate.plan.launches:
        kernel = kernels.get(function_name(launch.entry))
        passed = zip(kernel.params, launch.args, strict=False) if kernel else ()
        buffers = {param.name: name for param, name in passed if isinstance(name, str) and name in promised}
        for param, needed in _needed(kernel, candidate.source) if kernel else ():
            name = buffers.get(param)
            if name is not None and needed > max(promised[name], found.get(name, 0)):
                found[name] = needed
    return found


def _bytes(dtype: str) -> int:
    return BY_DTYPE[dtype].bytes if dtype in BY_DTYPE else WIDEST


def _needed(kernel: KernelForm, source: str) -> Iterator[tuple[str, int]]:
    """Pointers that are cast to pointers to something else, with what they were made of, and the bytes of that."""
    made, known = dict(_made(kernel)), aliases(source)
    for e in walk_exprs(kernel.body):
        if isinstance(e, Cast) and e.type.rstrip().endswith("*"):
            name, needed = base_name(e.operand), _alignment(e.type.rstrip(" *"), known, source)
            for _ in range(len(made) + 1):  # which may go round in a circle
                if name is not None:
                    yield name, needed
                    name = made.get(name)


def _made(kernel: KernelForm) -> Iterator[tuple[str, str]]:
    """Local pointers, and the pointer that each is made of."""
    for s in walk_stmts(kernel.body):
        if isinstance(s, Declare) and s.init is not None and ("*" in s.type or "auto" in s.type.split()):
            name = base_name(s.init)
            if name is not None:
                yield s.name, name


def _alignment(type_: str, known: Mapping[str, str], source: str) -> int:
    """The bytes that an address must be a multiple of to be one of a type; 1 where that is not known."""
    dtype, lanes = resolve_dtype(type_, known)
    if dtype is not None:
        return min(_bytes(dtype) * (lanes if lanes != 3 else 1), WIDEST)
    name = re.escape(type_.split()[-1] if type_.split() else "")
    stated = re.search(rf"(?:__align__|alignas)\s*\(\s*(\d+)\s*\)\s*{name}\b", source) if name else None
    return int(stated[1]) if stated else 1
