"""shared-locals: a thread's arrays that are indexed at run time move from local memory to shared memory.

In local memory the same element of a warp's lanes is one line: lanes at different elements touch as many lines (CUDA
C++ Programming Guide, "Local Memory"). In shared memory, with the elements of a block's threads side by side, each lane
has a bank of its own whatever element it is at. LLVM does the same for AMD's GPUs (AMDGPUPromoteAlloca).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.hardware.limits import MAX_THREADS, STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.source.arrays import indices_of
from fsr.source.form import (
    Assign,
    Binary,
    Declare,
    Expr,
    For,
    Index,
    Literal,
    Name,
    OpaqueExpr,
    Stmt,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.parse import parse_kernels
from fsr.source.walk import fresh, walk_stmts
from fsr.transform.details.thread_arrays import ThreadArray, bytes_of, thread_arrays
from fsr.transform.launch.block_shape import BlockShape
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.launch.split_blocks import SplitBlocks
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Action, Move, Subject
from fsr.transform.sizes import largest
from fsr.transform.target import Target, target_of, targets
from fsr.transform.thread_number import thread_number

_GAIN = 1.4
_SMALLER_BLOCKS = 2  # sizes that are offered where the kernel's own block is too large


@dataclass(frozen=True, slots=True)
class SharedLocals:
    """All of a kernel's arrays that fit, at once; in smaller blocks where none does."""

    name: str = "shared-locals"
    aims_at: frozenset[str] = frozenset(["uncoalesced", "latency", "instructions", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One a kernel in its own block; else one for each of the largest blocks in which all arrays fit."""
        for target in targets(subject):
            found = thread_arrays(target)
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
        body = _moved(target, _fitting(target, thread_arrays(target)))
        return replace(rewritten(target, move, replace(target.kernel, body=body)), actions=(*old.actions, move.name))


# ---------------------------------------------------------------- where they fit


def _fitting(target: Target, found: Sequence[ThreadArray]) -> list[ThreadArray]:
    """Those that fit beside what the block shares already and one another, in the order of the text."""
    room = room_of(target)
    kept = list[ThreadArray]()
    for one in found:
        size = _aligned(one.thread_bytes * (target.threads or 0))
        if 0 < size <= room:
            kept.append(one)
            room -= size
    return kept


def _aligned(bytes_: int) -> int:
    """With what may be left free before what follows."""
    return -(-bytes_ // 16) * 16


def room_of(target: Target) -> int:
    """Bytes of shared memory that a block has left; 0 where that cannot be told."""
    static, dynamic = static_in(target), largest(target.contract, target.launch.shared_bytes)
    return 0 if static is None or dynamic is None else STATIC_SHARED_BYTES - static - dynamic


def static_in(target: Target) -> int | None:
    """Bytes of shared memory that a kernel's text gives a block; None where that cannot be told."""
    static = 0
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, Declare) and "__shared__" in s.qualifiers and "extern" not in s.qualifiers:
            extents, bytes_ = [target.poly(d).value for d in s.dims], bytes_of(target, s.type)
            if bytes_ is None or not all(extents):
                return None
            static += _aligned(math.prod(n or 0 for n in extents) * bytes_)
    own = target.source.encode()[slice(*(target.kernel.span or (0, 0)))].decode()
    return static if own.count("__shared__") == target.source.count("__shared__") else None  # or others share, too


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
            arrays, threads = thread_arrays(other), other.threads or 0
            if 0 < threads < (target.threads or MAX_THREADS) and len(_fitting(other, arrays)) == len(arrays) > 0:
                found.setdefault(threads, other)
    return found


def _of(subject: Subject, candidate: Candidate) -> Subject:
    return replace(subject, candidate=candidate, kernels=parse_kernels(candidate.source))


def _without_initialisers(target: Target) -> Candidate:
    """The candidate with statements in their place, which those that change blocks read."""
    flat = {one.declared.name: one for one in thread_arrays(target) if len(one.extents) == 1}
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


def _initialised(one: ThreadArray, element: Callable[[Expr], Expr], turn: str) -> list[Stmt]:
    """What an initialiser does."""
    values, count = one.values or (), math.prod(one.extents)
    given: list[Stmt] = [Assign(element(number(n)), "=", OpaqueExpr(v)) for n, v in enumerate(values)]
    if one.values is not None and len(values) < count:
        clear = (Assign(element(Name(turn)), "=", Literal("0")),)
        given.append(For("int", turn, number(len(values)), "<", number(count), number(1), clear))
    return given


def _moved(target: Target, found: Sequence[ThreadArray]) -> tuple[Stmt, ...]:
    assert target.block is not None
    assert target.threads is not None
    threads, taken = number(target.threads), set(target.names)
    taken.add(lane := fresh("thread_in_block", taken))
    taken.add(turn := fresh("element", taken))
    shared = {one.declared.name: fresh(f"{one.declared.name}_shared", taken) for one in found}
    place = thread_number(target.block)

    def element(one: ThreadArray, at: Expr) -> Expr:
        return Index(Name(shared[one.declared.name]), Binary("+", Binary("*", at, threads), Name(lane)))

    def change(e: Expr) -> Expr:
        for one in found:
            if (at := indices_of(e, one.declared)) is not None:
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
