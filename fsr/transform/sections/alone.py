"""Which thread of a block a condition lets in alone: ``threadIdx.x == 0 && threadIdx.y == 0`` in its spellings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.analysis.conditions import MIRRORED
from fsr.analysis.polynomial import Poly, symbol
from fsr.analysis.threads import AXES
from fsr.source.form import Binary, Expr, For, If, Literal, Member, Name, Stmt, Unary, conjuncts
from fsr.source.walk import Block, integer, without_comments
from fsr.transform.target import Target

EXTENT = Member(Name("blockDim"), "x")
_ZERO = Literal("0")
_THREAD = frozenset(f"threadIdx.{axis}" for axis in AXES)
# None of them is ever negative, so that a sum of them is zero where each is.
_COUNTS = _THREAD | {f"{name}.{axis}" for name in ("blockIdx", "blockDim", "gridDim") for axis in AXES}


@dataclass(frozen=True)
class Alone:
    """The thread, by axis (``threadIdx.x``: 0), and what else the condition asks, which is no matter of threads once
    the thread is told. ``count``: it is each of so many, the first ones along x; None where there is but one."""

    ids: Mapping[str, int]
    rest: tuple[Expr, ...]
    count: Expr | None = None


def extents(target: Target) -> dict[str, int]:
    """The extents of block and grid that are numbers, by name, and the kernel's arguments that are."""
    launch, found = target.launch, dict[str, int]()
    for name, sizes in (("blockDim", launch.block), ("gridDim", launch.grid)):
        found |= {f"{name}.{axis}": int(text) for axis, text in zip(AXES, sizes, strict=True) if text.isdigit()}
    return {**target.constants, **found}


def only(target: Target, test: Expr) -> Alone | None:
    """The only thread of each block that a condition holds for; None where it is not just one."""
    numbers = extents(target)
    ids, rest = dict[str, int](), list[Expr]()
    for part in conjuncts(test):
        found = _told(target, part, numbers)
        if found is None:
            rest.append(part)
            continue
        told, more = found
        if any(ids.get(axis, value) != value for axis, value in told.items()):
            return None
        ids |= told
        rest += [part] if more or not told else []
    ids |= {f"threadIdx.{a}": 0 for a, size in zip(AXES, target.launch.block, strict=True) if size == "1"}
    if set(ids) != _THREAD or (any(ids.values()) and target.block is None):
        return None  # or its number in the block is not told
    return Alone(ids, tuple(rest))


def section_of(target: Target, s: Stmt) -> tuple[Alone, Block] | None:
    """The thread that does what stands under a condition, or under several in one another, and what that is."""
    if not isinstance(s, If):
        return None
    tests, then = s.test, without_comments(s.then)
    while not s.orelse and not s.constexpr:
        found = only(target, tests)
        if found is not None:
            return found, s.then
        if len(then) != 1 or not isinstance(then[0], If):
            break
        s = then[0]
        tests, then = Binary("&&", tests, s.test), without_comments(s.then)
    return None


def few_of(target: Target, s: Stmt) -> tuple[Alone, Block] | None:
    """The thread, or the first threads of a block in one dimension, that do what stands under a condition
    (``threadIdx.x < k``), and what that is."""
    found = section_of(target, s)
    if found is not None or not isinstance(s, If):
        return found
    if s.orelse or s.constexpr or target.launch.block[1:] != ("1", "1"):
        return None
    parts = conjuncts(s.test)
    for at, part in enumerate(parts):
        count = _first_ones(target, part)
        if count is not None:
            ids = {"threadIdx.y": 0, "threadIdx.z": 0}
            return Alone(ids, (*parts[:at], *parts[at + 1 :]), count), s.then
    return None


def each_of(target: Target, s: Stmt) -> tuple[Alone, Block] | None:
    """All threads of a block in one dimension, where each has every so many turns of a loop, or does by itself what
    stands under a condition (``if (threadIdx.x < n)``), and that statement."""
    if not _is_strided(target, s):
        found = few_of(target, s)
        if found is None or found[0].count is None:
            return None
    return Alone({"threadIdx.y": 0, "threadIdx.z": 0}, (), EXTENT), (s,)


def _is_strided(target: Target, s: Stmt) -> bool:
    if not isinstance(s, For) or s.type is None or target.launch.block[1:] != ("1", "1"):
        return False
    numbers = extents(target)
    start, step, count = (target.known.poly(e, numbers) for e in (s.start, s.step, EXTENT))
    return step == count and "threadIdx.x" not in (start - symbol("threadIdx.x")).names()


def _first_ones(target: Target, part: Expr) -> Expr | None:
    """How many threads a part of a condition lets in: those whose ids along x are below that."""
    match part:
        case Binary("<" | "<=" | ">" | ">=" as op, left, right):
            if op in (">", ">="):
                left, right = right, left
            own, count = target.known.poly(left), target.known.poly(right)
            if own == symbol("threadIdx.x") and "threadIdx.x" not in count.names():
                return Binary("+", right, Literal("1")) if "=" in op else right
    return None


def _told(target: Target, part: Expr, numbers: Mapping[str, int]) -> tuple[dict[str, int], bool] | None:
    """What a part of a condition tells of the thread, and whether it asks for more than that; None where it tells
    nothing that counts."""
    sides = _compared(part)
    if sides is None:
        return None
    zero, other = (target.known.poly(e, numbers) for e in sides)
    difference = zero - other
    sum_ = _nonnegative(difference)
    if sum_ is not None:
        of_threads = [set(m) & _THREAD for m in sum_]
        if any(len(found) > 1 for found in of_threads):
            return None
        return {found.pop(): 0 for found in of_threads if found}, any(not set(m) & _THREAD for m in sum_)
    return _number(difference, numbers)


def _compared(part: Expr) -> tuple[Expr, Expr] | None:
    """Both sides of an equation, the larger one first where the condition is that it is not larger than zero."""
    match part:
        case Unary("!" | "not", operand):
            return operand, _ZERO
        case Binary("==", left, right):
            return (right, left) if integer(left) == 0 else (left, right)
        case Binary("<" | "<=" | ">" | ">=" as op, left, right):
            turned = integer(right) is None
            relation, more = (MIRRORED[op], left) if turned else (str(op), right)
            if (relation, integer(more)) in (("<", 1), ("<=", 0)):
                return (right if turned else left), _ZERO
    return None


def _nonnegative(value: Poly) -> list[tuple[str, ...]] | None:
    """The products of a sum that is zero only where all of them are; None where it is no such sum."""
    products = [m for m, n in value.terms if n > 0 and m and set(m) <= _COUNTS]
    return products if len(products) == len(value.terms) else None


def _number(difference: Poly, numbers: Mapping[str, int]) -> tuple[dict[str, int], bool] | None:
    """The same of an id that is compared with a number below its extent."""
    for axis in AXES:
        name, extent = f"threadIdx.{axis}", numbers.get(f"blockDim.{axis}", 0)
        factor, rest = difference.coefficient(name), difference.without(name).value
        if factor is not None and factor.value in (1, -1) and rest is not None:
            value = -rest * (factor.value or 0)
            return ({name: value}, False) if 0 <= value < extent else None
    return None
