"""march-stencil and tile-stencil: each element of a neighbourhood is read once a thread, or once a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.transform.plan import rebuilt
from fsr.transform.points import covered, grid_fits
from fsr.transform.protocol import Move, Subject
from fsr.transform.stencil.neighbourhood import Stencil, stencil
from fsr.transform.stencil.text import halo_body, halo_extent, march_body
from fsr.transform.target import Target, point_targets

MARCHES = ((4, 32, 8), (4, 64, 4), (8, 32, 4), (2, 32, 8), (4, 128, 1), (8, 64, 2), (8, 128, 1), (2, 64, 4))
TILES = ((2, 32, 8), (1, 32, 8), (4, 32, 8), (2, 64, 4), (4, 64, 4), (1, 32, 16))


class MarchStencil:
    """A thread computes ``rows`` points one below the other and keeps the rows that they share in registers."""

    name = "march-stencil"
    aims_at = frozenset({"bandwidth", "latency", "instructions", "launch"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a number of rows and block shape; none with keep_launch."""
        for site, _ in _stencils(subject):
            for rank, (rows, x, y) in enumerate(MARCHES):
                yield Move(self.name, site.region, (("rows", rows), ("x", x), ("y", y)), gain=1.6 - 0.05 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The marching candidate. Raises KeyError when the move's region is not in the subject."""
        return _applied(subject, move, march_body)


class TileStencil:
    """A block keeps a tile of x by y * rows points and its halo in shared memory."""

    name = "tile-stencil"
    aims_at = frozenset({"bandwidth", "uncoalesced"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a tile shape that fits; none with keep_launch."""
        for site, found in _stencils(subject):
            reads = max(len(n.offsets) for n in found.neighbourhoods)
            for rank, (rows, x, y) in enumerate(TILES):
                if _shared_bytes(found, x, y * rows) <= STATIC_SHARED_BYTES:
                    gain = (1.2 if reads < 9 else 1.8) - 0.05 * rank
                    yield Move(self.name, site.region, (("rows", rows), ("x", x), ("y", y)), gain=gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The tiled candidate. Raises KeyError when the move's region is not in the subject."""
        return _applied(subject, move, halo_body)


def _applied(subject: Subject, move: Move, body: Callable[[Stencil, int, int, int], str]) -> Candidate:
    rows, x, y = (int(move.param(k)) for k in ("rows", "x", "y"))
    for site, found in _stencils(subject):
        if site.region == move.region:
            launch = covered(site, {"x": x, "y": y * rows}, (x, y))
            return rebuilt(site, move, body(found, rows, x, y), launch, bounds=(x * y,))
    raise KeyError(move.region)


def _stencils(subject: Subject) -> Iterator[tuple[Target, Stencil]]:
    if subject.keep_launch:
        return
    for site in point_targets(subject):
        found = stencil(site.domain, subject.contract) if site.launch.block[2] == "1" else None
        if found is not None and grid_fits(covered(site, {"x": 32, "y": 1}, (32, 1)), subject.contract):
            yield site, found


def _shared_bytes(found: Stencil, x: int, tile_y: int) -> int:
    total = 0
    for n in found.neighbourhoods:
        width, height = halo_extent(n, x, tile_y)
        total += width * height * BY_DTYPE[n.dtype].bytes
    return total
