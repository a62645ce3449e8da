"""tile-permute: what is contiguous along one dimension is wanted contiguous along another: tiles in shared memory.

A block takes a square over the two dimensions, all others one at a time: it reads along the one, a word a thread of a
row, and writes along the other. Rows of the tile are padded by one element, so that both ways touch every bank once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.expression import Expr, Load, names_in
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.elements import is_map, stores
from fsr.transform.computed.packs import Packs, pack_type
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, plain, word
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_WORD = 4
_BLOCKS = ((64, 4), (32, 4), (64, 8), (32, 8), (32, 16), (32, 32))  # threads along what is contiguous, rows of them


@dataclass(frozen=True)
class _Turned:
    """``across``: the dimension that ``loads`` are contiguous along; ``last``: that of the outputs."""

    scene: Scene
    across: tuple[str, str]
    last: tuple[str, str]
    loads: tuple[Load, ...]

    @property
    def rest(self) -> tuple[tuple[str, str], ...]:
        return tuple(d for d in self.scene.part.domain if d not in (self.across, self.last))


def _turned(scene: Scene) -> _Turned | None:
    if not is_map(scene) or len(scene.part.domain) < 2:
        return None
    last, extents = scene.part.domain[-1], dict(scene.part.domain)
    found: dict[str, list[Load]] = {}
    for x in loads_in(value_of(s) for s in scene.part.outputs):
        if not plain(x) or along(x, last[0]) or not any(last[0] in names_in(i) for i in x.indices):
            continue
        dims = [d for d in extents if d != last[0] and along(x, d)]
        if not dims:
            return None
        found.setdefault(dims[0], []).append(x)
    if len(found) != 1:
        return None
    across, loads = next(iter(found.items()))
    return _Turned(scene, (across, extents[across]), last, tuple(loads))


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    t = _turned(scene)
    if t is None:
        return
    narrow = min(bytes_of(x) for x in (*t.loads, *stores(scene)))
    gain = 5.0
    for pack in dict.fromkeys((max(1, _WORD // narrow), 1)):
        for threads, rows in _BLOCKS:
            side = threads * pack
            if sum(bytes_of(x) for x in t.loads) * side * (side + 1) <= STATIC_SHARED_BYTES:
                yield {"pack": pack, "x": threads, "y": rows}, gain
                gain *= 0.97


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    t, (pack, x, y) = _turned(scene), (int(params[k]) for k in ("pack", "x", "y"))
    if t is None:
        raise NotPlain("nothing lies across")
    side, (_, width), (_, length) = x * pack, t.across, t.last
    names = {load: f"$tile{n + 1}" for n, load in enumerate(t.loads)}
    lines = [
        *(f"__shared__ {BY_DTYPE[x.dtype].spelling} {n}[{side}][{side + 1}];" for x, n in names.items()),
        *_place(t, side),
        "// Read along what is contiguous there,",
        *_rows(side, y, _read(t, pack, names)),
        "__syncthreads();",
        "// and write along what is contiguous here.",
        *_rows(side, y, _write(t, pack, names)),
    ]
    rest = "".join(f" * ({x})" for _, x in t.rest)
    grid = f"ceil_div({length}, {side}) * ceil_div({width}, {side}){rest}"
    return [Written(scene, lines, (grid, "1", "1"), (str(x), str(y), "1"), x * y, "permute")]


def _place(t: _Turned, side: int) -> list[str]:
    """Which tile of which of all the others a block has: tiles along the outputs' last dimension are neighbours."""
    scene, (across, width), (last, length) = t.scene, t.across, t.last
    lines = [
        f"const int ${last}_tiles = ({scene.size(length)} + {side - 1}) / {side};",
        f"const int ${across}_tiles = ({scene.size(width)} + {side - 1}) / {side};",
        f"const {scene.index} ${last}_tile = blockIdx.x % ${last}_tiles * {side};",
        f"const {scene.index} ${across}_tile = blockIdx.x / ${last}_tiles % ${across}_tiles * {side};",
    ]
    for n, (name, extent) in enumerate(t.rest):
        below = [f"${last}_tiles", f"${across}_tiles", *(scene.size(x) for _, x in t.rest[n + 1 :])]
        text = f"(int)blockIdx.x / ({' * '.join(below)}){f' % {scene.size(extent)}' if n else ''}"
        lines.append(f"const {scene.index} ${name} = {text};")
    return lines


def _rows(side: int, y: int, inner: list[str]) -> list[str]:
    return [
        "#pragma unroll",
        f"for (int $row = threadIdx.y; $row < {side}; $row += {y}) {{", *indent(inner), "}",
    ]  # fmt: skip


def _read(t: _Turned, pack: int, names: Mapping[Load, str]) -> list[str]:
    scene, (across, width), (last, length) = t.scene, t.across, t.last
    reads = Packs.of(scene, t.loads, across, pack)
    put = [f"{names[x]}[$row][threadIdx.x * {pack} + $lane] = {reads.held('$lane')[x]};" for x in t.loads]
    one = [f"{names[x]}[$row][threadIdx.x * {pack} + $lane] = {scene.element(x)};" for x in t.loads]
    return [
        f"const {scene.index} ${last} = ${last}_tile + $row;",
        *_whole_or_single(reads, (across, width), f"${last} < {scene.size(length)}",
                          ([*reads.fetch(), *unrolled("$lane", pack, put)], one)),
    ]  # fmt: skip


def _write(t: _Turned, pack: int, names: Mapping[Load, str]) -> list[str]:
    scene, (across, width), (last, length) = t.scene, t.across, t.last
    outputs, values = stores(scene), [value_of(s) for s in scene.part.outputs]
    turned: dict[Expr, str] = {x: f"{n}[threadIdx.x * {pack} + $lane][$row]" for x, n in names.items()}
    reads = Packs.of(scene, values, last, pack)
    made = {o: f"{scene.own(o.buffer)}_made" for o in outputs}
    pairs = list(zip(outputs, values, strict=True))
    whole = [
        *reads.fetch(),
        *(f"{pack_type(scene, o, pack)} {made[o]};" for o in outputs),
        *reads.lanes(scene.assigned([(f"{made[o]}.v[$lane]", v) for o, v in pairs], turned | reads.held("$lane"))),
        *(f"*reinterpret_cast<{pack_type(scene, o, pack)} *>(&{reads.first(o)}) = {made[o]};" for o in outputs),
    ]
    one = scene.assigned([(scene.element(o), v) for o, v in pairs], turned)
    test = f"${across} < {scene.size(width)}"
    return [
        f"const {scene.index} ${across} = ${across}_tile + $row;",
        *_whole_or_single(reads, (last, length), test, (whole, one), outputs),
    ]


def _whole_or_single(
    reads: Packs, dim: tuple[str, str], test: str, ways: tuple[list[str], list[str]], written: Sequence[Load] = ()
) -> list[str]:
    scene, (name, extent), pack, (whole, one) = reads.scene, dim, reads.width, ways
    limit = scene.size(extent)
    first = f"const {scene.index} ${name}_first = ${name}_tile + threadIdx.x * {pack};"
    if pack == 1:
        one = [word(line.replace(" * 1 + $lane", ""), name, f"${name}_first") for line in one]
        return [first, f"if ({test} && ${name}_first < {limit}) {{", *indent(one), "}"]
    both = f"${name}_first + {pack} <= {limit} && {reads.aligned(written)}"
    single = reads.lanes(one, f"${name} < {limit}")
    choice = [f"if ({both}) {{", *indent(whole), "} else {", *indent(single), "}"]
    return [first, f"if ({test}) {{", *indent(choice), "}"]
