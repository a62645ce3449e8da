"""split-contraction: products of float matrices on tensor cores at the accuracy of float, whatever their layouts.

Tiles of both operands stand in shared memory as they lie in memory (:mod:`tensor_tiles`); a warp takes 16 terms of the
sum at a time from there and makes its products as :mod:`split_products` tells. Which term is which of a
step's eight is free as long as both factors agree, and so is which row or column of an instruction is which of the
output: a lane reads four neighbours at once, of rows along the folded dimension the terms of two steps, of rows across
it those of four rows or columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.computation.expression import Op
from fsr.computation.types import type_of
from fsr.hardware.limits import ASYNC_COPIES_FROM
from fsr.source.names import indent, unrolled
from fsr.transform.computed import pipelined
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.contraction import (
    Contraction,
    batch_lines,
    contraction,
    finished,
    grid_of,
    operand_of,
)  # fmt: skip
from fsr.transform.computed.scene import Scene
from fsr.transform.computed.split_guard import guarded
from fsr.transform.computed.split_products import DEPTH, FUNCTIONS, MASK, STEPS, added, multiplied, split
from fsr.transform.computed.tensor import promise
from fsr.transform.computed.tensor_tiles import Kind, Tile, Tiles, head, pipeline, wide
from fsr.transform.gemm.pipelined import HEADER
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_KIND = Kind("float", 4, "", DEPTH)
_PACK = "fsr_pack<float, 4>"
_ACROSS = 4  # instructions along columns whose factors are split at a time
_BANKS = 32
# Tilings, blocks of a multiprocessor (which share its registers), and how fast they are beside what their shapes
# promise. On an H100, 4096 rows in four layouts: the first took 2.08 ms, the second 1.99 to 2.12, the ordinary kernel
# 3.24, and what cuBLAS does with floats 2.7.
FIRST = (
    (Tiles(128, 128, 32, 64, 64, 2), 2, 1.2), (Tiles(128, 128, 16, 64, 64, 4), 2, 1.0),
    (Tiles(128, 64, 32, 64, 32, 2), 2, 1.3), (Tiles(64, 64, 32, 32, 32, 3), 3, 1.2),
    (Tiles(128, 256, 16, 64, 64, 4), 1, 0.88), (Tiles(64, 128, 32, 32, 64, 2), 2, 1.2),
    (Tiles(64, 64, 16, 32, 32, 4), 4, 1.0), (Tiles(128, 128, 32, 32, 64, 3), 1, 0.9),
)  # fmt: skip


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    c = splittable(scene)
    if c is None:
        return
    shape = c.timed_shape()
    fitting = [x for x in FIRST if x[1] * _shared_bytes(c, x[0]) <= scene.gpu.max_shared_bytes]
    ranked = [(x[2] * promise(x[0], shape, scene.gpu), x) for x in fitting]
    for worth, (tiles, blocks, _) in sorted(ranked, key=lambda x: -x[0]):
        yield {**tiles.params(), "blocks": blocks}, 6.0 + 20.0 * worth


def splittable(scene: Scene) -> Contraction | None:
    """The part as a sum of products of floats as they stand in memory; None where it is none."""
    c = contraction(scene) if scene.gpu.capability >= ASYNC_COPIES_FROM else None
    if c is None or scene.target.contract.tolerance.exact or type_of(c.fold) != "float32":
        return None
    body = c.fold.body
    if c.fold.op != "sum" or not isinstance(body, Op) or body.name != "prod" or len(body.args) != 2:
        return None
    plain = set(body.args) == {c.a.load, c.b.load} and {x.load.dtype for x in (c.a, c.b)} == {"float32"}
    return c if plain and next(pipelined.configurations(scene), None) is not None else None


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernels. Raises NotPlain."""
    c = splittable(scene)
    if c is None:
        raise NotPlain("no contraction of floats")
    scene.helpers.add("fsr_pack")
    decisions = {k: int(v) for k, v in params.items()}
    blocks = decisions.pop("blocks")
    t = Tiles(**decisions)
    kernel = Written(
        scene, _lines(c, t), grid_of(c, t.bm, t.bn), (str(t.threads), "1", "1"), t.threads, "product", blocks=blocks,
        shared_bytes=str(_shared_bytes(c, t)), before=FUNCTIONS, includes=(HEADER,),
    )  # fmt: skip
    ordinary, _ = next(pipelined.configurations(scene))
    others = [replace(x, suffix="ordinary") for x in pipelined.written(scene, ordinary)]
    return guarded(scene, (c.a.load, c.b.load), kernel, others)


def _shared_bytes(c: Contraction, t: Tiles) -> int:
    return t.stages * sum(x.tile.elements for x in _sides(c, t)) * _KIND.bytes


# ---------------------------------------------------------------- text


@dataclass(frozen=True, slots=True)
class _Side:
    """One operand. ``which``: 'a' or 'b'; ``count``: instructions along it that a warp makes for one of the other's."""

    which: str
    tile: Tile
    count: int

    @property
    def tiles(self) -> str:
        """The name of its loop."""
        return "$m" if self.which == "a" else "$n"


def _sides(c: Contraction, t: Tiles) -> tuple[_Side, _Side]:
    """Rows along the folded dimension are 16 floats more than whole turns of the banks, rows across it four: eight
    lanes read four packs of each of two rows, or two packs of each of four."""
    found = []
    for which, side, extent, count in (("a", c.a, t.bm, t.wm // 16), ("b", c.b, t.bn, t.wn // DEPTH)):
        operand = operand_of(c, side)
        deep = operand.along != "outer"
        pad = (16 - t.bk) % _BANKS if deep else 4
        found.append(_Side(which, Tile(_KIND, operand, extent, t, pad, mixed=True, whole=True), count))
    return found[0], found[1]


def _lines(c: Contraction, t: Tiles) -> list[str]:
    a, b = _sides(c, t)
    limit = c.depth_text()
    return [
        *batch_lines(c), *head(a.tile, b.tile, t), *wide("a", a.tile), *wide("b", b.tile),
        MASK, "const int $g = $thread % 32 / 4, $t = $thread % 4;",
        f"float $acc[{a.count}][{b.count}][4] = {{}};",
        f"const {c.scene.index} $steps = ({limit} + {t.bk - 1}) / {t.bk};",
        *pipeline(a.tile, b.tile, t, limit, c.scene.index, _products(a, b, t)),
        *_results(c, a, b),
    ]  # fmt: skip


def _products(a: _Side, b: _Side, t: Tiles) -> list[str]:
    """Statements that multiply the tiles of one stage, the sums of two steps made apart."""
    product = multiplied(a.count, _ACROSS, "$part[$m][$n]", "$a[$m][$step]", "$b[$n][$step]")
    inner = [
        f"unsigned $a[{a.count}][{STEPS}][2][4];",
        *_terms(a, a.count, "$m_warp"),
        "#pragma unroll",
        f"for (int $from = 0; $from < {b.count}; $from += {_ACROSS}) {{",
        *indent([
            f"unsigned $b[{_ACROSS}][{STEPS}][2][2];",
            *_terms(b, _ACROSS, f"$n_warp + $from * {DEPTH}"),
            f"float $part[{a.count}][{_ACROSS}][4] = {{}};",
            *unrolled("$step", STEPS, product),
            *added((("$m", a.count), ("$n", _ACROSS)), "$acc[$m][$from + $n]", "$part[$m][$n]"),
        ]),
        "}",
    ]  # fmt: skip
    return ["#pragma unroll", f"for (int $kk = 0; $kk < {t.bk}; $kk += {STEPS * DEPTH}) {{", *indent(inner), "}"]


def _terms(x: _Side, count: int, first: str) -> list[str]:
    """Statements that read the factors of ``count`` instructions from row or column ``first`` on, and split them."""
    halves = 2 if x.which == "a" else 1  # groups of eight rows, or columns, of an instruction
    pack = f"const {_PACK} $four = *reinterpret_cast<const {_PACK} *>(&$from_{x.which}[{{}}]);"
    if x.tile.deep:
        row = f"{first} + {x.tiles} * {8 * halves} + $h * 8 + $g"
        terms = f"${x.which}[{x.tiles}][$step]"
        lines = [split(f"$four.v[2 * $step + {e}]", terms, f"$h + {e * halves}") for e in range(2)]
        lines = [pack.format(f"({row}) * {x.tile.pitch} + $kk + 4 * $t"), *unrolled("$step", STEPS, lines)]
        return unrolled(x.tiles, count, unrolled("$h", halves, lines))
    groups = count * halves // 4
    place = f"$q / {halves}" if halves > 1 else "$q"
    terms = f"${x.which}[$group * {4 // halves} + {place}][$step]"
    register = f"$e * {halves} + $q % {halves}" if halves > 1 else "$e"
    at = f"($kk + $step * {DEPTH} + 2 * $t + $e) * {x.tile.pitch} + {first} + $group * {_BANKS} + 4 * $g"
    lines = [pack.format(at), *unrolled("$q", 4, [split("$four.v[$q]", terms, register)])]
    return unrolled("$group", groups, unrolled("$step", STEPS, unrolled("$e", 2, lines)))


def _results(c: Contraction, a: _Side, b: _Side) -> list[str]:
    """Statements that make the outputs of a lane's sums, two or four neighbours at a time."""
    row = "$m * 16 + $h * 8 + $g" if a.tile.deep else f"$m / 2 * {_BANKS} + 4 * $g + $m % 2 * 2 + $h"
    if b.tile.deep:
        column, acc, run = f"$n * {DEPTH} + 2 * $t", "$acc[$m][$n][2 * $h + $lane]", 2
    else:
        column, acc, run = f"$n * {_BANKS} + 8 * $t + 4 * $e", "$acc[$m][4 * $n + $lane][2 * $h + $e]", 4
    lines = [
        line.replace("$PLACE_M", f"$m_block + $m_warp + {row}")
        .replace("$PLACE_N", f"$n_block + $n_warp + {column}").replace("$ACC", acc)
        for line in finished(c, run)
    ]  # fmt: skip
    inner = unrolled("$n", b.count, lines) if b.tile.deep else unrolled("$n", b.count // 4, unrolled("$e", 2, lines))
    return unrolled("$m", a.count, unrolled("$h", 2, inner))
