"""Along which of a launch's ids the memory of a kernel runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from fsr.analysis.braces import with_members_set
from fsr.analysis.polynomial import Poly
from fsr.analysis.threads import AXES
from fsr.analysis.written_out import plain
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.hardware.c_types import LANES
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Stmt,
    Unary,
)
from fsr.source.mapping import map_expr, map_stmts
from fsr.source.walk import Block, base_name, names_assigned, walk_expr, walk_exprs, walk_stmts
from fsr.transform.inlining.calls import inlined
from fsr.transform.target import Target

_DEEPEST = 4  # variables made of variables


def contiguous(target: Target, record: int = 1) -> dict[str, int]:
    """How many elements of buffers lie along each id, such as ``blockIdx.x``: those of each buffer, as timed, as often
    as an index into it goes up by one with the id. ``record``: or by as many at most, of which one is made use of."""
    found = dict[str, int]()
    for index, elements in _indices(target):
        for id_ in (f"{base}.{axis}" for base in ("threadIdx", "blockIdx") for axis in AXES):
            step = index.coefficient(id_)
            if step is not None and 1 <= (step.value or 0) <= record:
                found[id_] = found.get(id_, 0) + elements // int(step.value or 1)
    return found


def nearest(target: Target, ids: Sequence[str]) -> str:
    """Of some ids the one whose neighbours lie nearest in buffers, by as many elements as these have: its step divides
    the other's, in elements or in records of several. The first where nothing tells."""
    votes = dict.fromkeys(ids, 0)
    for index, elements in _indices(target):
        steps = {id_: step for id_ in ids if (step := index.coefficient(id_)) is not None and step.terms}
        for one, step in steps.items():
            others = [other.over(step) for id_, other in steps.items() if id_ != one]
            if others and all(times is not None and times.value is None for times in others):
                votes[one] += elements
    return max(ids, key=lambda id_: votes[id_])


def _indices(target: Target) -> Iterator[tuple[Poly, int]]:
    """The indices into buffers, each once, and how many elements of that buffer there are as timed."""
    read = replace(target, kernel=_with_functions(target.kernel, target.source))
    buffers = {p.name for p in target.kernel.params if p.is_pointer}
    values = _values(read.kernel.body)
    for e in set(walk_exprs(read.kernel.body)):
        if not isinstance(e, Index | Unary) or (isinstance(e, Unary) and e.op != "*"):
            continue
        for _ in range(_DEEPEST):
            e = map_expr(e, lambda x: values.get(_key(x), x))
        name, index = _place(e)
        if name in buffers:
            yield read.known.poly(index, read.numbers), _elements(target.contract, target.passed.get(name, ""))


def _place(e: Expr) -> tuple[str, Expr]:
    """What array an expression is an element of, and which; of rows in an array, which of its row."""
    match e:
        case Index(base, index):
            name, start = _pointed(base)
            return (name, Binary("+", start, index)) if name else (base_name(e) or "", index)
        case Unary("*", pointer):
            return _pointed(pointer)
    return "", e


def _pointed(pointer: Expr) -> tuple[str, Expr]:
    """The array that a pointer points into, and to which element."""
    match pointer:
        case Name(text):
            return text, Literal("0")
        case Cast(_, operand):
            return _pointed(operand)
        case Unary("&", Index() as element):
            return _place(element)
        case Binary("+" | "-" as op, left, right):
            name, start = _pointed(left)
            return (name, Binary(op, start, right)) if name else ("", pointer)
    return "", pointer


@lru_cache(maxsize=64)
def _with_functions(kernel: KernelForm, source: str) -> KernelForm:
    """The kernel with what functions do with the ids that they are passed written out."""
    apart = with_members_set(kernel, source, vectors=True)
    return plain(inlined(apart, source, pure=True), source)


def _key(e: Expr) -> str:
    """What a variable, or a member of one, is called; nothing for all else."""
    match e:
        case Name(text):
            return text
        case Member(Name(text), member, False):
            return f"{text}.{member}"
    return ""


def _values(body: Block) -> dict[str, Expr]:
    """What variables and their members are set to, in loops too, where that is once, and what is added to them:
    ``const int at = z + y * 9`` for any z. One of several loops' own is meant where all are declared alike."""
    first, added = dict[str, set[Expr]](), list[tuple[str, Expr]]()
    for s in walk_stmts(body):
        match s:
            case Declare(name=name, init=value, dims=()) if value is not None:
                _set(first, name, value)
            case Assign(target, "=", value) if _key(target):
                _set(first, _key(target), value)
            case Assign(target, "+=", value) if _key(target):
                added.append((_key(target), value))
    declared = [s.name for s in {replace(s, span=None) for s in walk_stmts(body) if isinstance(s, Declare)}]
    other = names_assigned(map_stmts(body, lambda s: () if _is_told(s) else s))
    unclear = {n for n, times in Counter(declared).items() if times > 1} | other
    found = {n: v for n, (v, *rest) in ((n, tuple(v)) for n, v in first.items())
             if not rest and n.partition(".")[0] not in unclear}  # fmt: skip
    for name, value in added:
        if name in found:
            found[name] = Binary("+", found[name], value)
    return {n: v for n, v in found.items() if n not in map(_key, walk_expr(v))}


def _set(values: dict[str, set[Expr]], name: str, value: Expr) -> None:
    """Notes what is set; of a vector that is made, its members."""
    match value:
        case Call(Name(made), args) if made == "dim3" or made.removeprefix("make_") in LANES:
            for member, part in zip("xyzw", args, strict=False):
                values.setdefault(f"{name}.{member}", set()).add(part)
        case _:
            values.setdefault(name, set()).add(value)


def _is_told(s: Stmt) -> bool:
    return isinstance(s, Assign) and s.op in ("=", "+=") and bool(_key(s.target))


def _elements(contract: Contract, buffer: str) -> int:
    """Of a buffer as timed; 1 of one that the contract does not tell."""
    declared = next((a for a in contract.buffers() if a.name == buffer), None)
    if declared is None:
        return 1
    try:
        return max(prod(contract.shape(declared, sizes)) for sizes in contract.timed_sizes())
    except ContractError:
        return 1
