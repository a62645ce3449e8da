"""block-shape: other blocks for two-dimensional kernels; swap-ids: x and y exchanged where only y runs along memory;
coarsen-rows: several rows a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.analysis.domain import Domain, domain
from fsr.analysis.macros import expanded
from fsr.analysis.point_accesses import accesses, once_set
from fsr.analysis.polynomial import constant
from fsr.records import Candidate, Launch
from fsr.source.emit import emit_stmts
from fsr.source.form import For, While
from fsr.source.names import indent, unrolled
from fsr.transform.placement import grid_for
from fsr.transform.plan import rebuilt, rewritten
from fsr.transform.points import at_point, covered, grid_fits
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, point_targets

SHAPES = ((32, 8), (64, 4), (128, 2), (32, 4), (256, 1), (128, 1), (32, 16), (16, 16), (64, 8))


class BlockShape:
    """The same points in blocks of x by y threads. The kernel's text stays where it reads blockDim; where it has a
    block size written into it, its ids are written anew."""

    name = "block-shape"
    aims_at = frozenset({"uncoalesced", "occupancy", "latency", "bandwidth", "launch"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a shape other than the present one; none with keep_launch."""
        for site in _flat_sites(subject):
            present = site.launch.block
            for rank, (x, y) in enumerate(SHAPES):
                if (str(x), str(y), "1") != present and _block_fits(site, x, y, subject):
                    yield Move(self.name, site.region, (("x", x), ("y", y)), gain=1.3 - 0.05 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with other blocks. Raises KeyError when the move's region is not in the subject."""
        x, y = int(move.param("x")), int(move.param("y"))
        site = _site(_flat_sites(subject), move)
        launch = covered(site, {"x": x, "y": y}, (x, y))
        if _reads_block_dim(site):
            return rewritten(site, move, launch=lambda _: launch)
        places = {a: f"blockIdx.{a} * {size} + threadIdx.{a}" for a, size in (("x", x), ("y", y))}
        return rebuilt(site, move, _body(site, places), launch, bounds=(x * y,))


class SwapIds:
    """Threads along x take what threads along y took: where neighbours along y touch neighbouring elements."""

    name = "swap-ids"
    aims_at = frozenset({"uncoalesced", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a block shape, where more accesses are contiguous along y than along x; none with keep_launch."""
        for site in _flat_sites(subject):
            if _prefers_y(site.domain):
                for rank, (x, y) in enumerate(((32, 8), (64, 4), (128, 1), (32, 4))):
                    if grid_fits(_swapped(site, x, y), subject.contract):
                        yield Move(self.name, site.region, (("x", x), ("y", y)), gain=3.0 - 0.1 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with exchanged ids. Raises KeyError when the move's region is not in the subject."""
        x, y = int(move.param("x")), int(move.param("y"))
        site = _site(_flat_sites(subject), move)
        places = {"y": f"blockIdx.x * {x} + threadIdx.x", "x": f"blockIdx.y * {y} + threadIdx.y"}
        body = _body(site, places)
        return rebuilt(site, move, body, _swapped(site, x, y), bounds=(x * y,))


class CoarsenRows:
    """Each thread handles several rows, a block's height apart, so that independent loads overlap."""

    name = "coarsen-rows"
    aims_at = frozenset({"latency", "instructions", "bandwidth", "launch"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Two, four or eight rows a thread for kernels without loops of their own; none with keep_launch."""
        for site in _flat_sites(subject):
            if any(isinstance(s, For | While) for s in site.domain.core):
                continue
            for rank, (rows, x, y) in enumerate(((4, 32, 8), (2, 32, 8), (4, 64, 4), (8, 32, 8), (4, 128, 2))):
                params = (("rows", rows), ("x", x), ("y", y))
                yield Move(self.name, site.region, params, gain=1.2 - 0.05 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The coarsened candidate. Raises KeyError when the move's region is not in the subject."""
        rows, x, y = (int(move.param(k)) for k in ("rows", "x", "y"))
        site = _site(_flat_sites(subject), move)
        places = {
            "x": f"blockIdx.x * {x} + threadIdx.x",
            "y": f"blockIdx.y * {y * rows} + $i * {y} + threadIdx.y",
        }
        values = once_set(site.domain)
        point = at_point(site.domain, values, places, emit_stmts(site.domain.core).splitlines())
        lines = [*emit_stmts(site.domain.uniform).splitlines(), *unrolled("$i", rows, point)]
        launch = covered(site, {"x": x, "y": y * rows}, (x, y))
        return rebuilt(site, move, "\n".join(indent(lines)), launch, bounds=(x * y,))


def _flat_sites(subject: Subject) -> Iterator[Target]:
    """Two-dimensional sites whose launch may change."""
    for site in point_targets(subject):
        if not subject.keep_launch and set(site.domain.axes) == {"x", "y"} and site.launch.block[2] == "1":
            yield site


def _site(found: Iterator[Target], move: Move) -> Target:
    for site in found:
        if site.region == move.region:
            return site
    raise KeyError(move.region)


def _block_fits(site: Target, x: int, y: int, subject: Subject) -> bool:
    return grid_fits(covered(site, {"x": x, "y": y}, (x, y)), subject.contract)


def _swapped(site: Target, x: int, y: int) -> Launch:
    points = site.placed.points
    grid = (grid_for(points["y"], x), grid_for(points["x"], y), site.launch.grid[2])
    return replace(site.launch, grid=grid, block=(str(x), str(y), "1"), args=site.placed.args)


def _reads_block_dim(site: Target) -> bool:
    """Whether the kernel's text is right for any block: its ids come from blockDim and every axis has a guard."""
    free = replace(site.launch, block=("block_x", "block_y", "1"))
    found = domain(expanded(site.kernel, site.source), free, site.constants)
    guarded = found is not None and set(found.axes) == {"x", "y"} and all(a.inside for a in found.axes.values())
    plain = not site.kernel.launch_bounds and site.placed.params == site.kernel.params
    return guarded and plain and site.domain.flat is None


def _body(site: Target, places: dict[str, str]) -> str:
    """The kernel's body with every point at the place given."""
    core = emit_stmts(site.domain.core).splitlines()
    lines = emit_stmts(site.domain.uniform).splitlines() + at_point(site.domain, once_set(site.domain), places, core)
    return "\n".join(indent(lines)) + "\n"


def _prefers_y(found: Domain) -> bool:
    """Whether more global accesses are contiguous along y than along x."""
    every = accesses(found, once_set(found)) or []
    along = {"x": 0, "y": 0}
    for one in every:
        x, y = (found.poly(one.offset).coefficient(found.axes[a].var) for a in "xy")
        if x == constant(1) and y not in (constant(0), constant(1)):
            along["x"] += 1
        if y == constant(1) and x not in (constant(0), constant(1)):
            along["y"] += 1
    return along["y"] > along["x"]
