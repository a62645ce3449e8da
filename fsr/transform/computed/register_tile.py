"""register-tile: maps that read neighbours, a small tile of points a thread: every element that the tile reads is read
once, by packs along contiguous memory where that goes, and what its points have in common is computed once.

Away from the edges of the domain no condition on indices is left; a tile at an edge is computed point by point.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.computation.expression import (
    Affine,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    Recurrence,
    children,
    distinct,
    names_in,
    rebuilt,
)
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.elements import stores
from fsr.transform.computed.packs import MOST_BYTES, pack_type
from fsr.transform.computed.parts import Part, name_of, number_of, value_of
from fsr.transform.computed.scene import Scene, bytes_of, loads_in, postorder, surely, word
from fsr.transform.computed.shared_values import SharedValues
from fsr.transform.computed.shifting import Inner, moved
from fsr.transform.plain.c_text import TYPES, NotPlain

Params = Mapping[str, int | str]
_MOST_POINTS, _MOST_READS, _MOST_VALUES = 32, 160, 2500  # of a tile
_SHAPES, _LINES = ((32, 8), (32, 4)), ((256, 1), (128, 1))  # threads of a block
_WIDE = ((64, 4), (128, 1))  # of points one below the other, which nothing else makes contiguous
_LEAST_LINE = 16  # points, for which threads of a block stand side by side
_MAX_GRID, _MAX_BLOCKS = 65535, 2**31 - 1  # along the second and third axis, and along the first


def is_stencil(part: Part) -> bool:
    """Whether outputs are values of their own points, made of reads at constant distances along the last dimensions."""
    names = [n for n, _ in part.domain]
    if not names or any([name_of(i) for i in s.place if number_of(i) is None] != names for s in part.outputs):
        return False
    values = [value_of(s) for s in part.whole]
    if any(isinstance(e, Recurrence) for v in values for e in distinct(v)):
        return False
    folded = {n for v in values for e in distinct(v) if isinstance(e, Fold) for n, _ in e.dims}
    moving = {*names[-2:], *folded}
    beside = [x for x in loads_in(values) if is_affine(x) and any(_offset(i, moving) for i in x.indices)]
    return bool(beside)


def is_affine(load: Load) -> bool:
    return all(isinstance(i, Number) and isinstance(i.index, Affine) for i in load.indices)


def _offset(index: Expr, moving: set[str]) -> bool:
    """Whether an index is a dimension that moves and something added to it."""
    assert isinstance(index, Number)
    assert isinstance(index.index, Affine)
    a = index.index
    return any(n in moving for n, _ in a.terms) and (bool(a.constant) or len(a.terms) > 1)


def _falls_into_double(scene: Scene) -> bool:
    """Whether float64 is only between floats, as literals bring it about, and may be left out."""
    if scene.target.contract.tolerance.exact or any(b.dtype == "float64" for b in scene.part.buffers):
        return False
    exprs = [e for s in scene.part.whole for e in distinct(value_of(s))]
    if any(isinstance(e, Load) and e.dtype in ("float64", "int32", "int64") for e in exprs):
        return False
    return any(isinstance(e, Op | Const) and type_of(e) == "float64" for e in exprs)


def in_single(e: Expr) -> Expr:
    """The expression with float32 in float64's place."""
    e = rebuilt(e, tuple(map(in_single, children(e))))
    match e:
        case Op("float64" | "float32", (part,)) if type_of(part) == "float32":
            return part
        case Op("float64"):
            return replace(e, name="float32")
        case Const(_, "float64") | Number(_, "float64"):
            return replace(e, dtype="float32")
    return e


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    if not is_stencil(scene.part) or scene.timed(scene.part.domain[-1][1]) < _LEAST_LINE:
        return
    widest = MOST_BYTES // max(bytes_of(x) for x in stores(scene))
    packs = dict.fromkeys(p for p in (min(widest, 4), widest, 1) if p <= scene.timed(scene.part.domain[-1][1]))
    rows, shapes = ((4, 2, 8, 1), _SHAPES) if len(scene.part.domain) > 1 else ((1,), _LINES)
    ways: list[tuple[dict[str, int | str], float]] = [({}, 2.0)]
    if _falls_into_double(scene):
        ways = [({"single": 1}, 2.0), ({}, 1.6)]
    for more, gain in ways:
        for r, p in itertools.product(rows, packs):
            for x, y in (*shapes, *_WIDE) if len(rows) > 1 and p == 1 else shapes:
                if 1 < r * p <= _MOST_POINTS:
                    yield {"rows": r, "pack": p, "x": x, "y": y, **more}, gain
                    gain *= 0.95


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    if not is_stencil(scene.part):
        raise NotPlain("no map over neighbours")
    scene = scene.narrowed()
    values = [in_single(value_of(s)) if params.get("single") else value_of(s) for s in scene.part.whole]
    return tiles_of(scene, params, lambda tile: Tile(scene, tile, values))


def tiles_of(scene: Scene, params: Params, made: Callable[[dict[str, int]], Tile]) -> list[Written]:
    """The kernel of tiles, given how many points one has along which dimension. Raises NotPlain."""
    rows, pack, x, y = (int(params[k]) for k in ("rows", "pack", "x", "y"))
    domain = scene.part.domain
    tile = {domain[-1][0]: pack} | ({domain[-2][0]: rows} if len(domain) > 1 else {})
    lead = " * ".join(f"({extent})" for _, extent in domain[:-2]) or "1"
    high = f"ceil_div({domain[-2][1]}, {y * rows})" if len(domain) > 1 else "1"
    grid = (f"ceil_div({domain[-1][1]}, {x * pack})", high, lead)
    flat = any(scene.most(axis) > _MAX_GRID for axis in grid[1:])
    blocks = _numbered(scene, (x * pack, y * rows)) if flat else []
    lines = [*blocks, *_place(scene, tile, flat), *made(tile).lines()]
    if flat:
        grid = (" * ".join(grid), "1", "1")
    if scene.most(grid[0]) > _MAX_BLOCKS:
        raise NotPlain("more tiles than a grid has blocks")
    return [Written(scene, lines, grid, (str(x), str(y), "1"), x * y, "tiles")]


def _numbered(scene: Scene, block: tuple[int, int]) -> list[str]:
    """Which block it is along each axis, of blocks that are numbered through: a grid has many along its first axis
    alone."""
    lines, left = list[str](), "blockIdx.x"
    for (name, extent), count, axis in zip(reversed(scene.part.domain[-2:]), block, "xy", strict=False):
        many = f"(({scene.size(extent)} + {count - 1}) / {count})"
        lines += [f"const unsigned $block_{axis} = {left} % {many};", f"const unsigned ${name}_rest = {left} / {many};"]
        left = f"${name}_rest"
    return [*lines, f"const unsigned $block_z = {left};"]


def _place(scene: Scene, tile: Mapping[str, int], flat: bool) -> list[str]:
    """A tile's first point; threads without one leave. ``flat``: blocks are numbered through."""
    domain, block = scene.part.domain, "$block_" if flat else "blockIdx."
    lines, tests = [], []
    for name, axis in zip([n for n, _ in reversed(domain[-2:])], "xy", strict=False):
        many = f" * {tile[name]}" if tile[name] > 1 else ""
        at = f"({block}{axis} * blockDim.{axis} + threadIdx.{axis}){many}"
        lines.append(f"const {scene.index} ${name}_first = ({scene.index}){at};")
        tests.append(f"${name}_first >= {scene.size(dict(domain)[name])}")
    lead = domain[:-2]
    for n, (name, extent) in enumerate(lead):
        below = " * ".join(scene.size(x) for _, x in lead[n + 1 :])
        at = f"(int){block}z / ({below})" if below else f"(int){block}z"
        lines.append(f"const int ${name} = {at}{f' % {scene.size(extent)}' if n else ''};")
    return [*lines, f"if ({' || '.join(tests)}) return;"]


@dataclass
class Tile:
    """A thread's points. ``tile``: how many along which dimension, the last dimension first; ``values``: of outputs."""

    scene: Scene
    tile: dict[str, int]
    values: list[Expr]

    def __post_init__(self) -> None:
        self.domain, self.outputs = dict(self.scene.part.domain), stores(self.scene)
        self.last = self.scene.part.domain[-1][0]
        quotients = {n: self.scene.timed(n) for n in self.scene.part.sizes if not n.isidentifier()}
        timed = {**quotients, **self.scene.target.contract.timed_sizes()[0]}
        middle = {n: self.scene.timed(x) // 2 for n, x in self.scene.part.domain}
        self.inner = Inner(self.tile, timed, middle)
        self.pack = self.tile[self.last]

    def lines(self) -> list[str]:
        """Both ways, and which is taken where."""
        inner, edge = self._inside(), self._edge()
        return [f"if ({' && '.join(self._tests())}) {{", *indent(inner), "} else {", *indent(edge), "}"]

    # ------------------------------------------------------------ away from the edges

    def _points(self) -> list[dict[str, int]]:
        names = list(reversed(self.tile))
        return [dict(zip(names, at, strict=True)) for at in itertools.product(*(range(self.tile[n]) for n in names))]

    def _inside(self) -> list[str]:
        points, plain = self._points(), [self.inner.of(v) for v in self.values]
        self.reads = [x for x in loads_in(plain) if is_affine(x) and set(self.tile) & names_in(x)]
        for x in self.reads:
            self.inner.read(x, self.scene.shape(x.buffer))
        every = list(dict.fromkeys(moved(x, at) for at in points for x in self.reads))
        if len(every) > _MOST_READS:
            raise NotPlain("a tile of too many reads")
        fetched, held = self._fetched(every)
        values = SharedValues(held)
        places = [
            (self._made(o, at), values.add(v, at)) for at in points for o, v in zip(self.outputs, plain, strict=True)
        ]
        if len(values) > _MOST_VALUES:
            raise NotPlain("a tile of too many values")
        lines = [*fetched, *self._declared(), *values.assigned(places, self.scene.names.writer)]
        lines += self._stored()
        return self.at_first(lines)

    def at_first(self, lines: list[str]) -> list[str]:
        """Lines told of the tile's first point."""
        for name in self.tile:
            lines = [word(line, name, f"${name}_first") for line in lines]
        return lines

    def _fetched(self, every: list[Load]) -> tuple[list[str], dict[Expr, str]]:
        """Declarations of all that is read, and what stands for each read."""
        lines, held = list[str](), dict[Expr, str]()
        packs: dict[Load, list[Load]] = {}
        for x in every:
            packs.setdefault(self._pack_of(x), []).append(x)
        for number, (first, members) in enumerate(packs.items(), 1):
            name = f"{self.scene.own(first.buffer)}_{number}"
            if self._is_packed(first, members):
                kind = pack_type(self.scene, first, self.pack)
                lines.append(f"const {kind} {name} = *reinterpret_cast<const {kind} *>(&{self.scene.element(first)});")
                held |= {x: f"{name}.v[{_last(x).constant - _last(first).constant}]" for x in members}
                continue
            for n, x in enumerate(members):
                lines.append(f"const {BY_DTYPE[x.dtype].spelling} {name}_{n} = {self.scene.element(x)};")
                held[x] = f"{name}_{n}"
        return lines, held

    def _pack_of(self, load: Load) -> Load:
        """The read of the pack's first element that an element is in."""
        if _last(load).terms != ((self.last, 1),) or any(self.last in names_in(i) for i in load.indices[:-1]):
            return load
        return _at(load, _last(load).constant // self.pack * self.pack)

    def _is_packed(self, first: Load, members: list[Load]) -> bool:
        few = 2 * len(members) < self.pack or _last(first).terms != ((self.last, 1),)
        return self.pack > 1 and not few and bytes_of(first) * self.pack <= MOST_BYTES

    def _packed_buffers(self) -> list[Load]:
        return [x for x in (*self.reads, *self.outputs) if self.pack > 1 and bytes_of(x) * self.pack <= MOST_BYTES]

    def _declared(self) -> list[str]:
        if self.pack == 1:
            return []
        rows = [at for at in self._points() if not at[self.last]]
        return [f"{pack_type(self.scene, o, self.pack)} {self._row(o, at)};" for at in rows for o in self.outputs]

    def _row(self, output: Load, at: Mapping[str, int]) -> str:
        others = "".join(f"_{k}" for n, k in at.items() if n != self.last)
        same = [o for o in self.outputs if o.buffer == output.buffer]  # fields of one buffer
        number = str(same.index(output) + 1) if len(same) > 1 else ""
        return f"{self.scene.own(output.buffer)}_made{number}{others}"

    def _made(self, output: Load, at: Mapping[str, int]) -> str:
        """Where a point's value goes first."""
        return (
            self.scene.element(moved(output, at)) if self.pack == 1 else f"{self._row(output, at)}.v[{at[self.last]}]"
        )

    def _stored(self) -> list[str]:
        lines = []
        for at in self._points() if self.pack > 1 else ():
            for o in self.outputs if not at[self.last] else ():
                kind, element = pack_type(self.scene, o, self.pack), self.scene.element(moved(o, at))
                lines.append(f"*reinterpret_cast<{kind} *>(&{element}) = {self._row(o, at)};")
        return lines

    def _tests(self) -> list[str]:
        """Where a tile is away from the edges, and packs are whole."""
        names, scene, tests = self.scene.names, self.scene, dict[str, None]()

        def affine(terms: tuple[tuple[str, int], ...], constant: int) -> str:
            text = names.affine(Affine(terms, constant))
            for name in self.tile:
                text = word(text, name, f"${name}_first")
            return text

        for name, count in self.tile.items():
            tests[f"{affine(((name, 1),), count)} <= {scene.size(self.domain[name])}"] = None
        for terms, constant in self.inner.below.items():
            more = tuple((n, k) for n, k in terms if k > 0)
            less = tuple((n, -k) for n, k in terms if k < 0)
            if constant > 0 or more or any(n not in self.domain for n, _ in less):
                tests[f"{affine(more, max(constant, 0))} <= {affine(less, max(-constant, 0))}"] = None
        for (terms, extent), constant in self.inner.within.items():
            (alone, *others) = terms or (("", 0),)
            whole = not others and alone[1] == 1 and self.domain.get(alone[0]) == extent
            if not (whole and constant <= self.tile.get(alone[0], 1) - 1):
                tests[f"{affine(terms, constant)} < {scene.size(extent)}"] = None
        for x in self._packed_buffers():
            if len(x.indices) > 1:  # a line alone begins where its buffer does
                tests[f"{scene.size(scene.shape(x.buffer)[-1])} % {self.pack} == 0"] = None
            needed = bytes_of(x) * self.pack
            if scene.target.alignment(scene.names.names[x.buffer]) % needed:
                scene.helpers.add("fsr_aligned")
                tests[f"fsr_aligned<{needed}>({scene.names.names[x.buffer]})"] = None
        return [t for t in tests if not _certain(t)]

    # ------------------------------------------------------------ at an edge

    def _edge(self) -> list[str]:
        """One point after the other, in loops that stay loops."""
        names = [n for n in reversed(self.tile) if self.tile[n] > 1]
        lines = [f"const {self.scene.index} ${n} = ${n}_first + $at_{n};" for n in names]
        guard = " && ".join(f"${n} < {self.scene.size(self.domain[n])}" for n in names)
        single = self.scene.once(("single point", *self.values), self._single)
        lines += [f"if ({guard}) {{", *indent(single), "}"]
        for n in reversed(names):
            head = f"for (int $at_{n} = 0; $at_{n} < {self.tile[n]}; ++$at_{n}) {{"
            lines = ["#pragma unroll 1", head, *indent(lines), "}"]
        alone = [f"const {self.scene.index} ${n} = ${n}_first;" for n in self.tile if n not in names]
        return [*alone, *lines]

    def _single(self) -> list[str]:
        """Reads beyond an edge are moved to it, what they give does not count there: all may be computed early."""
        lines, held = list[str](), dict[Expr, str]()
        for e in (e for e in postorder(self.values) if isinstance(e, Fold)):
            lines += self._looped(f"$total{len(held) + 1}", e, held)
            held[e] = f"$total{len(held) + 1}"
        for x in dict.fromkeys(x for v in self.values for x in _beside_folds(v) if is_affine(x)):
            held[x] = f"{self.scene.own(x.buffer)}_{len(held) + 1}"
            lines.append(f"const {BY_DTYPE[x.dtype].spelling} {held[x]} = {self._clamped(x)};")
        values = SharedValues(held)
        places = [(self.scene.element(o), values.add(v, {})) for o, v in zip(self.outputs, self.values, strict=True)]
        return [*lines, *values.assigned(places, self.scene.names.writer)]

    def _clamped(self, load: Load) -> str:
        """The lvalue of an element, or of the one at the edge that it lies beyond."""
        held, extents = dict[Expr, str](), self.scene.shape(load.buffer)
        if load.carries:
            buffer, at, count = self._flat(load)
            return f"{buffer}[{self._within(at, count)}]"
        for index, extent in zip(load.indices, extents, strict=True):
            name, number = name_of(index), number_of(index)
            if number is not None and extent.isdigit() and 0 <= number < int(extent):
                continue
            if name is None or self.domain.get(name) != extent:
                held[index] = self._within(self._index(index), self.scene.size(extent))
        return self.scene.element(load, held)

    def _flat(self, load: Load) -> tuple[str, str, str]:
        """Of a read that may lie in another row: the buffer, the element's number, and how many there are."""
        name, _, at = self.scene.element(load).removesuffix("]").partition("[")
        return name, at, " * ".join(self.scene.size(f"({x})") for x in self.scene.shape(load.buffer))

    def _within(self, index: str, extent: str) -> str:
        if self.scene.index == "int":
            return f"min(max({self.scene.as_index(index)}, 0), {self.scene.as_index(extent)} - 1)"
        kind = self.scene.index  # one type for all: which min and max are meant is open otherwise
        return f"min(max(({kind})({index}), ({kind})0), ({kind})({extent}) - 1)"

    def _index(self, index: Expr) -> str:
        assert isinstance(index, Number)
        assert isinstance(index.index, Affine)
        return self.scene.names.affine(index.index)

    def _looped(self, name: str, e: Fold, held: Mapping[Expr, str]) -> list[str]:
        dtype = type_of(e)
        if dtype not in ("float32", "float64", "int32", "int64") or e.op not in ("sum", "prod"):
            raise NotPlain(f"a fold of {dtype} by {e.op}")
        lines = [f"{name} {'+' if e.op == 'sum' else '*'}= {self.scene.text(e.body, held)};"]
        ranges = {n: affine_text(x) for n, x in e.dims}
        asked = self._unasked(e)
        tests = dict.fromkeys(t for x in loads_in([e.body]) if x in asked for t in self._bounds(x, ranges))
        if tests:  # where one fails, either the fold leaves the term out or nobody wants the fold
            lines = [f"if ({' && '.join(tests)}) {{", *indent(lines), "}"]
        for dim, extent in reversed(e.dims):
            head = f"for (int ${dim} = 0; ${dim} < {self.scene.names.affine(extent)}; ++${dim}) {{"
            lines = [head, *indent(lines), "}"]
        return [f"{TYPES[dtype]} {name} = {0 if e.op == 'sum' else 1};", *lines]

    def _unasked(self, e: Fold) -> set[Expr]:
        """The reads of a fold that no condition of its body stands before: what others read beyond an edge is not read
        there, and the term stays. Raises NotPlain where a term is left out for what any of its reads is, or where the
        fold may be reckoned at points that do not want it, for which conditions of its own do not hold."""
        sure = surely([e.body])
        every: set[Expr] = {x for x in loads_in([e.body]) if is_affine(x)}
        if every <= sure:
            return every
        if e.inside or e not in surely(self.values):
            raise NotPlain("a fold of reads under conditions that an edge cuts")
        return every & sure

    def _bounds(self, load: Load, ranges: Mapping[str, str]) -> Iterator[str]:
        if load.carries:
            _, at, count = self._flat(load)
            yield from (f"({at}) >= 0", f"{at} < {count}")
            return
        for index, extent in zip(load.indices, self.scene.shape(load.buffer), strict=True):
            name, number = name_of(index), number_of(index)
            if number is not None and extent.isdigit() and 0 <= number < int(extent):
                continue
            if name is None or {**self.domain, **ranges}.get(name) != extent:
                yield f"{self._index(index)} >= 0"
                yield f"{self._index(index)} < {self.scene.size(extent)}"


def _beside_folds(e: Expr) -> Iterator[Load]:
    if isinstance(e, Load) and e.indices:
        yield e
    for part in children(e) if not isinstance(e, Fold) else ():
        yield from _beside_folds(part)


def _last(load: Load) -> Affine:
    index = load.indices[-1]
    assert isinstance(index, Number)
    assert isinstance(index.index, Affine)
    return index.index


def _at(load: Load, constant: int) -> Load:
    """The read at another distance along the last dimension."""
    index = load.indices[-1]
    assert isinstance(index, Number)
    return Load(load.buffer, (*load.indices[:-1], Number(Affine(_last(load).terms, constant), index.dtype)), load.dtype)


def _certain(test: str) -> bool:
    left, _, right = test.partition(" % ")
    by = right.partition(" ")[0]
    return left.isdigit() and by.isdigit() and int(left) % int(by) == 0
