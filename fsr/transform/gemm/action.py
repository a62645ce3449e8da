"""tile-gemm: one output a thread, a loop over k → tiles in shared memory, and registers for many outputs a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.expressions import evaluate_int
from fsr.hardware.c_types import BY_DTYPE, element_bytes
from fsr.hardware.limits import REGISTERS_PER_SM
from fsr.records import Candidate, Launch
from fsr.transform.gemm.config import FIRST, GemmConfig, fits, gemm_space, promise
from fsr.transform.gemm.nest import GemmNest, gemm_nest
from fsr.transform.gemm.parts import gemm_parts
from fsr.transform.gemm.text import gemm_body, simple_body, vector_structs
from fsr.transform.placement import grid_for
from fsr.transform.plan import rebuilt
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, point_targets


class TileGemm:
    """Recognises folds over k of one row and one column (any strides, any start and finish), and tiles them.

    Every output is summed in the original order, so results are the same bit for bit unless the compiler contracts
    differently. The parameters bm, bn, bk, tm, tn, buffers are those of GemmConfig; ``tile`` is the plain
    variant with one output a thread. Any valid GemmConfig may be applied, the moves are the best first guesses.
    """

    name = "tile-gemm"
    aims_at = frozenset({"bandwidth", "latency", "compute", "instructions"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Register-blocked tilings, best guess first, then plain tiles; with keep_launch only a fitting plain tile."""
        for site in point_targets(subject):
            nest = _nest(site, subject)
            if nest is None:
                continue
            region = _region(site, nest)
            if subject.keep_launch:
                if _square(site.launch):
                    yield Move(self.name, region, (("tile", int(site.launch.block[0])),), gain=2.0)
                continue
            m, n = _timed_extents(site, nest, subject)
            ranked = sorted(FIRST, key=lambda c: -promise(c, m, n, subject.gpu))
            for config in ranked:
                if fits(config, *_bytes(nest)):
                    yield Move(self.name, region, config.params(), gain=3.0 + 9.0 * promise(config, m, n, subject.gpu))
            yield Move(self.name, region, (("tile", 32),), gain=2.5)
            yield Move(self.name, region, (("tile", 16),), gain=2.0)

    def space(self, subject: Subject) -> Iterator[Move]:
        """Every configuration of gemm_space that fits, as moves: about 310 for float."""
        for site in point_targets(subject):
            nest = _nest(site, subject)
            if nest is not None and not subject.keep_launch:
                for config in gemm_space(*_bytes(nest)):
                    yield Move(self.name, _region(site, nest), config.params())

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The tiled candidate. Raises KeyError when the move's region is not in the subject."""
        for site in point_targets(subject):
            nest = _nest(site, subject)
            if nest is not None and _region(site, nest) == move.region:
                params = dict(move.params)
                if "tile" in params:
                    return _plain_tile(subject, site, nest, move)
                config = GemmConfig(**{k: int(v) for k, v in params.items()})
                return _blocked(site, nest, config, move)
        raise KeyError(move.region)


def _nest(site: Target, subject: Subject) -> GemmNest | None:
    if site.launch.block[2] != "1" or site.launch.shared_bytes.strip() not in ("", "0"):
        return None
    return gemm_nest(site.domain, subject.contract)


def _timed_extents(site: Target, nest: GemmNest, subject: Subject) -> tuple[int, int]:
    """Rows and columns of the output at the first timed sizes."""
    sizes = subject.contract.timed_sizes()[0]
    m, n = (evaluate_int(site.placed.points[a], sizes) for a in (nest.m_axis, nest.n_axis))
    return max(m, 1), max(n, 1)


def _region(site: Target, nest: GemmNest) -> str:
    return f"loop:{nest.loop.var}" if site.region == "kernel" else f"{site.region}/loop:{nest.loop.var}"


def _square(launch: Launch) -> bool:
    x, y, z = launch.block
    return x == y and z == "1" and x.isdigit() and 8 <= int(x) <= 32


def _bytes(nest: GemmNest) -> tuple[int, int, int]:
    """Bytes of an accumulator, and of the values of both operands."""
    a, b = (
        element_bytes(f.value) or (BY_DTYPE[f.dtype].bytes if f.expr == f.access.expr else 4) for f in (nest.a, nest.b)
    )
    return element_bytes(nest.acc.type) or 4, a, b


def _blocked(site: Target, nest: GemmNest, config: GemmConfig, move: Move) -> Candidate:
    parts = gemm_parts(nest)
    tiles = {nest.m_axis: config.bm, nest.n_axis: config.bn}
    launch = _launch(site, tiles, (str(config.threads), "1", "1"))
    blocks = REGISTERS_PER_SM // (config.threads * config.registers(*_bytes(nest)))
    bounds = (config.threads, blocks) if blocks > 1 else (config.threads,)
    return rebuilt(site, move, gemm_body(parts, config), launch, bounds=bounds, before=vector_structs(parts))


def _plain_tile(subject: Subject, site: Target, nest: GemmNest, move: Move) -> Candidate:
    tile = int(move.param("tile"))
    launch = _launch(site, {nest.m_axis: tile, nest.n_axis: tile}, (str(tile), str(tile), "1"))
    if subject.keep_launch:
        launch = replace(launch, grid=site.launch.grid, block=site.launch.block)
    return rebuilt(site, move, simple_body(gemm_parts(nest), tile), launch, bounds=(tile * tile,))


def _launch(site: Target, tiles: dict[str, int], block: tuple[str, str, str]) -> Launch:
    x, y = (grid_for(site.placed.points[a], tiles[a]) for a in "xy")
    return replace(site.launch, grid=(x, y, site.launch.grid[2]), block=block, args=site.placed.args)
