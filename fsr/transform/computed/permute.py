"""tile-permute: what is contiguous along one dimension is wanted contiguous along another: tiles in shared memory.

A block takes a tile over the two dimensions, all others one at a time: it reads along the one, a word a thread of a
row, and writes along the other. Rows of a square are padded by one element, so that both ways touch every bank once.
``along``: packs of 16 bytes both ways. Narrow elements are turned in registers first, as many rows as make a word, and
the packs of a row in shared memory change places by its number, so that words and packs touch every bank once.

What is contiguous along a diagonal only (the place in a window about a point, ``x[j - i + r, i]``) is read along that:
a thread's row is turned by its column. What conditions guard is read where it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.expression import Affine, Expr, Load, Number, names_in
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import is_map, stores
from fsr.transform.computed.packs import MOST_BYTES, Packs, pack_type
from fsr.transform.computed.parts import name_of, value_of
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, plain, surely, word
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_WORD = 4
_TILES = ((64, 64, 256), (128, 64, 256), (64, 128, 256), (64, 64, 128), (32, 32, 64), (32, 64, 128))  # along, across
_BLOCKS = ((64, 4), (32, 4), (64, 8), (32, 8), (32, 16), (32, 32))  # threads along what is contiguous, rows of them


@dataclass(frozen=True)
class _Turned:
    """``across``: the dimension that ``loads`` are contiguous along; ``last``: that of the outputs. ``turn``: by how
    much this moves on beside the other along what is contiguous: 0 for not at all, 1 or -1."""

    scene: Scene
    across: tuple[str, str]
    last: tuple[str, str]
    loads: tuple[Load, ...]
    turn: int = 0

    @property
    def plain(self) -> bool:
        """Whether what is read is there at every point, and may be read by packs."""
        sure = surely(map(value_of, self.scene.part.outputs))
        return not self.turn and all(self.scene.harmless(x, sure) for x in self.loads)

    @property
    def rest(self) -> tuple[tuple[str, str], ...]:
        return tuple(d for d in self.scene.part.domain if d not in (self.across, self.last))


def _turned(scene: Scene) -> _Turned | None:
    if not is_map(scene) or len(scene.part.domain) < 2:
        return None
    last, extents = scene.part.domain[-1], dict(scene.part.domain)
    found: dict[tuple[str, int], list[Load]] = {}
    for x in loads_in(value_of(s) for s in scene.part.outputs):
        if not plain(x) or along(x, last[0]) or not any(last[0] in names_in(i) for i in x.indices):
            continue
        ways = [(d, turn) for d in extents if d != last[0] and (turn := _turn(x, d, last[0])) is not None]
        if not ways:
            return None
        found.setdefault(ways[0], []).append(x)
    if len(found) != 1:
        return None
    (across, turn), loads = next(iter(found.items()))
    return _Turned(scene, (across, extents[across]), last, tuple(loads), turn)


def _turn(x: Load, across: str, last: str) -> int | None:
    """How a read is contiguous along a dimension: see :class:`_Turned`; None where it is not."""
    if along(x, across):
        return 0
    if name_of(x.indices[-1]) != across:
        return None
    turns = set()
    for i in x.indices[:-1]:
        if names_in(i) & {across, last}:
            terms = dict(i.index.terms) if isinstance(i, Number) and isinstance(i.index, Affine) else {}
            one, other = terms.get(across, 0), terms.get(last, 0)
            turns.add(0 if abs(one) != abs(other) else 1 if one == -other else -1)
    return turns.pop() if len(turns) == 1 and 0 not in turns else None


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    t = _turned(scene)
    if t is None:
        return
    narrow = min(bytes_of(x) for x in (*t.loads, *stores(scene)))
    gain = 5.0
    if t.plain and len({bytes_of(x) for x in (*t.loads, *stores(scene))}) == 1 and narrow in (2, _WORD):
        worth = gain * (1.1 if narrow < _WORD else 0.8)
        for along_, across, threads in _TILES:
            if len(t.loads) * narrow * along_ * across <= STATIC_SHARED_BYTES:
                yield {"along": along_, "across": across, "threads": threads}, worth
                worth *= 0.97
    found = list[tuple[dict[str, int | str], float]]()
    for pack in dict.fromkeys((max(1, _WORD // narrow) if t.plain else 1, 1)):
        for threads, rows in _BLOCKS:
            side = threads * pack
            if sum(bytes_of(x) for x in t.loads) * side * (side + 1) <= STATIC_SHARED_BYTES:
                found.append(({"pack": pack, "x": threads, "y": rows}, gain * (0.5 + 0.5 * _filled(t, side))))
                gain *= 0.97
    yield from sorted(found, key=lambda way: -way[1])


def _filled(t: _Turned, side: int) -> float:
    """The share of the lanes that have an element where lines are short."""
    lengths = (t.scene.timed(x) for _, x in (t.across, t.last))
    return min(1.0, *(n / side for n in lengths))


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    t = _turned(scene)
    if t is None or not (t.plain or params.get("pack") == 1):
        raise NotPlain("nothing lies across, or not in packs")
    if "along" in params:
        return [_by_packs(t, *(int(params[k]) for k in ("along", "across", "threads")))]
    pack, x, y = (int(params[k]) for k in ("pack", "x", "y"))
    side = x * pack
    names = {load: f"$tile{n + 1}" for n, load in enumerate(t.loads)}
    lines = [
        *(f"__shared__ {BY_DTYPE[x.dtype].spelling} {n}[{side}][{side + 1}];" for x, n in names.items()),
        *_place(t, side, side),
        "// Read along what is contiguous there,",
        *_rows(side, y, _read(t, side, pack, names)),
        "__syncthreads();",
        "// and write along what is contiguous here.",
        *_rows(side, y, _write(t, pack, names)),
    ]
    return [Written(scene, lines, _grid(t, side, side), (str(x), str(y), "1"), x * y, "permute")]


def _grid(t: _Turned, along_: int, across: int) -> tuple[str, str, str]:
    rest = "".join(f" * ({x})" for _, x in t.rest)
    return f"ceil_div({t.last[1]}, {along_}) * ceil_div({t.across[1]}, {across}){rest}", "1", "1"


def _place(t: _Turned, along_: int, side: int) -> list[str]:
    """Which tile of which of all the others a block has: tiles along the outputs' last dimension are neighbours."""
    scene, (across, width), (last, length) = t.scene, t.across, t.last
    lines = [
        f"const int ${last}_tiles = ({scene.size(length)} + {along_ - 1}) / {along_};",
        f"const int ${across}_tiles = ({scene.size(width)} + {side - 1}) / {side};",
        f"const {scene.index} ${last}_tile = blockIdx.x % ${last}_tiles * {along_};",
        f"const {scene.index} ${across}_tile = blockIdx.x / ${last}_tiles % ${across}_tiles * {side};",
    ]
    return [*lines, *lead_dims(scene, t.rest, f"(blockIdx.x / (${last}_tiles * ${across}_tiles))")]


def _rows(side: int, y: int, inner: list[str]) -> list[str]:
    return [
        "#pragma unroll",
        f"for (int $row = threadIdx.y; $row < {side}; $row += {y}) {{", *indent(inner), "}",
    ]  # fmt: skip


def _there(t: _Turned, x: Load) -> str:
    """The condition under which a read is within its buffer, as the start of a statement."""
    if t.scene.harmless(x, surely(map(value_of, t.scene.part.outputs))):
        return ""
    extents, tests = dict(t.scene.part.domain), list[str]()
    for index, extent in zip(x.indices, t.scene.shape(x.buffer), strict=True):
        if extents.get(name_of(index) or "") != extent:
            text = t.scene.text(index)
            tests += [f"{text} >= 0", f"{text} < {t.scene.size(extent)}"]
    return f"if ({' && '.join(tests)}) "


def _read(t: _Turned, side: int, pack: int, names: Mapping[Load, str]) -> list[str]:
    scene, (across, width), (last, length) = t.scene, t.across, t.last
    reads = Packs.of(scene, t.loads, across, pack)
    held = reads.held("$lane")
    put = [f"{names[x]}[$row][threadIdx.x * {pack} + $lane] = {held[x]};" for x in t.loads if x in held]
    row = "$line" if t.turn else "$row"
    one = [f"{_there(t, x)}{names[x]}[{row}][threadIdx.x * {pack} + $lane] = {scene.element(x)};" for x in t.loads]
    by = {1: "threadIdx.x", -1: f"{side} - threadIdx.x"}.get(t.turn)
    return [
        *([f"const int $line = ($row + {by}) % {side};"] if t.turn else []),
        f"const {scene.index} ${last} = ${last}_tile + {row};",
        *_whole_or_single(reads, (across, width), f"${last} < {scene.size(length)}",
                          ([*reads.fetch(), *unrolled("$lane", pack, put)], one)),
    ]  # fmt: skip


def _write(t: _Turned, pack: int, names: Mapping[Load, str]) -> list[str]:
    scene, (across, width), (last, length) = t.scene, t.across, t.last
    outputs, values = stores(scene), [value_of(s) for s in scene.part.outputs]
    turned: dict[Expr, str] = {x: f"{n}[threadIdx.x * {pack} + $lane][$row]" for x, n in names.items()}
    reads = Packs.of(scene, values, last, pack)
    whole = reads.made(outputs, values, turned)
    one = scene.assigned([(scene.element(o), v) for o, v in zip(outputs, values, strict=True)], turned)
    test = f"${across} < {scene.size(width)}"
    return [
        f"const {scene.index} ${across} = ${across}_tile + $row;",
        *_whole_or_single(reads, (last, length), test, (whole, one), outputs),
    ]


def _by_packs(t: _Turned, along_: int, across: int, threads: int) -> Written:
    """A tile of ``along_`` elements of ``across`` rows of the outputs."""
    scene, (column, width), (last, length) = t.scene, t.across, t.last
    size = bytes_of(t.loads[0])
    pack, rows = MOST_BYTES // size, _WORD // size
    values = [value_of(s) for s in scene.part.outputs]
    across_packs, along_packs = (Packs.of(scene, x, d, pack) for x, d in ((t.loads, column), (values, last)))
    names = {load: f"$tile{n + 1}" for n, load in enumerate(t.loads)}
    limits = [f"${column} < {scene.size(width)}", f"${last} < {scene.size(length)}"]
    whole = [f"{scene.size(x)} % {pack} == 0" for x in (width, length)]
    whole += [across_packs.aligned(), along_packs.aligned(stores(scene))]
    held: dict[Expr, str] = {x: f"{n}[$place($a, $b)]" for x, n in names.items()}
    single = [(scene.element(o), v) for o, v in zip(stores(scene), values, strict=True)]
    turned: dict[Expr, str] = {x: f"{n}_pack.v[$lane]" for x, n in names.items()}
    kinds = {x: (pack_type(scene, x, pack), pack_type(scene, x, rows)) for x in t.loads}
    swap = f"($b / {pack} ^ $a / {pack} % {along_ // pack}) * {pack} + $b % {pack}"

    def tiles(steps: tuple[int, int], tests: Sequence[str], inner: list[str], along_first: bool) -> list[str]:
        """A walk over the tile, so many elements of either dimension a thread."""
        a, b = across // steps[0], along_ // steps[1]
        texts = ("$at / {0}", "$at % {0}") if along_first else ("$at % {0}", "$at / {0}")
        at = [text.format(b if along_first else a) + (f" * {n}" if n > 1 else "")
              for text, n in zip(texts, steps, strict=True)]  # fmt: skip
        return [
            "#pragma unroll",
            f"for (int $at = threadIdx.x; $at < {a * b}; $at += {threads}) {{",
            f"    const int $a = {at[0]}, $b = {at[1]};",
            f"    const {scene.index} ${column} = ${column}_tile + $a, ${last} = ${last}_tile + $b;",
            f"    if ({' && '.join(tests)}) {{", *indent(indent(inner)), "    }", "}",
        ]  # fmt: skip

    fetch = [line for x, n in names.items() for line in (
        f"{kinds[x][0]} {n}_packs[{rows}];",
        *unrolled("$row", rows, [f"{n}_packs[$row] = *reinterpret_cast<const {kinds[x][0]} *>"
                                 f"(&{word(scene.element(x), last, f'(${last} + $row)')});"]),
        *unrolled("$lane", pack, [
            f"{kinds[x][1]} {n}_word;", *unrolled("$row", rows, [f"{n}_word.v[$row] = {n}_packs[$row].v[$lane];"]),
            f"*reinterpret_cast<{kinds[x][1]} *>(&{n}[$place($a + $lane, $b)]) = {n}_word;",
        ]),
    )]  # fmt: skip
    back = [f"const {kinds[x][0]} {n}_pack = *reinterpret_cast<const {kinds[x][0]} *>(&{n}[$place($a, $b)]);"
            for x, n in names.items()]  # fmt: skip
    put = [f"{held[x]} = {scene.element(x)};" for x in names]
    lines = [
        *(f"__shared__ __align__(16) {BY_DTYPE[x.dtype].spelling} {n}[{across * along_}];" for x, n in names.items()),
        *_place(t, along_, across),
        f"const auto $place = [](int $a, int $b) {{ return $a * {along_} + {swap}; }};",
        f"const bool $whole = {' && '.join(whole)};",
        "if ($whole) {", *indent(tiles((pack, rows), limits, fetch, False)), "} else {",
        *indent(tiles((1, 1), limits, put, False)), "}",
        "__syncthreads();",
        "if ($whole) {",
        *indent(tiles((1, pack), limits, [f"const {scene.index} ${last}_first = ${last};", *back,
                                          *along_packs.made(stores(scene), values, turned)], True)), "} else {",
        *indent(tiles((1, 1), limits, scene.assigned(single, held), True)), "}",
    ]  # fmt: skip
    return Written(scene, lines, _grid(t, along_, across), (str(threads), "1", "1"), threads, "permute")


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
