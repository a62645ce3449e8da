"""tensor-contraction: products of matrices on tensor cores (``nvcuda::wmma``), whatever their layouts.

Offered where what the original sums allows it: products of two halves or two bfloat16 summed in float, which tensor
cores do exactly so (products exact, sums in float); and products of floats as tf32, where the contract's own relative
tolerance is no finer than tf32's ten bits (2^-10 a product). Double sums and half sums stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fsr.computation.expression import Op
from fsr.computation.types import type_of
from fsr.hardware.gpus import Target
from fsr.hardware.limits import ASYNC_COPIES_FROM
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.contraction import Contraction, contraction, grid_of
from fsr.transform.computed.scene import Scene
from fsr.transform.computed.tensor_text import KINDS, shared_bytes, tensor_lines
from fsr.transform.computed.tensor_tiles import Tiles
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_TF32_ERROR = 2.0**-10  # of a product of two floats that are rounded to ten bits each
_MOST_WARPS = 16


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    c = contraction(scene)
    kind = None if c is None else kind_of(c)
    if c is None or kind is None:
        return
    shape = c.timed_shape()
    fitting = [t for t in FIRST if shared_bytes(t, KINDS[kind], c) <= scene.gpu.max_shared_bytes]
    for tiles in sorted(fitting, key=lambda t: -promise(t, shape, scene.gpu)):
        yield tiles.params(), 8.0 + 40.0 * promise(tiles, shape, scene.gpu)


def kind_of(c: Contraction) -> str | None:
    """What tensor cores multiply in place of the fold's factors: a key of KINDS. None where they may not."""
    body = c.fold.body
    if c.scene.gpu.capability < ASYNC_COPIES_FROM or type_of(c.fold) != "float32":
        return None
    if c.fold.op != "sum" or not isinstance(body, Op) or body.name != "prod" or len(body.args) != 2:
        return None
    if set(body.args) != {c.a.value, c.b.value} or {type_of(x) for x in body.args} != {"float32"}:
        return None
    dtypes = {c.a.load.dtype, c.b.load.dtype}
    if len(dtypes) != 1:
        return None
    dtype = dtypes.pop()
    if dtype in ("float16", "bfloat16"):
        return dtype
    stated = c.scene.target.contract.tolerance
    loose = not stated.exact and (stated.rtol or 0.0) >= _TF32_ERROR
    return "float32" if dtype == "float32" and loose else None


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    c = contraction(scene)
    kind = None if c is None else kind_of(c)
    if c is None or kind is None:
        raise NotPlain("no contraction for tensor cores")
    tiles = Tiles(**{k: int(v) for k, v in params.items()})
    shared = shared_bytes(tiles, KINDS[kind], c)
    return [Written(scene, tensor_lines(c, KINDS[kind], tiles), grid_of(c, tiles.bm, tiles.bn),
                    (str(tiles.threads), "1", "1"), tiles.threads, "product", shared_bytes=str(shared),
                    includes=("mma.h", "cuda_pipeline.h"))]  # fmt: skip


def promise(tiles: Tiles, shape: tuple[int, int, int], gpu: Target) -> float:
    """A guess from 0 to 1 of how well tiles do on layers of m x n outputs (``shape``: layers, m, n): products per
    element that a block reads, and per element that a warp reads from shared memory, times the share of tiles that
    lies inside, and of multiprocessors at work over all waves."""
    layers, m, n = shape
    a_layer = -(-m // tiles.bm) * -(-n // tiles.bn)
    inside = m * n / (a_layer * tiles.bm * tiles.bn)
    blocks = layers * a_layer
    waves = -(-blocks // gpu.sm_count)
    block = tiles.bm * tiles.bn / (tiles.bm + tiles.bn)
    warp = tiles.wm * tiles.wn / (tiles.wm + tiles.wn)
    ahead = (0.6, 0.85, 1.0, 1.0)[tiles.stages - 1]
    return block / (block + 24) * warp / (warp + 8) * ahead * inside * blocks / (waves * gpu.sm_count)


FIRST = (
    Tiles(128, 256, 32, 64, 64, 3), Tiles(128, 256, 32, 64, 64, 4), Tiles(256, 128, 32, 64, 64, 3),
    Tiles(128, 128, 32, 64, 64, 4), Tiles(128, 128, 32, 64, 32, 3), Tiles(128, 128, 64, 64, 32, 3),
    Tiles(128, 128, 32, 64, 32, 2), Tiles(128, 64, 32, 32, 32, 3), Tiles(64, 128, 32, 32, 32, 3),
    Tiles(64, 64, 32, 32, 32, 3), Tiles(64, 64, 64, 32, 32, 2), Tiles(32, 64, 32, 16, 32, 3),
    Tiles(64, 64, 32, 32, 32, 1),
)  # fmt: skip
"""Tilings that usually win somewhere, for elements of two and four bytes."""
