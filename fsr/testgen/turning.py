"""Sizes and blocks at which the conditions of a candidate turn, found by evaluating them, however they are written.

A condition that depends on sizes alone (``(n ^ 77) == 3209``, ``n * 2654435761u >> 20 == 5``, ``rows * cols == 6000``)
is true at some sizes and false at others. Where ordinary sizes lie on one side only, a test must stand on the other.
Likewise one that depends on the number of a block or on how many there are: the launch must be as large as that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fsr.contract.model import Contract, Size, at_ends, dim3
from fsr.records import Candidate, Case, CaseKind, Launch
from fsr.source.entry import function_name
from fsr.source.form import Binary, Declare, Expr, KernelForm, Unary
from fsr.source.parse import parse_kernels
from fsr.source.walk import names_assigned, walk_exprs, walk_stmts
from fsr.testgen.cases import HOST_ELEMENTS, NAMED_ELEMENTS, new_case, stream
from fsr.testgen.evaluate import COMPARED, Lookup, UnknownValueError, Values, evaluated
from fsr.testgen.fitting import clip, elements, smallest
from fsr.testgen.numbers import constant

TRIED = 1 << 20  # sizes at which a condition is evaluated: all up to here, and some beyond
TRIED_BESIDE, OTHERS = 1 << 14, np.arange(1, 41)  # the same, and the others, where it depends on several
ORDINARY = 2000  # sizes that ordinary tests stand for, at most: a side with a share of them needs no test of its own
SHARE = 0.2
MOST = 12  # cases
MOST_BLOCKS = 64  # that a launch is made to have along an axis
BLOCKS_ELEMENTS = 1 << 21
AT_LEAST = 17  # of two sizes on the same side, one with room for several lanes
DEEP = 8  # variables that are set from variables
_AXES = "xyz"
_PLACES = ("blockIdx", "gridDim", "threadIdx", "blockDim")


def turning_cases(contract: Contract, candidate: Candidate, baseline: Candidate, seed: int) -> list[Case]:
    """Cases on both sides of every condition on sizes that only the candidate has, in launches that have the blocks
    which it tells apart; where it has none on sizes, one with those blocks."""
    rng = stream("turning", contract, seed)
    try:
        views = list(_views(contract, candidate))
        old = {c for view in _views(contract, baseline) for c in view.conditions}
    except RecursionError:  # nested deeper than anybody writes
        return []
    wanted = [sizes for view in views for sizes in _sizes(contract, view, old, rng)]
    blocks = tuple(max((_blocks(view, axis, old) for view in views), default=1) for axis in range(3))
    if not wanted and max(blocks) > 3:
        wanted = [{}]
    found: dict[tuple[tuple[str, int], ...], Case] = {}
    for pinned in wanted[:MOST]:
        sizes = _fitting(
            contract, {s.name: clip(s, int(rng.integers(33, 140))) for s in contract.sizes} | pinned, pinned
        )
        if elements(contract, sizes) > NAMED_ELEMENTS:
            continue
        for launch in candidate.plan.launches:
            sizes = _widened(contract, launch, sizes, pinned, blocks)
        name = " ".join(["turning", *(f"{k} {v}" for k, v in pinned.items())])
        found.setdefault(tuple(sizes.items()), new_case(name, sizes, "normal", rng, CaseKind.NAMED))
    return list(found.values())


def _fitting(contract: Contract, sizes: dict[str, int], pinned: Mapping[str, int]) -> dict[str, int]:
    """The sizes with those that are not pinned halved until all has room: where one is 1, too much is equal."""
    while elements(contract, sizes) > BLOCKS_ELEMENTS:
        smaller = {s.name: clip(s, max(sizes[s.name] // 2, 1)) for s in contract.sizes if s.name not in pinned}
        if all(sizes[name] == value for name, value in smaller.items()):
            break
        sizes = sizes | smaller
    return sizes


@dataclass(frozen=True)
class _View:
    """A kernel of a plan: its ``conditions``, and what its names stand for. ``arguments``: contract expressions, by
    parameter; ``locals``: variables with one value; ``block``: threads along each axis, where that is fixed."""

    source: str
    conditions: tuple[Expr, ...]
    arguments: Mapping[str, str]
    locals: Mapping[str, Expr]
    block: tuple[int, ...]

    def lookup(self, known: Lookup, depth: int = 0) -> Lookup:
        """What names stand for, by what ``known`` says of sizes and of places such as ``blockIdx.x``."""

        def found(name: str) -> Values:
            if name.partition(".")[0] in _PLACES:
                return known(name)
            if name in self.arguments:
                text = self.arguments[name]
                return np.asarray(int(text), dtype=np.int64) if text.lstrip("-").isdigit() else known(text)
            if name in self.locals and depth < DEEP:
                return evaluated(self.locals[name], self.lookup(known, depth + 1))
            value = constant(name, self.source)
            if value is None:
                raise UnknownValueError(name)
            return np.asarray(value, dtype=np.int64)

        return found


def _views(contract: Contract, candidate: Candidate) -> Iterator[_View]:
    kernels = parse_kernels(candidate.source)
    for launch in candidate.plan.launches:
        form = kernels.get(function_name(launch.entry).rpartition("::")[2])
        if form is not None:
            yield _view(contract, candidate.source, form, launch)


def _view(contract: Contract, source: str, form: KernelForm, launch: Launch) -> _View:
    values = {a.name: str(a.value) for a in contract.args if a.value is not None and not a.shape}
    given = {
        p.name: values[a] if isinstance(a, str) else str(a.value)
        for p, a in zip(form.params, launch.args, strict=False)
        if not isinstance(a, str) or a in values
    }
    changed = names_assigned(form.body)
    given = {name: text for name, text in given.items() if name not in changed}
    once = {
        s.name: s.init
        for s in walk_stmts(form.body)
        if isinstance(s, Declare) and s.init is not None and not s.dims and s.name not in changed
    }
    fixed = tuple(int(t) if t.isdigit() else 0 for t in launch.block)
    return _View(source, tuple(dict.fromkeys(filter(_is_condition, walk_exprs(form.body)))), given, once, fixed)


def _is_condition(e: Expr) -> bool:
    match e:
        case Binary(op) if op in COMPARED:
            return True
        case Unary("!"):
            return True
    return False


# ---------------------------------------------------------------- sizes


def _sizes(contract: Contract, view: _View, old: set[Expr], rng: np.random.Generator) -> Iterator[dict[str, int]]:
    """Sizes on the sides of each condition where ordinary ones are not."""
    for condition in view.conditions:
        if condition in old:
            continue
        for size in contract.sizes:
            yield from _sides(contract, view, condition, size, rng)


def _sides(
    contract: Contract, view: _View, condition: Expr, size: Size, rng: np.random.Generator
) -> Iterator[dict[str, int]]:
    probe = {name: np.asarray(low, dtype=np.int64) for name, low in smallest(contract).items()}
    found = _at(view, condition, probe)
    if found is None or size.name not in found[1]:
        return
    beside = found[1] - {size.name}
    tried = _tried(size, TRIED_BESIDE if beside else TRIED, rng)
    for number in rng.permutation(OTHERS) if beside else (0,):
        others = {s.name: clip(s, int(number)) for s in contract.sizes if s.name in beside}
        true = _at(view, condition, probe | {n: np.asarray(v) for n, v in others.items()} | {size.name: tried})
        usual = _ordinary(contract, size)
        sides = list(_unusual(tried, true[0], usual)) if true is not None else []
        for there in sides:
            roomy = there[(there >= AT_LEAST) & (usual >= AT_LEAST)]
            yield others | {size.name: int(roomy[0] if roomy.size else there[0])}
            yield others | {size.name: int(rng.choice(there[: max(len(there) // 4, 1)]))}
        if sides:
            return


def _at(view: _View, condition: Expr, sizes: Mapping[str, Values]) -> tuple[Values, set[str]] | None:
    """A condition at sizes, and those that it depends on; None where it depends on more than these."""
    used: set[str] = set()

    def known(name: str) -> Values:
        if name not in sizes:
            raise UnknownValueError(name)
        used.add(name)
        return sizes[name]

    try:
        return evaluated(condition, view.lookup(known)).astype(bool), used
    except UnknownValueError:
        return None


def _ordinary(contract: Contract, size: Size) -> int:
    """The largest value of a size that ordinary tests have: where each stands for a whole tile, that is a small one."""
    least = smallest(contract)
    low, high = clip(size, 1), min(ORDINARY, size.maximum)
    while low < high:
        middle = (low + high + 1) // 2
        fits = elements(contract, least | {size.name: middle}) <= HOST_ELEMENTS
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _unusual(tried: Values, true: Values, usual: int) -> Iterator[Values]:
    """The sizes on a side of a condition where hardly an ordinary one is."""
    true = np.broadcast_to(true, tried.shape)
    for side in (true, ~true):
        ordinary = side[tried <= usual]
        if side.any() and not (ordinary.size and ordinary.mean() > SHARE):
            yield tried[side]


def _tried(size: Size, dense_up_to: int, rng: np.random.Generator) -> Values:
    """Legal values of a size, ascending: all up to a limit, and some of every magnitude beyond."""
    low, top = clip(size, 1), size.maximum
    dense = np.arange(low, min(top, low + dense_up_to) + 1, dtype=np.int64)
    if top <= dense[-1]:
        return dense
    beyond = np.exp2(rng.uniform(np.log2(dense[-1] + 1), np.log2(top), 20_000)).astype(np.int64)
    return np.concatenate([dense, np.unique(np.append(beyond, top))])


# ---------------------------------------------------------------- blocks


def _blocks(view: _View, axis: int, old: set[Expr]) -> int:
    """How many blocks along an axis a launch must have so that every condition on them, or on how many there are, is
    once true and once false."""
    most = 1
    for condition in view.conditions:
        if condition in old:
            continue
        for of, count in (("blockIdx", np.arange(MOST_BLOCKS)), ("gridDim", np.arange(1, MOST_BLOCKS + 1))):
            turns = _turn(view, condition, f"{of}.{_AXES[axis]}", count, axis)
            most = max(most, turns + 1 if of == "gridDim" or turns else 1)
    return min(most, MOST_BLOCKS)


def _turn(view: _View, condition: Expr, name: str, values: Values, axis: int) -> int:
    """The place in ``values`` of the first at which a condition is as it was at no value before; 0 for none."""
    threads = np.arange(view.block[axis] or 1)
    used: set[str] = set()

    def known(asked: str) -> Values:
        used.add(asked)
        if asked == name:
            return values[:, None].astype(np.int64)
        if asked == f"threadIdx.{_AXES[axis]}":
            return threads[None, :].astype(np.int64)
        if asked == f"blockDim.{_AXES[axis]}" and view.block[axis]:
            return np.asarray(view.block[axis], dtype=np.int64)
        raise UnknownValueError(asked)

    try:
        true = np.broadcast_to(evaluated(condition, view.lookup(known)), (len(values), len(threads)))
    except UnknownValueError:
        return 0
    if name not in used:
        return 0
    true = true.astype(bool)
    new = (true.any(axis=1) & (not true[0].any())) | (~true.all(axis=1) & bool(true[0].all()))
    return int(new.argmax())


def _widened(
    contract: Contract, launch: Launch, sizes: dict[str, int], pinned: Mapping[str, int], blocks: tuple[int, ...]
) -> dict[str, int]:
    """The sizes that are not pinned grown until a launch has so many blocks along each axis, or more will not fit."""
    free = [s for s in contract.sizes if s.name not in pinned]
    for axis in range(3):
        for size in free:
            sizes = _grown(contract, launch, sizes, size, axis, blocks[axis])
    return sizes


def _grown(
    contract: Contract, launch: Launch, sizes: dict[str, int], size: Size, axis: int, blocks: int
) -> dict[str, int]:
    """The sizes with one of them larger, where that gives a launch more blocks along an axis."""

    def first(known: Mapping[str, int]) -> int:
        return dim3(launch.grid, at_ends(launch, known)[0])[axis]

    grown = sizes
    while first(grown) < blocks:
        more = grown | {size.name: clip(size, grown[size.name] * 5 // 4 + 1)}
        if more == grown or elements(contract, more) > BLOCKS_ELEMENTS:
            break
        grown = more
    return grown if first(grown) > first(sizes) else sizes
