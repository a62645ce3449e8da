"""slide-window: sums over a window whose size only the launch tells, or that is large (a convolution with a mask, a
mean and what its elements differ from it by). A thread has several points along one dimension, keeps the elements that
they read in registers, and moves on by one: a new element and a weight are read for as many products as it has points.

Threads stand side by side along contiguous memory where the points are rows. Away from the edges no condition on
indices is left; a tile at an edge is computed point by point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fsr.computation.expression import Affine, Expr, Fold, Load, Number, children, fixed, names_in, rebuilt, with_affine
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.errors import ContractError
from fsr.expressions import evaluate
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.folding import folds_in
from fsr.transform.computed.parts import name_of, value_of
from fsr.transform.computed.register_tile import Params, Tile, is_affine, is_stencil, tiles_of
from fsr.transform.computed.scene import Scene, postorder, surely
from fsr.transform.computed.shifting import MOST_TERMS, moved, raised
from fsr.transform.plain.c_text import TYPES, NotPlain

_SHAPES, _LINES = ((32, 8), (32, 4), (64, 4)), ((128, 1), (256, 1))
_COUNTS = (8, 4, 16, 2)  # points of a thread
_LEAST_LINE = 16  # points, for which threads of a block stand side by side
_SUMS = ("float32", "float64", "int32", "int64")


@dataclass(frozen=True)
class Walk:
    """Sums over the same window, none of which another needs. ``by``: the dimension of the window that a step moves
    by; ``near``: the reads that it moves by one element, 1 upwards or -1 downwards."""

    folds: tuple[Fold, ...]
    by: str
    near: Mapping[Load, int]

    @property
    def dims(self) -> tuple[tuple[str, Affine], ...]:
        """Of all its sums."""
        return self.folds[0].dims

    @property
    def bodies(self) -> list[Expr]:
        """What is summed, the results of earlier walks among it."""
        return [f.body for f in self.folds]


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
        if groups and groups[-1][0].dims == fold.dims and not set(groups[-1]) & set(inner):
            groups[-1].append(fold)
        else:
            groups.append([fold])
    walks = [_walk(group, along) for group in groups]
    return Window(along, tuple(w for w in walks if w is not None)) if None not in walks else None


def _sums(scene: Scene, fold: Fold) -> bool:
    """Whether a fold is a sum of many terms, each made of elements at affine indices that are read in any case."""
    if all(not x.terms for _, x in fold.dims) and math.prod(x.constant for _, x in fold.dims) <= MOST_TERMS:
        return False
    reads, sure = _own_reads([fold.body]), surely([fold.body])
    whole = fold.op == "sum" and type_of(fold) in _SUMS and all(is_affine(x) and x in sure for x in reads)
    return whole and all(_least(scene, x) >= 1 for _, x in fold.dims)


def _walk(folds: list[Fold], along: str) -> Walk | None:
    """The walk of sums over the same window; None where no step moves what is read."""
    reads = _own_reads([f.body for f in folds])
    found = [(n, {x: way for x in reads if (way := _slides(x, along, n))}) for n, _ in folds[0].dims]
    by, near = max(found, key=lambda one: len(one[1]))
    return Walk(tuple(folds), by, near) if near else None


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
        folds = [f for walk in self.window.walks for f in walk.folds]
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
        scene, along, last = self.scene, self.window.along, self.count - 1
        near = {x: f"$near{n}" for n, x in enumerate(walk.near)}
        kinds = {x: BY_DTYPE[x.dtype].spelling for x in _own_reads(walk.bodies)}
        begun, step, moves = list[str](), list[str](), list[str]()
        for x, name in near.items():
            fresh, held = (last, range(last)) if walk.near[x] > 0 else (0, range(1, self.count))
            begun += [
                f"{kinds[x]} {name}_{q} = {scene.element(moved(_at_first(x, walk.by), {along: q}))};" for q in held
            ]  # fmt: skip
            step.append(f"const {kinds[x]} {name}_{fresh} = {scene.element(moved(x, {along: fresh}))};")
            pairs = [(q, q + 1) for q in range(last)]
            pairs = pairs if walk.near[x] > 0 else [(to, at) for at, to in reversed(pairs)]
            moves += [f"{name}_{to} = {name}_{at};" for to, at in pairs]
        whole = {x: f"$fixed{n}" for n, x in enumerate(kinds) if along not in names_in(x)}
        step += [f"const {kinds[x]} {name} = {scene.element(x)};" for x, name in whole.items()]
        for f, r in itertools.product(walk.folds, range(self.count)):
            stand: dict[Expr, str] = {moved(x, {along: r}): f"{name}_{r}" for x, name in near.items()}
            stand.update(whole.items())
            stand.update((_moved(g, {along: r}), self._total(g, r)) for g in folds_in(f.body))
            step.append(f"{self._total(f, r)} += {scene.text(_moved(f.body, {along: r}), stand)};")
        lines = [*begun, *self._loop(walk, walk.by, [*step, *moves])]
        for dim, _ in reversed([d for d in walk.dims if d[0] != walk.by]):
            lines = self._loop(walk, dim, lines)
        zeros = [f"{TYPES[type_of(f)]} {self._total(f, r)} = 0;" for f in walk.folds for r in range(self.count)]
        return [*zeros, *(["{", *indent(lines), "}"] if len(self.window.walks) > 1 else lines)]

    def _loop(self, walk: Walk, dim: str, body: list[str]) -> list[str]:
        extent = self.scene.names.affine(dict(walk.dims)[dim])
        return [f"for (int ${dim} = 0; ${dim} < {extent}; ++${dim}) {{", *indent(body), "}"]

    def _tests(self) -> list[str]:
        """Beside those of a tile: the window reaches nowhere beyond a buffer, where it leaves out what lies there."""
        tests = dict.fromkeys(super()._tests())
        for walk, fold in ((w, f) for w in self.window.walks for f in w.folds if f.inside):
            for x in _own_reads([fold.body]):
                for index, extent in zip(x.indices, self.scene.shape(x.buffer), strict=True):
                    low, high = (self._reached(walk, _index(index), least=end) for end in (True, False))
                    if low.terms or low.constant < 0:
                        tests[f"{self.scene.names.affine(low)} >= 0"] = None
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
