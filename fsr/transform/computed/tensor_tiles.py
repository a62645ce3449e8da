"""Tiles of two operands in shared memory, some of them on their way, for products on tensor cores.

Both tiles keep the layout of their operand in memory, so that 16 bytes at a time go there without passing through
registers (cp.async). Loads are guarded everywhere: every size is right. Names of this text are written ``$name``
(fsr.source.names).
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.source.names import indent, unrolled
from fsr.transform.gemm.pipelined import shared_out
from fsr.transform.gemm.text import Operand

BYTES = 16  # of one access


@dataclass(frozen=True, slots=True)
class Kind:
    """``element`` in shared memory, of ``bytes``; ``factor`` as fragments call it, ``depth`` of a fragment (its other
    extents are 16); ``rounded``: whether elements are rounded when they are in a fragment."""

    element: str
    bytes: int
    factor: str
    depth: int
    rounded: bool = False

    @property
    def run(self) -> int:
        """Elements of one access."""
        return BYTES // self.bytes


@dataclass(frozen=True, slots=True)
class Tiles:
    """A block makes bm x bn outputs in steps of bk, a warp wm x wn of them; ``stages`` tiles are in shared memory or on
    their way there."""

    bm: int
    bn: int
    bk: int
    wm: int
    wn: int
    stages: int

    @property
    def threads(self) -> int:
        """Threads a block."""
        return 32 * (self.bm // self.wm) * (self.bn // self.wn)

    def params(self) -> dict[str, int | str]:
        """As decisions of a move."""
        return {"bm": self.bm, "bn": self.bn, "bk": self.bk, "wm": self.wm, "wn": self.wn, "stages": self.stages}


@dataclass(frozen=True, slots=True)
class Tile:
    """One operand's tile: rows along what is contiguous in memory, a pad of so many elements behind each. ``mixed``:
    whether rows across the folded dimension stand in another order: of each 16 the first and second of every four, then
    the third and fourth; ``whole``: whether tiles that lie inside the matrix are copied without a test of each access,
    which takes longer than the access."""

    kind: Kind
    operand: Operand
    extent: int
    tiles: Tiles
    pad: int
    mixed: bool = False
    whole: bool = False

    @property
    def deep(self) -> bool:
        """Whether rows go along the folded dimension."""
        return self.operand.along != "outer"

    @property
    def length(self) -> int:
        """Of a row, without its pad."""
        return self.tiles.bk if self.deep else self.extent

    @property
    def pitch(self) -> int:
        """From row to row."""
        return self.length + self.pad

    @property
    def elements(self) -> int:
        """Of one stage."""
        return (self.extent if self.deep else self.tiles.bk) * self.pitch

    def row(self, text: str) -> str:
        """The text of the row in which the ``text``-th stands."""
        if self.deep or not self.mixed:
            return text
        r = f"({text})"
        return f"({r} / 16 * 16 + {r} % 4 / 2 * 8 + {r} % 16 / 4 * 2 + {r} % 2)"

    @property
    def loads(self) -> int:
        """Accesses of a thread for one stage, at most."""
        return -(-self.chunks // self.tiles.threads)

    @property
    def chunks(self) -> int:
        """Accesses of one stage."""
        return self.extent * self.tiles.bk // self.kind.run


def head(a: Tile, b: Tile, t: Tiles) -> list[str]:
    """Declarations of the tiles, and of where a thread and its block lie in the output."""
    across, element = t.bn // t.wn, a.kind.element
    return [
        "extern __shared__ __align__(128) unsigned char $memory[];",
        f"{element} *const $tiles_a = reinterpret_cast<{element} *>($memory);",
        f"{element} *const $tiles_b = $tiles_a + {t.stages * a.elements};",
        "const int $thread = threadIdx.x;",
        "const int $warp = $thread / 32;",
        f"const {a.operand.index_type} $m_block = blockIdx.y * {t.bm};",
        f"const {b.operand.index_type} $n_block = blockIdx.x * {t.bn};",
        f"const int $m_warp = $warp / {across} * {t.wm};",
        f"const int $n_warp = $warp % {across} * {t.wn};",
    ]


def wide(which: str, x: Tile) -> list[str]:
    """Whether this operand is read 16 bytes at a time, and where it matters whether all rows of its tiles are there."""
    if not x.operand.along:
        return []
    last = f"{'$m_block' if which == 'a' else '$n_block'} + {x.extent - 1}"
    whole = [f"const bool $whole_{which} = $wide_{which} && {x.operand.inside(last)};"] if x.whole else []
    address = f"reinterpret_cast<unsigned long long>(&{x.operand.at('0', '0')})"
    return [f"const bool $wide_{which} = ({x.operand.stride}) % {x.kind.run} == 0 && {address} % {BYTES} == 0;", *whole]


def pipeline(a: Tile, b: Tile, t: Tiles, limit: str, index: str, products: list[str]) -> list[str]:
    """The loop over the folded dimension; it begins as many steps early as tiles are fetched ahead. ``products``:
    statements that multiply the tiles of ``$from_a`` and ``$from_b``."""
    ahead, stage = t.stages - 1, f"$step % {t.stages}" if t.stages > 1 else "0"
    element = a.kind.element
    products = [
        f"const {element} *const $from_a = $tiles_a + {stage} * {a.elements};",
        f"const {element} *const $from_b = $tiles_b + {stage} * {b.elements};",
        *products,
    ]
    fetch = [
        f"if ($step + {ahead} < $steps) {{" if ahead else "{",
        *indent([
            f"const {index} $k_tile = ($step + {ahead}) * {t.bk};",
            f"const int $stage = ($step + {ahead}) % {t.stages};",
            *_fetch("a", a, limit, index), *_fetch("b", b, limit, index),
        ]),
        "}",
        "__pipeline_commit();",
    ]  # fmt: skip
    if not ahead:
        inner = ["__syncthreads();", *fetch, "__pipeline_wait_prior(0);", "__syncthreads();", *products]
        return [f"for ({index} $step = 0; $step < $steps; ++$step) {{", *indent(inner), "}"]
    inner = [
        "if ($step >= 0) {",
        f"    __pipeline_wait_prior({ahead - 1});",
        "    __syncthreads();",
        "}",
        *fetch,
        "if ($step >= 0) {",
        *indent(products),
        "}",
    ]
    return ["#pragma unroll 1", f"for ({index} $step = -{ahead}; $step < $steps; ++$step) {{", *indent(inner), "}"]


def _fetch(which: str, x: Tile, limit: str, index: str) -> list[str]:
    """Statements that bring a thread's share of a tile on its way; zeros outside the matrix."""
    run, of_row = x.kind.run, x.length // x.kind.run
    block = "$m_block" if which == "a" else "$n_block"
    across, along = f"$chunk / {of_row}", f"$chunk % {of_row} * {run}"
    row, depth = (across, along) if x.deep else (along, across)
    step = ("$row", "$depth + $j") if x.deep else ("$row + $j", "$depth")
    inside, inside_all = x.operand.inside, (f"$depth + {run}" if x.deep else "$depth + 1")
    copy = f"__pipeline_memcpy_async($to, &{x.operand.at('$row', '$depth')}, {BYTES});"
    one = [
        "#pragma unroll 1",
        f"for (int $j = 0; $j < {run}; ++$j) {{",
        f"    $to[$j] = {inside(step[0])} && {step[1]} < {limit} ? {x.operand.at(*step)} "
        f": static_cast<{x.kind.element}>(0.0f);",
        "}",
    ]
    if x.operand.along:
        last = "$row" if x.deep else f"$row + {run - 1}"
        one = [
            f"if ($wide_{which} && {inside(last)} && {inside_all} <= {limit}) {{",
            f"    {copy}",
            "} else {",
            *indent(one),
            "}",
        ]
    begin = [
        f"const {index} $row = {block} + {row};",
        f"const {index} $depth = $k_tile + {depth};",
        f"{x.kind.element} *const $to = $tiles_{which} + $stage * {x.elements} "
        f"+ {x.row(across)} * {x.pitch} + {along};",
    ]
    tested = _all_chunks(x, [*begin, *one])
    if not (x.whole and x.operand.along):
        return tested
    return [
        f"if ($whole_{which} && $k_tile + {x.tiles.bk} <= {limit}) {{",
        *indent(_all_chunks(x, [*begin, copy])),
        "} else {",
        *indent(tested),
        "}",
    ]


def _all_chunks(x: Tile, lines: list[str]) -> list[str]:
    return unrolled("$i", x.loads, [
        f"const int $chunk = $thread + $i * {x.tiles.threads};",
        *shared_out("$chunk", x.chunks, x.tiles.threads, lines),
    ])  # fmt: skip
