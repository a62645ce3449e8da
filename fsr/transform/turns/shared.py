"""Loops of a kernel whose turns several blocks may share, each of which does all else as before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsr.analysis.conditions import exclusive
from fsr.analysis.polynomial import constant, polynomial
from fsr.analysis.types import is_integer, number_type
from fsr.source.form import Binary, For, Member, Name, While
from fsr.source.loop_heads import outermost_loops
from fsr.source.walk import (
    contains_opaque,
    identifiers,
    loop_regions,
    names_in,
    names_written,
    walk_stmts,
)
from fsr.transform.launch.cooperation import cooperates, hands_on_ids
from fsr.transform.sizes import INT_LIMIT, largest, largest_timed
from fsr.transform.target import Target
from fsr.transform.turns.dealt import may_be_dealt
from fsr.transform.turns.strides import known_elsewhere

_X, _Y, _WIDTH, _HEIGHT = (Member(Name(v), a) for v in ("threadIdx", "blockDim") for a in "xy")
_STRIDES = (  # the number that a thread has, and how many there are of them
    (_X, _WIDTH), (_Y, _HEIGHT),
    (Binary("+", _X, Binary("*", _Y, _WIDTH)), Binary("*", _WIDTH, _HEIGHT)),
)  # fmt: skip
_THREADS = frozenset(["threadIdx", "blockDim"])


@dataclass(frozen=True)
class SharedTurns:
    """``loops``: whose turns are shared, ``part``: of the kernel that they are, '' for it as a whole. ``free``: an axis
    of the grid, along which there is one block. ``length``: how many turns there are, at the timed sizes, if that is
    known; of all threads of a block where ``strided``, of each otherwise. ``any_size``: whether blocks may have any
    number of threads along x."""

    loops: tuple[For, ...]
    part: str
    free: str
    length: int | None
    strided: bool
    any_size: bool = False


def shared_turns(target: Target) -> Iterator[SharedTurns]:
    """The loops that a block's threads go through in strides, together, and loops in others, each by itself."""
    body = target.kernel.body
    free = free_axis(target)
    if free is None or contains_opaque(body) or hands_on_ids(target, body):
        return
    strided = next(_strided(target, free), None)
    if strided is not None:
        yield strided
    for region, loop in loop_regions(target.kernel).items():
        within = [
            s for s in walk_stmts(body) if isinstance(s, For | While) and any(x is loop for x in walk_stmts(s.body))
        ]
        if within and counts_up(loop, target) and may_be_dealt(target, (loop,), free):
            yield SharedTurns((loop,), region, free, _length(loop, target), False)


def free_axis(target: Target) -> str | None:
    """An axis of the grid along which there is one block, which the kernel does not ask for."""
    named = identifiers(target.kernel.body)
    axes = zip("zy", target.launch.grid[:0:-1], strict=True)
    return next((a for a, g in axes if g == "1" and not named & {f"blockIdx.{a}", f"gridDim.{a}"}), None)


def _strided(target: Target, free: str) -> Iterator[SharedTurns]:
    """The loops in strides, all of them that may be shared at once, or the longest."""
    found = [s for s in outermost_loops(target.kernel.body) if isinstance(s, For) and _by_threads(s, target)]
    found = [s for s in found if counts_up(s, target)]
    length = {id(s): _length(s, target) or 0 for s in found}
    longest = sorted(found, key=lambda s: -length[id(s)])
    for loops in dict.fromkeys([tuple(found), *((s,) for s in longest)]):
        if loops and may_be_dealt(target, loops, free):
            own = max(length[id(s)] for s in loops) or None
            any_size = not cooperates(target) and _any_size(loops, target)
            yield SharedTurns(loops, "", free, own, True, any_size)


def _any_size(loops: tuple[For, ...], target: Target) -> bool:
    """Whether a block's threads are told apart, and counted, by the strides of these loops alone, along x."""
    flat = tuple(map(target.known.poly, _STRIDES[0]))
    if target.launch.block[1:] != ("1", "1") or any((target.known.poly(s.start), target.known.poly(s.step)) != flat
                                                    for s in loops):  # fmt: skip
        return False
    return not known_elsewhere(target, loops, _THREADS)


def _by_threads(loop: For, target: Target) -> bool:
    """Whether the threads of a block have every so many turns each, wherever the first one is."""
    known = {name: constant(value) for name, value in target.numbers.items()}
    start, step = (target.known.poly(e, target.numbers) for e in (loop.start, loop.step))
    return any(
        step == polynomial(count, known) and not (start - polynomial(thread, known)).depends_on(["threadIdx"])
        for thread, count in _STRIDES
    )


def counts_up(loop: For, target: Target) -> bool:
    """Whether a loop counts up by a step that stays, in a type that holds a few steps more than its end."""
    type_ = number_type(loop.type or "", target.aliases)
    if not is_integer(type_) or loop.relation not in ("<", "<="):
        return False
    step = target.known.poly(loop.step, target.constants)
    if step.value is not None and step.value <= 0:
        return False
    inside = names_written(loop.body)
    if loop.var in inside or (names_in(loop.step) | names_in(loop.bound)) & (inside | {loop.var}):
        return False
    bound = target.size_text(loop.bound)
    most = None if bound is None else largest(target.contract, bound)
    return most is None or most <= INT_LIMIT // 2


def _length(loop: For, target: Target) -> int | None:
    """How many turns there are at the timed sizes, of all threads."""
    bound = exclusive(loop.bound, loop.relation)
    text = target.size_text(bound)
    return None if text is None else largest_timed(target.contract, text)
