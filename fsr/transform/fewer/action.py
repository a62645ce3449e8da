"""fewer-blocks: where a block folds its points and one thread adds the result to memory, a block gets several blocks'
points, in a loop; each thread folds its own in a register first, and the block what its threads have, once.

A tree over 256 points has eight levels with a barrier each, and ends with an atomic on an address that all
blocks share: with few points a thread, that is what takes the time. What else is done for a point is done as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

from fsr.analysis.macros import expanded, hides_names
from fsr.analysis.operators import BY_ATOMIC, identity
from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Comment, Declare, Expr, For, If, Literal, Member, Name, Param, Stmt
from fsr.source.mapping import map_stmts, substitute
from fsr.source.walk import Block, fresh, names_mentioned, variables
from fsr.transform.fewer.partials import by_block, partial_results, told_of_fewer
from fsr.transform.fewer.parts import Parts, is_positive
from fsr.transform.fewer.values import FOLDED, Value
from fsr.transform.gathered import folded
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest, largest_timed
from fsr.transform.target import Target, target_of, targets

ROUNDS = (1, 2, 4)  # how many times over the grid fills the GPU at full occupancy
EACH = (4, 16)  # blocks of before that one goes through
_USUAL = ("sum", "max", "min")
_MOST_TRIED = 64  # ways in which values may be folded
_LEAST = 2  # blocks of before for one, so that it is worth while
_MOST_GAIN, _STEP = 2.5, 0.02


@dataclass(frozen=True)
class _Leaf:
    """A variable of a point's that the block folds: ``total`` is what a thread has of all its points."""

    name: str
    total: str
    type: str
    fold: str
    positive: bool


@dataclass(frozen=True)
class _Found:
    """``kernel``: as it is read; ``axis``: of the grid, along which blocks are taken together."""

    target: Target
    axis: str
    parts: Parts
    leaves: tuple[_Leaf, ...]

    @property
    def blocks(self) -> str:
        """How many blocks there are along the axis, as a size expression."""
        return self.target.launch.grid[AXES.index(self.axis)]

    @property
    def beside(self) -> str:
        """How many there are along the others."""
        others = [f"({g})" for a, g in zip(AXES, self.target.launch.grid, strict=True) if a != self.axis and g != "1"]
        return " * ".join(others) or "1"


@dataclass(frozen=True, slots=True)
class FewerBlocks:
    """Blocks that go over several blocks' points before they fold."""

    name: str = "fewer-blocks"
    aims_at: frozenset[str] = frozenset(["atomics", "latency", "launch", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a number of blocks, or of points a thread, where that leaves the GPU enough of both."""
        for target in () if subject.keep_launch else targets(subject):
            found = self._of(subject, target)
            timed = None if found is None else largest_timed(target.contract, f"({found.blocks}) * ({found.beside})")
            if found is None or timed is None:
                continue
            sizes: list[tuple[str, int, float]] = [("blocks", n, timed / n) for n in _blocks(subject, target)]
            sizes += [("each", n, timed / subject.gpu.sm_count / n * _LEAST) for n in EACH]
            for rank, (key, count, turns) in enumerate(sizes):
                if turns >= _LEAST:
                    gain = min(_MOST_GAIN, timed / count if key == "blocks" else count)
                    yield Move(self.name, target.region, ((key, count),), gain - _STEP * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the loop."""
        target = target_of(subject, move)
        found = self._of(subject, target)
        assert found is not None
        ((key, count),) = move.params
        block = fresh("block", found.parts.taken)
        name = fresh(f"blocks_{found.axis}", found.parts.taken)
        known = found.blocks.isdigit()
        whole: Expr = Literal(f"{found.blocks}u") if known else Name(name)
        params = () if known else (Param("unsigned int", name),)
        args = () if known else (ScalarArgument("uint32", found.blocks),)
        kernel = found.target.kernel
        made = replace(
            kernel, body=_body(found, block, whole), params=(*kernel.params, *params), span=target.kernel.span
        )
        grid = _grid(found, str(key), int(count))

        def launch(one: Launch) -> Launch:
            return replace(one, grid=along(one.grid, found.axis, grid), args=(*one.args, *args))

        changed = rewritten(target, move, made, launch=launch)
        left = frozenset(target.passed[p] for p in found.parts.partial)
        return told_of_fewer(changed, target, left, found.blocks, grid) if left else changed

    def _of(self, subject: Subject, target: Target) -> _Found | None:
        return subject.once((self.name, target.region), lambda: _found(target))


def _blocks(subject: Subject, target: Target) -> list[int]:
    """Numbers of blocks that fill the GPU."""
    fitting = max(1, subject.gpu.max_threads_per_sm // (target.threads or 256))
    return [subject.gpu.sm_count * fitting * rounds for rounds in ROUNDS]


def _grid(found: _Found, key: str, count: int) -> str:
    """The extent of the new grid along the axis."""
    if key == "each":
        return f"ceil_div({found.blocks}, {count})"
    most = str(count) if found.beside == "1" else f"max(1, ceil_div({count}, {found.beside}))"
    return f"min({found.blocks}, {most})"


# ---------------------------------------------------------------- what is found


def _found(target: Target) -> _Found | None:
    """The kernel in parts; along the axis with the most blocks that it can be."""
    if target.threads is None:
        return None
    if hides_names(target.kernel, target.source):
        target = replace(target, kernel=expanded(target.kernel, target.source))
    if hides_names(target.kernel, target.source):
        return None
    extents = zip(AXES, target.launch.grid, strict=True)
    sized = [(largest_timed(target.contract, g) or 0, axis) for axis, g in extents if g != "1"]
    for _, axis in sorted(sized, reverse=True):
        blocks = target.launch.grid[AXES.index(axis)]
        most = largest(target.contract, blocks)
        partial = partial_results(target, blocks) if len(sized) == 1 else frozenset[str]()
        if not partial and not _adds(target.source):
            continue
        read = by_block(target, partial, axis) if partial else target
        found = _along(read, axis, partial) if most is not None and most <= INT_LIMIT else None
        if found is not None:
            return found
    return None


def _adds(source: str) -> bool:
    return any(f"atomic{op}" in source for op in ("Add", "Sub", "M", "And", "Or", "X"))


def _folds(target: Target, partial: frozenset[str]) -> list[str]:
    """The operations of which the file has atomics; the usual ones where results are left to another launch."""
    by = {**BY_ATOMIC, "atomicCAS": "max"}
    named = [fold for operation, fold in by.items() if f"{operation}(" in target.source]
    return list(dict.fromkeys([*named, *(_USUAL if partial else ())]))


def _ways(target: Target, count: int, partial: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """How so many values may be folded, alike first."""
    known = [*_folds(target, partial), *(["min"] if "atomicCAS(" in target.source else [])]
    alike = [(fold,) * count for fold in known]
    return iter(dict.fromkeys((*alike, *islice(product(known, repeat=count), _MOST_TRIED))))


def _along(target: Target, axis: str, partial: frozenset[str]) -> _Found | None:
    parts = Parts(target, axis, partial)
    if not parts.cut():
        return None
    parts.take_arguments()
    named = names_mentioned(parts.end)
    handed = [s for s in parts.points if isinstance(s, Declare) and s.name in named]
    types = [parts.commutes.plain(s.type) for s in handed]
    every = variables((*parts.lead, *parts.points, *parts.end))
    if (
        any(every.count(s.name) > 1 or s.dims or set("*&") & set(s.type) for s in handed)
        or not set(types) <= FOLDED
        or not (handed or parts.gathered or parts.counted)
    ):
        return None
    own = tuple(parts.points)
    for folds in _ways(target, len(handed), partial):
        leaves = tuple(
            _Leaf(s.name, s.name, type_, fold, fold == "max" and is_positive(s.name, own))
            for s, type_, fold in zip(handed, types, folds, strict=True)
        )
        if _commutes(parts, leaves):
            total = {x.name: parts.fresh(f"all_{x.name}") for x in leaves}
            return _Found(target, axis, parts, tuple(replace(x, total=total[x.name]) for x in leaves))
    return None


def _commutes(parts: Parts, leaves: tuple[_Leaf, ...]) -> bool:
    """Whether the block's fold may be given what several blocks' points come to, and memory that it adds to is no
    other's."""
    exact = parts.target.exact
    if exact and any(x.fold == "sum" and x.type in ("float", "double") for x in leaves):
        return False
    values = parts.values.copied()
    for x in leaves:
        values[x.name] = Value("leaves", x.fold, x.type, positive=x.positive)
        values.types[x.name] = x.type
    for g in parts.gathered:
        values[g.total] = Value("leaves", g.fold, g.type)
    parts.commutes.added, parts.commutes.last = set(), False
    before = dict(parts.commutes.held)
    if not parts.commutes.hold(parts.counted, values):
        return False
    told = {Name(g.any) for g in parts.gathered if g.any}  # where none, adding nothing would be as good
    end = map_stmts(tuple(parts.end), lambda s: s.then if isinstance(s, If) and s.test in told else s)
    passed = parts.commutes.passes(end, values) and bool(parts.commutes.added)
    parts.commutes.held = before
    used = names_mentioned(parts.points) & {p.name for p in parts.target.kernel.params if p.is_pointer}
    return passed and not any(parts.target.may_alias(u, a) for u in used for a in parts.commutes.added)


# ---------------------------------------------------------------- the text


def _body(found: _Found, block: str, whole: Expr) -> Block:
    parts, leaves = found.parts, found.leaves
    totals = [Declare(x.type, x.total, Literal(identity(x.fold, x.type, positive=x.positive))) for x in leaves]
    totals += [*(g.begun for g in parts.gathered), *(s for g in parts.gathered for s in g.asked)]
    folds = [folded(x.fold, x.total, Name(x.name), x.type) for x in leaves]
    told: dict[tuple[str, str], Expr] = {("blockIdx", found.axis): Name(block), ("gridDim", found.axis): whole}
    points = with_ids((*parts.points, *folds), told)
    loop = For("unsigned int", block, Member(Name("blockIdx"), found.axis), "<", whole,
               Member(Name("gridDim"), found.axis), points)  # fmt: skip
    renamed: dict[str, Expr] = {x.name: Name(x.total) for x in leaves}
    head: tuple[Stmt, ...] = (*parts.lead, *totals)
    return (*head, Comment("// several blocks' points, folded by each thread before the block folds"), loop,
            *substitute(tuple(parts.end), renamed))  # fmt: skip
