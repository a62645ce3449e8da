"""warpgroup-contraction: products of halves or bfloat16 by Hopper's wgmma, whatever the operands' layouts.

Offered where ``tensor-contraction`` is, for factors of 16 bits that lie along one of their two dimensions, on GPUs of
capability 9.0, the only ones that have the instruction. Products are exact and sums in float, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fsr.hardware.gpus import Target
from fsr.hardware.limits import WGMMA_AT
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.contraction import Contraction, contraction, grid_of, operand_of
from fsr.transform.computed.scene import Scene
from fsr.transform.computed.tensor import kind_of
from fsr.transform.computed.warpgroup_text import ELEMENTS, Tiles, instructions, warpgroup_lines
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    c = contraction(scene)
    if c is None or _dtype(c) is None:
        return
    shape = c.timed_shape()
    fitting = [t for t in FIRST if t.shared_bytes <= scene.gpu.max_shared_bytes]
    for tiles in sorted(fitting, key=lambda t: -promise(t, shape, scene.gpu)):
        yield tiles.params(), 8.0 + 70.0 * promise(tiles, shape, scene.gpu)


def _dtype(c: Contraction) -> str | None:
    """The factors' type; None where wgmma cannot multiply them."""
    kind = kind_of(c) if c.scene.gpu.capability == WGMMA_AT else None
    return kind if kind in ELEMENTS and all(operand_of(c, side).along for side in (c.a, c.b)) else None


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    c = contraction(scene)
    dtype = None if c is None else _dtype(c)
    if c is None or dtype is None:
        raise NotPlain("no contraction for wgmma")
    tiles = Tiles(**{k: int(v) for k, v in params.items()})
    return [Written(scene, warpgroup_lines(c, dtype, tiles), grid_of(c, tiles.bm, tiles.bn),
                    (str(tiles.threads), "1", "1"), tiles.threads, "product", shared_bytes=str(tiles.shared_bytes),
                    before=instructions(c, dtype, tiles), includes=("cuda_pipeline.h",))]  # fmt: skip


def promise(tiles: Tiles, shape: tuple[int, int, int], gpu: Target) -> float:
    """A guess from 0 to 1 of how well tiles do on layers of m x n outputs (``shape``: layers, m, n): products per
    element that a block reads, times the share of tiles that lies inside, and of multiprocessors at work over all
    waves."""
    layers, m, n = shape
    a_layer = -(-m // tiles.bm) * -(-n // tiles.bn)
    inside = m * n / (a_layer * tiles.bm * tiles.bn)
    blocks = layers * a_layer
    at_once = gpu.sm_count * max(1, min(gpu.shared_bytes_per_sm // (tiles.shared_bytes + 1024), 512 // tiles.threads))
    waves = -(-blocks // at_once)
    block = tiles.bm * tiles.bn / (tiles.bm + tiles.bn)
    return block / (block + 40) * inside * blocks / (waves * at_once)


FIRST = (
    Tiles(256, 128, 64, 4), Tiles(128, 256, 64, 4), Tiles(128, 128, 64, 5), Tiles(128, 64, 64, 4),
    Tiles(64, 128, 64, 4), Tiles(64, 64, 64, 6),
)  # fmt: skip
"""Tilings that win somewhere on an H200 or lie between such. Never the fastest there: two products of a warpgroup a
step (wm 128), three stages (up to twice as slow where factors lie across the sum), 192 rows or columns."""
