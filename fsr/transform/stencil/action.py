"""march-stencil and tile-stencil: each element of a neighbourhood is read once a thread, or once a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fsr.analysis.domain import with_core
from fsr.analysis.interior import interior
from fsr.analysis.point_accesses import once_set
from fsr.analysis.versions import told_apart
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.source.form import Declare, Member, Name, conjunction
from fsr.source.walk import contains_opaque
from fsr.transform.plan import rebuilt
from fsr.transform.points import covered, grid_fits
from fsr.transform.protocol import Move, Subject
from fsr.transform.stencil.interior import decided, edge_tests
from fsr.transform.stencil.neighbourhood import FEW, Level, Stencil, stencil
from fsr.transform.stencil.text import halo_body, halo_extent, march_body
from fsr.transform.target import Target, point_targets

MARCHES = ((4, 32, 8), (4, 64, 4), (8, 32, 4), (2, 32, 8), (4, 128, 1), (8, 64, 2), (8, 128, 1), (2, 64, 4))
TILES = ((2, 32, 8), (1, 32, 8), (4, 32, 8), (2, 64, 4), (4, 64, 4), (1, 32, 16))
REGISTERS = 128  # of neighbours that loops go over


class MarchStencil:
    """A thread computes ``rows`` points one below the other and keeps the rows that they share in registers."""

    name = "march-stencil"
    aims_at = frozenset({"bandwidth", "latency", "instructions", "launch"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a number of rows and block shape; none with keep_launch."""
        for site, found in _stencils(subject):
            for rank, (rows, x, y) in enumerate(MARCHES):
                if _kept(found, rows) > REGISTERS:
                    continue
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
            reads = max(len(n.reads) for n in found.neighbourhoods)
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
        found = None
        if site.launch.block[2] == "1" and set(site.domain.axes) == {"x", "y"}:
            found = stencil(site.domain, subject.contract) or _away_from_edges(site)
        if found is not None and grid_fits(covered(site, {"x": 32, "y": 1}, (32, 1)), subject.contract):
            yield site, found


def _away_from_edges(site: Target) -> Stencil | None:
    """The stencil that a kernel is where all tests of its neighbours' places are decided."""
    own = site.domain
    ids = tuple(Declare(axis.type, axis.var, Member(Name("threadIdx"), a)) for a, axis in own.axes.items())
    lead = (*ids, *own.uniform)
    body = told_apart((*lead, *own.core), site.names)
    if contains_opaque(body):
        return None
    known = interior(replace(own.form, body=body), site.functions, site.constants)
    core = decided(known, len(lead), site.aliases)
    test = conjunction(edge_tests(known))
    found = stencil(with_core(own, core), site.contract)
    if found is None or max(len(n.reads) for n in found.neighbourhoods) < FEW:
        return None
    levels = found.levels if test is None else (Level((), test, True), *found.levels)
    return replace(found, domain=own, values=once_set(own), levels=levels)


def _kept(found: Stencil, rows: int) -> int:
    """Registers of what a thread keeps."""
    boxes = (n.box() for n in found.neighbourhoods if n.loops)
    return sum((right - left + 1) * (rows + bottom - top) for left, right, top, bottom in boxes)


def _shared_bytes(found: Stencil, x: int, tile_y: int) -> int:
    total = 0
    for n in found.neighbourhoods:
        width, height = halo_extent(n, x, tile_y)
        total += width * height * BY_DTYPE[n.dtype].bytes
    return total
