"""tile-transpose: accesses that are contiguous along y only go through a shared-memory tile, so that all coalesce."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.transform.plan import rebuilt
from fsr.transform.points import covered, grid_fits
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, point_targets
from fsr.transform.transpose.strided import Transposed, transpose_body, transposed

SHAPES = ((32, 8), (64, 16), (32, 16), (64, 8), (32, 4), (64, 4), (32, 32), (16, 16))


class TileTranspose:
    """Transposes, permutations and element-wise work on them. ``tile``: points along each side of a block's square;
    ``rows``: rows of threads, each of which handles tile / rows points."""

    name = "tile-transpose"
    aims_at = frozenset({"uncoalesced", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a tile shape; with keep_launch only the shape that the block has."""
        for site in point_targets(subject):
            found = _found(site, subject)
            if found is None:
                continue
            if subject.keep_launch:
                x, y, _ = site.launch.block
                shapes = [(int(x), int(y))] if x == y and x.isdigit() and _fits(found, int(x)) else []
            else:
                shapes = [s for s in SHAPES if _fits(found, s[0])]
            for rank, (tile, rows) in enumerate(shapes):
                yield Move(self.name, site.region, (("tile", tile), ("rows", rows)), gain=3.0 - 0.1 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with tiles. Raises KeyError when the move's region is not in the subject."""
        tile, rows = int(move.param("tile")), int(move.param("rows"))
        for site in point_targets(subject):
            found = _found(site, subject)
            if found is not None and site.region == move.region:
                launch = covered(site, {"x": tile, "y": tile}, (tile, rows))
                if subject.keep_launch:
                    launch = replace(launch, grid=site.launch.grid, block=site.launch.block)
                body = transpose_body(found, tile, rows)
                return rebuilt(site, move, body, launch, bounds=(tile * rows,))
        raise KeyError(move.region)


def _found(site: Target, subject: Subject) -> Transposed | None:
    if site.launch.block[2] != "1" or set(site.domain.axes) != {"x", "y"}:
        return None
    if not grid_fits(covered(site, {"x": 16, "y": 16}, (16, 16)), subject.contract):
        return None
    return transposed(site.domain, subject.contract)


def _fits(found: Transposed, tile: int) -> bool:
    tiles = len(found.reads) + (found.write is not None)
    return tiles * tile * (tile + 1) * found.element_bytes <= STATIC_SHARED_BYTES
