"""slide-window: sums over a window whose size only the launch tells, or that is large (a convolution with a mask). A
thread has several points along one dimension, keeps the elements that they read in registers, and moves on by one: a
new element and a weight are read for as many products as it has points.

Threads stand side by side along contiguous memory where the points are rows. Away from the edges no condition on
indices is left; a tile at an edge is computed point by point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
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
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.register_tile import Params, Tile, is_affine, is_stencil, tiles_of
from fsr.transform.computed.scene import Scene, loads_in, surely
from fsr.transform.computed.shifting import MOST_TERMS, moved, raised
from fsr.transform.plain.c_text import TYPES, NotPlain

_SHAPES, _LINES = ((32, 8), (32, 4), (64, 4)), ((128, 1), (256, 1))
_COUNTS = (8, 4, 16, 2)  # points of a thread
_LEAST_LINE = 16  # points, for which threads of a block stand side by side
_SUMS = ("float32", "float64", "int32", "int64")


@dataclass(frozen=True)
class Window:
    """A sum along which points slide. ``along``: the dimension of the points; ``by``: that of the window; ``near``: the
    reads that a step moves by one element."""

    fold: Fold
    along: str
    by: str
    near: tuple[Load, ...]


def window(scene: Scene, along: str) -> Window | None:
    """The one sum of a part as a window along a dimension; None where it is none, or a few terms that are written out
    (:mod:`fsr.transform.computed.register_tile`)."""
    folds = list(dict.fromkeys(e for s in scene.part.whole for e in folds_in(value_of(s))))
    if len(folds) != 1 or not is_stencil(scene.part):
        return None
    (fold,) = folds
    lengths = [x.constant for _, x in fold.dims]
    if all(not x.terms for _, x in fold.dims) and math.prod(lengths) <= MOST_TERMS:
        return None
    reads, sure = loads_in([fold.body]), surely([fold.body])
    whole = fold.op == "sum" and type_of(fold) in _SUMS and all(is_affine(x) and x in sure for x in reads)
    if not whole or folds_in(fold.body) or any(_least(scene, x) < 1 for _, x in fold.dims):
        return None
    found = [(n, tuple(x for x in reads if _slides(x, along, n))) for n, _ in fold.dims]
    by, near = max(found, key=lambda one: len(one[1]))
    return Window(fold, along, by, near) if near else None


def _least(scene: Scene, length: Affine) -> float:
    """The least length of a window; nought where a point tells it."""
    try:
        return float(evaluate(affine_text(length), {s.name: s.minimum for s in scene.target.contract.sizes}))
    except ContractError:
        return 0.0


def _slides(load: Load, along: str, by: str) -> bool:
    """Whether one index is the sum of both, and no other knows of either."""
    terms = [dict(_index(i).terms) for i in load.indices]
    with_either = [t for t in terms if along in t or by in t]
    return len(with_either) == 1 and with_either[0].get(along) == with_either[0].get(by) == 1


def _index(e: Expr) -> Affine:
    assert isinstance(e, Number)
    assert isinstance(e.index, Affine)
    return e.index


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first: points below each other, then beside."""
    domain = scene.part.domain
    if not domain or scene.timed(domain[-1][1]) < _LEAST_LINE:
        return
    gain = 2.2
    if len(domain) > 1 and window(scene, domain[-2][0]) is not None:
        for rows, (x, y) in itertools.product(_COUNTS, _SHAPES):
            yield {"rows": rows, "pack": 1, "x": x, "y": y}, gain
            gain *= 0.95
    gain = min(gain, 1.8)
    if window(scene, domain[-1][0]) is not None:
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
        fold = self.window.fold
        self.total = Load("_window", (), type_of(fold))
        self.plain = [self.inner.of(_replaced(v, fold, self.total)) for v in self.values]
        self.count = self.tile[self.window.along]
        self.reads = []  # what stands in packs: nothing but results

    def _inside(self) -> list[str]:
        lines = [*self._summed(), *self._declared()]
        for n, at in enumerate(self._points()):
            for o, v in zip(self.outputs, self.plain, strict=True):
                text = self.scene.text(_moved(v, at), {self.total: f"$total_{n}"})
                lines.append(f"{self._made(o, at)} = {text};")
        lines += self._stored()
        return self.at_first(lines)

    def _summed(self) -> list[str]:
        """The sums of all points: outer loops as they are, the window's own innermost."""
        w, scene = self.window, self.scene
        dtype, near = TYPES[type_of(w.fold)], {x: f"$near{n}" for n, x in enumerate(w.near)}
        kinds = {x: BY_DTYPE[x.dtype].spelling for x in loads_in([w.fold.body])}
        begun = [
            f"{kinds[x]} {name}_{q} = {scene.element(moved(_at_first(x, w.by), {w.along: q}))};"
            for x, name in near.items() for q in range(self.count - 1)
        ]  # fmt: skip
        last = self.count - 1
        step = [f"const {kinds[x]} {n}_{last} = {scene.element(moved(x, {w.along: last}))};" for x, n in near.items()]
        whole = {x: f"$fixed{n}" for n, x in enumerate(kinds) if w.along not in names_in(x)}
        step += [f"const {kinds[x]} {name} = {scene.element(x)};" for x, name in whole.items()]
        for r in range(self.count):
            held: dict[Expr, str] = {moved(x, {w.along: r}): f"{name}_{r}" for x, name in near.items()}
            held.update(whole.items())
            body = _moved(w.fold.body, {w.along: r})
            step.append(f"$total_{r} += {scene.text(body, held)};")
        step += [f"{name}_{q} = {name}_{q + 1};" for name in near.values() for q in range(self.count - 1)]
        lines = [*begun, *self._loop(w.by, step)]
        for dim, _ in reversed([d for d in w.fold.dims if d[0] != w.by]):
            lines = self._loop(dim, lines)
        return [*(f"{dtype} $total_{r} = 0;" for r in range(self.count)), *lines]

    def _loop(self, dim: str, body: list[str]) -> list[str]:
        extent = self.scene.names.affine(dict(self.window.fold.dims)[dim])
        return [f"for (int ${dim} = 0; ${dim} < {extent}; ++${dim}) {{", *indent(body), "}"]

    def _tests(self) -> list[str]:
        """Beside those of a tile: the window reaches nowhere beyond a buffer, where it leaves out what lies there."""
        tests = dict.fromkeys(super()._tests())
        for x in loads_in([self.window.fold.body]) if self.window.fold.inside else ():
            for index, extent in zip(x.indices, self.scene.shape(x.buffer), strict=True):
                low, high = self._reached(_index(index), least=True), self._reached(_index(index), least=False)
                if low.terms or low.constant < 0:
                    tests[f"{self.scene.names.affine(low)} >= 0"] = None
                tests[f"{self.scene.names.affine(high)} < {self.scene.size(extent)}"] = None
        return self.at_first(list(tests))

    def _reached(self, index: Affine, *, least: bool) -> Affine:
        """The least or the largest value of an index over the window and the tile's points."""
        lengths, constant = dict(self.window.fold.dims), index.constant
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


def _replaced(e: Expr, fold: Fold, stand: Load) -> Expr:
    return stand if e == fold else rebuilt(e, tuple(_replaced(p, fold, stand) for p in children(e)))


__all__ = ["configurations", "window", "written"]
