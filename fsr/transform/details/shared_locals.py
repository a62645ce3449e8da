"""shared-locals: a thread's arrays that are indexed at run time move from local memory to shared memory.

In local memory the same element of a warp's lanes is one line: lanes at different elements touch as many lines (CUDA
C++ Programming Guide, "Local Memory"). In shared memory, with the elements of a block's threads side by side, each lane
has a bank of its own whatever element it is at. LLVM does the same for AMD's GPUs (AMDGPUPromoteAlloca).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.analysis.local_arrays import in_local_memory
from fsr.analysis.types import resolved
from fsr.hardware.c_types import LANES, element_bytes
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    Index,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.mapping import map_expr, map_stmts
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.tokens import spelt, split_commas, tokenize
from fsr.source.walk import base_name, exprs_of, fresh, names_in, opaque_names, walk_expr, walk_exprs, walk_stmts
from fsr.transform.launch.block_shape import BlockShape
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.launch.split_blocks import SplitBlocks
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Action, Move, Subject
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import largest
from fsr.transform.target import Target, target_of, targets

_GAIN = 1.4
_SMALLER_BLOCKS = 2  # sizes that are offered where the kernel's own block is too large
_MOST_VALUES = 16  # of an initialiser, each an assignment


@dataclass(frozen=True, slots=True)
class _Local:
    """``extents`` of the array, bytes an element, and the values that its initialiser tells; None without one."""

    declared: Declare
    extents: tuple[int, ...]
    bytes: int
    values: tuple[str, ...] | None

    @property
    def thread_bytes(self) -> int:
        return math.prod(self.extents) * self.bytes


@dataclass(frozen=True, slots=True)
class SharedLocals:
    """All of a kernel's arrays that fit, at once; in smaller blocks where none does."""

    name: str = "shared-locals"
    aims_at: frozenset[str] = frozenset(["uncoalesced", "latency", "instructions", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One a kernel in its own block; else one for each of the largest blocks in which all arrays fit."""
        for target in targets(subject):
            found = _locals(target)
            if _fitting(target, found):
                yield Move(self.name, target.region, (), _GAIN)
            elif found and not subject.keep_launch:
                for threads in sorted(_smaller(subject, target), reverse=True)[:_SMALLER_BLOCKS]:
                    yield Move(self.name, target.region, (("threads", threads),), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads keep their arrays side by side."""
        target, old = target_of(subject, move), subject.candidate
        if move.params:
            target = _smaller(subject, target)[int(move.param("threads"))]
        made = rewritten(target, move, replace(target.kernel, body=_moved(target, _fitting(target, _locals(target)))))
        return replace(made, actions=(*old.actions, move.name))


# ---------------------------------------------------------------- which arrays


def _locals(target: Target) -> list[_Local]:
    kernel = target.kernel
    arrays = in_local_memory(kernel)
    if not arrays or any(isinstance(s, OpaqueStmt) and "goto" in opaque_names(s.text) for s in walk_stmts(kernel.body)):
        return []
    return [found for a in arrays if (found := _one(target, a)) is not None]


def _one(target: Target, array: Declare) -> _Local | None:
    """The array, if it holds plain values, has constant extents, and only its elements are used."""
    extents, bytes_ = [target.poly(d).value for d in array.dims], _bytes(target, array.type)
    values = None if array.init is None else _values(array.init)
    scalar = array.type not in LANES
    if bytes_ is None or not all(extents) or (array.init is not None and (values is None or not scalar)):
        return None
    found = _Local(array, tuple(n for n in extents if n), bytes_, values)
    told = len(values or ())
    if told > min(_MOST_VALUES, math.prod(found.extents)) or (told and len(found.extents) > 1):
        return None
    names = [s.name for s in walk_stmts(target.kernel.body) if isinstance(s, Declare)]
    names += [s.var for s in walk_stmts(target.kernel.body) if isinstance(s, For) and s.type is not None]
    elsewhere = {*target.kernel.macro_words, *(p.name for p in target.kernel.params)}
    unique = names.count(array.name) == 1 and array.name not in elsewhere
    return found if unique and _elements_only(target, array) else None


def _bytes(target: Target, type_: str) -> int | None:
    if {"const", "volatile"} & set(type_.split()) or "*" in type_ or "&" in type_:
        return None
    if type_ in LANES:
        element, count = LANES[type_]
        return element.bytes * count
    return 1 if type_ == "bool" else element_bytes(resolved(type_, target.aliases))


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
        handed = isinstance(x, Call) and any(_indices(a, array) is not None for a in x.args)
        if handed and isinstance(x, Call) and not _only_uses(target, x):
            return False
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, OpaqueStmt) and array.name in opaque_names(s.text):
            return False
        if isinstance(s, Declare) and "&" in s.type and s.init is not None and array.name in names_in(s.init):
            return False
        for e in exprs_of(s):
            left = map_expr(e, lambda x: Name("0") if _indices(x, array) is not None else x)
            if array.name in {name for x in walk_expr(left) for name in names_in(x)}:
                return False
    return True


def _only_uses(target: Target, call: Call) -> bool:
    """Whether a call that gets an element, maybe by reference, goes no further from there."""
    if not isinstance(call.callee, Name):
        return False
    name = call.callee.text
    if target.functions.only_computes(name) or name in target.type_names or element_bytes(name):
        return True
    form = parse_device_functions(target.source).get(name)
    return form is not None and not any(
        isinstance(x, OpaqueStmt)
        or (isinstance(x, OpaqueExpr) and "&" in x.text)
        or (isinstance(x, Unary) and x.op == "&")
        or (isinstance(x, Call) and not (isinstance(x.callee, Name) and target.functions.builtin(x.callee.text)))
        for x in (*walk_stmts(form.body), *walk_exprs(form.body))
    )


def _indices(e: Expr, array: Declare) -> list[Expr] | None:
    """The indices of a whole element of the array."""
    found: list[Expr] = []
    while isinstance(e, Index):
        found.insert(0, e.index)
        e = e.base
    return found if e == Name(array.name) and len(found) == len(array.dims) else None


# ---------------------------------------------------------------- where they fit


def _fitting(target: Target, found: Sequence[_Local]) -> list[_Local]:
    """Those that fit beside what the block shares already and one another, in the order of the text."""
    room = _room(target)
    kept = list[_Local]()
    for one in found:
        room -= (size := one.thread_bytes * (target.threads or 0))
        if size and room >= 0:
            kept.append(one)
        else:
            room += size
    return kept


def _room(target: Target) -> int:
    """Bytes of shared memory that a block has left; 0 where that cannot be told."""
    dynamic = largest(target.contract, target.launch.shared_bytes)
    static = 0
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, Declare) and "__shared__" in s.qualifiers and "extern" not in s.qualifiers:
            extents, bytes_ = [target.poly(d).value for d in s.dims], _bytes(target, s.type)
            if bytes_ is None or not all(extents):
                return 0
            static += -(-math.prod(n or 0 for n in extents) * bytes_ // 16) * 16  # aligned to the widest access
    own = target.source.encode()[slice(*(target.kernel.span or (0, 0)))].decode()
    if dynamic is None or own.count("__shared__") != target.source.count("__shared__"):
        return 0  # other functions share something too
    return STATIC_SHARED_BYTES - static - dynamic


def _smaller(subject: Subject, target: Target) -> Mapping[int, Target]:
    """By its number of threads, the launch in smaller blocks in which all arrays fit, if the kernel allows them."""
    found: dict[int, Target] = {}
    actions: tuple[Action, ...] = (BlockSize(), BlockShape(), SplitBlocks())
    plain = _of(subject, _without_initialisers(target))
    for action in actions:
        for move in action.moves(plain):
            if move.region != target.region:
                continue
            other = target_of(_of(subject, action.apply(plain, move)), move)
            arrays = _locals(other)
            fits = other.threads and arrays and len(_fitting(other, arrays)) == len(arrays)
            if fits and other.threads and other.threads < (target.threads or 1024):
                found.setdefault(other.threads, other)
    return found


def _of(subject: Subject, candidate: Candidate) -> Subject:
    return replace(subject, candidate=candidate, kernels=parse_kernels(candidate.source))


def _without_initialisers(target: Target) -> Candidate:
    """The candidate with statements in their place, which those that change blocks read."""
    flat = {one.declared.name: one for one in _locals(target) if len(one.extents) == 1}
    turn = fresh("element", target.names)

    def change(s: Stmt) -> list[Stmt]:
        one = flat.get(s.name) if isinstance(s, Declare) else None
        if one is None:
            return [s]
        array = replace(one.declared, init=None)
        return [array, *_initialised(one, lambda at: Index(Name(array.name), at), turn)]

    body = map_stmts(target.kernel.body, change)
    return rewritten(target, Move("", target.region), replace(target.kernel, body=body))


# ---------------------------------------------------------------- the rewrite


def _initialised(one: _Local, element: Callable[[Expr], Expr], turn: str) -> list[Stmt]:
    """What an initialiser does."""
    values, count = one.values or (), math.prod(one.extents)
    given: list[Stmt] = [Assign(element(number(n)), "=", OpaqueExpr(v)) for n, v in enumerate(values)]
    if one.values is not None and len(values) < count:
        clear = (Assign(element(Name(turn)), "=", Literal("0")),)
        given.append(For("int", turn, number(len(values)), "<", number(count), number(1), clear))
    return given


def _moved(target: Target, found: Sequence[_Local]) -> tuple[Stmt, ...]:
    assert target.block is not None
    assert target.threads is not None
    threads, taken = number(target.threads), set(target.names)
    taken.add(lane := fresh("thread_in_block", taken))
    taken.add(turn := fresh("element", taken))
    shared = {one.declared.name: fresh(f"{one.declared.name}_shared", taken) for one in found}
    (x, y, z), (i, j, k) = target.block, (Member(Name("threadIdx"), axis) for axis in "xyz")
    rows = plus(j, times(k, number(y))) if z > 1 else j
    place = plus(i, times(rows, number(x))) if y > 1 or z > 1 else i

    def element(one: _Local, at: Expr) -> Expr:
        return Index(Name(shared[one.declared.name]), Binary("+", Binary("*", at, threads), Name(lane)))

    def change(e: Expr) -> Expr:
        for one in found:
            if (at := _indices(e, one.declared)) is not None:
                flat = at[0]
                for extent, more in zip(one.extents[1:], at[1:], strict=True):
                    flat = Binary("+", Binary("*", flat, number(extent)), more)
                return element(one, flat)
        return e

    def place_of(s: Stmt) -> list[Stmt]:
        one = next((o for o in found if isinstance(s, Declare) and s.name == o.declared.name), None)
        return [s] if one is None else _initialised(one, lambda at: element(one, at), turn)

    heads = [
        Declare(o.declared.type, shared[o.declared.name], None, (number(math.prod(o.extents) * target.threads),),
                ("__shared__",))
        for o in found
    ]  # fmt: skip
    body = map_stmts(target.kernel.body, place_of, change)
    return (*heads, Declare("const int", lane, place), *body)
