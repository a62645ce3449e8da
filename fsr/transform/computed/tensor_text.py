"""Text of a product of matrices on tensor cores: tiles of both operands in shared memory, some of them on their way.

Both tiles keep the layout of their operand in memory, so that 16 bytes at a time go there without passing through
registers (cp.async); fragments are loaded from either layout. A warp's sums go through shared memory once more, so that
what is made of them is done on whole rows, in packs. Loads are guarded everywhere: every size is right.

The shape of the algorithm is the usual one: CUTLASS, "Efficient GEMM in CUDA", and the CUDA samples' pipelined copies.
Names of this text are written ``$name`` (fsr.source.names).
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent, unrolled
from fsr.transform.computed.contraction import Contraction, Side, batch_lines, finished, operand_of
from fsr.transform.gemm.pipelined import shared_out
from fsr.transform.gemm.text import Operand

_BYTES = 16  # of one access
_PATCH_PAD = 4  # floats behind each row of sums: rows lie in other banks


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
        return _BYTES // self.bytes


KINDS = {
    "float16": Kind("__half", 2, "__half", 16),
    "bfloat16": Kind("__nv_bfloat16", 2, "__nv_bfloat16", 16),
    "float32": Kind("float", 4, "nvcuda::wmma::precision::tf32", 8, rounded=True),
}


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

    def shared_bytes(self, kind: Kind, c: Contraction) -> int:
        """Of the tiles of all stages, or of the sums on their way out where those need more."""
        a, b = (_Tile(kind, operand_of(c, side), extent, self).elements for side, extent in _sides(c, self))
        return max(self.stages * (a + b) * kind.bytes, self.threads // 32 * 16 * (self.wn + _PATCH_PAD) * 4)


def _sides(c: Contraction, t: Tiles) -> tuple[tuple[Side, int], tuple[Side, int]]:
    return (c.a, t.bm), (c.b, t.bn)


@dataclass(frozen=True, slots=True)
class _Tile:
    """One operand's tile: rows along what is contiguous in memory, with a pad of one access behind each."""

    kind: Kind
    operand: Operand
    extent: int
    tiles: Tiles

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
        return self.length + self.kind.run

    @property
    def elements(self) -> int:
        """Of one stage."""
        return (self.extent if self.deep else self.tiles.bk) * self.pitch

    @property
    def loads(self) -> int:
        """Accesses of a thread for one stage, at most."""
        return -(-self.chunks // self.tiles.threads)

    @property
    def chunks(self) -> int:
        """Accesses of one stage."""
        return self.extent * self.tiles.bk // self.kind.run


def tensor_lines(c: Contraction, kind: Kind, t: Tiles) -> list[str]:
    """The kernel's body."""
    a, b = (_Tile(kind, operand_of(c, side), extent, t) for side, extent in _sides(c, t))
    limit = c.depth_text()
    return [
        *batch_lines(c), *_head(a, b, t), *_wide("a", a), *_wide("b", b),
        f"{_fragment('accumulator', kind)} $acc[{t.wm // 16}][{t.wn // 16}];",
        *_grid(t, ["nvcuda::wmma::fill_fragment($acc[$i][$j], 0.0f);"]),
        f"const {c.scene.index} $steps = ({limit} + {t.bk - 1}) / {t.bk};",
        *_pipeline(a, b, t, limit, c.scene.index), *_results(c, t),
    ]  # fmt: skip


def _head(a: _Tile, b: _Tile, t: Tiles) -> list[str]:
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


def _wide(which: str, x: _Tile) -> list[str]:
    """Whether this operand is read 16 bytes at a time."""
    if not x.operand.along:
        return []
    address = f"reinterpret_cast<unsigned long long>(&{x.operand.at('0', '0')})"
    return [f"const bool $wide_{which} = ({x.operand.stride}) % {x.kind.run} == 0 && {address} % {_BYTES} == 0;"]


def _fragment(use: str, kind: Kind, layout: str = "") -> str:
    shape = f"16, 16, {kind.depth}, {'float' if use == 'accumulator' else kind.factor}"
    return f"nvcuda::wmma::fragment<nvcuda::wmma::{use}, {shape}{f', nvcuda::wmma::{layout}' if layout else ''}>"


def _grid(t: Tiles, inner: list[str]) -> list[str]:
    return unrolled("$i", t.wm // 16, unrolled("$j", t.wn // 16, inner))


def _pipeline(a: _Tile, b: _Tile, t: Tiles, limit: str, index: str) -> list[str]:
    """The loop over the folded dimension; it begins as many steps early as tiles are fetched ahead."""
    ahead = t.stages - 1
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
        inner = ["__syncthreads();", *fetch, "__pipeline_wait_prior(0);", "__syncthreads();", *_products(a, b, t)]
        return [f"for ({index} $step = 0; $step < $steps; ++$step) {{", *indent(inner), "}"]
    inner = [
        "if ($step >= 0) {",
        f"    __pipeline_wait_prior({ahead - 1});",
        "    __syncthreads();",
        "}",
        *fetch,
        "if ($step >= 0) {",
        *indent(_products(a, b, t)),
        "}",
    ]
    return ["#pragma unroll 1", f"for ({index} $step = -{ahead}; $step < $steps; ++$step) {{", *indent(inner), "}"]


def _fetch(which: str, x: _Tile, limit: str, index: str) -> list[str]:
    """Statements that bring a thread's share of a tile on its way; zeros outside the matrix."""
    run, of_row = x.kind.run, x.length // x.kind.run
    block = "$m_block" if which == "a" else "$n_block"
    across, along = f"$chunk / {of_row}", f"$chunk % {of_row} * {run}"
    row, depth = (across, along) if x.deep else (along, across)
    step = ("$row", "$depth + $j") if x.deep else ("$row + $j", "$depth")
    inside, inside_all = x.operand.inside, (f"$depth + {run}" if x.deep else "$depth + 1")
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
            f"    __pipeline_memcpy_async($to, &{x.operand.at('$row', '$depth')}, {_BYTES});",
            "} else {",
            *indent(one),
            "}",
        ]
    lines = [
        f"const {index} $row = {block} + {row};",
        f"const {index} $depth = $k_tile + {depth};",
        f"{x.kind.element} *const $to = $tiles_{which} + $stage * {x.elements} + {across} * {x.pitch} + {along};",
        *one,
    ]
    return unrolled("$i", x.loads, [
        f"const int $chunk = $thread + $i * {x.tiles.threads};",
        *shared_out("$chunk", x.chunks, x.tiles.threads, lines),
    ])  # fmt: skip


def _products(a: _Tile, b: _Tile, t: Tiles) -> list[str]:
    """Statements that multiply the tiles of one stage."""
    layouts = "row_major" if a.deep else "col_major", "col_major" if b.deep else "row_major"
    stage = f"$step % {t.stages}" if t.stages > 1 else "0"
    lines = []
    for which, x, var, count in (("a", a, "$i", t.wm // 16), ("b", b, "$j", t.wn // 16)):
        lines += unrolled(var, count, _loaded(which, x, var, layouts[which == "b"]))
    kind = a.kind
    return [
        f"const {kind.element} *const $from_a = $tiles_a + {stage} * {a.elements};",
        f"const {kind.element} *const $from_b = $tiles_b + {stage} * {b.elements};",
        "#pragma unroll",
        f"for (int $kk = 0; $kk < {t.bk}; $kk += {kind.depth}) {{",
        *indent([
            f"{_fragment('matrix_a', kind, layouts[0])} $a[{t.wm // 16}];",
            f"{_fragment('matrix_b', kind, layouts[1])} $b[{t.wn // 16}];",
            *lines,
            *_grid(t, ["nvcuda::wmma::mma_sync($acc[$i][$j], $a[$i], $b[$j], $acc[$i][$j]);"]),
        ]),
        "}",
    ]  # fmt: skip


def _loaded(which: str, x: _Tile, var: str, layout: str) -> list[str]:
    """Statements that load one fragment. nvcc knows for halves alone that they lie in shared memory, and takes one
    ldmatrix for four loads; so words are loaded as halves, which places them alike: elements of 16 bits, or of 32
    along their rows."""
    kind, outer = x.kind, f"({'$m_warp' if which == 'a' else '$n_warp'} + {var} * 16)"
    place = f"$from_{which} + " + (f"{outer} * {x.pitch} + $kk" if x.deep else f"$kk * {x.pitch} + {outer}")
    into, matrix = f"${which}[{var}]", f"matrix_{which}"
    if kind.element == "__half" or (kind.bytes == 4 and not x.deep):
        lines = [f"nvcuda::wmma::load_matrix_sync({into}, {place}, {x.pitch});"]
    else:
        words, pitch = _fragment(matrix, KINDS["float16"], layout), x.pitch * kind.bytes // 2
        one = [f"reinterpret_cast<unsigned *>({into}.x)[$e] = reinterpret_cast<const unsigned *>($words.x)[$e];"]
        lines = [
            f"{words} $words;",
            f"nvcuda::wmma::load_matrix_sync($words, reinterpret_cast<const __half *>({place}), {pitch});",
            *unrolled("$e", 4, one),
        ]
    if kind.rounded:
        lines += unrolled("$e", 4, [f"{into}.x[$e] = nvcuda::wmma::__float_to_tf32({into}.x[$e]);"])
    return lines


def _results(c: Contraction, t: Tiles) -> list[str]:
    """Statements that make the outputs of a warp's sums, 16 rows at a time."""
    store = "nvcuda::wmma::store_matrix_sync($sums + $j * 16, $acc[$i][$j], {pitch}, nvcuda::wmma::mem_row_major);"
    pitch = t.wn + _PATCH_PAD
    return patches(
        c, t.wm // 16, Patch(t.wn, pitch, "$m_block + $m_warp + $i * 16", "$n_block + $n_warp"),
        unrolled("$j", t.wn // 16, [store.format(pitch=pitch)]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Patch:
    """16 rows of sums of a warp, of ``width`` each, in shared memory: from row to row ``pitch`` floats. ``row`` and
    ``column``: the texts of the first."""

    width: int
    pitch: int
    row: str
    column: str

    @property
    def bytes(self) -> int:
        """Of one."""
        return 16 * self.pitch * 4


def patches(c: Contraction, count: int, patch: Patch, stored: list[str]) -> list[str]:
    """Statements that make the outputs of so many patches (``$i``) of each warp, one after the other, which ``stored``
    puts into ``$sums``; on whole rows, in packs."""
    wide, width, pitch = BY_DTYPE[c.output_dtype].bytes, patch.width, patch.pitch
    run = max(1, min(_BYTES // wide, 8))
    rows = [
        f"const int $place = ($thread % 32 + $round * 32) * {run};",
        *(line.replace("$PLACE_M", f"{patch.row} + $place / {width}")
          .replace("$PLACE_N", f"{patch.column} + $place % {width}")
          .replace("$ACC", f"$sums[$place / {width} * {pitch} + $place % {width} + $lane]")
          for line in finished(c, run)),
    ]  # fmt: skip
    return [
        "__syncthreads();",
        f"float *const $sums = reinterpret_cast<float *>($memory) + $thread / 32 * {16 * pitch};",
        *unrolled("$i", count, [
            *stored,
            "__syncwarp();",
            "#pragma unroll 1",
            f"for (int $round = 0; $round < {width * 16 // (32 * run)}; ++$round) {{",
            *indent(rows),
            "}",
            "__syncwarp();",
        ]),
    ]  # fmt: skip
