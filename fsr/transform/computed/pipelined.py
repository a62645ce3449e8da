"""pipeline-contraction: the tiles of tile-contraction, several of which are on their way to shared memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fsr.hardware.limits import ASYNC_COPIES_FROM, REGISTERS_PER_SM
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.contraction import Contraction, contraction, gemm_parts, grid_of
from fsr.transform.computed.scene import Scene
from fsr.transform.gemm.config import GemmConfig, promise
from fsr.transform.gemm.pipelined import ELEMENT_BYTES, HEADER, pipelined_lines, tile_elements
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_DTYPES = ("float32", "int32", "uint32")


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    c = contraction(scene)
    if c is None or not _copied(c):
        return
    layers, m, n = c.timed_shape()

    def good(one: tuple[GemmConfig, int]) -> float:
        return promise(one[0], m * layers, n, scene.gpu)

    for config, stages in sorted(FIRST, key=good, reverse=True):
        if shared_bytes(config, stages) <= scene.gpu.max_shared_bytes:
            yield {**dict(config.params()), "stages": stages}, 4.0 + 9.5 * good((config, stages))


def _copied(c: Contraction) -> bool:
    """Whether both operands are multiplied as they stand in memory, in words that can be copied asynchronously."""
    return c.scene.gpu.capability >= ASYNC_COPIES_FROM and all(
        side.value == side.load and side.load.dtype in _DTYPES for side in (c.a, c.b)
    )


def shared_bytes(config: GemmConfig, stages: int) -> int:
    """Dynamic shared memory of a block."""
    return stages * tile_elements(config) * ELEMENT_BYTES


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    c = contraction(scene)
    if c is None or not _copied(c):
        raise NotPlain("no contraction of words")
    decisions = {k: int(v) for k, v in params.items()}
    stages = decisions.pop("stages")
    config = GemmConfig(**decisions)
    blocks = REGISTERS_PER_SM // (config.threads * replace(config, bk=1).registers())
    lines = pipelined_lines(gemm_parts(c), config, stages)
    return [Written(scene, lines, grid_of(c, config.bm, config.bn), (str(config.threads), "1", "1"), config.threads,
                    "product", blocks=blocks if blocks > 1 else 0, shared_bytes=str(shared_bytes(config, stages)),
                    includes=(HEADER,))]  # fmt: skip


FIRST = (
    (GemmConfig(128, 128, 8, 8, 8), 4), (GemmConfig(128, 128, 16, 8, 8), 3), (GemmConfig(128, 128, 16, 8, 8), 2),
    (GemmConfig(256, 128, 8, 16, 8), 3), (GemmConfig(128, 64, 16, 8, 8), 3), (GemmConfig(64, 128, 16, 8, 8), 3),
    (GemmConfig(64, 64, 16, 8, 4), 3), (GemmConfig(64, 64, 16, 4, 4), 3),
)  # fmt: skip
"""Tilings and stages that usually win somewhere between 512 and 8192 rows."""
