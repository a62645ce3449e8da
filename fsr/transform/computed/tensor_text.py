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
from fsr.transform.computed.tensor_tiles import BYTES, Kind, Tile, Tiles, head, pipeline, wide

_PATCH_PAD = 4  # floats behind each row of sums: rows lie in other banks


KINDS = {
    "float16": Kind("__half", 2, "__half", 16),
    "bfloat16": Kind("__nv_bfloat16", 2, "__nv_bfloat16", 16),
    "float32": Kind("float", 4, "nvcuda::wmma::precision::tf32", 8, rounded=True),
}


def shared_bytes(t: Tiles, kind: Kind, c: Contraction) -> int:
    """Of the tiles of all stages, or of the sums on their way out where those need more."""
    a, b = (x.elements for x in _tiles(c, kind, t))
    return max(t.stages * (a + b) * kind.bytes, t.threads // 32 * 16 * (t.wn + _PATCH_PAD) * 4)


def _tiles(c: Contraction, kind: Kind, t: Tiles) -> tuple[Tile, Tile]:
    """With a pad of one access behind each row."""
    a, b = (Tile(kind, operand_of(c, side), extent, t, kind.run) for side, extent in _sides(c, t))
    return a, b


def _sides(c: Contraction, t: Tiles) -> tuple[tuple[Side, int], tuple[Side, int]]:
    return (c.a, t.bm), (c.b, t.bn)


def tensor_lines(c: Contraction, kind: Kind, t: Tiles) -> list[str]:
    """The kernel's body."""
    a, b = _tiles(c, kind, t)
    limit = c.depth_text()
    return [
        *batch_lines(c), *head(a, b, t), *wide("a", a), *wide("b", b),
        f"{_fragment('accumulator', kind)} $acc[{t.wm // 16}][{t.wn // 16}];",
        *_grid(t, ["nvcuda::wmma::fill_fragment($acc[$i][$j], 0.0f);"]),
        f"const {c.scene.index} $steps = ({limit} + {t.bk - 1}) / {t.bk};",
        *pipeline(a, b, t, limit, c.scene.index, _products(a, b, t)), *_results(c, t),
    ]  # fmt: skip


def _fragment(use: str, kind: Kind, layout: str = "") -> str:
    shape = f"16, 16, {kind.depth}, {'float' if use == 'accumulator' else kind.factor}"
    return f"nvcuda::wmma::fragment<nvcuda::wmma::{use}, {shape}{f', nvcuda::wmma::{layout}' if layout else ''}>"


def _grid(t: Tiles, inner: list[str]) -> list[str]:
    return unrolled("$i", t.wm // 16, unrolled("$j", t.wn // 16, inner))


def _products(a: Tile, b: Tile, t: Tiles) -> list[str]:
    """Statements that multiply the tiles of one stage."""
    layouts = "row_major" if a.deep else "col_major", "col_major" if b.deep else "row_major"
    lines = []
    for which, x, var, count in (("a", a, "$i", t.wm // 16), ("b", b, "$j", t.wn // 16)):
        lines += unrolled(var, count, _loaded(which, x, var, layouts[which == "b"]))
    kind = a.kind
    return [
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


def _loaded(which: str, x: Tile, var: str, layout: str) -> list[str]:
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
    run = max(1, min(BYTES // wide, 8))
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
