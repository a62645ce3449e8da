"""slide-window: sums over a window whose size only the launch tells, or that is large (a convolution with a mask, a
mean and what its elements differ from it by). A thread has several points along one dimension, keeps the elements that
they read in registers, and moves on by one: a new element and a weight are read for as many products as it has points.

Threads stand side by side along contiguous memory where the points are rows. Away from the edges no condition on
indices is left; a tile at an edge is computed point by point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsr.computation.expression import Affine, Expr, Fold, Load, Number, children, fixed, names_in, rebuilt, with_affine
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.errors import ContractError
from fsr.expressions import evaluate
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.folding import folds_in
from fsr.transform.computed.parts import name_of, number_of, value_of
from fsr.transform.computed.register_tile import Params, Tile, is_affine, is_stencil, tiles_of
from fsr.transform.computed.scene import Scene, postorder, surely
from fsr.transform.computed.shifting import MOST_TERMS, moved, raised
from fsr.transform.computed.window_streams import Stream, streams
from fsr.transform.plain.c_text import TYPES, NotPlain

_SHAPES, _LINES = ((32, 8), (32, 4), (64, 4)), ((128, 1), (256, 1))
_COUNTS = (8, 4, 16, 2)  # points of a thread
_SHORT = 4  # terms of a dimension that are written out beside the window
_LEAST_LINE = 16  # points, for which threads of a block stand side by side
_SUMS = ("float32", "float64", "int32", "int64")


@dataclass(frozen=True)
class Walk:
    """Sums over the same window, none of which another needs. ``terms``: what a step adds to each, in turn; ``dims``:
    of the window; ``by``: that which a step moves by; ``near``: the reads that it moves by one element, 1 upwards or -1
    downwards; ``streams``: the same, where a thread's points read them in packs."""

    terms: Mapping[Fold, tuple[Expr, ...]]
    dims: tuple[tuple[str, Affine], ...]
    by: str
    near: Mapping[Load, int]
    streams: list[Stream] | None = None

    @cached_property
    def reads(self) -> list[Load]:
        """All that a step reads."""
        return _own_reads([e for terms in self.terms.values() for e in terms])

    @cached_property
    def known(self) -> dict[Expr, str]:
        """What the terms need of earlier walks' results, whatever the step, and what it is called."""
        window = {n for n, _ in self.dims}
        found = dict[Expr, None]()
        left = [e for terms in self.terms.values() for e in terms]
        while left:
            e = left.pop()
            if folds_in(e) and not names_in(e) & window:
                found[e] = None
            else:
                left += children(e)
        return {e: f"$known{n}" for n, e in enumerate(found)}


@dataclass(frozen=True)
class Window:
    """Sums along which points slide. ``along``: the dimension of the points; ``walks``: one after the other, a later
    one may need the results of those before."""

    along: str
    walks: tuple[Walk, ...]


def window(scene: Scene, along: str) -> Window | None:
    """The sums of a part as walks over windows along a dimension; None where one is no such sum, or has a few terms
    that are written out (:mod:`fsr.transform.computed.register_tile`)."""
    folds = [e for e in postorder(value_of(s) for s in scene.part.whole) if isinstance(e, Fold)]
    if not folds or not is_stencil(scene.part):
        return None
    groups: list[list[Fold]] = []
    for fold in folds:
        inner = folds_in(fold.body)
        if not _sums(scene, fold) or any(names_in(f) & {n for n, _ in fold.dims} for f in inner):
            return None
        after = max((n + 1 for n, group in enumerate(groups) if set(group) & set(inner)), default=0)
        serving = next((group for group in groups[after:] if _alike(group[0], fold)), None)
        if serving is not None:
            serving.append(fold)
        else:
            groups.append([fold])
    walks = [_walk(scene, group, along) for group in groups]
    return Window(along, tuple(w for w in walks if w is not None)) if None not in walks else None


def _sums(scene: Scene, fold: Fold) -> bool:
    """Whether a fold is a sum of many terms, each made of elements at affine indices that are read in any case."""
    if all(not x.terms for _, x in fold.dims) and math.prod(x.constant for _, x in fold.dims) <= MOST_TERMS:
        return False
    reads, sure = _own_reads([fold.body]), surely([fold.body])
    whole = fold.op == "sum" and type_of(fold) in _SUMS and all(is_affine(x) and x in sure for x in reads)
    return whole and all(_least(scene, x) >= 1 for _, x in fold.dims)


def _long(fold: Fold) -> tuple[tuple[str, Affine], ...]:
    """The dimensions of a sum but for short ones, whose terms are written out."""
    return tuple((n, x) for n, x in fold.dims if x.terms or x.constant > _SHORT)


def _alike(one: Fold, other: Fold) -> bool:
    """Whether a walk serves both: over the same window, or one as long that may be called by the same names."""
    if _long(one) == _long(other):
        return True
    return [x for _, x in _long(one)] == [x for _, x in _long(other)] and not folds_in(other.body)


def _terms(fold: Fold, dims: tuple[tuple[str, Affine], ...]) -> tuple[Expr, ...]:
    """What is summed up at one place of the window, in turn, with the window's dimensions as ``dims`` calls them."""
    named = {old: new for (old, _), (new, _) in zip(_long(fold), dims, strict=True) if old != new}
    short = [(n, x.constant) for n, x in fold.dims if (n, x) not in _long(fold)]
    every = itertools.product(*(range(count) for _, count in short))
    terms = tuple(fixed(fold.body, dict(zip([n for n, _ in short], at, strict=True))) for at in every)
    return tuple(with_affine(e, lambda a: _renamed(a, named)) for e in terms) if named else terms


def _renamed(a: Affine, named: Mapping[str, str]) -> Affine:
    return Affine(tuple(sorted((named.get(n, n), k) for n, k in a.terms)), a.constant)


def _walk(scene: Scene, folds: list[Fold], along: str) -> Walk | None:
    """The walk of sums over the same window; None where no step moves what is read."""
    dims = _long(folds[0])
    terms = {f: _terms(f, dims) for f in folds}
    reads = _own_reads([e for one in terms.values() for e in one])
    found = [(n, {x: way for x in reads if (way := _slides(x, along, n))}) for n, _ in dims]
    by, near = max(found, key=lambda one: len(one[1]))
    lined = along == scene.part.domain[-1][0]
    return Walk(terms, dims, by, near, streams(scene, near, along) if lined else None) if near else None


def _own_reads(exprs: Iterable[Expr]) -> list[Load]:
    """What is read, but for what other sums read."""
    found = dict[Load, None]()
    left = list(exprs)
    while left:
        e = left.pop(0)
        if isinstance(e, Load) and e.indices:
            found[e] = None
        left += children(e) if not isinstance(e, Fold) else ()
    return list(found)


def _least(scene: Scene, length: Affine) -> float:
    """The least length of a window; nought where a point tells it."""
    try:
        return float(evaluate(affine_text(length), {s.name: s.minimum for s in scene.target.contract.sizes}))
    except ContractError:
        return 0.0


def _slides(load: Load, along: str, by: str) -> int:
    """1 where one index is the sum of both and no other knows of either, -1 where it is the difference, else 0."""
    terms = [dict(_index(i).terms) for i in load.indices]
    with_either = [t for t in terms if along in t or by in t]
    if len(with_either) != 1 or with_either[0].get(along) != 1:
        return 0
    way = with_either[0].get(by, 0)
    return way if way in (1, -1) else 0


def _index(e: Expr) -> Affine:
    assert isinstance(e, Number)
    assert isinstance(e.index, Affine)
    return e.index


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first: points below each other, then beside."""
    domain = scene.part.domain
    if not domain:
        return
    beside, gain = scene.timed(domain[-1][1]), 2.2
    shapes: tuple[tuple[int, int], ...] = _SHAPES
    if beside < _LEAST_LINE:  # fields of records: points stand below each other with all their fields beside
        folds = [f for s in scene.part.whole for f in folds_in(value_of(s))]
        if any(domain[-1][0] not in names_in(f) for f in folds):
            return
        wide = 1 << max(beside - 1, 0).bit_length()
        shapes = ((wide, 256 // wide), (wide, 128 // wide))
    if len(domain) > 1 and window(scene, domain[-2][0]) is not None:
        for rows, (x, y) in itertools.product(_COUNTS, shapes):
            yield {"rows": rows, "pack": 1, "x": x, "y": y}, gain
            gain *= 0.95
    gain = min(gain, 1.8)
    if beside >= _LEAST_LINE and window(scene, domain[-1][0]) is not None:
        for pack, (x, y) in itertools.product((4, 8), _SHAPES[:2] if len(domain) > 1 else _LINES):
            yield {"rows": 1, "pack": pack, "x": x, "y": y}, gain
            gain *= 0.95


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    scene = scene.narrowed()
    rows, domain = int(params["rows"]), scene.part.domain
    found = window(scene, domain[-2][0] if rows > 1 else domain[-1][0])
    if found is None:
        raise NotPlain("no sum over a window")
    values = [value_of(s) for s in scene.part.whole]
    return tiles_of(scene, params, lambda tile: _Sliding(scene, tile, values, found))


@dataclass
class _Sliding(Tile):
    """A thread's points along a window."""

    window: Window

    def __post_init__(self) -> None:
        super().__post_init__()
        folds = [f for walk in self.window.walks for f in walk.terms]
        self.totals = {f: f"$total{n or ''}" for n, f in enumerate(folds)}
        self.stands = {f: Load(f"_window{n}", (), type_of(f)) for n, f in enumerate(folds)}
        self.plain = [self.inner.of(_replaced(v, self.stands)) for v in self.values]
        self.count = self.tile[self.window.along]
        self.reads = []  # what stands in packs: nothing but results
        if any(name_of(o.indices[-1]) != self.last for o in self.outputs):
            self.pack = 1  # fields of records are no neighbours

    def _inside(self) -> list[str]:
        lines = [line for walk in self.window.walks for line in self._summed(walk)]
        lines += self._declared()
        for at in self._points():
            held: dict[Expr, str] = {self.stands[f]: self._total(f, at[self.window.along]) for f in self.stands}
            for o, v in zip(self.outputs, self.plain, strict=True):
                lines.append(f"{self._made(o, at)} = {self.scene.text(_moved(v, at), held)};")
        lines += self._stored()
        return self.at_first(lines)

    def _total(self, fold: Fold, point: int) -> str:
        return f"{self.totals[fold]}_{point}"

    def _summed(self, walk: Walk) -> list[str]:
        """The sums of all points: outer loops as they are, the window's own innermost."""
        lines = self._by_one(walk) if walk.streams is None else self._by_packs(walk, walk.streams)
        for dim, _ in reversed([d for d in walk.dims if d[0] != walk.by]):
            lines = self._loop(walk, dim, lines)
        zeros = [f"{TYPES[type_of(f)]} {self._total(f, r)} = 0;" for f in walk.terms for r in range(self.count)]
        known = [
            f"const {TYPES[type_of(e)]} {name}_{r} = {self._of_totals(e, r)};"
            for (e, name), r in itertools.product(walk.known.items(), range(self.count))
        ]
        return [*zeros, "{", *indent([*known, *lines]), "}"]

    def _of_totals(self, e: Expr, point: int) -> str:
        at = {self.window.along: point}
        return self.scene.text(_moved(e, at), {_moved(f, at): self._total(f, point) for f in folds_in(e)})

    def _by_packs(self, walk: Walk, near: list[Stream]) -> list[str]:
        """As many steps as there are points at a time, then those that are left."""
        scene, along, by, count = self.scene, self.window.along, walk.by, self.count
        extent = scene.names.affine(dict(walk.dims)[by])
        lines = [line for stream in near for line in stream.begun(scene, along, by, count)]
        square = [line for stream in near for line in stream.fetched(scene, along, count)]
        for step in range(count):
            places = [
                {k: v for s in near for k, v in s.places({along: r, by: step}, r + s.way * step, count).items()}
                for r in range(count)
            ]
            square += self._added(walk, places, step)
        square += [line for stream in near for line in stream.moved(count)]
        rest = self._added(walk, [{}] * count, 0)
        lines += [f"int ${by} = 0;", f"for (; ${by} + {count} <= {extent}; ${by} += {count}) {{", *indent(square), "}"]
        return [*lines, f"for (; ${by} < {extent}; ++${by}) {{", *indent(rest), "}"]

    def _added(self, walk: Walk, places: Sequence[Mapping[Expr, str]], step: int) -> list[str]:
        """What a step adds to the sums of all points; ``places``: what stands for reads of each."""
        scene, along = self.scene, self.window.along
        lines, whole = list[str](), dict[Expr, str]()
        for n, x in enumerate(x for x in walk.reads if along not in names_in(x)):
            whole[moved(x, {walk.by: step})] = f"$fixed{n}"
            lines.append(f"const {BY_DTYPE[x.dtype].spelling} $fixed{n} = {scene.element(moved(x, {walk.by: step}))};")
        for f, terms in walk.terms.items():
            for r, e in itertools.product(range(self.count), terms):
                held = {**places[r], **whole}
                at = {along: r, walk.by: step}
                held.update((_moved(g, at), f"{name}_{r}") for g, name in walk.known.items())
                lines.append(f"{self._total(f, r)} += {scene.text(_moved(e, at), held)};")
        return lines if not whole or not any(places) else ["{", *indent(lines), "}"]

    def _by_one(self, walk: Walk) -> list[str]:
        """A step after the other, each of which reads one element more."""
        scene, along, last = self.scene, self.window.along, self.count - 1
        near = {x: f"$near{n}" for n, x in enumerate(walk.near)}
        begun, step, moves = list[str](), list[str](), list[str]()
        for x, name in near.items():
            kind = BY_DTYPE[x.dtype].spelling
            fresh, held = (last, range(last)) if walk.near[x] > 0 else (0, range(1, self.count))
            begun += [f"{kind} {name}_{q} = {scene.element(moved(_at_first(x, walk.by), {along: q}))};" for q in held]
            step.append(f"const {kind} {name}_{fresh} = {scene.element(moved(x, {along: fresh}))};")
            pairs = [(q, q + 1) for q in range(last)]
            pairs = pairs if walk.near[x] > 0 else [(to, at) for at, to in reversed(pairs)]
            moves += [f"{name}_{to} = {name}_{at};" for to, at in pairs]
        places: list[dict[Expr, str]] = [
            {moved(x, {along: r}): f"{name}_{r}" for x, name in near.items()} for r in range(self.count)
        ]
        return [*begun, *self._loop(walk, walk.by, [*step, *self._added(walk, places, 0), *moves])]

    def _loop(self, walk: Walk, dim: str, body: list[str]) -> list[str]:
        extent = self.scene.names.affine(dict(walk.dims)[dim])
        return [f"for (int ${dim} = 0; ${dim} < {extent}; ++${dim}) {{", *indent(body), "}"]

    def _tests(self) -> list[str]:
        """Beside those of a tile: the window reaches nowhere beyond a buffer, where it leaves out what lies there."""
        tests = dict.fromkeys(super()._tests())
        for walk in self.window.walks:
            for x in walk.reads:
                beyond = (
                    walk.near.get(x, 0) if walk.streams is not None else 0
                )  # the last pack has one element that no step needs
                if not beyond and not any(f.inside and x in _own_reads(terms) for f, terms in walk.terms.items()):
                    continue
                for index, extent in zip(x.indices, self.scene.shape(x.buffer), strict=True):
                    if number_of(index) is not None and extent.isdigit():
                        continue
                    low, high = (self._reached(walk, _index(index), least=end) for end in (True, False))
                    more = beyond if self.window.along in names_in(index) else 0
                    low, high = _plus(low, min(more, 0)), _plus(high, max(more, 0))
                    if low.terms or low.constant < 0:
                        tests[f"{self.scene.names.affine(low)} >= 0"] = None
                    if self.scene.names.affine(_plus(high, 1)) != self.scene.size(extent):
                        tests[f"{self.scene.names.affine(high)} < {self.scene.size(extent)}"] = None
        return self.at_first(list(tests))

    def _reached(self, walk: Walk, index: Affine, *, least: bool) -> Affine:
        """The least or the largest value of an index over the window and the tile's points."""
        lengths, constant = dict(walk.dims), index.constant
        terms = dict[str, int]()
        for name, k in index.terms:
            at_end = (k < 0) == least
            if name not in lengths:
                terms[name] = terms.get(name, 0) + k
                constant += k * (self.tile.get(name, 1) - 1) if at_end else 0
            elif at_end:
                constant += k * (lengths[name].constant - 1)
                for size, times in lengths[name].terms:
                    terms[size] = terms.get(size, 0) + k * times
        return Affine(tuple(sorted((n, k) for n, k in terms.items() if k)), constant)


def _plus(a: Affine, more: int) -> Affine:
    return Affine(a.terms, a.constant + more)


def _at_first(load: Load, by: str) -> Load:
    found = fixed(load, {by: 0})
    assert isinstance(found, Load)
    return found


def _moved(e: Expr, by: Mapping[str, int]) -> Expr:
    return with_affine(e, lambda a: raised(a, by))


def _replaced(e: Expr, stands: Mapping[Fold, Load]) -> Expr:
    if isinstance(e, Fold) and e in stands:
        return stands[e]
    return rebuilt(e, tuple(_replaced(p, stands) for p in children(e)))


__all__ = ["configurations", "window", "written"]
